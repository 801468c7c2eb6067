// SPDX-License-Identifier: Apache-2.0
//! A file that is written in batches.

use crate::format::FileHeader;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

/// A file that is being written.
#[derive(Debug)]
pub struct BatchedFile {
    file: File,
    buffer: Vec<u8>,
    /// Start value of the checksums of frames.
    pub seed: u32,
    /// Number of bytes written.
    pub bytes: u64,
    /// Time of the first write that is not durable yet.
    unsynced_since: Option<Instant>,
}

impl BatchedFile {
    /// Creates a file, and puts its header into the buffer.
    pub fn create(path: PathBuf, header: &FileHeader) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(true).open(path)?;
        let buffer = header.encode().to_vec();
        Ok(Self { file, buffer, seed: header.seed(), bytes: 0, unsynced_since: None })
    }

    /// Returns the buffer, for appending.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Returns the number of bytes in the buffer.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the time of the first write that is not durable yet.
    pub fn unsynced_since(&self) -> Option<Instant> {
        self.unsynced_since
    }

    /// Writes the buffer.
    pub fn write(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.buffer)?;
        self.bytes += self.buffer.len() as u64;
        self.unsynced_since.get_or_insert_with(Instant::now);
        self.buffer.clear();
        self.buffer.shrink_to(4 << 20);
        Ok(())
    }

    /// Records that another thread makes durable what was written.
    pub fn is_being_synced(&mut self) {
        self.unsynced_since = None;
    }

    /// Makes everything durable that was written.
    pub fn sync(&mut self) -> io::Result<()> {
        if self.unsynced_since.take().is_some() {
            self.file.sync_data()?;
        }
        Ok(())
    }
}
