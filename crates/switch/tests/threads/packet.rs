// SPDX-License-Identifier: Apache-2.0
//! Packets that carry their origin, and the versions of the rules that they met.

/// Number of flows. The last byte of the source address is the flow.
pub const FLOWS: usize = 12;
/// Prefixes of the MAC addresses that rules write. Table 0 writes the destination; table 1 or a group writes
/// the source.
pub const MARKS: [[u8; 2]; 2] = [[0x02, 0xf0], [0x02, 0xf1]];
const PAYLOAD: usize = 14 + 20 + 8;
const BYTES: usize = 60;

/// Identity of a packet: flow, ingress queue, and sequence number within this flow and queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    pub flow: u8,
    pub ingress: u8,
    pub sequence: u32,
}

/// Packet as it left the switch.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub tag: Tag,
    /// The versions that tables 0 and 1 wrote into the packet.
    pub versions: [u32; 2],
}

impl Tag {
    pub fn frame(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        let header =
            [0x45, 0, 0, (BYTES - 14) as u8, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, self.flow, 10, 0, 1, 1];
        bytes[14..34].copy_from_slice(&header);
        let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
        bytes[34..42].copy_from_slice(&[4, 0, 4, 1, 0, (BYTES - 34) as u8, 0, 0]);
        bytes[PAYLOAD..PAYLOAD + 2].copy_from_slice(&[self.flow, self.ingress]);
        bytes[PAYLOAD + 2..PAYLOAD + 6].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    pub fn of(bytes: &[u8]) -> Self {
        assert_eq!(bytes.len(), BYTES, "a packet of another length");
        let sequence = u32::from_be_bytes(bytes[PAYLOAD + 2..PAYLOAD + 6].try_into().unwrap());
        let tag = Self { flow: bytes[PAYLOAD], ingress: bytes[PAYLOAD + 1], sequence };
        assert_eq!(bytes[14..], tag.frame()[14..], "{tag:?} was damaged");
        tag
    }
}

impl Seen {
    pub fn of(bytes: &[u8]) -> Self {
        let tag = Tag::of(bytes);
        let version = |mark: [u8; 2], at: usize| {
            assert_eq!(bytes[at..at + 2], mark, "{tag:?} left without a version");
            u32::from_be_bytes(bytes[at + 2..at + 6].try_into().unwrap())
        };
        Self { tag, versions: [version(MARKS[0], 0), version(MARKS[1], 6)] }
    }
}

/// Returns a version as the MAC address that a rule writes.
pub fn mac(table: usize, version: u32) -> String {
    let [a, b] = MARKS[table];
    let [c, d, e, f] = version.to_be_bytes();
    [a, b, c, d, e, f].map(|byte| format!("{byte:02x}")).join(":")
}
