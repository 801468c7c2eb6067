// SPDX-License-Identifier: Apache-2.0
//! Layout of the files: a header, then frames. All numbers are little-endian; OpenFlow messages are
//! big-endian.
//!
//! A **log** holds the transactions from a sequence number on. A **snapshot** holds a whole state. A
//! transaction, or a part of a snapshot, is one frame or several consecutive ones. The checksum of a frame
//! includes that of the header, so that frames of other files are not mistaken for frames of this one.

use crc32c::{crc32c, crc32c_append};

/// Version of the layout. A file of a newer version is not read.
pub const VERSION: u16 = 1;

/// Length of a file's header in bytes.
pub const HEADER_BYTES: usize = 64;
/// Position of the header's checksum.
const HEADER_CRC: usize = HEADER_BYTES - 4;

/// Maximum number of a file's first transaction. No switch makes that many transactions.
const FIRST_MAX: u64 = u64::MAX / 2;

/// Length of a frame's header in bytes.
pub const FRAME_BYTES: usize = 24;
/// Payload size at which a frame is ended and another one begins.
pub const FRAME_FULL_BYTES: usize = 256 * 1_024;
/// Maximum length of a frame's payload: a full frame and its last item.
const PAYLOAD_MAX: usize = FRAME_FULL_BYTES + ITEM_MAX + 4;
/// Maximum length of an item.
pub const ITEM_MAX: usize = (1 << 24) - 1;

/// Flag of the first frame of a transaction or part.
const FIRST: u8 = 1;
/// Flag of the last frame of a transaction or part.
const LAST: u8 = 2;
/// Flag of the frame that ends a snapshot. Its sequence number is that of the last transaction that the
/// snapshot may include.
const END: u8 = 4;

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Transactions in order.
    Log,
    /// A whole state.
    Snapshot,
}

impl FileKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Log => b"shuntlog",
            Self::Snapshot => b"shuntsnp",
        }
    }
}

/// Header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    pub kind: FileKind,
    pub datapath_id: u64,
    /// Log: number of its first transaction. Snapshot: number of the first transaction that must be applied
    /// on top of it. Transactions are numbered from 1.
    pub first: u64,
    /// Identifies the boot of the machine, within which times of the monotonic clock can be compared.
    pub boot_id: [u8; 16],
    /// Checksum of the configuration with which the datapath started.
    pub base_mark: u32,
}

/// Reason why a file's header is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadHeader {
    /// The file ends within the header.
    Short,
    /// The file is not one of a store, or its header is damaged.
    Damaged,
    /// The file has this newer version.
    Newer(u16),
}

impl FileHeader {
    /// Returns the encoded header.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(self.kind.magic());
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[16..24].copy_from_slice(&self.datapath_id.to_le_bytes());
        out[24..32].copy_from_slice(&self.first.to_le_bytes());
        out[32..48].copy_from_slice(&self.boot_id);
        out[48..52].copy_from_slice(&self.base_mark.to_le_bytes());
        let crc = crc32c(&out[..HEADER_CRC]);
        out[HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Decodes the header at the start of a file.
    pub fn decode(file: &[u8]) -> Result<Self, BadHeader> {
        let mut r = ByteFields(file.get(..HEADER_BYTES).ok_or(BadHeader::Short)?);
        let magic = r.array::<8>().ok_or(BadHeader::Short)?;
        let kinds = [FileKind::Log, FileKind::Snapshot];
        let kind = kinds.into_iter().find(|kind| *kind.magic() == magic).ok_or(BadHeader::Damaged)?;
        let header = (|| {
            let version = r.u16()?;
            r.array::<6>()?;
            let (datapath_id, first) = (r.u64()?, r.u64()?);
            let (boot_id, base_mark) = (r.array()?, r.u32()?);
            r.array::<8>()?;
            Some((version, r.u32()?, Self { kind, datapath_id, first, boot_id, base_mark }))
        })();
        let (version, crc, header) = header.ok_or(BadHeader::Short)?;
        if crc != crc32c(&file[..HEADER_CRC]) {
            return Err(BadHeader::Damaged);
        }
        if version > VERSION {
            return Err(BadHeader::Newer(version));
        }
        if !(1..=FIRST_MAX).contains(&header.first) {
            return Err(BadHeader::Damaged);
        }
        Ok(header)
    }

    /// Returns the start value of the frames' checksums. The header's own checksum is left out: with it, the
    /// value would be the same for all headers.
    pub fn seed(&self) -> u32 {
        crc32c(&self.encode()[..HEADER_CRC])
    }
}

/// Meaning of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameKind {
    /// The frame begins a transaction or part.
    pub is_first: bool,
    /// The frame ends a transaction or part.
    pub is_last: bool,
    /// The frame ends a snapshot.
    pub is_end: bool,
}

impl FrameKind {
    fn bits(self) -> u8 {
        let bit = |set, bit| if set { bit } else { 0 };
        bit(self.is_first, FIRST) | bit(self.is_last, LAST) | bit(self.is_end, END)
    }
}

/// A frame whose checksum is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreFrame<'a> {
    pub kind: FrameKind,
    pub sequence: u64,
    pub payload: &'a [u8],
}

/// Begins a frame at the end of `out`. Returns its position, for [`end_frame`].
pub fn begin_frame(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.resize(at + FRAME_BYTES, 0);
    at
}

/// Ends the frame that begins at `at`, whose payload is the rest of `out`.
pub fn end_frame(out: &mut [u8], at: usize, seed: u32, sequence: u64, kind: FrameKind) {
    let frame = &mut out[at..];
    debug_assert!(frame.len() - FRAME_BYTES <= PAYLOAD_MAX, "the payload exceeds its limit");
    let length = (frame.len() - FRAME_BYTES) as u32;
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..16].copy_from_slice(&sequence.to_le_bytes());
    frame[16] = kind.bits();
    let crc = crc32c_append(seed, &frame[4..]);
    frame[..4].copy_from_slice(&crc.to_le_bytes());
}

