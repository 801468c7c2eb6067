// SPDX-License-Identifier: Apache-2.0
//! Checks imports among the modules of a crate. At most [`FILES_MAX`] files may form a cycle. In a crate
//! whose modules are listed from the top down, no module may import a module above it.
//!
//! A module imports another if a path in its code leads there: a `use` declaration, or a path that begins
//! with `crate`, `super` or `self`. A path through a re-export leads to the module that defines the name. A
//! module may always name its submodules. Code for tests does not count.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{ImplItemFn, ItemFn, ItemMod, ItemUse, UseTree, Visibility};

use super::functions::is_for_tests;
use super::{Finding, idioms};
use crate::tree::File;

/// Maximum number of files that may import each other in a cycle.
const FILES_MAX: usize = 3;

/// Crates whose root declares its modules from the top down: a module imports only modules below it.
const DESCENDING: &[&str] = &["pipeline"];

/// Position of a module in its crate, such as `["ffp", "lut"]`; empty for the crate's root.
type Place = Vec<String>;

/// Modules of a crate, by position.
type Modules<'a> = BTreeMap<Place, Module<'a>>;

struct Module<'a> {
    file: &'a File,
    /// Paths that occur in the code, as written there, with their line numbers.
    paths: Vec<(Vec<String>, usize)>,
    /// Submodules that have their own files, in the order of their declarations.
    declares: Vec<String>,
    /// Names that the module re-exports, with the original paths.
    exports: BTreeMap<String, Vec<String>>,
}

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Modules<'_>> = BTreeMap::new();
    let mut findings = Vec::new();
    // The files' own text is parsed. The code from `shipped` has no string literals, so it cannot always be
    // parsed.
    for (file, _) in &idioms::shipped(files) {
        let Some((name, path)) = file.path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        match syn::parse_file(file.text.as_deref().unwrap_or_default()) {
            Ok(code) => drop(crates.entry(name).or_default().insert(place(path), Module::of(file, &code))),
            Err(error) => findings.push(Finding::new(file, 0, format!("cannot be parsed: {error}"))),
        }
    }
    findings.extend(crates.iter().flat_map(|(name, modules)| check_crate(name, modules)));
    findings
}

/// Returns the place of the module in the file `path`, which is relative to the crate's `src`.
fn place(path: &str) -> Place {
    let mut parts: Place = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

fn check_crate(name: &str, modules: &Modules<'_>) -> Vec<Finding> {
    let imports = imports(modules);
    let mut findings: Vec<Finding> =
        circles(&imports).iter().filter_map(|circle| report(circle, modules)).collect();
    if DESCENDING.contains(&name) {
        findings.extend(climbing(modules, &imports));
    }
    findings
}

/// Modules that each module imports, with the line of one such import. The root and the module's own
/// submodules are omitted.
type Imports<'a> = BTreeMap<&'a Place, BTreeMap<&'a Place, usize>>;

fn imports<'a>(modules: &'a Modules<'_>) -> Imports<'a> {
    let mut found = Imports::new();
    for (place, module) in modules.iter().filter(|(place, _)| !place.is_empty()) {
        for (path, line) in &module.paths {
            let Some(target) = resolve(path, place, modules) else { continue };
            if !target.is_empty() && !target.starts_with(place) {
                found.entry(place).or_default().entry(target).or_insert(*line);
            }
        }
    }
    found
}

/// Returns the module to which a path in the module `from` leads, or `None` if the path leads out of the
/// crate.
fn resolve<'a>(path: &[String], from: &Place, modules: &'a Modules<'_>) -> Option<&'a Place> {
    let mut full = absolute(path, from, modules)?;
    // Each step replaces a re-export by its original path. Re-exports may form a cycle, so the number of
    // steps is bounded.
    for _ in 0..8 {
        let mut depth = full.len();
        let target = loop {
            if let Some((target, module)) = modules.get_key_value(&full[..depth]) {
                break (target, module);
            }
            depth = depth.checked_sub(1)?;
        };
        let export = full.get(depth).and_then(|name| target.1.exports.get(name));
        match export.and_then(|path| absolute(path, target.0, modules)) {
            Some(next) => full = next,
            None => return Some(target.0),
        }
    }
    None
}

/// Returns a path from the crate's root, or `None` if the path leads to another crate.
fn absolute(path: &[String], from: &Place, modules: &Modules<'_>) -> Option<Vec<String>> {
    let first = path.first()?;
    let mut rest = &path[1..];
    let mut full = match first.as_str() {
        "crate" => Vec::new(),
        "self" => from.clone(),
        "super" => from[..from.len().checked_sub(1)?].to_vec(),
        child => {
            let below: Place = from.iter().cloned().chain([child.to_owned()]).collect();
            return modules.contains_key(&below).then(|| from.iter().chain(path).cloned().collect());
        }
    };
    while let Some(("super", after)) = rest.split_first().map(|(name, after)| (name.as_str(), after)) {
        full.pop()?;
        rest = after;
    }
    full.extend_from_slice(rest);
    Some(full)
}

/// Returns the sets of modules that import each other, directly or indirectly, the largest first.
fn circles<'a>(imports: &Imports<'a>) -> Vec<BTreeSet<&'a Place>> {
    let reached: BTreeMap<&Place, BTreeSet<&Place>> =
        imports.keys().map(|from| (*from, reachable(from, imports))).collect();
    let mut found: Vec<BTreeSet<&Place>> = Vec::new();
    for (from, targets) in &reached {
        let is_mutual = |to: &&&Place| reached.get(**to).is_some_and(|back| back.contains(from));
        let circle: BTreeSet<&Place> = targets.iter().filter(is_mutual).copied().collect();
        if circle.len() > FILES_MAX && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

fn reachable<'a>(from: &'a Place, imports: &Imports<'a>) -> BTreeSet<&'a Place> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for target in imports.get(next).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(*target) {
                open.push(target);
            }
        }
    }
    reached
}

