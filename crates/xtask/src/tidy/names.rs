// SPDX-License-Identifier: Apache-2.0
//! Checks the names of public types. A name must belong to one crate only, and must not hide a name of Rust's
//! prelude.
//!
//! A type is public if it is declared `pub` outside tests, whether or not its module is. Private and
//! `pub(crate)` types, and the package `bench`, are not checked.

use std::collections::BTreeMap;

use super::{Finding, idioms};
use crate::tree::File;

/// Types and traits that are in scope everywhere (edition 2024).
#[rustfmt::skip]
const PRELUDE: &[&str] = &[
    "AsMut", "AsRef", "AsyncFn", "AsyncFnMut", "AsyncFnOnce", "Box", "Clone", "Copy", "Default", "DoubleEndedIterator",
    "Drop", "Eq", "ExactSizeIterator", "Extend", "Fn", "FnMut", "FnOnce", "From", "FromIterator", "Future", "Into",
    "IntoFuture", "IntoIterator", "Iterator", "Option", "Ord", "PartialEq", "PartialOrd", "Result", "Send", "Sized",
    "String", "Sync", "ToOwned", "ToString", "TryFrom", "TryInto", "Unpin", "Vec",
];

const KINDS: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // For each name, the crate and the file that declared it first.
    let mut owners: BTreeMap<String, (String, String)> = BTreeMap::new();
    let sources = idioms::shipped(files);
    for (file, shipped) in &sources {
        let Some((owner, _)) = file.path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"))
        else {
            continue;
        };
        for (line, name) in public_types(shipped) {
            if PRELUDE.contains(&name) {
                let says = format!("`{name}` hides a name of the standard prelude; choose another");
                findings.push(Finding::new(file, line, says));
            }
            match owners.get(name) {
                Some((other, path)) if other != owner => {
                    let says = format!("`{name}` is a public type of `{other}` too ({path}); rename one");
                    findings.push(Finding::new(file, line, says));
                }
                Some(_) => {}
                None => drop(owners.insert(name.into(), (owner.into(), file.path.clone()))),
            }
        }
    }
    findings
}

/// Returns the line and name of each type that is declared `pub`.
fn public_types(code: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(code.lines()).filter_map(|(number, line)| {
        let mut words = line.split_whitespace();
        if words.next() != Some("pub") {
            return None;
        }
        let kind = words.find(|word| *word != "unsafe" && *word != "auto")?;
        let name = words.next().filter(|_| KINDS.contains(&kind))?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        // A macro's parameter may stand for many names.
        (end > 0).then_some((number, &name[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<Finding> {
        let planted: Vec<File> = files.iter().map(|(path, text)| File::planted(path, text)).collect();
        check(&planted)
    }

    #[test]
    fn a_name_that_two_crates_export_is_found() {
        let found = found(&[
            ("crates/flow/src/a.rs", "pub struct Port(u32);\n"),
            ("crates/model/src/b.rs", "use x;\n\npub enum Port {\n    A,\n}\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/model/src/b.rs", 3));
        assert!(found[0].says.contains("`Port` is a public type of `flow` too (crates/flow/src/a.rs)"));
    }

    #[test]
    fn every_kind_of_type_counts() {
        for kind in
            ["struct Port;", "enum Port {}", "union Port {", "unsafe trait Port {", "type Port<T> = u8;"]
        {
            let text = format!("pub {kind}\n");
            let files = [("crates/flow/src/a.rs", text.as_str()), ("crates/port/src/a.rs", text.as_str())];
            assert_eq!(found(&files).len(), 1, "{kind}");
        }
    }

    #[test]
    fn private_types_tests_and_the_same_crate_may_repeat_a_name() {
        let public = ("crates/flow/src/a.rs", "pub struct Port;\n");
        for other in
            ["struct Port;", "pub(crate) struct Port;", "#[cfg(test)]\nmod t {\n    pub struct Port;\n}"]
        {
            assert_eq!(found(&[public, ("crates/model/src/b.rs", other)]), [], "{other}");
        }
        assert_eq!(found(&[public, ("crates/flow/src/b.rs", "pub struct Port;\n")]), []);
        assert_eq!(found(&[public, ("crates/model/tests/b.rs", "pub struct Port;\n")]), []);
        let tests = ("crates/model/src/lib.rs", "#[cfg(test)]\nmod b;\n");
        assert_eq!(found(&[public, tests, ("crates/model/src/b.rs", "pub struct Port;\n")]), []);
    }

    #[test]
    fn a_name_of_the_prelude_is_found() {
        let found = found(&[("crates/port/src/a.rs", "pub enum Drop {\n    A,\n}\nimpl Drop for X {}\n")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].line == 1 && found[0].says.contains("`Drop` hides a name of the standard prelude"));
    }
}
