// SPDX-License-Identifier: Apache-2.0
//! The number of the last change, in a mapped page of a file. Writing it makes no system call, and the kernel
//! keeps it when the process is killed.

use memmap2::{MmapMut, MmapOptions};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Length of the file in bytes.
const PAGE_BYTES: usize = 4_096;
/// Start of the file.
const MAGIC: [u8; 8] = *b"shuntseq";
/// Position of the number, which is followed by its complement.
const NUMBER: usize = 64;

/// The mapped page.
#[derive(Debug)]
pub struct SequencePage(MmapMut);

impl SequencePage {
    /// Creates or opens the file, and sets its number.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn open(path: &Path, number: u64) -> io::Result<Self> {
        // If the file is a symbolic link or another process has it open, use a new one.
        let _ = fs::remove_file(path);
        let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
        // A page without a block on a full disk would end the process with SIGBUS when it is written.
        file.write_all(&[0; PAGE_BYTES])?;
        // SAFETY: the file was created above with PAGE_BYTES bytes, all of which were written. The folder is
        // locked and has mode 0700, so no other process of this user truncates the file. Its bytes may have
        // any value.
        #[allow(unsafe_code)]
        let mut page = unsafe { MmapOptions::new().len(PAGE_BYTES).map_mut(&file) }?;
        page[..MAGIC.len()].copy_from_slice(&MAGIC);
        let mut page = Self(page);
        page.set(number);
        Ok(page)
    }

    /// Sets the number.
    pub fn set(&mut self, number: u64) {
        self.0[NUMBER..NUMBER + 8].copy_from_slice(&number.to_le_bytes());
        self.0[NUMBER + 8..NUMBER + 16].copy_from_slice(&(!number).to_le_bytes());
    }

    /// Reads the number from a file that an earlier process has written. Returns `None` if the file is
    /// missing or damaged. If the process was killed between the two writes of a number, the number counts.
    #[must_use]
    pub fn read(path: &Path) -> Option<u64> {
        let file = fs::read(path).ok()?;
        let number = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?));
        let (number, complement) = (number(NUMBER)?, !number(NUMBER + 8)?);
        (file.starts_with(&MAGIC) && number.abs_diff(complement) <= 1).then_some(number.max(complement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_survives_its_writer() {
        let path = std::env::temp_dir().join(format!("shunt-sequence-{}", std::process::id()));
        assert_eq!(SequencePage::read(&path), None);
        let mut page = SequencePage::open(&path, 41).unwrap();
        assert_eq!(SequencePage::read(&path), Some(41));
        page.set(1 << 40);
        assert_eq!(SequencePage::read(&path), Some(1 << 40));
        // A process that was killed between the two writes of a number.
        page.0[NUMBER..NUMBER + 8].copy_from_slice(&((1_u64 << 40) + 1).to_le_bytes());
        assert_eq!(SequencePage::read(&path), Some((1 << 40) + 1));
        page.0[NUMBER] = 99;
        assert_eq!(SequencePage::read(&path), None);
        // A new process does not write to the page of the previous one.
        let next = SequencePage::open(&path, 5).unwrap();
        page.set(6);
        assert_eq!(SequencePage::read(&path), Some(5));
        drop(next);
        fs::remove_file(&path).unwrap();
    }
}
