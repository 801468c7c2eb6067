// SPDX-License-Identifier: Apache-2.0
//! Every message of both dialects, compared with bytes that are built without the codec: from offsets, widths
//! and values that are written here. Each message must decode from these bytes and encode to them. Shorter
//! and longer variants must be refused.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod actions;
mod instructions;
mod packets;
mod setup;
mod tables;

use pof::{PofDecodeError, PofDialect, PofMessage, decode, encode};

pub const OLD: PofDialect = PofDialect::V1_2;
pub const NEW: PofDialect = PofDialect::V1_4;

/// Offset in the structure, width in bytes, and value.
pub type Cell = (usize, usize, u128);

/// A message and its bytes.
pub struct Vector {
    pub dialect: PofDialect,
    pub kind: u8,
    /// Bytes after the header.
    pub body: Vec<u8>,
    pub message: PofMessage,
    /// Whether padding may follow the message.
    pub padded: bool,
}

/// Writes the value of each cell in network byte order to `size` zero bytes.
pub fn assemble(size: usize, cells: &[Cell]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    for (at, width, value) in cells {
        for n in 0..*width {
            bytes[at + n] = (value >> (8 * (width - 1 - n))) as u8;
        }
        assert!(*width == 16 || value >> (8 * width) == 0, "{value:#x} does not fit into {width} bytes");
    }
    bytes
}

/// Overwrites the bytes at an offset.
pub fn insert(bytes: &mut [u8], at: usize, part: &[u8]) {
    bytes[at..at + part.len()].copy_from_slice(part);
}

/// Overwrites the bytes at an offset by text.
pub fn with_text(mut bytes: Vec<u8>, texts: &[(usize, &str)]) -> Vec<u8> {
    for (at, text) in texts {
        insert(&mut bytes, *at, text.as_bytes());
    }
    bytes
}

pub fn vector(dialect: PofDialect, kind: u8, body: Vec<u8>, message: PofMessage) -> Vector {
    Vector { dialect, kind, body, message, padded: false }
}

/// Returns a message with the given header fields.
pub fn framed(kind: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let length = 8 + body.len();
    let mut bytes = vec![4, kind, (length >> 8) as u8, length as u8];
    bytes.extend([24, 16, 8, 0].map(|shift| (xid >> shift) as u8));
    bytes.extend_from_slice(body);
    bytes
}

fn all() -> Vec<Vector> {
    [setup::vectors(), tables::vectors(), packets::vectors(), instructions::vectors(), actions::vectors()]
        .into_iter()
        .flatten()
        .collect()
}

const XID: u32 = 0x0a0b_0c0d;

#[test]
fn messages_decode_from_their_bytes() {
    for vector in all() {
        let bytes = framed(vector.kind, XID, &vector.body);
        let decoded = decode(&bytes, vector.dialect);
        assert_eq!(decoded.as_ref(), Ok(&vector.message), "type {} in {}", vector.kind, vector.dialect);
    }
}

#[test]
fn messages_encode_to_their_bytes() {
    for vector in all() {
        let mut bytes = vec![0xee];
        encode(&vector.message, XID, vector.dialect, &mut bytes).unwrap();
        let expected = framed(vector.kind, XID, &vector.body);
        let differs = bytes[1..].iter().zip(&expected).position(|(ours, theirs)| ours != theirs);
        assert_eq!(differs, None, "{:?} in {}", vector.message, vector.dialect);
        assert_eq!(bytes.len(), 1 + expected.len());
    }
}

fn refused(bytes: &[u8], dialect: PofDialect) -> PofDecodeError {
    decode(bytes, dialect).expect_err("the message must be refused")
}

#[test]
fn shorter_and_longer_messages_are_refused() {
    for vector in all() {
        let bytes = framed(vector.kind, XID, &vector.body);
        for length in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
            // The length field still has the original length.
            let error = refused(&bytes[..length], vector.dialect);
            assert_eq!((error.code.kind, error.code.code), (1, 6), "{error}");
            // The length field is correct. The configuration has a short form in the newer dialect.
            if length < 8 || (vector.kind, length, vector.dialect) == (9, 12, NEW) {
                continue;
            }
            // A packet-in may contain only the beginning of a packet.
            if vector.kind == 10 && length >= 32 {
                continue;
            }
            let cut = framed(vector.kind, XID, &vector.body[..length - 8]);
            let error = refused(&cut, vector.dialect);
            let place = (error.code.kind, error.code.code, error.offset);
            // A shorter packet in a PACKET_OUT contradicts its own length.
            assert!(place == (1, 6, 2) || vector.kind == 14 && place == (1, 12, 20), "{error}");
        }
        for more in [1, 4, 8, 3_000] {
            let mut body = vector.body.clone();
            body.resize(body.len() + more, 0);
            let longer = framed(vector.kind, XID, &body);
            if vector.padded && more < 2_000 {
                assert_eq!(decode(&longer, vector.dialect), Ok(vector.message.clone()));
                continue;
            }
            let error = refused(&longer, vector.dialect);
            assert_eq!((error.code.kind, error.code.code, error.offset), (1, 6, 2), "{error}");
        }
    }
}

/// Every message type of the other dialect that this one lacks is refused by name.
#[test]
fn messages_that_a_dialect_lacks_are_refused() {
    for vector in all().iter().filter(|vector| vector.dialect == NEW) {
        let bytes = framed(vector.kind, XID, &vector.body);
        if [14, 34, 35, 101, 102].contains(&vector.kind) {
            let error = refused(&bytes, OLD);
            assert_eq!((error.code.kind, error.code.code, error.offset), (1, 1, 1), "{error}");
            let mut out = Vec::new();
            assert!(encode(&vector.message, XID, OLD, &mut out).is_err());
            assert!(out.is_empty());
        }
    }
}

#[test]
fn all_message_types_have_vectors_in_both_dialects() {
    let common = [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 30, 31, 32, 33];
    for (dialect, more) in [(OLD, &[][..]), (NEW, &[14, 34, 35, 101, 102])] {
        let mut kinds: Vec<u8> =
            all().iter().filter(|vector| vector.dialect == dialect).map(|vector| vector.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut expected = [&common, more].concat();
        expected.sort_unstable();
        assert_eq!(kinds, expected, "{dialect}");
    }
}
