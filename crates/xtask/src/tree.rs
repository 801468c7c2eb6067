// SPDX-License-Identifier: Apache-2.0
//! The files of the source tree: what git tracks or would track.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Failure;

/// One file, as it lies in the working tree.
pub struct File {
    /// Path from the root of the repository, with `/`.
    pub path: String,
    /// Content; `None` when it is not UTF-8.
    pub text: Option<String>,
    /// Size in bytes.
    pub size: u64,
}

impl File {
    /// A text file, for tests that plant a violation.
    #[cfg(test)]
    pub fn planted(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: Some(text.into()), size: text.len() as u64 }
    }

    /// File name without its folder.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the name ends in `.extension`.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.name().rsplit_once('.').is_some_and(|(_, end)| end == extension)
    }

    /// Whether a program wrote it: said by its folder's name or in its first lines.
    pub fn is_generated(&self) -> bool {
        let head = |text: &String| text.lines().take(5).any(|line| line.contains("@generated"));
        self.path.split('/').any(|part| part == "generated") || self.text.as_ref().is_some_and(head)
    }
}

/// Paths of all files that git tracks, or would track after `git add`, below `root`.
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
    // A tracked file that was just removed is still listed; symbolic links are read as what they name.
    Ok(listing.split_terminator('\0').filter(|path| root.join(path).is_file()).map(str::to_owned).collect())
}

/// All files below `root`.
pub fn read(root: &Path) -> Result<Vec<File>, Failure> {
    let read_one = |path: String| {
        let bytes = fs::read(root.join(&path)).map_err(|error| format!("{path} cannot be read: {error}"))?;
        Ok(File { size: bytes.len() as u64, text: String::from_utf8(bytes).ok(), path })
    };
    paths(root)?.into_iter().map(read_one).collect()
}
