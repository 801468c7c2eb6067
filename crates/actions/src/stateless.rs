// SPDX-License-Identifier: Apache-2.0
//! Headers of stateless forwarding, which follow a frame's MAC addresses: parsing, push and pop.

use crate::packet_data::PacketData;
use crate::tags;
use flow::DropReason;
use flow::action::{KeyHeader, PolkaHeader, TfHeader};
use flow::stateless::TagTypes;
use frame::Frame;
use wire::tf::Form;
use wire::{keyflow, polka, tf};

/// Maximum length of a KeyFlow key, in bytes.
pub const KEY_BYTES: usize = 32;

/// Offset of the EtherType that identifies the header.
pub const TYPE_AT: usize = 12;

/// Offset of the bytes after the EtherType.
const HEADER_AT: usize = TYPE_AT + 2;

/// Offset of the hop limit in KeyFlow, and of the TTL in PolKA.
pub const HOPS_AT: usize = HEADER_AT + 1;

/// Length of a PolKA header, in bytes. The last 16 bytes are the key.
const POLKA_BYTES: usize = 20;

/// Length of a Tag-and-Forward tag, including its EtherType, in bytes.
pub const TF_BYTES: usize = 8;

/// Index of the PolKA keys' bank. The banks before it are those of KeyFlow's two epochs.
pub const POLKA_BANK: usize = 2;

/// A complete header of stateless forwarding.
#[derive(Clone, Copy, Debug)]
pub enum StatelessTag {
    /// A key of KeyFlow or PolKA.
    Key {
        /// Number of the bank of keys: the epoch of KeyFlow, or [`POLKA_BANK`].
        bank: usize,
        /// Offset of the key's first byte in the frame.
        from: usize,
        /// Offset after the key's last byte.
        to: usize,
    },
    /// A Tag-and-Forward tag.
    Tf {
        /// Egress queue.
        qid: u8,
        /// Gate number for the way up the tree of switches, or 0 if there is none.
        up: u32,
        /// Gate number for the way down.
        down: u32,
    },
}

/// Parses the header of a frame whose EtherType is one of `types`. Returns `None` for other frames.
#[inline(always)]
pub fn parse(bytes: &[u8], types: &TagTypes) -> Option<Result<StatelessTag, DropReason>> {
    let eth_type = eth_type(bytes)?;
    let header = bytes.get(HEADER_AT..)?;
    let tag = if eth_type == types.keyflow {
        keyflow::Header::new_checked(header).ok().map(|header| StatelessTag::Key {
            bank: header.epoch().into(),
            from: HEADER_AT + keyflow::FIXED_BYTES,
            to: HEADER_AT + header.header_len(),
        })
    } else if eth_type == types.polka {
        let end = HEADER_AT + POLKA_BYTES;
        polka::Header::new_checked(header).ok().map(|_| StatelessTag::Key {
            bank: POLKA_BANK,
            from: end - 16,
            to: end,
        })
    } else if eth_type == types.tf {
        tf_tag(header, Form::Paper)
    } else if eth_type == types.tf_wide {
        tf_tag(header, Form::Wide)
    } else {
        return None;
    };
    Some(tag.ok_or(DropReason::MalformedTag))
}

#[inline(always)]
fn tf_tag(header: &[u8], form: Form) -> Option<StatelessTag> {
    let tag = tf::Tag::new_checked(header).ok()?;
    Some(StatelessTag::Tf { qid: tag.qid(), up: tag.up(form), down: tag.down(form).into() })
}

/// Returns the first EtherType of a frame.
#[inline(always)]
pub fn eth_type(bytes: &[u8]) -> Option<u16> {
    let eth_type = bytes.get(TYPE_AT..HEADER_AT)?;
    Some(u16::from_be_bytes([eth_type[0], eth_type[1]]))
}

/// A KeyFlow header to push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyPush {
    /// Length of the key, in units of 8 bytes.
    units: u8,
    hops: u8,
    epoch: u8,
    /// Key; only the first `units` units are used.
    key: [u8; KEY_BYTES],
}

impl KeyPush {
    /// Compiles the action. The key must have 1 to 4 units.
    pub fn compile(header: &KeyHeader) -> Self {
        let mut made = Self { hops: header.hops, epoch: header.epoch & 1, ..Self::default() };
        for (to, from) in made.key.iter_mut().zip(&header.key) {
            *to = *from;
        }
        made.units = (header.key.len().min(KEY_BYTES) / 8) as u8;
        made
    }

    /// Pushes the header.
    ///
    /// # Errors
    /// Returns `NoHeadroom` if the frame has too little headroom.
    pub fn run(&self, packet: &mut PacketData, types: &TagTypes) -> Result<(), DropReason> {
        let key = self.key.get(..8 * usize::from(self.units)).unwrap_or_default();
        let first = keyflow::VERSION << 4 | self.epoch << 3;
        push_behind_type(packet, types.keyflow, key, |inner| {
            [first, self.hops, self.units, 0, inner[0], inner[1], 0, 0]
        })
    }
}

