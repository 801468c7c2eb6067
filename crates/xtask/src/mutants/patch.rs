// SPDX-License-Identifier: Apache-2.0
//! File of a mutation. It has header lines, followed by a unified diff with paths from the root (`a/`, `b/`).
//!
//! ```text
//! # After a change, the worker still forwards by the previous rules.
//! # run: cargo test -p oracle --test oracle -- stale
//! # fails: stale_version_is_caught
//! # environment: ORACLE_CASES=2000
//! # nightly: the test takes four minutes
//! --- a/crates/worker/src/...
//! ```
//!
//! `environment` and `nightly` are optional. A patch with a line `# nightly: REASON` does not run in CI.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Selection of patches to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchChoice<'a> {
    /// All patches except nightly patches.
    Quick,
    All,
    Named(&'a [&'a str]),
}

/// Test command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCommand {
    /// Words of the command line. The first two are `cargo test`. The option `--lib` or `--test` names the
    /// test program.
    pub words: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
}

impl TestCommand {
    /// Returns the command as a shell command line.
    pub fn line(&self) -> String {
        let settings = self.environment.iter().map(|(name, value)| format!("{name}={value} "));
        settings.chain([self.words.join(" ")]).collect()
    }

    /// Returns the words of the command with these tests only, whose names are exact.
    ///
    /// With `features`, crates are compiled as by `cargo test --workspace --features FEATURES`: cargo enables
    /// the features that the named packages need, and `shunt` needs almost all. No test of `shunt` is
    /// compiled by mistake: it has no library, and its test programs have other names than those of patches.
    pub fn words_for(&self, tests: &[&str], features: Option<&str>) -> Vec<String> {
        let mut words = self.words.clone();
        if let Some(features) = features.filter(|_| !self.package().is_empty()) {
            let options = ["--package", "shunt", "--features", features];
            words.splice(2..2, options.map(str::to_owned));
        }
        if !words.iter().any(|word| word == "--") {
            words.push("--".to_owned());
        }
        words.push("--exact".to_owned());
        words.extend(tests.iter().map(|test| (*test).to_owned()));
        words
    }

    /// Returns the package that the command tests, or an empty string if it names none.
    pub fn package(&self) -> &str {
        self.option(&["-p", "--package"]).unwrap_or_default()
    }

    /// Returns cargo's name of the test program, such as `test-lib-flow` or `test-integration-test-churn`.
    /// Returns `None` if the command names no program.
    pub fn unit(&self) -> Option<String> {
        match self.option(&["--test"]) {
            Some(name) => Some(format!("test-integration-test-{name}")),
            None if self.words.iter().any(|word| word == "--lib") => {
                Some(format!("test-lib-{}", self.package()))
            }
            None => None,
        }
    }

    /// Returns the value of an option, which has one of these names.
    fn option(&self, names: &[&str]) -> Option<&str> {
        let mut pairs = self.words.windows(2);
        pairs.find(|pair| names.contains(&pair[0].as_str())).map(|pair| pair[1].as_str())
    }
}

/// A planted fault.
pub struct Patch {
    /// File name without `.patch`.
    pub name: String,
    /// Path of the patch file.
    pub path: PathBuf,
    /// Test command that must detect the fault.
    pub command: TestCommand,
    /// Full name of the test that must fail, as the test runner prints it.
    pub fails: String,
    /// Files that the patch changes, relative to the root.
    pub changes: Vec<String>,
    /// Whether the patch takes too long for CI.
    is_nightly: bool,
}

