// SPDX-License-Identifier: Apache-2.0
//! Metadata that travels with a frame and is not part of its bytes.

use std::ops::{Index, IndexMut};

/// Transmit lane of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Lane {
    /// Lane of all packets that are not low-latency.
    #[default]
    Normal,
    /// Lane of packets that hit only low-latency entries.
    LowLatency,
}

/// One value for each transmit lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerLane<T>([T; 2]);

impl<T> PerLane<T> {
    /// Creates the pair from its values.
    pub const fn new(low_latency: T, normal: T) -> Self {
        Self([normal, low_latency])
    }

    /// Returns the value of each lane.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }

    /// Returns a mutable reference to the value of each lane.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut()
    }
}

impl<T> Index<Lane> for PerLane<T> {
    type Output = T;

    #[inline]
    fn index(&self, lane: Lane) -> &T {
        &self.0[lane as usize]
    }
}

impl<T> IndexMut<Lane> for PerLane<T> {
    #[inline]
    fn index_mut(&mut self, lane: Lane) -> &mut T {
        &mut self.0[lane as usize]
    }
}

/// A partial checksum, which the sender left to the hardware.
///
/// The 16-bit field at `start + offset` holds the folded sum of the pseudo-header, not complemented. To
/// complete the checksum, the one's-complement sum of all bytes from `start` to the end of the frame is
/// complemented and stored in the field. Offsets are bytes from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Offset of the first byte that the checksum covers (the L4 header).
    pub start: u16,
    /// Offset of the checksum field, from `start`.
    pub offset: u16,
}

/// Segmentation that a super-frame needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP datagrams of equal size (USO) over IPv4 or IPv6.
    Udp,
}

/// Segmentation metadata of a super-frame: a frame longer than the MTU, which the sender left to the device
/// to segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Protocol of the segments.
    pub kind: GsoKind,
    /// Whether the sender has set the ECN flag. Only the first segment then gets the TCP flag CWR.
    pub ecn: bool,
    /// Payload bytes per segment.
    pub size: u16,
    /// Total length of the headers in bytes, from the start of the frame to the payload.
    pub header_len: u16,
}

/// Time of a receive poll in units of the worker's latency clock, modulo 2^48. The lower 32 bits of a
/// measured time are never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    low: u32,
    round: u16,
}

impl Stamp {
    /// Stamp of frames whose latency is not measured.
    pub const NONE: Self = Self { low: 0, round: 0 };

    /// Returns the stamp for a reading of the clock.
    #[must_use]
    #[inline]
    pub fn new(units: u64) -> Self {
        Self { low: (units as u32).max(1), round: (units >> u32::BITS) as u16 }
    }
}

/// Metadata of a frame. The fields are ordered so that [`lane_stamp`](Self::lane_stamp) needs one load only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Meta {
    /// Sequence number: index of the frame among all frames received from its queue, from 0.
    pub sequence: u64,
    /// Time of the receive poll in units of the worker's latency clock, modulo 2^32, or 0 if the frame was
    /// not received. Copies have the same stamp.
    pub stamp: u32,
    /// Bits 32 to 47 of the receive poll's time. `stamp` has bits 0 to 31.
    pub stamp_round: u16,
    /// Transmit lane of the frame.
    pub lane: Lane,
    /// Number of patch ports that the frame has passed. Copies have the same number.
    pub hops: u8,
    /// Number of the ingress port, or 0 if there is none.
    pub in_port: u32,
    /// Checksum to complete before the frame is sent on a wire.
    pub checksum: Option<PartialChecksum>,
    /// Segmentation to do before the frame is sent on a wire.
    pub gso: Option<Gso>,
}

impl Meta {
    /// Metadata of a frame that was not received and needs no offloads.
    pub const NONE: Self = Self {
        sequence: 0,
        stamp: 0,
        stamp_round: 0,
        lane: Lane::Normal,
        hops: 0,
        in_port: 0,
        checksum: None,
        gso: None,
    };

    /// Marks the frame as received from this port. Lane and offloads stay as they are.
    #[inline]
    pub fn arrive(&mut self, in_port: u32, sequence: u64, stamp: Stamp) {
        (self.in_port, self.sequence) = (in_port, sequence);
        (self.stamp, self.stamp_round) = (stamp.low, stamp.round);
    }

    /// Returns stamp, lane and hops in one word. Bits 0 to 47 are the time of the receive poll.
    #[must_use]
    #[inline]
    pub fn lane_stamp(&self) -> u64 {
        let (round, lane) = (u64::from(self.stamp_round) << 32, (self.lane as u64) << 48);
        u64::from(self.stamp) | round | lane | u64::from(self.hops) << 56
    }
}

// The metadata fills half of the cache line that is the private area of a buffer's head.
const _: () = assert!(size_of::<Meta>() == 32);
