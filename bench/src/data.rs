// SPDX-License-Identifier: Apache-2.0
//! Rule sets and routing tables from files: `../shared/data` beside the repository where it is there, else the samples of
//! the engines' tests, which are always there.

use std::path::Path;
use std::process::Command;

use crate::Error;

/// The text of a file, unpacked if its name ends in `.gz`.
///
/// # Errors
/// When it cannot be read, or `zcat` fails.
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

/// A file of the whole sets, by its name below `shared/data`; none where the sets are not.
///
/// # Errors
/// When it is there and cannot be read.
pub fn whole(name: &str) -> Result<Option<String>, Error> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    if path.exists() { read_text(&path).map(Some) } else { Ok(None) }
}

/// What scenarios are made from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// An access list in `ClassBench`'s format.
    pub rules: String,
    /// IPv6 routes, one prefix a line.
    pub routes: String,
    /// Where the access list is from, for reports.
    pub name: String,
}

impl Sources {
    /// The samples: a few hundred rules, 1,400 routes.
    #[must_use]
    pub fn samples() -> Self {
        Self {
            rules: include_str!("../../crates/tables/tests/engines/data/acl1.rules").into(),
            routes: include_str!("../../crates/tables/tests/engines/data/ipv6.txt").into(),
            name: "sample of acl1".into(),
        }
    }

    /// The whole sets, `list` (such as `acl1_10k`) the access list's name there, where they are there; else the samples.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn best(list: &str) -> Result<Self, Error> {
        let samples = Self::samples();
        let rules = whole(&format!("classbench/{list}.rules.gz"))?;
        let routes = whole("rib/ipv6_full.txt.gz")?.unwrap_or(samples.routes);
        Ok(match rules {
            Some(rules) => Self { rules, routes, name: list.into() },
            None => Self { routes, ..Self::samples() },
        })
    }

    /// Other rule sets; of what is not given, the samples.
    ///
    /// # Errors
    /// When a file cannot be read.
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
