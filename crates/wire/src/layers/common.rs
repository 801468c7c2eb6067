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

/// Length of a VLAN tag in bytes.
const TAG_BYTES: usize = TAGGED - UNTAGGED;

/// Offset of the words that a [`CommonGuard`] compares: the first type field.
const GUARDED_FROM: usize = TYPE_AT;

/// Number of bytes that a [`CommonGuard`] compares.
const GUARDED_BYTES: usize = 16;

/// Offset of the 8 bytes in which a [`CommonGuard`] finds the length field of the IP header.
const LENGTH_FROM: usize = 16;

/// Returns whether a complete IP header directly follows an Ethernet header without a tag. Recognises no IPv4
/// header with options.
#[must_use]
#[inline(always)]
pub fn is_untagged_ip(frame: &[u8], is_ipv6: bool) -> bool {
    let header_bytes = if is_ipv6 { 40 } else { 20 };
    let Some(&[a, b, c, d, high, low]) = frame.get(TYPE_AT..).and_then(<[u8]>::first_chunk) else {
        return false;
    };
    // The EtherType, and the first two bytes of the IP header.
    let word = u32::from_be_bytes([a, b, c, d]);
    let is_ip = if is_ipv6 {
        word & 0xffff_f000 == 0x86dd_6000
    } else {
        word & 0xffff_ff00 == 0x0800_4500 && u16::from_be_bytes([high, low]) >= 20
    };
    is_ip && frame.len() >= UNTAGGED + header_bytes
}

/// Recognises packets with one particular combination of headers, by comparing two words of the frame.
///
/// The two words begin at the first type field. In a frame with at most one VLAN tag, they hold the EtherType
/// and all fields of the IP header that determine where the upper-layer header begins.
#[derive(Clone, Copy, Debug)]
pub struct CommonGuard {
    /// Bits of the two words that are equal in all recognised packets, and their values. The words are
    /// little-endian.
    masks: [u64; 2],
    values: [u64; 2],
    /// Minimum length of the frame in bytes.
    frame_min: usize,
    /// Offset of the IP header's length field from [`LENGTH_FROM`] in bytes.
    length_at: u8,
    /// Minimum value of the length field in bytes, or 0 if there is no such field.
    length_min: u16,
}

impl CommonGuard {
    /// The guard that recognises no packet.
    pub const NOTHING: Self =
        Self { masks: [0; 2], values: [0; 2], frame_min: usize::MAX, length_at: 0, length_min: 0 };

    /// Returns the guard for packets with the headers and the EtherType of `layers`, if two words suffice to
    /// recognise such packets. A VLAN tag must be an IEEE 802.1Q tag.
    ///
    /// If `layers` is located to [`Depth::L2`], the guard accepts any headers after the EtherType. Otherwise
    /// it accepts only common packets, or only packets without IP.
    #[must_use]
    pub fn new(layers: &Layers) -> Option<Self> {
        let Layers { present, eth_type, .. } = *layers;
        let tag_bytes = if present & header::VLAN != 0 { TAG_BYTES } else { 0 };
        // If a frame ends within its tag, `eth_type` is the tag protocol identifier.
        let is_type = eth_type >= TYPE_MIN && !is_tpid(eth_type);
        if usize::from(layers.type_at) != TYPE_AT + tag_bytes || !is_type {
            return None;
        }
        let mut guard = Self { frame_min: UNTAGGED + tag_bytes, ..Self::NOTHING };
        if tag_bytes != 0 {
            guard.expect(0, &[(0x81, 0xff), (0, 0xff)]);
        }
        let [high, low] = eth_type.to_be_bytes();
        guard.expect(tag_bytes, &[(high, 0xff), (low, 0xff)]);
        let is_known = match (layers.depth, eth_type) {
            (Depth::None, _) => false,
            (Depth::L2, _) => true,
            (_, 0x0800 | 0x86dd) => guard.expect_upper(layers, tag_bytes),
            _ => guard.expect_other(layers, tag_bytes),
        };
        is_known.then_some(guard)
    }

