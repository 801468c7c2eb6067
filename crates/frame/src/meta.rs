// SPDX-License-Identifier: Apache-2.0
//! What travels with a frame and is not part of its bytes.

/// The transmit lane a frame takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lane {
    /// Every hit entry was low-latency.
    LowLatency,
    /// Everything else.
    #[default]
    Normal,
}

/// A checksum that the sender left to the hardware: the 16-bit field at `start + offset` holds the folded,
/// not complemented sum of the pseudo-header; the one's-complement sum of everything from `start` to the frame's end
/// must still be added and complemented. Offsets are bytes from the start of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// First byte that the sum covers (the L4 header).
    pub start: u16,
    /// Where the checksum field lies, counted from `start`.
    pub offset: u16,
}

/// Which segmentation a super-frame waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP datagrams of equal size (USO), IPv4 or IPv6.
    Udp,
}

/// A frame longer than the MTU that the sender left to be cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Which protocol is cut.
    pub kind: GsoKind,
    /// The sender set the ECN flag: CWR belongs to the first segment only.
    pub ecn: bool,
    /// Payload bytes a segment.
    pub size: u16,
    /// Bytes of all headers, from the frame's start to the payload.
    pub header_len: u16,
}

/// A frame's metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Port number the frame came in by; 0 for none.
    pub in_port: u32,
    /// The lane it leaves by.
    pub lane: Lane,
    /// When it was polled from its receive queue, in units of the worker's latency clock, modulo 2^32; 0: it was not
    /// received. Copies keep it.
    pub stamp: u32,
    /// How often that clock has gone round by then, modulo 2^16.
    pub stamp_round: u16,
    /// Number of this arrival on its receive queue, from 0: the oracle's name for the packet.
    pub sequence: u64,
    /// Checksum still to be completed.
    pub checksum: Option<PartialChecksum>,
    /// Segmentation still to be done.
    pub gso: Option<Gso>,
}

impl Meta {
    /// Of a frame that came from nowhere and waits for nothing.
    pub const NONE: Self = Self {
        in_port: 0,
        lane: Lane::Normal,
        stamp: 0,
        stamp_round: 0,
        sequence: 0,
        checksum: None,
        gso: None,
    };
}

// Beside a frame's buffer there is one cache line, and this is half of it.
const _: () = assert!(size_of::<Meta>() == 32);
