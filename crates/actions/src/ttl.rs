// SPDX-License-Identifier: Apache-2.0
//! TTL actions for IPv4, IPv6 (hop limit) and MPLS.

use crate::packet_data::PacketData;
use flow::DropReason;
use frame::Frame;
use wire::checksum::{self, ChecksumDelta};
use wire::ethernet::ETHERNET_BYTES;
use wire::layers::header;
use wire::{Depth, Layers};

/// Offset of the TTL in the IPv4 header.
pub(crate) const IPV4_TTL: usize = 8;

/// Offset of the checksum in the IPv4 header.
pub(crate) const IPV4_CHECKSUM: usize = 10;

/// Length of the IPv4 header without options in bytes.
pub(crate) const IPV4_BYTES: usize = 20;

/// Offset of the hop limit in the IPv6 header.
pub(crate) const IPV6_HOP_LIMIT: usize = 7;

/// Decrements the IP TTL. A packet with a TTL of 0 or 1 is dropped as `TtlExpired`.
#[inline]
pub(crate) fn dec_nw(packet: &mut PacketData) -> Result<(), DropReason> {
    packet.locate(Depth::L3);
    dec_in(packet.frame.bytes_mut(), &packet.layers)
}

/// Decrements the IP TTL of a packet whose headers are located at least to layer 3. Changes nothing on an
/// error.
#[inline]
fn dec_in(bytes: &mut [u8], layers: &Layers) -> Result<(), DropReason> {
    let l3 = usize::from(layers.l3);
    if layers.present & header::IPV4 != 0 {
        let word = ttl_word(bytes, l3 + IPV4_TTL).ok_or(DropReason::MissingHeader)?;
        if word[0] <= 1 {
            return Err(DropReason::TtlExpired);
        }
        dec_ipv4(word);
        return Ok(());
    }
    if layers.present & header::IPV6 == 0 {
        return Err(DropReason::MissingHeader);
    }
    let limit = bytes.get_mut(l3 + IPV6_HOP_LIMIT).ok_or(DropReason::MissingHeader)?;
    if *limit <= 1 {
        return Err(DropReason::TtlExpired);
    }
    *limit -= 1;
    Ok(())
}

/// Decrements the TTL and updates the checksum. The four bytes are the TTL, protocol and checksum fields of
/// an IPv4 header. The TTL must not be 0.
#[inline(always)]
fn dec_ipv4([ttl, _, high, low]: &mut [u8; 4]) {
    *ttl = ttl.wrapping_sub(1);
    [*high, *low] = checksum::apply_ttl_decrement([*high, *low]);
}

/// The first 72 bytes from the start of a frame, including tailroom if the frame is shorter.
pub type FrameStart = [u8; START_BYTES];

/// Length of [`FrameStart`].
const START_BYTES: usize = TTL_END + 8;

/// Every [`TtlSpot`] lies before this offset in the frame.
const TTL_END: usize = 64;

/// Flag of a TTL in an IPv6 header.
const IN_IPV6: u8 = 0x80;

/// Place of a packet's IP TTL: the offset in the frame, and whether the header is IPv6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TtlSpot(u8);

impl TtlSpot {
    /// An unknown place.
    pub const UNKNOWN: Self = Self(0);

    /// The places in packets without tags.
    const USUAL_IPV4: Self = Self((ETHERNET_BYTES + IPV4_TTL) as u8);
    const USUAL_IPV6: Self = Self((ETHERNET_BYTES + IPV6_HOP_LIMIT) as u8 | IN_IPV6);

    /// Returns the place of a packet's TTL. The headers must be located at least to layer 3. Returns
    /// [`TtlSpot::UNKNOWN`] if the packet is not IP, or if the TTL is not among the first bytes.
    #[must_use]
    #[inline(always)]
    pub fn of(layers: &Layers) -> Self {
        let (offset, kind) = match layers.present {
            present if present & header::IPV4 != 0 => (IPV4_TTL, 0),
            present if present & header::IPV6 != 0 => (IPV6_HOP_LIMIT, IN_IPV6),
            _ => return Self::UNKNOWN,
        };
        let at = usize::from(layers.l3) + offset;
        if at < TTL_END { Self(at as u8 | kind) } else { Self::UNKNOWN }
    }