impl Patch {
    /// Returns the selected patches in `folder`. It is an error if no patch is selected.
    ///
    /// Patches with the same tested package and the same changed files follow each other, so that the next
    /// build restores and changes the same crate, and no other crate is built again.
    pub fn read_all(folder: &Path, choice: PatchChoice<'_>) -> Result<Vec<Self>, Failure> {
        let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
        paths.sort();
        let mut patches = Vec::new();
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let patch = Self::parse(&name, &path, &text)?;
            let chosen = match choice {
                PatchChoice::Quick => !patch.is_nightly,
                PatchChoice::All => true,
                PatchChoice::Named(names) => names.contains(&name.as_str()),
            };
            if chosen {
                patches.push(patch);
            }
        }
        if let PatchChoice::Named(names) = choice
            && let Some(unknown) = names.iter().find(|name| patches.iter().all(|patch| patch.name != **name))
        {
            return Err(format!("there is no {unknown}.patch in {}", folder.display()));
        }
        if patches.is_empty() {
            return Err(format!("there is no *.patch in {}", folder.display()));
        }
        patches.sort_by(|a, b| (a.command.package(), &a.changes).cmp(&(b.command.package(), &b.changes)));
        Ok(patches)
    }

    fn parse(name: &str, path: &Path, text: &str) -> Result<Self, Failure> {
        let header = |key: &str| {
            let lines = text.lines().take_while(|line| line.starts_with('#'));
            let value = lines.filter_map(|line| line.strip_prefix(key)).next();
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        let lacks = |what: &str| format!("{name}.patch: {what}");
        let words: Vec<String> = header("# run:")
            .ok_or_else(|| lacks("no header line `# run: cargo test ...`"))?
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        if words.iter().take(2).ne(["cargo", "test"]) {
            return Err(lacks("the command after `# run:` must begin with `cargo test`"));
        }
        let fails = header("# fails:")
            .ok_or_else(|| lacks("no header line `# fails: TEST`, which names the test that must fail"))?
            .to_owned();
        let setting = |setting: &str| {
            let (name, value) = setting.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let environment = header("# environment:").unwrap_or_default().split_whitespace().map(setting);
        let environment = environment
            .collect::<Option<_>>()
            .ok_or_else(|| lacks("the words after `# environment:` must have the form NAME=VALUE"))?;
        let is_nightly = header("# nightly:").is_some();
        let old_file =
            |line: &str| Some(line.strip_prefix("--- a/")?.split('\t').next()?.trim_end().to_owned());
        let changes: Vec<String> = text.lines().filter_map(old_file).collect();
        if changes.is_empty() {
            return Err(lacks("changes no file (no line `--- a/PATH`)"));
        }
        let command = TestCommand { words, environment };
        if command.unit().is_none() {
            return Err(lacks(
                "the command after `# run:` must name the test program: `--lib` or `--test NAME`",
            ));
        }
        Ok(Self { name: name.into(), path: path.into(), command, fails, changes, is_nightly })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# Why.\n# run: cargo test -p oracle --test oracle\n# fails: a::b\n--- a/x/y.rs\n+++ b/x/y.rs\n@@ -1 +1 @@\n-1\n+2\n";

    fn parse(text: &str) -> Result<Patch, Failure> {
        Patch::parse("p", Path::new("p.patch"), text)
    }

    #[test]
    fn a_patch_is_read() {
        let patch = parse(GOOD).unwrap();
        assert_eq!(patch.command.words, ["cargo", "test", "-p", "oracle", "--test", "oracle"]);
        assert_eq!(patch.command.line(), "cargo test -p oracle --test oracle");
        assert_eq!(patch.fails, "a::b");
        assert_eq!(patch.changes, ["x/y.rs"]);
        assert!(!patch.is_nightly);
    }

    #[test]
    fn a_command_can_be_limited_to_tests() {
        let patch = parse(GOOD).unwrap();
        assert_eq!(patch.command.words_for(&["a::b", "c"], None)[6..], ["--", "--exact", "a::b", "c"]);
        let patch = parse(&GOOD.replace("--test oracle", "--test oracle -- --nocapture")).unwrap();
        assert_eq!(patch.command.words_for(&["a::b"], None)[6..], ["--", "--nocapture", "--exact", "a::b"]);
    }

    #[test]
    fn commands_for_a_package_get_the_features_of_the_workspace() {
        let words = |text: &str| parse(text).unwrap().command.words_for(&[], Some("shunt/dpdk")).join(" ");
        let expected = "cargo test --package shunt --features shunt/dpdk -p oracle --test oracle -- --exact";
        assert_eq!(words(GOOD), expected);
        let loom = "cargo test --manifest-path loom/Cargo.toml --lib";
        assert_eq!(
            words(&GOOD.replace("cargo test -p oracle --test oracle", loom)),
            format!("{loom} -- --exact")
        );
    }

    #[test]
    fn no_program_of_a_patch_has_the_name_of_a_program_of_shunt() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let patches = Patch::read_all(&root.join("tests/mutations"), PatchChoice::All).unwrap();
        let of_shunt: Vec<String> = fs::read_dir(root.join("crates/shunt/tests"))
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        assert!(of_shunt.contains(&"command_line".to_owned()));
        for patch in patches.iter().filter(|patch| patch.command.package() != "shunt") {
            let name = patch.command.option(&["--test"]).unwrap_or_default();
            assert!(!of_shunt.iter().any(|program| program == name), "{}: --test {name}", patch.name);
        }
    }

    #[test]
    fn test_programs_are_named_as_cargo_does() {
        let unit =
            |run: &str| parse(&GOOD.replace("-p oracle --test oracle", run)).unwrap().command.unit().unwrap();
        assert_eq!(unit("-p tables --test churn"), "test-integration-test-churn");
        assert_eq!(unit("--package port_cache --lib queues"), "test-lib-port_cache");
    }

    #[test]
    fn environment_and_nightly_lines_are_read() {
        let more = "# environment: A=1 B=x=y\n# nightly: long\n--- a/x";
        let patch = parse(&GOOD.replace("--- a/x", more)).unwrap();
        assert_eq!(patch.command.line(), "A=1 B=x=y cargo test -p oracle --test oracle");
        assert!(patch.is_nightly);
        assert_eq!(patch.changes, ["x/y.rs"]);
    }

    #[test]
    fn patches_of_one_package_and_crate_follow_each_other() {
        let folder = std::env::temp_dir().join(format!("xtask-order-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let texts = [
            GOOD.replace("x/y.rs", "b/y.rs"),
            GOOD.replace("-p oracle", "--package keys"),
            GOOD.replace("x/y.rs", "a/y.rs"),
            GOOD.replace("-p oracle", "--manifest-path loom/Cargo.toml"),
            GOOD.replace("x/y.rs", "b/y.rs"),
        ];
        for (name, text) in ["a", "b", "c", "d", "e"].iter().zip(texts) {
            fs::write(folder.join(name).with_extension("patch"), text).unwrap();
        }
        let patches = Patch::read_all(&folder, PatchChoice::All).unwrap();
        let names: Vec<&str> = patches.iter().map(|patch| patch.name.as_str()).collect();
        assert_eq!(names, ["d", "b", "c", "a", "e"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn nightly_patches_run_only_if_all_or_their_names_are_selected() {
        let folder = std::env::temp_dir().join(format!("xtask-patches-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.patch"), GOOD).unwrap();
        fs::write(folder.join("b.patch"), GOOD.replace("--- a/x", "# nightly: long\n--- a/x")).unwrap();
        let names = |choice| -> Result<Vec<String>, Failure> {
            Ok(Patch::read_all(&folder, choice)?.into_iter().map(|patch| patch.name).collect())
        };
        assert_eq!(names(PatchChoice::Quick).unwrap(), ["a"]);
        assert_eq!(names(PatchChoice::All).unwrap(), ["a", "b"]);
        assert_eq!(names(PatchChoice::Named(&["b"])).unwrap(), ["b"]);
        assert!(names(PatchChoice::Named(&["c"])).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_patch_without_its_header_says_what_is_missing() {
        for (from, to, says) in [
            ("# run: cargo test -p oracle --test oracle\n", "", "# run:"),
            ("cargo test", "rm -r", "must begin with `cargo test`"),
            (" --test oracle", "", "must name the test program"),
            ("# fails: a::b\n", "", "# fails:"),
            ("# fails: a::b\n", "# fails:\n", "# fails:"),
            ("--- a/x", "# environment: A\n--- a/x", "NAME=VALUE"),
            ("--- a/x/y.rs\n", "", "changes no file"),
        ] {
            let error = parse(&GOOD.replace(from, to)).err().unwrap();
            assert!(error.contains(says), "{error}");
        }
    }
}
