// SPDX-License-Identifier: Apache-2.0
//! Checks the length of functions: at most 80 lines from signature to closing brace. Tests may be longer.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemFn, ItemMod, Signature};

use super::Finding;
use crate::tree::File;

const LINES_MAX: usize = 80;

pub fn check(files: &[File]) -> Vec<Finding> {
    let is_source = |file: &&File| {
        let is_test = file.path.contains("/tests/") || file.name() == "tests.rs";
        file.has_extension("rs") && !is_test && !file.is_generated()
    };
    files.iter().filter(is_source).flat_map(check_one).collect()
}

fn check_one(file: &File) -> Vec<Finding> {
    let Ok(code) = syn::parse_file(file.text.as_deref().unwrap_or_default()) else {
        return vec![Finding::new(file, 0, "cannot be parsed as Rust")];
    };
    let mut functions = Functions { file, findings: Vec::new() };
    functions.visit_file(&code);
    functions.findings
}

struct Functions<'a> {
    file: &'a File,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn function(&mut self, signature: &Signature, whole: proc_macro2::Span) {
        let first = signature.span().start().line;
        let lines = whole.end().line + 1 - first;
        if lines > LINES_MAX {
            let says =
                format!("`{}` has {lines} lines, but the limit is {LINES_MAX}; split it", signature.ident);
            self.findings.push(Finding::new(self.file, first, says));
        }
    }
}

pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    };
    attributes.iter().any(is_test)
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.function(&function.sig, function.span());
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.function(&function.sig, function.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        // Macros contain no functions that can be parsed.
        if !matches!(item, Item::Macro(_)) {
            visit::visit_item(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        format!("/// Documented.\nfn {name}() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_found_wherever_it_stands() {
        let text = format!("{}impl X {{\n{}}}\n", function("short", 80), function("long", 81));
        let found = check(&[File::planted("a.rs", &text)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].line, found[0].says.starts_with("`long` has 81 lines")), (84, true));
    }

    #[test]
    fn tests_may_be_longer() {
        let text = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("long", 200));
        assert_eq!(check(&[File::planted("a.rs", &text)]), []);
        assert_eq!(check(&[File::planted("x/tests/a.rs", &function("long", 200))]), []);
    }
}
