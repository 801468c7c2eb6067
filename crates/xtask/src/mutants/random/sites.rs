// SPDX-License-Identifier: Apache-2.0
//! Locations in a source file that can be mutated: one [`Mutant`] for each single change.
//!
//! Operators are swapped, conditions are replaced by `true` or `false`, statements are deleted, constants are
//! changed by one, and bodies are replaced by a default value. Tests, macros (including debug assertions) and
//! capacities of collections are not changed.

use std::collections::HashMap;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, BinOp, Block, Expr, ExprBinary, ExprCall, ExprIf, ExprMethodCall, ExprUnary, ExprWhile, File,
    ImplItemFn, ItemFn, ItemImpl, ItemMod, Lit, ReturnType, Signature, Stmt, TraitItemFn, Type, UnOp,
};

use crate::Failure;

/// Single change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Function that contains the change, with its type, such as `Table::lookup`.
    pub function: String,
    /// Byte range that is replaced.
    pub range: Range<usize>,
    /// Original text of the range.
    pub original: String,
    /// Replacement text.
    pub replacement: String,
    /// Number of identical changes that precede this change in the function.
    pub ordinal: usize,
}

impl Mutant {
    /// Returns a name that stays valid if other parts of the file change.
    pub fn name(&self) -> String {
        let ordinal = if self.ordinal == 0 { String::new() } else { format!(" #{}", self.ordinal + 1) };
        let (from, to) = (one_line(&self.original), one_line(&self.replacement));
        format!("{} {}: `{from}` becomes `{to}`{ordinal}", self.path, self.function)
    }

    /// Returns the line of the change, from 1.
    pub fn line(&self, text: &str) -> usize {
        text.get(..self.range.start).map_or(0, |before| before.matches('\n').count() + 1)
    }

    /// Returns the file's text with the change.
    pub fn apply(&self, text: &str) -> Result<String, Failure> {
        if text.get(self.range.clone()) != Some(self.original.as_str()) {
            return Err(format!("{} changed during the run", self.path));
        }
        let (before, after) = (&text[..self.range.start], &text[self.range.end..]);
        Ok(format!("{before}{}{after}", self.replacement))
    }
}

/// Returns every mutant of a file.
pub fn find(path: &str, text: &str) -> Result<Vec<Mutant>, Failure> {
    let file: File = syn::parse_file(text).map_err(|error| format!("{path} cannot be parsed: {error}"))?;
    let mut finder =
        Finder { path, text, scope: Vec::new(), constant: 0, found: Vec::new(), seen: HashMap::new() };
    if !is_for_tests(&file.attrs) {
        finder.visit_file(&file);
    }
    Ok(finder.found)
}

/// Collapses white space to single spaces and truncates long text.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 80 { line } else { line.chars().take(77).chain("...".chars()).collect() }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute
                    .parse_args_with(|input: syn::parse::ParseStream| {
                        input.parse::<proc_macro2::TokenStream>().map(|tokens| tokens.to_string())
                    })
                    .is_ok_and(|condition| condition == "test" || condition == "debug_assertions")
    })
}

struct Finder<'a> {
    path: &'a str,
    text: &'a str,
    /// Names of the enclosing types, modules and functions.
    scope: Vec<String>,
    /// Nesting depth of types and patterns, whose constants are not changed.
    constant: usize,
    found: Vec<Mutant>,
    seen: HashMap<String, usize>,
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, replacement: impl Into<String>) {
        let replacement = replacement.into();
        let Some(original) = self.text.get(range.clone()) else { return };
        if original == replacement {
            return;
        }
        let mut mutant = Mutant {
            path: self.path.into(),
            function: self.scope.join("::"),
            range,
            original: original.into(),
            replacement,
            ordinal: 0,
        };
        let equal = self.seen.entry(mutant.name()).or_default();
        mutant.ordinal = *equal;
        *equal += 1;
        self.found.push(mutant);
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.scope.push(name);
        visit(self);
        self.scope.pop();
    }

    fn condition(&mut self, condition: &Expr, values: &[&str]) {
        // A condition with `let` binds names, so it cannot be replaced.
        if !matches!(condition, Expr::Let(_) | Expr::Lit(_)) && !has_let(condition) {
            for value in values {
                self.add(condition.span().byte_range(), *value);
            }
        }
    }

    fn body(&mut self, signature: &Signature, block: &Block) {
        let is_empty = block.stmts.is_empty();
        let range = block.span().byte_range();
        if is_empty || signature.constness.is_some() {
            return;
        }
        for value in defaults(&signature.output) {
            self.add(range.clone(), format!("{{ {value} }}"));
        }
    }
}

fn has_let(expression: &Expr) -> bool {
    struct Search(bool);
    impl<'ast> Visit<'ast> for Search {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
    }
    let mut search = Search(false);
    search.visit_expr(expression);
    search.0
}

