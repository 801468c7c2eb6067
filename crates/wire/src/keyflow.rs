// SPDX-License-Identifier: Apache-2.0
//! KeyFlow header, Shunt's own format, without its EtherType (docs/wire-formats.md).

use crate::view::view;

/// Default EtherType: IEEE 802 local experimental 1.
pub const ETHERTYPE: u16 = 0x88b5;
/// Version of the header format.
pub const VERSION: u8 = 1;
/// Bytes between the EtherType and the key.
pub const FIXED_BYTES: usize = 8;

fn is_whole(bytes: &[u8]) -> bool {
    let units = bytes[2];
    bytes[0] >> 4 == VERSION
        && (1..=4).contains(&units)
        && bytes.len() >= FIXED_BYTES + 8 * usize::from(units)
}

view! {
    /// Header of version 1 with a complete key of 1 to 4 units. Reserved bits are ignored.
    Header, "KeyFlow header", 16, is_whole;
    /// Version (4 bits), epoch (1), reserved (3).
    0: first, set_first, u8;
    /// Number of core switches that may still forward the packet.
    1: hop_limit, set_hop_limit, u8;
    /// Length of the key in units of 8 bytes, 1 to 4.
    2: key_units, set_key_units, u8;
    /// EtherType of the data after the key.
    4: ethertype, set_ethertype, u16;
}

impl<T: AsRef<[u8]>> Header<T> {
    /// Returns the key epoch, 0 or 1. Switches have one configuration bank per epoch.
    pub fn epoch(&self) -> u8 {
        self.first() >> 3 & 1
    }

    /// Returns the key, big-endian: 8, 16, 24 or 32 bytes.
    pub fn key(&self) -> &[u8] {
        &self.buffer.as_ref()[FIXED_BYTES..self.header_len()]
    }

    /// Returns the length of the header with its key in bytes.
    pub fn header_len(&self) -> usize {
        FIXED_BYTES + 8 * usize::from(self.key_units())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Malformed, PacketBuilder};
    use proptest::prelude::*;

    #[test]
    fn every_field_is_at_its_position() {
        let key: Vec<u8> = (1..=16).collect();
        let frame = PacketBuilder::ethernet([0xa; 6], [0xb; 6])
            .keyflow(1, 7, &key)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .build();
        let golden = [0x88, 0xb5, 0x18, 7, 2, 0, 0x08, 0x00, 0, 0];
        assert_eq!(frame[12..22], golden);
        assert_eq!((&frame[22..38], frame[38]), (&key[..], 0x45));

        let header = Header::new_checked(&frame[14..]).unwrap();
        assert_eq!((header.epoch(), header.hop_limit(), header.ethertype()), (1, 7, 0x0800));
        assert_eq!((header.key(), header.header_len()), (&key[..], 24));
        // Reserved bits are ignored.
        let mut odd = frame[14..].to_vec();
        (odd[0], odd[3], odd[6]) = (0x17, 0xff, 0xff);
        assert_eq!(Header::new_checked(&odd[..]).unwrap().epoch(), 0);
    }

    #[test]
    fn truncated_headers_and_other_versions_are_refused() {
        for units in 1..=4 {
            let frame = PacketBuilder::ethernet([0; 6], [0; 6]).keyflow(0, 1, &vec![9; 8 * units]).build();
            let header = &frame[14..];
            assert_eq!(header.len(), FIXED_BYTES + 8 * units);
            assert!(Header::new_checked(header).is_ok());
            for len in 0..header.len() {
                let error = Header::new_checked(&header[..len]).unwrap_err();
                assert_eq!(error, Malformed { header: "KeyFlow header", len, len_min: 16 });
            }
        }
        for (at, value) in [(0, 0x00), (0, 0x20), (0, 0xf8), (2, 0), (2, 5), (2, 255)] {
            let mut bytes = [0; 64];
            (bytes[0], bytes[2]) = (0x10, 1);
            assert!(Header::new_checked(bytes).is_ok());
            bytes[at] = value;
            assert!(Header::new_checked(bytes).is_err(), "{value:#x} at {at}");
        }
    }

    proptest! {
        #[test]
        fn accessors_cannot_fail(bytes in proptest::collection::vec(any::<u8>(), 0..60), units in 0u8..7) {
            let mut bytes = bytes;
            if let Some(head) = bytes.first_chunk_mut::<3>() {
                (head[0], head[2]) = (0x10 | head[0] & 0xf, units);
            }
            if let Ok(header) = Header::new_checked(&bytes[..]) {
                prop_assert_eq!(header.key().len(), 8 * usize::from(units));
                prop_assert!(header.header_len() <= bytes.len());
            }
        }
    }
}
