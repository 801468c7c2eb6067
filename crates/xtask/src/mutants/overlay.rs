// SPDX-License-Identifier: Apache-2.0
//! Lets commands see the copy of the tree at the path of the original, where the compiler continues with the
//! incremental data of the original's build. It discards incremental data of another working folder.
//!
//! Each command has its own mount namespace, which ends with the last process of the command. `target` is
//! that of the original.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mounts the folder `$2` at `$1`, and runs the remaining words there.
const SCRIPT: &str = "mount --bind \"$1/target\" \"$2/target\" && mount --rbind \"$2\" \"$1\" && cd \"$1\" && \
    shift 2 && exec \"$@\"";

/// A copy that is visible at the path of the original.
pub struct Overlay {
    original: PathBuf,
    copy: PathBuf,
}

impl Overlay {
    /// Returns `None` if this process may not mount anything, for example because the user is not root.
    pub fn new(original: &Path, copy: &Path) -> Option<Self> {
        let original = fs::canonicalize(original).ok()?;
        let copy = fs::canonicalize(copy).ok()?;
        fs::create_dir_all(copy.join("target")).ok()?;
        let overlay = Self { original, copy };
        let trial = overlay.command().arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
        trial.is_ok_and(|status| status.success()).then_some(overlay)
    }

    /// Returns the beginning of a command line. Its further arguments are a command and its arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]);
        command.args([&self.original, &self.copy]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_see_the_copy_and_the_build_folder_of_the_original() {
        let folder = std::env::temp_dir().join(format!("xtask-overlay-{}", std::process::id()));
        let (original, copy) = (folder.join("original"), folder.join("original/target/copy"));
        fs::create_dir_all(&copy).unwrap();
        fs::write(original.join("file"), "original").unwrap();
        fs::write(copy.join("file"), "copy").unwrap();
        // Without root, there is no overlay.
        if let Some(overlay) = Overlay::new(&original, &copy) {
            let script = "pwd && cat file && echo made >target/made && echo changed >file";
            let output = overlay.command().args(["sh", "-c", script]).output().unwrap();
            let expected = format!("{}\ncopy", fs::canonicalize(&original).unwrap().display());
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
            assert_eq!(fs::read_to_string(original.join("file")).unwrap(), "original");
            assert_eq!(fs::read_to_string(copy.join("file")).unwrap(), "changed\n");
            assert_eq!(fs::read_to_string(original.join("target/made")).unwrap(), "made\n");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
