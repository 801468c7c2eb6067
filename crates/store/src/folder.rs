// SPDX-License-Identifier: Apache-2.0
//! The folder of a store: names of its files, its lock, and copies of damaged files.

use crate::error::StoreError;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const LOG: &str = "log-";
const SNAPSHOT: &str = "snapshot-";
const DAMAGED: &str = "damaged-";
/// End of the name of a snapshot that is being written.
const UNFINISHED: &str = ".new";
/// Maximum number of damaged files that are kept aside.
const DAMAGED_MAX: usize = 32;

/// A file of the folder: the number in its name, and its path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberedFile {
    pub number: u64,
    pub path: PathBuf,
}

/// The locked folder of a store.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// The open folder, which has the lock.
    directory: File,
}

impl Folder {
    /// Creates the folder if it is missing, and locks it.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created or opened, or if another process uses it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Folder { path: path.into(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let directory = File::open(path).map_err(failed)?;
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.into(), directory }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse(path.into())),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the file with the number of the last change.
    pub fn sequence(&self) -> PathBuf {
        self.path.join("sequence")
    }

    /// Returns the path of a log.
    pub fn log(&self, first: u64) -> PathBuf {
        self.path.join(format!("{LOG}{first:020}"))
    }

    /// Returns the path of a snapshot.
    pub fn snapshot(&self, first: u64) -> PathBuf {
        self.path.join(format!("{SNAPSHOT}{first:020}"))
    }

    /// Returns the path of a snapshot that is being written.
    pub fn unfinished(&self, first: u64) -> PathBuf {
        self.path.join(format!("{SNAPSHOT}{first:020}{UNFINISHED}"))
    }

    /// Returns the logs by ascending number.
    pub fn logs(&self) -> io::Result<Vec<NumberedFile>> {
        self.numbered(LOG)
    }

    /// Returns the complete snapshots by ascending number.
    pub fn snapshots(&self) -> io::Result<Vec<NumberedFile>> {
        self.numbered(SNAPSHOT)
    }

    fn numbered(&self, prefix: &str) -> io::Result<Vec<NumberedFile>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse().ok());
            files.extend(number.map(|number| NumberedFile { number, path: self.path.join(&name) }));
        }
        files.sort();
        Ok(files)
    }

    /// Removes snapshots that were never completed.
    pub fn remove_unfinished(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if name.to_str().is_some_and(|name| name.starts_with(SNAPSHOT) && name.ends_with(UNFINISHED)) {
                fs::remove_file(self.path.join(name))?;
            }
        }
        Ok(())
    }

    /// Keeps a damaged file under a second name, which the store does not remove. Needs no space. Returns
    /// the name.
    pub fn keep_aside(&self, file: &Path) -> io::Result<String> {
        let mut kept: Vec<String> = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            kept.extend(entry?.file_name().into_string().ok().filter(|name| name.starts_with(DAMAGED)));
        }
        kept.sort();
        for oldest in kept.iter().take((kept.len() + 1).saturating_sub(DAMAGED_MAX)) {
            fs::remove_file(self.path.join(oldest))?;
        }
        let mut time_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        loop {
            let aside = format!("{DAMAGED}{time_ms}-{name}");
            match fs::hard_link(file, self.path.join(&aside)) {
                // A file of this name was kept in the same millisecond.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => time_ms += 1,
                result => return result.map(|()| aside),
            }
        }
    }

    /// Returns the open folder, which can be made durable like a file.
    pub fn directory(&self) -> &File {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A start keeps a log aside when it finds the damage, and again when it removes the log.
    #[test]
    fn a_file_is_kept_aside_several_times_in_a_millisecond() {
        let path = std::env::temp_dir().join(format!("shunt-aside-{}", std::process::id()));
        let folder = Folder::open(&path).unwrap();
        let log = folder.log(1);
        fs::write(&log, "a log").unwrap();
        let names: BTreeSet<String> = (0..DAMAGED_MAX).map(|_| folder.keep_aside(&log).unwrap()).collect();
        assert_eq!(names.len(), DAMAGED_MAX);
        assert!(names.iter().all(|name| fs::read(path.join(name)).unwrap() == b"a log"));
        fs::remove_dir_all(&path).unwrap();
    }
}
