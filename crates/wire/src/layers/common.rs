// SPDX-License-Identifier: Apache-2.0
//! Fast parser for common packets, which gives the same result as the walk. A common packet is TCP or UDP in
//! IPv4 without options or in IPv6 without extension headers, in an Ethernet frame with at most one VLAN tag.
//!
//! In such packets all headers have constant offsets, so one comparison of the length replaces the checks of
//! the walk.

use super::walk::is_tpid;
use super::{Depth, Layers, header};

/// Lowest EtherType. Lower values are lengths of LLC frames.
const TYPE_MIN: u16 = 0x0600;

/// Offset of the EtherType without a VLAN tag.
const TYPE_AT: usize = 12;

/// Length of an Ethernet header without a tag, in bytes.
const UNTAGGED: usize = 14;
/// Length of an Ethernet header with one tag, in bytes.
const TAGGED: usize = 18;

/// Minimum length of the frames that are handled here. It suffices for one tag with IPv4 and TCP, and for one
/// tag with IPv6.
const FRAME_MIN: usize = TAGGED + 40;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The words that a [`CommonGuard`] reads begin before this offset, in bytes.
const GUARDED_FROM: usize = 32;

/// Number of bytes at the start of a frame that a [`CommonGuard`] reads.
const GUARDED_BYTES: usize = GUARDED_FROM + 8;

const _: () = assert!(GUARDED_BYTES <= FRAME_MIN && TAGGED - 2 + 8 < GUARDED_FROM);

/// Recognises common packets that have one particular combination of headers. It compares two words of the
/// frame and, if there is a VLAN tag, the tag protocol identifier.
///
/// In every recognised packet, these headers are at the same offsets.
#[derive(Clone, Copy, Debug)]
pub struct CommonGuard {
    /// Bits of the two words that are the same in all recognised packets, and the values of these bits. The
    /// words are little-endian. The first one begins at the EtherType, two bytes before the L3 header.
    masks: [u64; 2],
    values: [u64; 2],
    /// Expected tag protocol identifier, in the 32 bits at offset 12. The mask is 0 if there is no tag.
    tag_mask: u32,
    tag_value: u32,
    /// Offset of the first word in bytes.
    at: usize,
    /// Position of the IP header's length field in the first word, in bits.
    length_bit: u32,
    /// Minimum value of the length field, in bytes.
    length_min: u16,
    /// Minimum length of the frame in bytes.
    frame_min: usize,
}

impl CommonGuard {
    /// Returns the guard for packets with the headers of `layers`, or `None` if there is no such guard. If
    /// `layers` were located to [`Depth::L4`], they must be the result of [`locate_common`]. For tagged
    /// packets, the guard recognises only C-tags (0x8100). If they were located to [`Depth::L2`], the guard
    /// recognises untagged packets that have the same EtherType and any headers after it.
    #[must_use]
    pub fn new(layers: &Layers) -> Option<Self> {
        match layers.depth {
            Depth::L2 => Self::of_type(layers),
            Depth::L4 if layers.present & (header::TCP | header::UDP) != 0 => Some(Self::of_upper(layers)),
            _ => None,
        }
    }

    /// Returns the guard for packets without a tag that have the same EtherType.
    fn of_type(layers: &Layers) -> Option<Self> {
        // If a frame ends within its tag, `eth_type` is the tag protocol identifier.
        let is_type = layers.eth_type >= TYPE_MIN && !is_tpid(layers.eth_type);
        let is_plain = layers.present == 0 && layers.type_at == TYPE_AT as u16 && is_type;
        is_plain.then(|| Self {
            masks: [0xffff, 0],
            values: [layers.eth_type.swap_bytes().into(), 0],
            tag_mask: 0,
            tag_value: 0,
            at: TYPE_AT,
            length_bit: 0,
            length_min: 0,
            frame_min: UNTAGGED,
        })
    }

    /// Returns the guard for packets with these upper-layer headers.
    fn of_upper(layers: &Layers) -> Self {
        let is_tagged = layers.present & header::VLAN != 0;
        let is_udp = layers.present & header::UDP != 0;
        let upper_bytes = if is_udp { 8 } else { 20 };
        let protocol = if is_udp { UDP } else { TCP };
        let (l3, tag) = if is_tagged { (TAGGED, [0x81, 0]) } else { (UNTAGGED, [0, 0]) };
        let mut bytes = [(0u8, 0u8); 16];
        let mut expect = |at: usize, value, mask| bytes[at] = (value, mask);
        // Expected bytes, with offsets from the EtherType, and the mask of the compared bits.
        let (length_bit, length_min, frame_min) = if layers.present & header::IPV4 != 0 {
            expect(0, 0x08, 0xff);
            expect(1, 0x00, 0xff);
            expect(2, 0x45, 0xff);
            // The packet is not a fragment: the more-fragments bit and the offset are 0.
            expect(8, 0, 0x3f);
            expect(9, 0, 0xff);
            expect(11, protocol, 0xff);
            (32, 20 + upper_bytes, FRAME_MIN)
        } else {
            expect(0, 0x86, 0xff);
            expect(1, 0xdd, 0xff);
            expect(2, 0x60, 0xf0);
            expect(8, protocol, 0xff);
            (48, upper_bytes, FRAME_MIN.max(l3 + 40 + usize::from(upper_bytes)))
        };
        let word = |first: usize, part: fn((u8, u8)) -> u8| {
            bytes[first..first + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(part(*byte)))
        };
        Self {
            masks: [word(0, |(_, mask)| mask), word(8, |(_, mask)| mask)],
            values: [word(0, |(value, _)| value), word(8, |(value, _)| value)],
            tag_mask: if is_tagged { 0xffff } else { 0 },
            tag_value: u32::from(u16::from_le_bytes(tag)),
            at: l3 - 2,
            length_bit,
            length_min,
            frame_min,
        }
    }

