// SPDX-License-Identifier: Apache-2.0
//! Generates packets, and identifies them on arrival.

use crate::network::spec::Flow;
use flow::Nanos;
use wire::keyflow;

/// Length of the packet number in the payload, in bytes.
const NUMBER_BYTES: usize = 8;

/// State of a packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub flow: u32,
    /// Number of the packet's copies in flight.
    pub copies: u32,
    pub sent_ns: Nanos,
    /// Whether the packet has arrived at its receiver.
    pub arrived: bool,
    /// Whether the packet crossed more links than allowed.
    pub strayed: bool,
    /// Epochs of the keys that forwarded the packet, as a bitmap.
    pub epochs: u8,
}

/// Returns the bytes of packet `number` of a run.
pub(super) fn bytes(flow: &Flow, number: u64, seed: u64) -> Vec<u8> {
    let mut bytes = flow.template.to_vec();
    let payload = bytes.get_mut(flow.payload_at..).unwrap_or_default();
    let Some((name, noise)) = payload.split_first_chunk_mut::<NUMBER_BYTES>() else { return bytes };
    *name = number.to_be_bytes();
    let mut random = fastrand::Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    random.fill(noise);
    bytes
}

/// Returns the epoch of a frame's KeyFlow key, or `None` without such a key.
pub(super) fn epoch(frame: &[u8]) -> Option<u8> {
    let (ethertype, rest) = frame.get(12..)?.split_first_chunk()?;
    if u16::from_be_bytes(*ethertype) != keyflow::ETHERTYPE {
        return None;
    }
    keyflow::Header::new_checked(rest).ok().map(|header| header.epoch())
}

/// Appends a step to the hash that identifies a path: a node, and the port or host to which the node sends
/// the packet.
pub(super) fn trail(before: u64, node: usize, end: u32) -> u64 {
    let step = (node as u64) << 32 | u64::from(end);
    (before.rotate_left(5) ^ step).wrapping_mul(0x517c_c1b7_2722_0a95)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn packets_of_a_flow_differ_only_after_their_headers() {
        let flow = Flow {
            from: 0,
            to: 1,
            template: Arc::from([7; 40]),
            payload_at: 12,
            first_ns: Nanos(0),
            interval_ns: Nanos(1),
            packets: 2,
            times: None,
            hops_max: 9,
            routes: Vec::new(),
        };
        let (one, other) = (bytes(&flow, 1, 3), bytes(&flow, 2, 3));
        assert_eq!((&one[..12], one.len()), (&[7; 12][..], 40));
        assert_eq!(one[12..20], 1_u64.to_be_bytes());
        assert_eq!(one[..19], other[..19]);
        assert_ne!(one[20..], other[20..]);
        assert_eq!(one, bytes(&flow, 1, 3));
        assert_ne!(one, bytes(&flow, 1, 4));
    }
}
