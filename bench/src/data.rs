// SPDX-License-Identifier: Apache-2.0
//! Rule sets and routing tables: from `../shared/data` beside the repository if available, else from the
//! samples of the engines' tests.

use std::path::Path;
use std::process::Command;

use crate::Error;

/// Reads the text of a file, unpacked if its name ends in `.gz`.
///
/// # Errors
/// Returns an error if the file cannot be read or `zcat` fails.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let fault = |source| Error::File { path: path.to_path_buf(), source };
    if path.extension().is_none_or(|extension| extension != "gz") {
        return std::fs::read_to_string(path).map_err(fault);
    }
    let output = Command::new("zcat").arg(path).output().map_err(fault)?;
    if !output.status.success() {
        return Err(fault(std::io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())));
    }
    String::from_utf8(output.stdout).map_err(|error| fault(std::io::Error::other(error)))
}

/// Reads a file of the full data sets by its path under `shared/data`. Returns `None` if it does not exist.
///
/// # Errors
/// Returns an error if the file exists and cannot be read.
pub fn whole(name: &str) -> Result<Option<String>, Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    if path.exists() { read_text(&path).map(Some) } else { Ok(None) }
}

/// Sources of the scenarios.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Access list in `ClassBench` format.
    pub rules: String,
    /// IPv6 routes, one prefix per line.
    pub routes: String,
    /// Origin of the access list, for reports.
    pub name: String,
}

impl Sources {
    /// Returns the samples: a few hundred rules and 1,400 routes.
    #[must_use]
    pub fn samples() -> Self {
        Self {
            rules: include_str!("../../crates/engines/tests/engines/data/acl1.rules").into(),
            routes: include_str!("../../crates/engines/tests/engines/data/ipv6.txt").into(),
            name: "sample of acl1".into(),
        }
    }

    /// Returns the full data sets if available, else the samples. `list` is the file name of the access list,
    /// such as `acl1_10k`.
    ///
    /// # Errors
    /// Returns an error if a file exists and cannot be read.
    pub fn best(list: &str) -> Result<Self, Error> {
        let samples = Self::samples();
        let rules = whole(&format!("classbench/{list}.rules.gz"))?;
        let routes = whole("rib/ipv6_full.txt.gz")?.unwrap_or(samples.routes);
        Ok(match rules {
            Some(rules) => Self { rules, routes, name: list.into() },
            None => Self { routes, ..Self::samples() },
        })
    }

    /// Reads the given files. A sample replaces each file that is not given.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn from_files(rules: Option<&Path>, routes: Option<&Path>) -> Result<Self, Error> {
        let mut made = Self::samples();
        if let Some(path) = rules {
            made.rules = read_text(path)?;
            made.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        if let Some(path) = routes {
            made.routes = read_text(path)?;
        }
        Ok(made)
    }
}