/// A PolKA header to push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolkaPush {
    ttl: u8,
    key: [u8; 16],
}

impl PolkaPush {
    /// Compiles the action.
    pub fn compile(header: PolkaHeader) -> Self {
        Self { ttl: header.ttl, key: header.key.to_be_bytes() }
    }

    /// Pushes the header.
    ///
    /// # Errors
    /// Returns `NoHeadroom` if the frame has too little headroom.
    pub fn run(&self, packet: &mut PacketData, types: &TagTypes) -> Result<(), DropReason> {
        push_behind_type(packet, types.polka, &self.key, |inner| [0, self.ttl, inner[0], inner[1]])
    }
}

/// Replaces a frame's EtherType and inserts a header and a key after it. `fixed` builds the header from the
/// previous EtherType.
fn push_behind_type<const N: usize>(
    packet: &mut PacketData,
    eth_type: u16,
    key: &[u8],
    fixed: impl Fn([u8; 2]) -> [u8; N],
) -> Result<(), DropReason> {
    if !packet.frame.insert(HEADER_AT, N + key.len()) {
        return Err(DropReason::NoHeadroom);
    }
    let bytes = packet.frame.bytes_mut();
    let inner = [bytes[TYPE_AT], bytes[TYPE_AT + 1]];
    bytes[TYPE_AT..HEADER_AT].copy_from_slice(&eth_type.to_be_bytes());
    let key_at = HEADER_AT + N;
    bytes[HEADER_AT..key_at].copy_from_slice(&fixed(inner));
    bytes[key_at..key_at + key.len()].copy_from_slice(key);
    packet.forget_layers();
    Ok(())
}

/// A Tag-and-Forward tag to push, without its EtherType.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TfPush([u8; 6]);

impl TfPush {
    /// Compiles the action.
    pub fn compile(header: &TfHeader, form: Form) -> Self {
        Self(form.pack(header.qid, header.up, header.down))
    }

    /// Pushes the tag.
    ///
    /// # Errors
    /// Returns `NoHeadroom` if the frame has too little headroom.
    pub fn run(&self, packet: &mut PacketData, eth_type: u16) -> Result<(), DropReason> {
        if !packet.frame.insert(TYPE_AT, TF_BYTES) {
            return Err(DropReason::NoHeadroom);
        }
        let bytes = packet.frame.bytes_mut();
        bytes[TYPE_AT..HEADER_AT].copy_from_slice(&eth_type.to_be_bytes());
        bytes[HEADER_AT..TYPE_AT + TF_BYTES].copy_from_slice(&self.0);
        packet.forget_layers();
        Ok(())
    }
}

/// Pops a KeyFlow or PolKA header.
///
/// # Errors
/// Returns `MissingHeader` for a packet without a complete header, and `NoHeadroom` if the shorter frame
/// cannot be padded.
pub fn pop_key(packet: &mut PacketData, types: &TagTypes) -> Result<(), DropReason> {
    let bytes = packet.frame.bytes();
    let (inner_at, end) = match parse(bytes, types) {
        Some(Ok(StatelessTag::Key { bank: POLKA_BANK, to, .. })) => (HEADER_AT + 2, to),
        Some(Ok(StatelessTag::Key { to, .. })) => (HEADER_AT + 4, to),
        _ => return Err(DropReason::MissingHeader),
    };
    let inner = [bytes[inner_at], bytes[inner_at + 1]];
    if !packet.frame.remove(HEADER_AT, end - HEADER_AT) {
        return Err(DropReason::MissingHeader);
    }
    packet.frame.bytes_mut()[TYPE_AT..HEADER_AT].copy_from_slice(&inner);
    tags::pad(packet)
}

/// Pops a Tag-and-Forward tag of either form.
///
/// # Errors
/// Returns `MissingHeader` for a packet without a complete tag, and `NoHeadroom` if the shorter frame cannot
/// be padded.
pub fn pop_tf(packet: &mut PacketData, types: &TagTypes) -> Result<(), DropReason> {
    match parse(packet.frame.bytes(), types) {
        Some(Ok(StatelessTag::Tf { .. })) => {
            packet.forget_layers();
            take_tf(&mut packet.frame)
        }
        _ => Err(DropReason::MissingHeader),
    }
}

/// Removes the Tag-and-Forward tag of a frame, which must have one.
pub fn take_tf(frame: &mut Frame) -> Result<(), DropReason> {
    if !frame.remove(TYPE_AT, TF_BYTES) {
        return Err(DropReason::MissingHeader);
    }
    if frame.pad_into_headroom(tags::FRAME_BYTES_MIN) { Ok(()) } else { Err(DropReason::NoHeadroom) }
}
