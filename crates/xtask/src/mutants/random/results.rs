// SPDX-License-Identifier: Apache-2.0
//! Verdicts of random mutants, one JSON object per line. Each verdict is appended immediately, so that a
//! second call can continue.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Failure;

/// Result of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A test failed, or its process died.
    Caught,
    /// Every test passed.
    Missed,
    /// A build or test exceeded its time limit.
    Timeout,
    /// The mutant does not compile.
    Unviable,
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultRow {
    /// Name of the mutant.
    pub mutant: String,
    /// File and line at the time of the test.
    pub place: String,
    pub verdict: Verdict,
    /// The stage that decided the verdict, and the failure; empty for a missed mutant.
    pub by: String,
    /// Wall-clock time of the whole test in seconds.
    pub seconds: u64,
    /// Commit that was tested.
    pub commit: String,
}

impl ResultRow {
    /// Returns whether the tested code is exactly the code of this commit, without uncommitted changes.
    pub fn is_of(&self, commit: &str) -> bool {
        self.commit == commit && !commit.ends_with("-dirty")
    }
}

/// File of verdicts.
pub struct Results {
    path: PathBuf,
    /// Latest verdict of each mutant.
    rows: HashMap<String, ResultRow>,
}

impl Results {
    /// Opens the file, which need not exist. A line that an interruption truncated is ignored.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let mut rows = HashMap::new();
        if path.exists() {
            let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            for row in text.lines().filter_map(|line| serde_json::from_str::<ResultRow>(line).ok()) {
                rows.insert(row.mutant.clone(), row);
            }
            if !text.is_empty() && !text.ends_with('\n') {
                fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(Self { path: path.into(), rows })
    }

    pub fn get(&self, mutant: &str) -> Option<&ResultRow> {
        self.rows.get(mutant)
    }

    pub fn add(&mut self, row: ResultRow) -> Result<(), Failure> {
        let fault =
            |error: &dyn std::fmt::Display| format!("{} cannot be written: {error}", self.path.display());
        let line = serde_json::to_string(&row).map_err(|error| fault(&error))?;
        let mut file =
            File::options().create(true).append(true).open(&self.path).map_err(|error| fault(&error))?;
        writeln!(file, "{line}").map_err(|error| fault(&error))?;
        self.rows.insert(row.mutant.clone(), row);
        Ok(())
    }
}

/// Mutants that are proved equivalent to the original code, as lines `NAME | REASON`.
pub struct Equivalents(HashMap<String, String>);

impl Equivalents {
    /// Maximum length of the list. More entries would hide gaps in the tests.
    const MOST: usize = 10;

    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let mut all = HashMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, reason) = line
                .rsplit_once(" | ")
                .ok_or_else(|| format!("`{line}` has no reason; write `NAME | REASON`"))?;
            all.insert(name.trim().to_owned(), reason.trim().to_owned());
        }
        if all.len() > Self::MOST {
            return Err(format!(
                "{} mutants are listed as equivalent; the maximum is {}",
                all.len(),
                Self::MOST
            ));
        }
        Ok(Self(all))
    }

    pub fn reason(&self, mutant: &str) -> Option<&str> {
        self.0.get(mutant).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(mutant: &str, verdict: Verdict) -> ResultRow {
        ResultRow {
            mutant: mutant.into(),
            place: "a.rs:1".into(),
            verdict,
            by: String::new(),
            seconds: 1,
            commit: "c".into(),
        }
    }

    #[test]
    fn verdicts_outlive_an_interruption() {
        let path = std::env::temp_dir().join(format!("xtask-results-{}", std::process::id()));
        let mut results = Results::open(&path).unwrap();
        results.add(row("a", Verdict::Missed)).unwrap();
        results.add(row("b", Verdict::Caught)).unwrap();
        results.add(row("a", Verdict::Caught)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"mutant\": \"c\", \"pla")).unwrap();
        Results::open(&path).unwrap().add(row("d", Verdict::Timeout)).unwrap();
        let results = Results::open(&path).unwrap();
        assert_eq!(results.get("d"), Some(&row("d", Verdict::Timeout)));
        assert_eq!(results.get("a"), Some(&row("a", Verdict::Caught)));
        assert_eq!(results.get("b"), Some(&row("b", Verdict::Caught)));
        assert_eq!(results.get("c"), None);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_mutant_is_equivalent_only_with_a_reason() {
        let all = Equivalents::parse("# Why.\n\na.rs f: `a | b` becomes `a` | Both are 0.\n").unwrap();
        assert_eq!(all.reason("a.rs f: `a | b` becomes `a`"), Some("Both are 0."));
        assert!(Equivalents::parse("a.rs f: `<` becomes `>`").is_err());
        let many: String = (0..11).map(|at| format!("{at} | reason\n")).collect();
        assert!(Equivalents::parse(&many).is_err());
    }
}