    /// Returns whether the guard recognises a frame of `len` bytes. `start` contains the first bytes of the
    /// frame. If the frame is shorter, the bytes after its end may have any value.
    #[must_use]
    #[inline(always)]
    pub fn recognises<const BYTES: usize>(&self, len: usize, start: &[u8; BYTES]) -> bool {
        const { assert!(BYTES >= GUARDED_BYTES) };
        let word = |at: usize| {
            let bytes = start[at % GUARDED_FROM..].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let tag = u32::from_le_bytes([start[12], start[13], start[14], start[15]]);
        let words = [word(self.at), word(self.at + 8)];
        let differing =
            (words[0] ^ self.values[0]) & self.masks[0] | (words[1] ^ self.values[1]) & self.masks[1];
        let length = ((words[0] >> (self.length_bit % 64)) as u16).swap_bytes();
        differing | u64::from((tag ^ self.tag_value) & self.tag_mask) == 0
            && length >= self.length_min
            && len >= self.frame_min
    }
}

/// Finds the headers of a common packet to depth [`Depth::L4`], with the same result as [`super::locate`].
/// For any other packet, returns false and leaves `layers` unchanged.
///
/// Each value is written directly to its field, because copying a value that was just written in parts would
/// stall the core (failed store forwarding).
#[must_use]
#[inline(always)]
pub fn locate_common(data: &[u8], layers: &mut Layers) -> bool {
    let Some(start) = data.first_chunk::<FRAME_MIN>() else { return false };
    let tpid = u16::from_be_bytes([start[TYPE_AT], start[TYPE_AT + 1]]);
    match tpid {
        0x0800 => ipv4::<UNTAGGED>(data.len(), start, layers),
        0x86dd => ipv6::<UNTAGGED>(data.len(), start, layers),
        _ if is_tpid(tpid) => tagged(data.len(), start, layers),
        _ => false,
    }
}

/// Finds the headers of a packet with a VLAN tag, if it is a common packet.
#[inline(never)]
fn tagged(len: usize, start: &[u8; FRAME_MIN], layers: &mut Layers) -> bool {
    let found = match u16::from_be_bytes([start[16], start[17]]) {
        0x0800 => ipv4::<TAGGED>(len, start, layers),
        0x86dd => ipv6::<TAGGED>(len, start, layers),
        _ => false,
    };
    if found {
        layers.present |= header::VLAN;
        layers.vlan_tci = u16::from_be_bytes([start[14], start[15]]);
    }
    found
}

/// Returns the minimum length of the upper-layer header in bytes, and its bit in [`header`]. For protocols
/// other than TCP and UDP, returns the maximum length and no bit.
#[inline(always)]
fn upper(ip_proto: u8) -> (u16, u32) {
    match ip_proto {
        UDP => (8, header::UDP),
        TCP => (20, header::TCP),
        _ => (u16::MAX, 0),
    }
}

/// Finds the headers of a common IPv4 packet whose IP header is at offset `L3` of a frame of `len` bytes.
#[inline(always)]
fn ipv4<const L3: usize>(len: usize, start: &[u8; FRAME_MIN], layers: &mut Layers) -> bool {
    let total_len = u16::from_be_bytes([start[L3 + 2], start[L3 + 3]]);
    let fragment = u16::from_be_bytes([start[L3 + 6], start[L3 + 7]]);
    let (upper_len, upper) = upper(start[L3 + 9]);
    let is_common = start[L3] == 0x45
        && fragment & 0x3fff == 0
        && total_len >= upper_len.saturating_add(20)
        && upper != 0;
    if is_common {
        *layers = Layers {
            present: header::IPV4 | header::IP | upper,
            l4_end: len.min(L3 + usize::from(total_len)) as u32,
            eth_type: 0x0800,
            l3: L3 as u16,
            l4: L3 as u16 + 20,
            ip_proto: start[L3 + 9],
            ip_tos: start[L3 + 1],
            depth: Depth::L4,
            type_at: L3 as u16 - 2,
            ..Layers::default()
        };
    }
    is_common
}

/// Finds the headers of a common IPv6 packet whose IP header is at offset `L3` of a frame of `len` bytes.
#[inline(always)]
fn ipv6<const L3: usize>(len: usize, start: &[u8; FRAME_MIN], layers: &mut Layers) -> bool {
    let payload_len = u16::from_be_bytes([start[L3 + 4], start[L3 + 5]]);
    let (upper_len, upper) = upper(start[L3 + 6]);
    let l4 = L3 + 40;
    let is_common =
        start[L3] >> 4 == 6 && payload_len >= upper_len && len >= l4 + usize::from(upper_len) && upper != 0;
    if is_common {
        *layers = Layers {
            present: header::IPV6 | header::IP | upper,
            l4_end: len.min(l4 + usize::from(payload_len)) as u32,
            eth_type: 0x86dd,
            l3: L3 as u16,
            l4: l4 as u16,
            ip_proto: start[L3 + 6],
            ip_tos: (start[L3] << 4) | (start[L3 + 1] >> 4),
            depth: Depth::L4,
            type_at: L3 as u16 - 2,
            ..Layers::default()
        };
    }
    is_common
}