/// Result of reading a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFrame<'a> {
    Frame(StoreFrame<'a>),
    /// The file ends here, between two frames.
    End,
    /// The file ends within the frame, as after a crash.
    Torn,
    /// The frame is damaged.
    Damaged,
}

/// Reads the frames of a file in order.
#[derive(Clone, Copy, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    seed: u32,
}

impl<'a> Frames<'a> {
    /// Reads the frames of a file with this header.
    pub fn new(file: &'a [u8], header: &FileHeader) -> Self {
        Self { rest: file.get(HEADER_BYTES..).unwrap_or_default(), seed: header.seed() }
    }

    /// Returns the number of bytes that were not read, from the last frame that was not whole.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Reads the next frame. After a frame that is not whole, every further call returns the same.
    pub fn next_frame(&mut self) -> NextFrame<'a> {
        if self.rest.is_empty() {
            return NextFrame::End;
        }
        let mut r = ByteFields(self.rest);
        let head = (|| Some((r.u32()?, r.u32()? as usize, r.u64()?, r.array::<8>()?)))();
        let Some((crc, length, sequence, [bits, zeros @ ..])) = head else { return NextFrame::Torn };
        if length > PAYLOAD_MAX {
            return NextFrame::Damaged;
        }
        let Some(frame) = self.rest.get(..FRAME_BYTES + length) else { return NextFrame::Torn };
        if crc != crc32c_append(self.seed, &frame[4..]) || bits > FIRST | LAST | END || zeros != [0; 7] {
            return NextFrame::Damaged;
        }
        self.rest = &self.rest[frame.len()..];
        let bit = |bit| bits & bit != 0;
        let kind = FrameKind { is_first: bit(FIRST), is_last: bit(LAST), is_end: bit(END) };
        NextFrame::Frame(StoreFrame { kind, sequence, payload: &frame[FRAME_BYTES..] })
    }
}

/// Reader of the fields of a header, frame or item. Each method returns `None` at the end.
#[derive(Clone, Copy, Debug)]
pub struct ByteFields<'a>(pub &'a [u8]);

impl<'a> ByteFields<'a> {
    /// Reads `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads an array of bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Reads a number of 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads a number of 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a signed number of 8 bytes.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Returns `value` if all bytes have been read.
    pub fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: FileHeader =
        FileHeader { kind: FileKind::Log, datapath_id: 7, first: 3, boot_id: [5; 16], base_mark: 9 };

    /// Returns a file with these payloads.
    fn file(header: &FileHeader, payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = header.encode().to_vec();
        for (payload, sequence) in payloads.iter().zip(3..) {
            let at = begin_frame(&mut out);
            out.extend_from_slice(payload);
            let kind = FrameKind { is_first: true, is_last: true, is_end: false };
            end_frame(&mut out, at, header.seed(), sequence, kind);
        }
        out
    }

    #[test]
    fn a_header_is_decoded_and_each_byte_is_checked() {
        let bytes = HEADER.encode();
        assert_eq!(FileHeader::decode(&bytes), Ok(HEADER));
        for at in 0..HEADER_BYTES {
            assert_eq!(FileHeader::decode(&bytes[..at]), Err(BadHeader::Short));
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            assert_eq!(FileHeader::decode(&damaged), Err(BadHeader::Damaged), "byte {at}");
        }
        let mut newer = bytes;
        newer[8] = 2;
        let crc = crc32c(&newer[..HEADER_CRC]);
        newer[HEADER_CRC..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(FileHeader::decode(&newer), Err(BadHeader::Newer(2)));
        for first in [0, FIRST_MAX + 1, u64::MAX] {
            let bytes = FileHeader { first, ..HEADER }.encode();
            assert_eq!(FileHeader::decode(&bytes), Err(BadHeader::Damaged), "{first}");
        }
    }

    #[test]
    fn frames_end_at_the_first_one_that_is_not_whole() {
        fn whole(bytes: &[u8]) -> (Vec<(u64, Vec<u8>)>, NextFrame<'_>) {
            let mut frames = Frames::new(bytes, &HEADER);
            let mut found = Vec::new();
            loop {
                match frames.next_frame() {
                    NextFrame::Frame(frame) => found.push((frame.sequence, frame.payload.to_vec())),
                    end => return (found, end),
                }
            }
        }
        let bytes = file(&HEADER, &[b"one", b"", b"three"]);
        let all = vec![(3, b"one".to_vec()), (4, Vec::new()), (5, b"three".to_vec())];
        assert_eq!(whole(&bytes), (all.clone(), NextFrame::End));
        let ends = [HEADER_BYTES, HEADER_BYTES + 27, HEADER_BYTES + 51, HEADER_BYTES + 80];
        assert_eq!(bytes.len(), ends[3]);
        for at in HEADER_BYTES..bytes.len() {
            let count = ends.iter().filter(|end| **end <= at).count() - 1;
            let end = if ends.contains(&at) { NextFrame::End } else { NextFrame::Torn };
            assert_eq!(whole(&bytes[..at]), (all[..count].to_vec(), end), "cut at {at}");
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let (found, end) = whole(&damaged);
            assert_eq!(found, all[..count], "byte {at}");
            assert!(matches!(end, NextFrame::Damaged | NextFrame::Torn), "byte {at}");
        }
        // Frames of another file are not accepted.
        let other = file(&FileHeader { boot_id: [6; 16], ..HEADER }, &[b"one"]);
        assert_eq!(whole(&other), (Vec::new(), NextFrame::Damaged));
    }
}
