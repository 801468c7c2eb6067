// SPDX-License-Identifier: Apache-2.0
//! A copy of the tree, in which faults are planted.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::patch::Patch;
use crate::{Failure, tree};

/// Folder of tools that tests run and that distributions do not package.
const TOOLS: &str = "target/tools";

/// A copy of every file of the source tree, kept between runs so that only changed files are rebuilt.
pub struct TreeCopy {
    original: PathBuf,
    root: PathBuf,
}

impl TreeCopy {
    /// Creates or updates the copy of `original` at `root`. Unchanged files keep their modification time.
    pub fn make(original: &Path, root: &Path) -> Result<Self, Failure> {
        let copy = Self { original: original.into(), root: root.into() };
        let paths = tree::paths(original)?;
        for path in &paths {
            copy.refresh(path)?;
        }
        copy.remove_others(root, &paths)?;
        copy.link_tools()?;
        Ok(copy)
    }

    /// Gives each file of the copy the modification time of the original, so that cargo accepts units that
    /// were compiled from the original. The build folder of the copy must be new: units compiled from a
    /// patched file would look current, too.
    pub fn keep_times(&self) -> Result<(), Failure> {
        for path in tree::paths(&self.original)? {
            let fault = |error| format!("the modification time of {path} cannot be set: {error}");
            let modified =
                fs::metadata(self.original.join(&path)).and_then(|data| data.modified()).map_err(fault)?;
            let file = File::options().write(true).open(self.root.join(&path)).map_err(fault)?;
            file.set_modified(modified).map_err(fault)?;
        }
        Ok(())
    }

    /// Returns the root of the copy.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Runs `work` with `patch` applied, and reverts the patch afterwards.
    pub fn patched<T>(&self, patch: &Patch, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let outcome = self.apply(patch).and_then(|()| work());
        for path in &patch.changes {
            self.refresh(path)?;
        }
        outcome
    }

    /// Runs `work` while the file has this text, and restores the file afterwards.
    pub fn edited<T>(
        &self,
        path: &str,
        text: &str,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let outcome = fs::write(self.root.join(path), text)
            .map_err(|error| format!("{path} cannot be changed: {error}"))
            .and_then(|()| work());
        self.refresh(path)?;
        outcome
    }

    fn apply(&self, patch: &Patch) -> Result<(), Failure> {
        let output = Command::new("patch")
            .args(["--strip=1", "--batch", "--forward", "--fuzz=0", "--no-backup-if-mismatch"])
            .args(["--reject-file=-", "--input"])
            .arg(fs::canonicalize(&patch.path).map_err(|error| format!("{}.patch: {error}", patch.name))?)
            .current_dir(&self.root)
            .output()
            .map_err(|error| format!("patch could not be started: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        // The exit status is 1 if a hunk does not fit, and 2 for other faults, such as a full disk.
        let fault = match output.status.code() {
            Some(1) => "no longer applies to the code; update it",
            _ => "cannot be applied",
        };
        let says = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
        Err(format!("{}.patch {fault}: {}: {says}", patch.name, output.status))
    }

    /// Copies one file from the original. The copy is written only if the contents differ.
    fn refresh(&self, path: &str) -> Result<(), Failure> {
        let (from, to) = (self.original.join(path), self.root.join(path));
        let fault = |error| format!("{path} cannot be copied: {error}");
        let content = fs::read(&from).map_err(fault)?;
        if fs::read(&to).is_ok_and(|present| present == content) {
            return Ok(());
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(fault)?;
        }
        // Write the file instead of copying it, because cargo must see a new modification time.
        fs::write(&to, content).map_err(fault)
    }

    /// Links the original's installed tools to the copy's build folder, where tests look for them.
    fn link_tools(&self) -> Result<(), Failure> {
        let (from, to) = (self.original.join(TOOLS), self.root.join(TOOLS));
        let fault = |error| format!("{} cannot be linked: {error}", to.display());
        let Ok(from) = fs::canonicalize(&from) else { return Ok(()) };
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(fault)?;
        }
        symlink(from, &to).map_err(fault)
    }

    /// Removes files of an earlier copy that the original lacks. The target of a symbolic link is kept.
    fn remove_others(&self, folder: &Path, paths: &[String]) -> Result<(), Failure> {
        let fault = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(folder).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            if path.is_dir() && !path.is_symlink() {
                self.remove_others(&path, paths)?;
                continue;
            }
            let relative = path.strip_prefix(&self.root).map(|path| path.to_string_lossy().into_owned());
            if relative.is_ok_and(|relative| !paths.contains(&relative)) {
                fs::remove_file(&path).map_err(fault)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn files_of_the_copy_get_the_times_of_the_originals() {
        let folder = std::env::temp_dir().join(format!("xtask-times-{}", std::process::id()));
        let (original, root) = (folder.join("original"), folder.join("copy"));
        fs::create_dir_all(&original).unwrap();
        assert!(
            Command::new("git").args(["init", "--quiet"]).current_dir(&original).status().unwrap().success()
        );
        fs::write(original.join("a.rs"), "").unwrap();
        let earlier = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        File::options().write(true).open(original.join("a.rs")).unwrap().set_modified(earlier).unwrap();

        let copy = TreeCopy::make(&original, &root).unwrap();
        let modified = || fs::metadata(root.join("a.rs")).unwrap().modified().unwrap();
        assert_ne!(modified(), earlier);
        copy.keep_times().unwrap();
        assert_eq!(modified(), earlier);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn tools_are_linked_and_survive_the_next_copy() {
        let folder = std::env::temp_dir().join(format!("xtask-copy-{}", std::process::id()));
        let (original, root) = (folder.join("original"), folder.join("copy"));
        let tool = original.join(TOOLS).join("tool");
        fs::create_dir_all(original.join(TOOLS)).unwrap();
        fs::create_dir_all(&root).unwrap();
        fs::write(&tool, "tool").unwrap();
        fs::write(root.join("removed"), "").unwrap();
        let copy = TreeCopy { original: original.clone(), root: root.clone() };
        for _ in 0..2 {
            copy.remove_others(&root, &[]).unwrap();
            copy.link_tools().unwrap();
            assert_eq!(fs::read_to_string(root.join(TOOLS).join("tool")).unwrap(), "tool");
        }
        assert!(tool.exists());
        assert!(!root.join("removed").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
