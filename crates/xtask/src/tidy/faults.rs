// SPDX-License-Identifier: Apache-2.0
//! Checks that planted faults (`tests/mutations/*.patch`) still apply.

use super::Finding;
use crate::tree::File;

const FOLDER: &str = "tests/mutations/";

pub fn check(files: &[File]) -> Vec<Finding> {
    let is_patch = |file: &&File| file.path.starts_with(FOLDER) && file.has_extension("patch");
    files.iter().filter(is_patch).flat_map(|patch| check_one(patch, files)).collect()
}

/// A hunk of a patch: the lines that it expects in a file, and the line of the patch at which it begins.
struct Hunk<'a> {
    line: usize,
    path: &'a str,
    expected: Vec<&'a str>,
}

fn check_one(patch: &File, files: &[File]) -> Vec<Finding> {
    let hunks = hunks(patch.text.as_deref().unwrap_or_default());
    if hunks.is_empty() {
        return vec![Finding::new(patch, 0, "changes nothing")];
    }
    let misfits = hunks.iter().filter(|hunk| !fits(hunk, files));
    misfits
        .map(|hunk| Finding::new(patch, hunk.line, format!("no longer applies to {}; update it", hunk.path)))
        .collect()
}

fn hunks(patch: &str) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut path = "";
    let mut in_hunk = false;
    for (line, text) in (1..).zip(patch.lines()) {
        if let Some(name) = text.strip_prefix("--- a/").filter(|_| !in_hunk || !text.starts_with("--- a/ ")) {
            (path, in_hunk) = (name, false);
        } else if text.starts_with("@@ ") {
            in_hunk = true;
            hunks.push(Hunk { line, path, expected: Vec::new() });
        } else if text.starts_with("diff --git ") {
            in_hunk = false;
        } else if let Some(hunk) = hunks.last_mut().filter(|_| in_hunk) {
            match text.split_at_checked(1) {
                Some((" " | "-", expected)) => hunk.expected.push(expected),
                None => hunk.expected.push(""),
                Some(_) => {}
            }
        }
    }
    hunks
}

fn fits(hunk: &Hunk<'_>, files: &[File]) -> bool {
    let file = files.iter().find(|file| file.path == hunk.path);
    let lines: Vec<&str> = file.and_then(|file| file.text.as_deref()).unwrap_or_default().lines().collect();
    lines.windows(hunk.expected.len().max(1)).any(|window| window == hunk.expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str =
        "# Why.\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -9 +9 @@\n-z\n+Z\n";

    fn lines(code: &str) -> Vec<usize> {
        let files = [File::planted("tests/mutations/p.patch", PATCH), File::planted("x.rs", code)];
        check(&files).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn each_hunk_must_fit_wherever_it_has_moved() {
        assert_eq!(lines("new\na\nb\nc\nz\n"), [0; 0]);
        assert_eq!(lines("a\nb\nz\n"), [4]);
        assert_eq!(lines("a\nb\nc\n"), [9]);
        assert_eq!(lines(""), [4, 9]);
    }

    #[test]
    fn a_patch_without_a_hunk_is_found() {
        assert_eq!(check(&[File::planted("tests/mutations/p.patch", "# Why.\n")]).len(), 1);
    }
}