/// Returns values that may replace the result of a function with this return type.
fn defaults(output: &ReturnType) -> Vec<String> {
    let ReturnType::Type(_, kind) = output else { return vec![String::new()] };
    let Type::Path(path) = &**kind else { return Vec::new() };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let texts: &[&str] = match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" | "isize" => &["0", "1"],
        "Option" => &["None"],
        "Result" => &["Ok(Default::default())"],
        // A `Default` implementation that returns its own default would recurse endlessly.
        "Self" => &[],
        _ => &["Default::default()"],
    };
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Returns the replacements of an operator.
fn swapped(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["|"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitXorAssign(_) => &["|="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let Type::Path(kind) = &*item.self_ty else { return visit::visit_item_impl(self, item) };
        let name = kind.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        // Debug output is not tested behaviour.
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !is_for_tests(&item.attrs) && of.is_none_or(|of| of.ident != "Debug") {
            self.within(name, |finder| visit::visit_item_impl(finder, item));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_for_tests(&item.attrs) {
            self.within(item.sig.ident.to_string(), |finder| {
                finder.body(&item.sig, &item.block);
                visit::visit_item_fn(finder, item);
            });
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            self.within(item.sig.ident.to_string(), |finder| {
                finder.body(&item.sig, &item.block);
                visit::visit_impl_item_fn(finder, item);
            });
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.within(item.sig.ident.to_string(), |finder| visit::visit_trait_item_fn(finder, item));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        if !is_for_tests(&item.attrs) {
            self.within(item.ident.to_string(), |finder| visit::visit_item_const(finder, item));
        }
    }

    fn visit_type(&mut self, kind: &'ast Type) {
        self.constant += 1;
        visit::visit_type(self, kind);
        self.constant -= 1;
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement
            && matches!(
                expression,
                Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Binary(_) | Expr::Try(_)
            )
        {
            self.add(statement.span().byte_range(), "");
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        for operator in swapped(&binary.op) {
            self.add(binary.op.span().byte_range(), *operator);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if let UnOp::Not(not) = &unary.op {
            self.add(not.span().byte_range(), "");
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_if(&mut self, item: &'ast ExprIf) {
        self.condition(&item.cond, &["true", "false"]);
        visit::visit_expr_if(self, item);
    }

    fn visit_expr_while(&mut self, item: &'ast ExprWhile) {
        self.condition(&item.cond, &["false"]);
        visit::visit_expr_while(self, item);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.condition(guard, &["true", "false"]);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_lit(&mut self, literal: &'ast Lit) {
        let Lit::Int(number) = literal else { return };
        let Ok(value) = number.base10_parse::<u128>() else { return };
        if self.constant == 0 && !self.scope.is_empty() {
            let range = number.span().byte_range();
            self.add(range.clone(), format!("{}{}", value + 1, number.suffix()));
            if value > 0 {
                self.add(range, format!("{}{}", value - 1, number.suffix()));
            }
        }
    }

    fn visit_pat(&mut self, pattern: &'ast syn::Pat) {
        self.constant += 1;
        visit::visit_pat(self, pattern);
        self.constant -= 1;
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let is_capacity = matches!(&*call.func, Expr::Path(path)
            if path.path.segments.last().is_some_and(|last| last.ident == "with_capacity"));
        if !is_capacity {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if call.method != "reserve" {
            visit::visit_expr_method_call(self, call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let found = find("a.rs", text).unwrap();
        for mutant in &found {
            syn::parse_file(&mutant.apply(text).unwrap()).unwrap();
        }
        found.iter().map(|mutant| mutant.name().replace("a.rs ", "")).collect()
    }

    #[test]
    fn operators_conditions_statements_constants_and_bodies_are_changed() {
        let text = "struct S;\nimpl S { fn f(&self, a: u32, b: u32) -> bool {\n  g(3);\n  if !(a < b) { h(a + 1) }\n  a == b } }";
        assert_eq!(
            names(text),
            [
                "S::f: `{ g(3); if !(a < b) { h(a + 1) } a == b }` becomes `{ true }`",
                "S::f: `{ g(3); if !(a < b) { h(a + 1) } a == b }` becomes `{ false }`",
                "S::f: `g(3);` becomes ``",
                "S::f: `3` becomes `4`",
                "S::f: `3` becomes `2`",
                "S::f: `!(a < b)` becomes `true`",
                "S::f: `!(a < b)` becomes `false`",
                "S::f: `!` becomes ``",
                "S::f: `<` becomes `<=`",
                "S::f: `<` becomes `>=`",
                "S::f: `+` becomes `-`",
                "S::f: `1` becomes `2`",
                "S::f: `1` becomes `0`",
                "S::f: `==` becomes `!=`",
            ]
        );
    }

    #[test]
    fn equal_changes_of_a_function_are_numbered() {
        let text = "fn f(a: u8) -> Option<u8> { a.checked_add(a ^ a)?.checked_mul(a ^ a) }";
        assert_eq!(names(text)[1..], ["f: `^` becomes `|`".to_owned(), "f: `^` becomes `|` #2".to_owned()]);
    }

    #[test]
    fn tests_macros_types_patterns_and_capacities_stay() {
        for text in [
            "#[cfg(test)] mod tests { fn f() { g(1); } }",
            "#[test] fn f() { g(1); }",
            "fn f() -> [u8; 3] { debug_assert!(1 < 2); Vec::with_capacity(1 + 2) }",
            "impl std::fmt::Debug for S { fn fmt(&self) -> u8 { 1 + 1 } }",
            "fn f(a: u8) -> &'static str { match a { 1 => \"\", _ => \"b\" } }",
            "const fn f(a: S) -> S { a }",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_change_is_applied_where_the_text_is_the_same() {
        let text = "// é\nfn f(a: u8) -> &'static u8 {\n    g(a < b)\n}";
        let found = find("a.rs", text).unwrap();
        assert_eq!(found[0].line(text), 3);
        assert_eq!(found[0].apply(text).unwrap(), text.replace('<', "<="));
        assert!(found[0].apply("fn f() {}").is_err());
    }
}