fn report(circle: &BTreeSet<&Place>, modules: &Modules<'_>) -> Option<Finding> {
    let file = modules[*circle.first()?].file;
    let names: Vec<String> = circle.iter().map(|place| place.join("::")).collect();
    let says = format!(
        "{} modules import each other in a cycle, but the limit is {FILES_MAX}: {}",
        names.len(),
        names.join(", ")
    );
    Some(Finding::new(file, 0, says))
}

/// Finds imports of modules that the crate's root declares above the importing module.
fn climbing(modules: &Modules<'_>, imports: &Imports<'_>) -> Vec<Finding> {
    let order = modules.get(&Vec::new()).map_or(&[][..], |root| &root.declares);
    let rank =
        |place: &Place| place.first().and_then(|top| order.iter().position(|declared| declared == top));
    let mut findings = Vec::new();
    for (place, targets) in imports {
        for (target, line) in targets.iter().filter(|(target, _)| rank(target) < rank(place)) {
            let says = format!(
                "lib.rs declares `{}` above this module, so it may not be imported here; move what both use \
                 below them",
                target.join("::")
            );
            findings.push(Finding::new(modules[*place].file, *line, says));
        }
    }
    findings
}

impl<'a> Module<'a> {
    fn of(file: &'a File, code: &syn::File) -> Self {
        let mut module = Self { file, paths: Vec::new(), declares: Vec::new(), exports: BTreeMap::new() };
        module.visit_file(code);
        module
    }

