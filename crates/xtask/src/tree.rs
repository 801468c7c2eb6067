// SPDX-License-Identifier: Apache-2.0
//! Files of the source tree: all files that git tracks, and new files that it does not ignore.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// File of the working tree.
pub struct File {
    /// Path relative to the root of the repository, with `/` as separator.
    pub path: String,
    /// Contents, or `None` if they are not UTF-8.
    pub text: Option<String>,
    /// Size in bytes.
    pub size: u64,
}

impl File {
    /// Creates a text file with a violation, for tests.
    #[cfg(test)]
    pub fn planted(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: Some(text.into()), size: text.len() as u64 }
    }

    /// Returns the file name without its folder.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns whether the name ends in `.extension`.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.name().rsplit_once('.').is_some_and(|(_, end)| end == extension)
    }

    /// Returns whether a program generated the file, according to its folder's name or its first lines.
    pub fn is_generated(&self) -> bool {
        let head = |text: &String| text.lines().take(5).any(|line| line.contains("@generated"));
        self.path.split('/').any(|part| part == "generated") || self.text.as_ref().is_some_and(head)
    }
}

/// Returns the paths of all files below `root` that git tracks, or would track after `git add`.
pub fn paths(root: &Path) -> Result<Vec<String>, Failure> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git could not be started: {error}"))?;
    if !listing.status.success() {
        return Err(format!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim()));
    }
    let listing = String::from_utf8(listing.stdout)
        .map_err(|_| "a file name is not UTF-8; rename it (git ls-files shows which)".to_owned())?;
    // The list also contains tracked files that were deleted, so existing files are selected. A symbolic link
    // counts as its target.
    Ok(listing.split_terminator('\0').filter(|path| root.join(path).is_file()).map(str::to_owned).collect())
}

/// Reads all files below `root`.
pub fn read(root: &Path) -> Result<Vec<File>, Failure> {
    let read_one = |path: String| {
        let bytes = fs::read(root.join(&path)).map_err(|error| format!("{path} cannot be read: {error}"))?;
        Ok(File { size: bytes.len() as u64, text: String::from_utf8(bytes).ok(), path })
    };
    paths(root)?.into_iter().map(read_one).collect()
}
