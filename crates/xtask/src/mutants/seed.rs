// SPDX-License-Identifier: Apache-2.0
//! Copies compiled dependencies from the tree's build folder to the mutants' build folder, so that they are
//! not compiled again.
//!
//! Only packages from outside the workspace are copied. Cargo decides by modification times whether a
//! workspace package must be rebuilt, so it would confuse the tree with its copy. If cargo's internal folder
//! layout changes, nothing is copied, and cargo compiles the dependencies.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use toml::{Table, Value};

use crate::{Failure, tree};

/// Returns the names of the packages in the tree at `root`.
pub fn own_packages(root: &Path) -> Result<HashSet<String>, Failure> {
    let mut names = HashSet::new();
    for path in tree::paths(root)? {
        if path != "Cargo.toml" && !path.ends_with("/Cargo.toml") {
            continue;
        }
        let text = fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
        let manifest: Table = text.parse().map_err(|error| format!("{path} is not a manifest: {error}"))?;
        let name = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
        names.extend(name.map(str::to_owned));
    }
    Ok(names)
}

/// Copies every complete unit from the profile folder `from` (such as `target/debug`) that is missing in
/// `to`. Packages in `own` are not copied.
pub fn copy_dependencies(from: &Path, to: &Path, own: &HashSet<String>) -> Result<(), Failure> {
    let fault = |error| format!("{} cannot be copied to {}: {error}", from.display(), to.display());
    copy(from, to, own).map_err(fault)
}

fn copy(from: &Path, to: &Path, own: &HashSet<String>) -> io::Result<()> {
    let mut units = Vec::new();
    for unit in names(&from.join(".fingerprint"))? {
        let Some((package, hash)) = unit.rsplit_once('-') else { continue };
        if !own.contains(package) && !to.join(".fingerprint").join(&unit).exists() {
            units.push((unit.clone(), hash.to_owned()));
        }
    }
    let hashes: HashSet<&str> = units.iter().map(|(_, hash)| hash.as_str()).collect();
    for file in names(&from.join("deps"))? {
        let stem = file.split('.').next().unwrap_or_default();
        if stem.rsplit_once('-').is_some_and(|(_, hash)| hashes.contains(hash)) {
            copy_all(&from.join("deps").join(&file), &to.join("deps").join(&file))?;
        }
    }
    // Fingerprints are copied last, because they mark a unit as complete.
    for folder in ["build", ".fingerprint"] {
        for (unit, _) in &units {
            let source = from.join(folder).join(unit);
            if source.exists() {
                copy_all(&source, &to.join(folder).join(unit))?;
            }
        }
    }
    Ok(())
}

/// Returns the names in `folder`, or none if it does not exist.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Copies a file or folder recursively. Modification times are kept, because cargo compares them.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for name in names(from)? {
            copy_all(&from.join(&name), &to.join(&name))?;
        }
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to)?;
    File::options().write(true).open(to)?.set_modified(fs::metadata(from)?.modified()?)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn external_units_are_copied_with_their_modification_times() {
        let folder = std::env::temp_dir().join(format!("xtask-seed-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        let earlier = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for file in [
            ".fingerprint/serde-0a/lib-serde",
            ".fingerprint/serde-0b/run-build-script",
            ".fingerprint/my-flow-0c/lib-my_flow",
            "build/serde-0b/out/generated.rs",
            "build/my-flow-0c/output",
            "deps/libserde-0a.rlib",
            "deps/libmy_flow-0c.rlib",
            "deps/unfinished-0d.rlib",
        ] {
            let path = from.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, file).unwrap();
            File::options().write(true).open(&path).unwrap().set_modified(earlier).unwrap();
        }
        let own = HashSet::from(["my-flow".to_owned()]);
        copy_dependencies(&from, &to, &own).unwrap();
        let list = |folder: &str| {
            let mut names = names(&to.join(folder)).unwrap();
            names.sort();
            names
        };
        assert_eq!(list(".fingerprint"), ["serde-0a", "serde-0b"]);
        assert_eq!(list("build"), ["serde-0b"]);
        assert_eq!(list("deps"), ["libserde-0a.rlib"]);
        let copied = to.join("build/serde-0b/out/generated.rs");
        assert_eq!(fs::metadata(copied).unwrap().modified().unwrap(), earlier);

        // Existing files are not overwritten.
        fs::write(to.join("deps/libserde-0a.rlib"), "newer").unwrap();
        copy_dependencies(&from, &to, &own).unwrap();
        assert_eq!(fs::read_to_string(to.join("deps/libserde-0a.rlib")).unwrap(), "newer");
        copy_dependencies(&folder.join("missing"), &to, &own).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
