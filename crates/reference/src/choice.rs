// SPDX-License-Identifier: Apache-2.0
//! Selection of a group's bucket. This code is independent of `flow::group`, which the fast path uses.

use crate::packet::ReferencePacket;
use crate::rules::RuleSource;
use crate::walk::{Network, Upper};
use flow::group::{Bucket, Group};

/// Offset basis of 64-bit FNV-1a.
const BASIS: u128 = 14_695_981_039_346_656_037;

/// Prime of 64-bit FNV-1a.
const PRIME: u128 = 1_099_511_628_211;

/// Multiplier of the final mix: 2^64 divided by the golden ratio, made odd.
const GOLDEN: u128 = 11_400_714_819_323_198_485;

/// Returns whether a packet may use the bucket.
pub(crate) fn is_live(rules: &dyn RuleSource, bucket: &Bucket) -> bool {
    if bucket.watch_port.is_none() && bucket.watch_group.is_none() {
        return true;
    }
    if let Some(number) = bucket.watch_port
        && rules.ports().iter().any(|port| port.number == number && port.up)
    {
        return true;
    }
    let Some(watched) = bucket.watch_group.and_then(|id| rules.group(id)) else { return false };
    watched.buckets.iter().any(|other| is_live(rules, other))
}

/// Returns the index of the bucket that a hash selects in a select group.
pub(crate) fn chosen(rules: &dyn RuleSource, group: &Group, hash: u32) -> Option<usize> {
    let weights: Vec<u128> =
        group.buckets.iter().map(|b| if is_live(rules, b) { b.weight.into() } else { 0 }).collect();
    share_of(hash, &weights)
}

/// Returns the index of the share that contains a hash. Shares are consecutive ranges of hashes, with sizes
/// proportional to `weights`.
pub(crate) fn share_of(hash: u32, weights: &[u128]) -> Option<usize> {
    let total: u128 = weights.iter().sum();
    let point = u128::from(hash) * total / (1 << 32);
    let end_of = |place: usize| weights[..=place].iter().sum::<u128>();
    (0..weights.len()).find(|place| point < end_of(*place))
}

/// Returns the hash of a packet's flow.
pub(crate) fn hash_of(packet: &ReferencePacket) -> u32 {
    mixed(&flow_bytes(packet))
}

/// Returns 64-bit FNV-1a of the bytes, mixed and folded to 32 bits.
pub(crate) fn mixed(bytes: &[u8]) -> u32 {
    let modulus = 1 << 64;
    let sum = bytes.iter().fold(BASIS, |sum, byte| (sum ^ u128::from(*byte)) * PRIME % modulus);
    let folded = sum ^ (sum >> 32);
    ((folded * GOLDEN % modulus) >> 32) as u32
}

/// Returns the bytes that identify a packet's flow when it reaches the group.
fn flow_bytes(packet: &ReferencePacket) -> Vec<u8> {
    let (frame, headers) = (&packet.bytes, &packet.headers);
    let [type_high, type_low] = headers.eth_type.to_be_bytes();
    let [tag_high, tag_low] = match headers.vlan_tci {
        Some(tci) => (tci % 0x1000 + 0x1000).to_be_bytes(),
        None => [0, 0],
    };
    let mut bytes = frame[..12].to_vec();
    bytes.extend([type_high, type_low, tag_high, tag_low]);
    let l3 = &frame[headers.l3..];
    match headers.network {
        Network::Arp => {
            bytes.extend(&l3[14..18]);
            bytes.extend(&l3[24..28]);
        }
        Network::Ipv4 | Network::Ipv6 => {
            let Some(ip) = headers.ip else { return bytes };
            bytes.push(ip.proto);
            bytes.extend(if headers.network == Network::Ipv4 { &l3[12..20] } else { &l3[8..40] });
            if [Upper::Tcp, Upper::Udp, Upper::Sctp].contains(&headers.upper) {
                bytes.extend(&frame[ip.l4..ip.l4 + 4]);
            }
        }
        _ => {}
    }
    bytes
}
