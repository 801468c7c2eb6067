// SPDX-License-Identifier: Apache-2.0
//! State of a packet during its processing.

use crate::walk::{Headers, walk};
use crate::{Unfinished, bits, checksums};
use flow::{DropReason, PortNo, QueueId};
use std::ops::Range;

/// Headroom: maximum growth of a frame by pushed headers, in bytes.
const HEADROOM_BYTES: isize = 128;

/// Length of the shortest Ethernet frame without its check sequence, in bytes.
const FRAME_BYTES_MIN: usize = 60;

/// A packet during its processing.
#[derive(Clone, Debug)]
pub struct ReferencePacket {
    /// Current bytes of the frame.
    pub bytes: Vec<u8>,
    pub(crate) headers: Headers,
    /// Ingress port.
    pub in_port: PortNo,
    /// Metadata register.
    pub metadata: u64,
    /// Tunnel ID.
    pub tunnel_id: u64,
    /// Egress queue selected so far.
    pub queue: QueueId,
    /// Base of slices: an offset in the frame, in bytes.
    pub base: usize,
    /// Work that the sender left to its device.
    pub unfinished: Unfinished,
    /// Growth of the frame since it was received, in bytes. It may be negative.
    grown_bytes: isize,
}

impl ReferencePacket {
    /// Returns a packet that was just received.
    #[must_use]
    pub fn arriving(in_port: PortNo, frame: &[u8]) -> Self {
        Self {
            bytes: frame.to_vec(),
            headers: walk(frame),
            in_port,
            metadata: 0,
            tunnel_id: 0,
            queue: QueueId(0),
            base: 0,
            unfinished: Unfinished::default(),
            grown_bytes: 0,
        }
    }

    /// Returns a received packet whose sender left work to its device.
    pub(crate) fn unfinished(in_port: PortNo, frame: &[u8], unfinished: Unfinished) -> Self {
        Self { unfinished, ..Self::arriving(in_port, frame) }
    }

    /// Returns the extended header in the layout of `flow::ext`.
    pub(crate) fn extended_header(&self) -> [u8; 32] {
        let found = &self.headers;
        let vlan = found.vlan_tci.map_or(0, |tci| (tci & 0xefff) | 0x1000);
        let ip = found.ip.unwrap_or_default();
        let mut bytes = [0; 32];
        bytes[0..4].copy_from_slice(&self.in_port.0.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.in_port.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.metadata.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.tunnel_id.to_be_bytes());
        bytes[24..26].copy_from_slice(&found.eth_type.to_be_bytes());
        bytes[26..28].copy_from_slice(&vlan.to_be_bytes());
        bytes[28] = ip.tos;
        bytes[29] = ip.proto;
        bytes[30..32].copy_from_slice(&ip.exthdr.to_be_bytes());
        bytes
    }

    /// Writes bits of the frame, adjusts the checksums that cover these bits, and parses the headers again.
    pub(crate) fn write(&mut self, first_bit: usize, length: usize, value: u128, mask: u128) {
        let before = self.bytes.clone();
        let mut written = vec![0; before.len()];
        bits::write(&mut written, first_bit, length, mask, mask);
        bits::write(&mut self.bytes, first_bit, length, value, mask);
        let open = self.unfinished.checksum;
        checksums::keep_right(&self.headers, &before, &mut self.bytes, &written, open);
        self.headers = walk(&self.bytes);
    }

    /// Writes one byte, like [`ReferencePacket::write`].
    pub(crate) fn write_byte(&mut self, at: usize, value: u8) {
        self.write(8 * at, 8, value.into(), 0xff);
    }

    /// Writes the TTL of an IPv4 header after MPLS. The walk over the headers does not reach this header.
    pub(crate) fn write_inner_ipv4_ttl(&mut self, ip_at: usize, ttl: u8) {
        let before = self.bytes.clone();
        self.bytes[ip_at + 8] = ttl;
        checksums::keep_ipv4_header_right(ip_at, &before, &mut self.bytes, &vec![0; before.len()]);
    }

    /// Inserts bytes and writes the EtherType. `type_at` is the EtherType's offset after the insertion.
    pub(crate) fn insert(
        &mut self,
        at: usize,
        inserted: &[u8],
        new_type: Option<(usize, u16)>,
    ) -> Result<(), DropReason> {
        let count = inserted.len() as isize;
        if self.grown_bytes + count > HEADROOM_BYTES {
            return Err(DropReason::NoHeadroom);
        }
        self.grown_bytes += count;
        self.bytes.splice(at..at, inserted.iter().copied());
        self.unfinished.inserted(at, inserted.len());
        self.retype(new_type);
        Ok(())
    }

    /// Removes bytes and writes the EtherType. `type_at` is the EtherType's offset after the removal. The
    /// remaining frame is padded to the minimum length of Ethernet.
    pub(crate) fn remove(&mut self, range: Range<usize>, new_type: Option<(usize, u16)>) {
        let before = self.bytes.len() as isize;
        self.unfinished.removed(range.start, range.len());
        self.bytes.drain(range);
        if self.bytes.len() < FRAME_BYTES_MIN {
            self.bytes.resize(FRAME_BYTES_MIN, 0);
        }
        self.grown_bytes += self.bytes.len() as isize - before;
        self.retype(new_type);
    }

    fn retype(&mut self, new_type: Option<(usize, u16)>) {
        if let Some((type_at, eth_type)) = new_type {
            self.bytes[type_at..type_at + 2].copy_from_slice(&eth_type.to_be_bytes());
        }
        self.headers = walk(&self.bytes);
    }
}