    /// Returns whether the place is known and the TTL there is above 1.
    #[must_use]
    #[inline(always)]
    pub fn can_decrement(self, start: &FrameStart) -> bool {
        self != Self::UNKNOWN && start[usize::from(self.0) % TTL_END] > 1
    }

    /// Returns the place of a TTL that edits of a path decrement. Returns `None` if the header may not be
    /// among the first bytes.
    pub(crate) fn edited(at: usize, in_ipv6: bool) -> Option<Self> {
        let kind = if in_ipv6 { IN_IPV6 } else { 0 };
        (at < TTL_END && at + IPV4_BYTES - IPV4_TTL <= START_BYTES).then_some(Self(at as u8 | kind))
    }

    /// Returns whether an open checksum that begins at this offset covers bytes of the TTL's IPv4 header.
    #[inline(always)]
    fn is_covered_from(self, start: u16) -> bool {
        self.0 & IN_IPV6 == 0 && usize::from(start) < usize::from(self.0) + IPV4_BYTES - IPV4_TTL
    }

    /// Returns whether [`Self::edit`] has the effect of the path's edits on a frame whose TTL is at `actual`.
    #[must_use]
    #[inline(always)]
    pub fn suits(self, actual: Self, frame: &Frame) -> bool {
        let open = frame.meta.checksum;
        self == actual && open.is_none_or(|open| !self.is_covered_from(open.start))
    }

    /// Returns whether the frame's TTL is certainly at this place. Recognises most frames without locating
    /// their headers.
    #[must_use]
    #[inline(always)]
    pub fn is_usual(self, frame: &Frame) -> bool {
        match self {
            Self::USUAL_IPV4 => wire::layers::is_untagged_ip(frame.bytes(), false),
            Self::USUAL_IPV6 => wire::layers::is_untagged_ip(frame.bytes(), true),
            _ => false,
        }
    }

    /// Decrements the TTL, and calculates the checksum of the first 20 bytes of an IPv4 header.
    #[inline(always)]
    pub fn edit(self, start: &mut FrameStart) {
        let at = usize::from(self.0 & !IN_IPV6) % TTL_END;
        let header =
            start.get_mut(at.wrapping_sub(IPV4_TTL)..).and_then(|from| from.first_chunk_mut::<IPV4_BYTES>());
        match header {
            Some(header) if self.0 & IN_IPV6 == 0 => {
                // The new TTL is not loaded from the header, because loads of bytes just written are slow.
                let ttl = header[IPV4_TTL].wrapping_sub(1);
                let checksum = checksum::ipv4_header_with_ttl(header, ttl);
                header[IPV4_TTL] = ttl;
                header[IPV4_CHECKSUM..][..2].copy_from_slice(&checksum.to_be_bytes());
            }
            _ => start[at] = start[at].wrapping_sub(1),
        }
    }

    /// Decrements a TTL that [can be decremented](Self::can_decrement).
    #[inline(always)]
    pub fn decrement(self, start: &mut FrameStart) {
        let at = usize::from(self.0) % TTL_END;
        if self.0 & IN_IPV6 != 0 {
            start[at] = start[at].wrapping_sub(1);
        } else {
            start[at..].first_chunk_mut().into_iter().for_each(dec_ipv4);
        }
    }
}

pub(crate) fn nw(packet: &mut PacketData) -> Option<u8> {
    packet.locate(Depth::L3);
    let offset = match packet.layers.present {
        p if p & header::IPV4 != 0 => IPV4_TTL,
        p if p & header::IPV6 != 0 => IPV6_HOP_LIMIT,
        _ => return None,
    };
    packet.frame.bytes().get(usize::from(packet.layers.l3) + offset).copied()
}

pub(crate) fn set_nw(packet: &mut PacketData, ttl: u8) -> Result<(), DropReason> {
    packet.locate(Depth::L3);
    let l3 = usize::from(packet.layers.l3);
    match packet.layers.present {
        p if p & header::IPV4 != 0 => write_ipv4(packet, l3, ttl),
        p if p & header::IPV6 != 0 => packet.frame.bytes_mut()[l3 + IPV6_HOP_LIMIT] = ttl,
        _ => return Err(DropReason::MissingHeader),
    }
    Ok(())
}

