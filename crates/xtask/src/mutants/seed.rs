// SPDX-License-Identifier: Apache-2.0
//! Brings compiled units from the tree's build folder to the mutants' build folder, so that they are not
//! compiled again. A unit is a library, a build script or a program.
//!
//! Libraries and programs become hard links, because compilers and linkers replace these files. Other files
//! are copied, because cargo, build scripts and the compiler overwrite them.
//!
//! Cargo decides by modification times whether it must compile a package of the workspace again. So units of
//! these packages are copied only into a new build folder, while every file of the copy has the modification
//! time of the original. If cargo's internal folder layout changes, nothing is copied, and cargo compiles the
//! units.

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

/// Copies or links every complete unit from the profile folder `from` (such as `target/debug`) that is
/// missing in `to`. Units of packages in `own` are copied only if `test_units` is given: all of them except
/// test programs that are not in `test_units`.
pub fn copy_units(
    from: &Path,
    to: &Path,
    own: &HashSet<String>,
    test_units: Option<&HashSet<String>>,
) -> Result<(), Failure> {
    // `files` are names in the unit's folder of fingerprints, such as `lib-flow` or `test-lib-flow`.
    let is_wanted = |package: &str, files: &[String]| {
        let is_test = |file: &&String| file.starts_with("test-") && !file.ends_with(".json");
        match test_units {
            _ if !own.contains(package) => true,
            Some(wanted) => files.iter().find(is_test).is_none_or(|test| wanted.contains(test)),
            None => false,
        }
    };
    let fault = |error| format!("{} cannot be copied to {}: {error}", from.display(), to.display());
    copy(from, to, is_wanted).map_err(fault)
}

fn copy(from: &Path, to: &Path, is_wanted: impl Fn(&str, &[String]) -> bool) -> io::Result<()> {
    let mut units = Vec::new();
    for unit in names(&from.join(".fingerprint"))? {
        let Some((package, hash)) = unit.rsplit_once('-') else { continue };
        let folder = Path::new(".fingerprint").join(&unit);
        if !to.join(&folder).exists() && is_wanted(package, &names(&from.join(&folder))?) {
            units.push((unit.clone(), hash.to_owned()));
        }
    }
    let hashes: HashSet<&str> = units.iter().map(|(_, hash)| hash.as_str()).collect();
    for file in names(&from.join("deps"))? {
        let stem = file.split('.').next().unwrap_or_default();
        if stem.rsplit_once('-').is_some_and(|(_, hash)| hashes.contains(hash)) {
            link_or_copy(&from.join("deps").join(&file), &to.join("deps").join(&file))?;
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

/// Links a library or program, or copies it to another file system. Copies other files.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    let is_replaced =
        from.extension().is_none_or(|extension| ["rlib", "rmeta", "so"].iter().any(|end| extension == *end));
    if !is_replaced {
        return copy_all(from, to);
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // An interrupted run may have left a link to the original, which a copy would overwrite.
    match fs::remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::hard_link(from, to).or_else(|_| copy_all(from, to)),
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
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn write(path: &Path, text: &str, modified: SystemTime) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }

    fn sorted(folder: &Path) -> Vec<String> {
        let mut names = names(folder).unwrap();
        names.sort();
        names
    }

    #[test]
    fn of_own_units_libraries_and_the_named_test_programs_are_copied() {
        let folder = std::env::temp_dir().join(format!("xtask-seed-own-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        for file in [
            ".fingerprint/flow-0a/lib-flow",
            ".fingerprint/flow-0b/test-lib-flow.json",
            ".fingerprint/flow-0b/test-lib-flow",
            ".fingerprint/flow-0c/dep-test-integration-test-random",
            ".fingerprint/flow-0c/test-integration-test-random",
            ".fingerprint/flow-0d/run-build-script-build-script-build",
            "deps/flow-0b",
            "deps/random-0c",
        ] {
            write(&from.join(file), file, SystemTime::now());
        }
        let wanted = HashSet::from(["test-lib-flow".to_owned()]);
        copy_units(&from, &to, &HashSet::from(["flow".to_owned()]), Some(&wanted)).unwrap();
        assert_eq!(sorted(&to.join(".fingerprint")), ["flow-0a", "flow-0b", "flow-0d"]);
        assert_eq!(sorted(&to.join("deps")), ["flow-0b"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn libraries_and_programs_are_linked_and_other_files_are_copied() {
        let folder = std::env::temp_dir().join(format!("xtask-seed-links-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        let linked = ["deps/libflow-0a.rlib", "deps/libflow-0a.rmeta", "deps/libflow-0a.so", "deps/flow-0a"];
        let copied = [".fingerprint/flow-0a/lib-flow", "deps/flow-0a.d", "build/flow-0a/out/generated"];
        for file in linked.iter().chain(&copied) {
            write(&from.join(file), file, SystemTime::now());
        }
        copy_units(&from, &to, &HashSet::new(), None).unwrap();
        let inode = |path: std::path::PathBuf| fs::metadata(path).unwrap().ino();
        let is_linked = |file: &&str| inode(from.join(file)) == inode(to.join(file));
        assert!(linked.iter().all(is_linked));
        assert!(!copied.iter().any(is_linked));
        fs::remove_dir_all(&folder).unwrap();
    }

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
            write(&from.join(file), file, earlier);
        }
        let own = HashSet::from(["my-flow".to_owned()]);
        copy_units(&from, &to, &own, None).unwrap();
        let list = |folder: &str| sorted(&to.join(folder));
        assert_eq!(list(".fingerprint"), ["serde-0a", "serde-0b"]);
        assert_eq!(list("build"), ["serde-0b"]);
        assert_eq!(list("deps"), ["libserde-0a.rlib"]);
        let copied = to.join("build/serde-0b/out/generated.rs");
        assert_eq!(fs::metadata(copied).unwrap().modified().unwrap(), earlier);

        // Existing files are not overwritten.
        fs::remove_file(to.join("deps/libserde-0a.rlib")).unwrap();
        fs::write(to.join("deps/libserde-0a.rlib"), "newer").unwrap();
        copy_units(&from, &to, &own, None).unwrap();
        assert_eq!(fs::read_to_string(to.join("deps/libserde-0a.rlib")).unwrap(), "newer");
        copy_units(&folder.join("missing"), &to, &own, None).unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