    /// Makes the guard expect the TCP or UDP header of `layers`, directly after an IP header without options.
    /// Returns false if `layers` has no such header there.
    fn expect_upper(&mut self, layers: &Layers, tag_bytes: usize) -> bool {
        let (ip, is_ipv4) = (tag_bytes + 2, layers.eth_type == 0x0800);
        let (protocol, upper_bytes) = match layers.present & (header::TCP | header::UDP) {
            header::TCP => (TCP, 20),
            header::UDP => (UDP, 8),
            _ => return false,
        };
        let (l3, ip_bytes) = (UNTAGGED + tag_bytes, if is_ipv4 { 20 } else { 40 });
        if usize::from(layers.l4) != l3 + ip_bytes {
            return false;
        }
        if is_ipv4 {
            self.expect(ip, &[(0x45, 0xff)]);
            // The packet is not a fragment: the more-fragments bit and the offset are 0.
            self.expect(ip + 6, &[(0, 0x3f), (0, 0xff)]);
            self.expect(ip + 9, &[(protocol, 0xff)]);
            (self.length_at, self.length_min) = (tag_bytes as u8, 20 + upper_bytes);
            self.frame_min = FRAME_MIN;
        } else {
            self.expect(ip, &[(0x60, 0xf0)]);
            self.expect(ip + 6, &[(protocol, 0xff)]);
            (self.length_at, self.length_min) = (tag_bytes as u8 + 2, upper_bytes);
            self.frame_min = FRAME_MIN.max(l3 + ip_bytes + usize::from(upper_bytes));
        }
        true
    }

    /// Makes the guard expect the header after an EtherType that is not IP. Returns false if this header is
    /// cut short or inconsistent.
    fn expect_other(&mut self, layers: &Layers, tag_bytes: usize) -> bool {
        self.frame_min += match (layers.present & !header::VLAN, layers.eth_type) {
            (header::ARP, _) => {
                self.expect(tag_bytes + 2, &[0, 1, 8, 0, 6, 4].map(|byte| (byte, 0xff)));
                28
            }
            (header::MPLS | header::PBB, _) => 4,
            (0, 0x0806 | 0x8847 | 0x8848 | 0x88e7) => return false,
            _ => 0,
        };
        true
    }

    /// Makes the guard expect bytes under masks. `at` is the offset of the bytes from the first type field.
    fn expect(&mut self, at: usize, bytes: &[(u8, u8)]) {
        for (at, (value, mask)) in (at..GUARDED_BYTES).zip(bytes) {
            let (word, shift) = (at / 8, 8 * (at % 8));
            self.values[word] |= u64::from(*value) << shift;
            self.masks[word] |= u64::from(*mask) << shift;
        }
    }

    /// Returns a guard that also requires frames of at least `len` bytes.
    #[must_use]
    pub fn at_least(self, len: usize) -> Self {
        Self { frame_min: self.frame_min.max(len), ..self }
    }

    /// Returns whether the guard recognises a frame of `len` bytes. `start` contains the first bytes of the
    /// frame. If the frame is shorter, the bytes after its end may have any value.
    #[must_use]
    #[inline(always)]
    pub fn recognises<const BYTES: usize>(&self, len: usize, start: &[u8; BYTES]) -> bool {
        const { assert!(BYTES >= GUARDED_FROM + GUARDED_BYTES) };
        let word = |at: usize| start[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let differing = (word(GUARDED_FROM) ^ self.values[0]) & self.masks[0]
            | (word(GUARDED_FROM + 8) ^ self.values[1]) & self.masks[1];
        let length_at = LENGTH_FROM + usize::from(self.length_at % 8);
        let length = u16::from_be_bytes([start[length_at], start[length_at + 1]]);
        differing == 0 && length >= self.length_min && len >= self.frame_min
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
/// other than TCP and UDP, returns a length that no packet has, and no bit.
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
