// SPDX-License-Identifier: Apache-2.0
//! PolKA header in freeRtr's format, without its EtherType.

use crate::view::view;

/// EtherType of freeRtr's PolKA.
pub const ETHERTYPE: u16 = 0x8842;

view! {
    /// Header of version 0 (unicast). Version 1 has a bitmap instead of the key.
    Header, "PolKA header", 20, |bytes| bytes[0] == 0;
    /// Version.
    0: version, set_version, u8;
    /// Time to live.
    1: ttl, set_ttl, u8;
    /// EtherType of the data after the key.
    2: ethertype, set_ethertype, u16;
    /// Key: a polynomial over GF(2), highest coefficient first.
    4: key, set_key, [u8; 16];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketBuilder;

    /// Header of freeRtr's path over nodes 1, 2 and 3. It is the test vector of
    /// controller/tests/plan/test_polka.py.
    const GOLDEN: [u8; 22] =
        [0x88, 0x42, 0, 0xff, 0x08, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x03, 0x80, 0x04, 0x00, 0x05];

    #[test]
    fn bytes_equal_those_of_freertr() {
        let frame = PacketBuilder::ethernet([0xa; 6], [0xb; 6])
            .polka(255, 0x8003_8004_0005)
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
            .build();
        assert_eq!(frame[12..34], GOLDEN);
        assert_eq!(frame[34], 0x45);
        let header = Header::new_checked(&frame[14..]).unwrap();
        assert_eq!((header.version(), header.ttl(), header.ethertype()), (0, 255, 0x0800));
        assert_eq!(u128::from_be_bytes(header.key()), 0x8003_8004_0005);
    }

    #[test]
    fn truncated_headers_and_other_versions_are_refused() {
        for len in 0..20 {
            assert!(Header::new_checked(&GOLDEN[2..2 + len]).is_err());
        }
        let mut bitmap = GOLDEN;
        bitmap[2] = 1;
        assert!(Header::new_checked(&bitmap[2..]).is_err());
    }
}