    fn tree(&mut self, tree: &UseTree, prefix: &[String], line: usize, exported: bool) {
        let with = |name: String| prefix.iter().cloned().chain([name]).collect::<Vec<String>>();
        let (path, name) = match tree {
            UseTree::Path(path) => {
                return self.tree(&path.tree, &with(path.ident.to_string()), line, exported);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|item| self.tree(item, prefix, line, exported));
            }
            UseTree::Name(name) if name.ident == "self" => (prefix.to_vec(), prefix.last().cloned()),
            UseTree::Name(name) => (with(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(rename) => (with(rename.ident.to_string()), Some(rename.rename.to_string())),
            UseTree::Glob(_) => (prefix.to_vec(), None),
        };
        if let Some(name) = name.filter(|_| exported) {
            self.exports.insert(name, path.clone());
        }
        self.paths.push((path, line));
    }
}

impl<'ast> Visit<'ast> for Module<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let exported = !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, &[], item.use_token.span.start().line, exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if matches!(names[0].as_str(), "crate" | "super" | "self") && names.len() > 1 {
            self.paths.push((names, path.segments[0].ident.span().start().line));
        }
        visit::visit_path(self, path);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        // Modules without their own file are skipped, because `super` has another meaning in them.
        if module.content.is_none() && !is_for_tests(&module.attrs) {
            self.declares.push(module.ident.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Finding> {
        let planted: Vec<File> = files.iter().map(|(path, text)| File::planted(path, text)).collect();
        check(&planted)
    }

    /// Returns a crate with the modules `a`, `b` and so on. Each imports the next one, and the last imports
    /// the first.
    fn ring(size: u8) -> Vec<(String, String)> {
        let name = |at: u8| char::from(b'a' + at % size);
        (0..size)
            .map(|at| {
                (format!("crates/model/src/{}.rs", name(at)), format!("use crate::{}::X;\n", name(at + 1)))
            })
            .collect()
    }

    fn found_in(files: &[(String, String)]) -> Vec<Finding> {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        found(&files)
    }

    #[test]
    fn a_circle_of_four_files_is_found_once_and_one_of_three_is_not() {
        assert_eq!(found_in(&ring(3)), []);
        let four = found_in(&ring(4));
        assert_eq!(four.len(), 1, "{four:?}");
        assert_eq!(four[0].says, "4 modules import each other in a cycle, but the limit is 3: a, b, c, d");
    }

    #[test]
    fn an_open_chain_is_no_circle() {
        let mut files = ring(5);
        files[4].1 = "use std::fmt;\n".into();
        assert_eq!(found_in(&files), []);
    }

    #[test]
    fn reexports_lead_to_the_module_that_defines_the_name() {
        let mut files = ring(4);
        files[1].1 = "use crate::X;\n".into();
        assert_eq!(found_in(&files), [], "the root is not part of a cycle");
        files.push(("crates/model/src/lib.rs".into(), "mod a;\npub use c::X;\n".into()));
        assert_eq!(found_in(&files).len(), 1);
    }

    #[test]
    fn paths_in_code_and_by_super_count() {
        let mut files = ring(4);
        files[2].1 = "fn f() { super::d::run(); }\n".into();
        assert_eq!(found_in(&files).len(), 1);
        files[2].1 = "#[cfg(test)]\nmod tests {\n    use crate::d::X;\n}\n".into();
        assert_eq!(found_in(&files), []);
    }

    #[test]
    fn string_literals_do_not_hide_a_file() {
        let mut files = ring(4);
        files[1].1.push_str("fn f() -> &'static str {\n    let text = \"a\";\n    text\n}\n");
        assert_eq!(found_in(&files).len(), 1);
        files[1].1.push_str("fn f( {\n");
        assert!(found_in(&files).iter().any(|finding| finding.says.contains("cannot be parsed")));
    }

    #[test]
    fn submodules_count_as_files_but_a_module_may_name_its_own() {
        let files = [
            ("crates/model/src/a.rs", "mod b;\nmod c;\nmod d;\nuse b::B;\nuse c::C;\nuse d::D;\n"),
            ("crates/model/src/a/b.rs", "use super::A;\n"),
            ("crates/model/src/a/c.rs", "use super::A;\n"),
            ("crates/model/src/a/d.rs", "use super::A;\n"),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn an_import_of_a_module_above_is_found() {
        let root = ("crates/pipeline/src/lib.rs", "mod top;\nmod low;\npub use low::X;\n");
        let top = ("crates/pipeline/src/top.rs", "use crate::X;\n");
        assert_eq!(found(&[root, top, ("crates/pipeline/src/low.rs", "use std::fmt;\n")]), []);
        let low = ("crates/pipeline/src/low/sub.rs", "\nuse crate::top::Y;\n");
        let climbs = found(&[root, top, low]);
        assert_eq!(climbs.len(), 1, "{climbs:?}");
        assert_eq!((climbs[0].path.as_str(), climbs[0].line), (low.0, 2));
        let other =
            |(path, text): (&'static str, &'static str)| (path.replace("pipeline", "model"), text.to_owned());
        assert_eq!(
            found_in(&[other(root), other(top), other(low)]),
            [],
            "only some crates list their modules from the top down"
        );
    }
}
