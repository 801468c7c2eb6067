// SPDX-License-Identifier: Apache-2.0
//! Files of a store whose headers and checksums are correct.

use crc32c::{crc32c, crc32c_append};
use openflow::Message;
use openflow::stateless::StatelessReplies;

/// ID of the datapath of all files.
pub const DATAPATH_ID: u64 = 7;

/// Bit of a frame that ends a transaction.
const LAST: u8 = 2;
/// Bit of the frame that ends a snapshot.
const END: u8 = 4;
/// Bits of a frame that are written to the file. The target uses the others.
const WRITTEN: u8 = 7;
/// Bit of a frame that begins a file.
const NEW_FILE: u8 = 8;
/// Bit of a frame that begins a snapshot instead of a log, if it begins a file.
const NEW_SNAPSHOT: u8 = 16;
/// Bit of a frame before which a number is left out.
const GAP: u8 = 32;
/// Bit of a frame whose checksum is wrong.
const DAMAGED: u8 = 64;
/// Bit of a frame that begins a file of the machine's current boot, if it begins a file.
const THIS_BOOT: u8 = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Log,
    Snapshot,
}

/// A file of a store.
pub struct SealedFile {
    kind: FileKind,
    /// Number in the file's name.
    first: u64,
    /// Number of the next transaction or part.
    next: u64,
    seed: u32,
    is_ended: bool,
    pub bytes: Vec<u8>,
}

/// Returns at least one file. The data is a list of frames: the bits of the frame, the length of its payload
/// as `u16`, and the payload. The frame after one that ends a transaction has the next number. `is_this_boot`
/// says whether the first file was written since the machine's last start.
pub fn sealed_files(kind: FileKind, first: u64, is_this_boot: bool, data: &[u8]) -> Vec<SealedFile> {
    let mut done = Vec::new();
    let mut file = SealedFile::new(kind, first, is_this_boot);
    let mut rest = data;
    while let Some((&[bits, low, high], after)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        if bits & NEW_FILE != 0 {
            let kind = if bits & NEW_SNAPSHOT == 0 { FileKind::Log } else { FileKind::Snapshot };
            // The log after a snapshot has the number of the snapshot.
            let first = if file.kind == FileKind::Log { file.next } else { file.first };
            let next = SealedFile::new(kind, first, bits & THIS_BOOT != 0);
            done.push(std::mem::replace(&mut file, next).ended());
        }
        file.add(bits, &after[..length]);
        rest = &after[length..];
    }
    done.push(file.ended());
    done
}

impl SealedFile {
    fn new(kind: FileKind, first: u64, is_this_boot: bool) -> Self {
        let mut bytes = vec![0; 60];
        bytes[..8].copy_from_slice(match kind {
            FileKind::Log => b"shuntlog",
            FileKind::Snapshot => b"shuntsnp",
        });
        bytes[8] = 1;
        bytes[16..24].copy_from_slice(&DATAPATH_ID.to_le_bytes());
        bytes[24..32].copy_from_slice(&first.to_le_bytes());
        if is_this_boot {
            bytes[32..48].copy_from_slice(&boot_id());
        }
        bytes[48..52].copy_from_slice(&base_mark().to_le_bytes());
        let seed = crc32c(&bytes);
        bytes.extend(seed.to_le_bytes());
        Self { kind, first, next: first, seed, is_ended: false, bytes }
    }

    /// Returns the file's name.
    pub fn name(&self) -> String {
        match self.kind {
            FileKind::Log => format!("log-{:020}", self.first),
            FileKind::Snapshot => format!("snapshot-{:020}", self.first),
        }
    }

    fn add(&mut self, bits: u8, payload: &[u8]) {
        self.next += u64::from(bits & GAP != 0);
        if bits & END == 0 {
            self.frame(bits, self.next, payload);
            self.next += u64::from(bits & LAST != 0);
        } else {
            // The snapshot may include as many transactions as it has parts.
            self.frame(bits, self.next.saturating_sub(1), payload);
            self.is_ended = true;
        }
    }

    fn frame(&mut self, bits: u8, sequence: u64, payload: &[u8]) {
        let at = self.bytes.len();
        self.bytes.extend([0; 4]);
        self.bytes.extend((payload.len() as u32).to_le_bytes());
        self.bytes.extend(sequence.to_le_bytes());
        self.bytes.extend([bits & WRITTEN, 0, 0, 0, 0, 0, 0, 0]);
        self.bytes.extend(payload);
        let crc = crc32c_append(self.seed, &self.bytes[at + 4..]) ^ u32::from(bits & DAMAGED);
        self.bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }

    /// Ends a snapshot so that it needs no log, if the data has not ended it.
    fn ended(mut self) -> Self {
        if self.kind == FileKind::Snapshot && !self.is_ended {
            self.frame(END, self.first.saturating_sub(1), &[]);
        }
        self
    }
}

/// Returns the ID of the machine's current boot.
fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("Linux has this file");
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).expect("digits").to_be_bytes()
}

/// Returns the checksum of the configuration of a datapath without stateless forwarding.
fn base_mark() -> u32 {
    let mut bytes = Vec::new();
    for reply in StatelessReplies::new(None) {
        openflow::encode(&Message::StatelessReply(reply), 0, &mut bytes).expect("a short message");
    }
    crc32c(&bytes)
}
