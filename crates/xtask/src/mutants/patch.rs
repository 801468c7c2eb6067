// SPDX-License-Identifier: Apache-2.0
//! A mutation's file: header lines, then a unified diff with paths from the root (`a/`, `b/`).
//!
//! ```text
//! # The worker keeps verdicts of the rules before the change.
//! # run: cargo test -p sim --test oracle -- stale
//! # fails: stale_version_is_caught
//! --- a/crates/worker/src/...
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// One planted fault.
pub struct Patch {
    /// File name without `.patch`.
    pub name: String,
    /// The file itself.
    pub path: PathBuf,
    /// The test command, word by word; begins with `cargo test`.
    pub command: Vec<String>,
    /// Full name of the test that must fail, as the test runner prints it.
    pub fails: String,
    /// Files that the patch changes, from the root.
    pub changes: Vec<String>,
}

impl Patch {
    /// The patches in `folder` in the order of their names: those named, or all. Having none is an error.
    pub fn read_all(folder: &Path, names: &[&str]) -> Result<Vec<Self>, Failure> {
        let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
        paths.sort();
        let mut patches = Vec::new();
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if names.is_empty() || names.contains(&name.as_str()) {
                let text =
                    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                patches.push(Self::parse(&name, &path, &text)?);
            }
        }
        if let Some(unknown) = names.iter().find(|name| patches.iter().all(|patch| patch.name != **name)) {
            return Err(format!("there is no {unknown}.patch in {}", folder.display()));
        }
        if patches.is_empty() {
            return Err(format!("there is no *.patch in {}", folder.display()));
        }
        Ok(patches)
    }

    fn parse(name: &str, path: &Path, text: &str) -> Result<Self, Failure> {
        let header = |key: &str| {
            let lines = text.lines().take_while(|line| line.starts_with('#'));
            let value = lines.filter_map(|line| line.strip_prefix(key)).next();
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        let lacks = |what: &str| format!("{name}.patch: {what}");
        let command: Vec<String> = header("# run:")
            .ok_or_else(|| lacks("no header line `# run: cargo test ...`"))?
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        if command.iter().take(2).ne(["cargo", "test"]) {
            return Err(lacks("the command after `# run:` must begin with `cargo test`"));
        }
        let fails = header("# fails:")
            .ok_or_else(|| lacks("no header line `# fails: TEST`, the test that must catch it"))?
            .to_owned();
        let old_file =
            |line: &str| Some(line.strip_prefix("--- a/")?.split('\t').next()?.trim_end().to_owned());
        let changes: Vec<String> = text.lines().filter_map(old_file).collect();
        if changes.is_empty() {
            return Err(lacks("changes no file (no line `--- a/PATH`)"));
        }
        Ok(Self { name: name.into(), path: path.into(), command, fails, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Why.\n# run: cargo test -p sim --test oracle\n# fails: a::b\n--- a/x/y.rs\n+++ b/x/y.rs\n@@ -1 +1 @@\n-1\n+2\n";

    fn parse(text: &str) -> Result<Patch, Failure> {
        Patch::parse("p", Path::new("p.patch"), text)
    }

    #[test]
    fn a_patch_is_read() {
        let patch = parse(GOOD).unwrap();
        assert_eq!(patch.command, ["cargo", "test", "-p", "sim", "--test", "oracle"]);
        assert_eq!(patch.fails, "a::b");
        assert_eq!(patch.changes, ["x/y.rs"]);
    }

    #[test]
    fn a_patch_without_its_header_says_what_is_missing() {
        for (from, to, says) in [
            ("# run: cargo test -p sim --test oracle\n", "", "# run:"),
            ("cargo test", "rm -r", "must begin with `cargo test`"),
            ("# fails: a::b\n", "", "# fails:"),
            ("# fails: a::b\n", "# fails:\n", "# fails:"),
            ("--- a/x/y.rs\n", "", "changes no file"),
        ] {
            let error = parse(&GOOD.replace(from, to)).err().unwrap();
            assert!(error.contains(says), "{error}");
        }
    }
}