/// Decrements the TTL of the outermost MPLS shim. A packet with a TTL of 0 or 1 is dropped as `TtlExpired`.
pub(crate) fn dec_mpls(packet: &mut PacketData) -> Result<(), DropReason> {
    let at = mpls_place(packet)?;
    let ttl = packet.frame.bytes()[at];
    if ttl <= 1 {
        return Err(DropReason::TtlExpired);
    }
    packet.frame.bytes_mut()[at] = ttl - 1;
    Ok(())
}

/// Writes the TTL of the outermost MPLS shim.
pub(crate) fn set_mpls(packet: &mut PacketData, ttl: u8) -> Result<(), DropReason> {
    let at = mpls_place(packet)?;
    packet.frame.bytes_mut()[at] = ttl;
    Ok(())
}

/// Copies the TTL of the next-to-outermost header to the outermost header. Does nothing without two headers.
pub(crate) fn copy_out(packet: &mut PacketData) {
    if let Some((outer, inner, _)) = two_places(packet) {
        let bytes = packet.frame.bytes_mut();
        bytes[outer] = bytes[inner];
    }
}

/// Copies the TTL of the outermost header to the next-to-outermost header. Does nothing without two headers.
pub(crate) fn copy_in(packet: &mut PacketData) {
    if let Some((outer, inner, ipv4)) = two_places(packet) {
        let ttl = packet.frame.bytes()[outer];
        match ipv4 {
            Some(l3) => write_ipv4(packet, l3, ttl),
            None => packet.frame.bytes_mut()[inner] = ttl,
        }
    }
}

fn mpls_place(packet: &mut PacketData) -> Result<usize, DropReason> {
    if packet.has(header::MPLS) {
        Ok(usize::from(packet.layers.l3) + 3)
    } else {
        Err(DropReason::MissingMpls)
    }
}

/// Returns the offsets of the two outermost TTLs. If the second one is in an IPv4 header, also returns the
/// offset of this header.
fn two_places(packet: &mut PacketData) -> Option<(usize, usize, Option<usize>)> {
    if !packet.has(header::MPLS) {
        return None;
    }
    let l3 = usize::from(packet.layers.l3);
    let bytes = packet.frame.bytes();
    let inner = l3 + 4;
    if bytes[l3 + 2] & 1 == 0 {
        return (bytes.len() >= inner + 4).then_some((l3 + 3, inner + 3, None));
    }
    match bytes.get(inner)? >> 4 {
        4 if is_ipv4(&bytes[inner..]) => Some((l3 + 3, inner + 8, Some(inner))),
        6 if bytes.len() >= inner + 40 => Some((l3 + 3, inner + 7, None)),
        _ => None,
    }
}

/// Returns whether a complete, consistent IPv4 header begins at `bytes[0]` (see
/// `wire::layers::header::IPV4`).
fn is_ipv4(bytes: &[u8]) -> bool {
    let header_bytes = usize::from(bytes[0] & 0x0f) * 4;
    bytes.len() >= header_bytes
        && header_bytes >= 20
        && usize::from(u16::from_be_bytes([bytes[2], bytes[3]])) >= header_bytes
}

/// Returns the TTL, protocol and checksum fields of an IPv4 header whose TTL is at `at` in `bytes`.
#[inline(always)]
fn ttl_word(bytes: &mut [u8], at: usize) -> Option<&mut [u8; 4]> {
    bytes.get_mut(at..)?.first_chunk_mut()
}

/// Writes the TTL of the IPv4 header at `l3` and updates its checksum. No other checksum covers the TTL.
fn write_ipv4(packet: &mut PacketData, l3: usize, ttl: u8) {
    let Some([old, _, high, low]) = ttl_word(packet.frame.bytes_mut(), l3 + IPV4_TTL) else { return };
    let mut delta = ChecksumDelta::default();
    // The TTL is the high byte of its 16-bit word.
    delta.replace(u16::from(*old) << 8, u16::from(ttl) << 8);
    *old = ttl;
    [*high, *low] = checksum::apply(u16::from_be_bytes([*high, *low]), delta).to_be_bytes();
}
