// SPDX-License-Identifier: Apache-2.0
//! Compares sums with a simple implementation, and incremental updates with a full recomputation.

use proptest::prelude::*;

use super::*;

/// Returns the sum, computed word by word as in RFC 1071.
fn plain_sum(bytes: &[u8]) -> u16 {
    let mut total = 0u32;
    for pair in bytes.chunks(2) {
        total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[test]
fn known_values() {
    // This is the example of RFC 1071, section 3.
    assert_eq!(sum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    // Example of RFC 1624, section 4: m is 0x5555 and becomes 0x3285, and HC is 0xdd2f and becomes 0x0000.
    let mut delta = ChecksumDelta::default();
    delta.replace(0x5555, 0x3285);
    assert_eq!(apply(0xdd2f, delta), 0);
    let header =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
    assert_eq!((ipv4_header(&header), ipv4_header_with_ttl(&header, 0x40)), (0xb861, 0xb861));
    // CRC32c of 32 zero bytes is 0x8a9136aa (RFC 3720, B.4).
    assert_eq!(sctp(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
}

#[test]
fn zero_rules() {
    let mut nothing = ChecksumDelta::default();
    nothing.replace(0, 0xffff);
    assert!(nothing.is_zero());
    for checksum in [0, 1, 0xfffe, 0xffff] {
        assert_eq!(apply(checksum, nothing), checksum);
        assert_eq!(apply_udp(checksum, nothing), checksum);
        assert_eq!(apply_partial(checksum, nothing), checksum);
    }
    let mut one = ChecksumDelta::default();
    one.replace(0, 1);
    assert_eq!(apply_udp(0, one), 0);
    assert_eq!((apply(1, one), apply_udp(1, one)), (0, 0xffff));
    assert_eq!(apply_partial(0xfffe, one), 0xffff);
    assert_eq!(apply_partial(0xffff, one), 1);
}

#[test]
fn a_ttl_decrement_gives_the_checksum_of_a_full_computation() {
    let decremented = |checksum: u16| u16::from_be_bytes(apply_ttl_decrement(checksum.to_be_bytes()));
    for ttl in 1..=255u8 {
        let (old, new) = ([ttl, 17], [ttl - 1, 17]);
        let (old, new) = (u16::from_be_bytes(old), u16::from_be_bytes(new));
        // The sum of the rest of the header takes every value, so the checksum takes every value except
        // 0xffff.
        for rest in 0..=u16::MAX {
            assert_eq!(decremented(!add(old, rest)), !add(new, rest), "TTL {ttl}, rest {rest:#x}");
        }
    }
    assert_eq!(decremented(0xfeff), 0);
    assert_eq!(decremented(0), 0x0100);
    // A wrong checksum stays wrong by the same amount.
    for checksum in 0..=u16::MAX {
        let mut delta = ChecksumDelta::default();
        delta.replace(0x4006, 0x3f06);
        assert_eq!(decremented(checksum), apply(checksum, delta));
    }
}

proptest! {
    #[test]
    fn headers_with_another_ttl_have_the_checksum_of_their_bytes(mut header: [u8; 20], ttl: u8) {
        let checksum = ipv4_header_with_ttl(&header, ttl);
        header[8] = ttl;
        prop_assert_eq!(checksum, ipv4_header(&header));
    }
}

#[test]
fn short_inputs_do_not_panic() {
    for len in 0..16 {
        let bytes = vec![0xff; len];
        ipv4_header(&bytes);
        sctp(&bytes);
        fill_sctp(&mut bytes.clone());
    }
}

proptest! {
    #[test]
    fn sum_equals_the_word_by_word_sum(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(sum(&bytes), plain_sum(&bytes));
    }

    #[test]
    fn sums_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..100), cut in 0usize..50) {
        let cut = (cut * 2).min(bytes.len() & !1);
        prop_assert_eq!(add(sum(&bytes[..cut]), sum(&bytes[cut..])), sum(&bytes));
    }

    /// Replaces a random range, which may begin at an odd offset. Most bytes are 0 or 0xff, so that sums near
    /// 0 and 0xffff occur.
    #[test]
    fn an_update_equals_a_full_computation(
        bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 1..60),
        changed in proptest::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..20),
        at in 0usize..60,
    ) {
        // One covered word is never zero, as in every real header. For bytes that are all zero, RFC 1624 does
        // not define the update.
        let mut covered = vec![0, 6];
        covered.extend_from_slice(&bytes);
        let at = 2 + at % bytes.len();
        let len = changed.len().min(covered.len() - at);
        let mut after = covered.clone();
        after[at..at + len].copy_from_slice(&changed[..len]);
        let mut delta = ChecksumDelta::default();
        delta.replace_bytes(&covered[at..at + len], &after[at..at + len], at % 2 == 1);

        prop_assert_eq!(apply(l4(0, &covered), delta), l4(0, &after));
        prop_assert_eq!(apply_udp(udp(0, &covered), delta), udp(0, &after));
        prop_assert_eq!(apply_partial(sum(&covered), delta), sum(&after));
        prop_assert_eq!(delta.is_zero(), sum(&covered) == sum(&after));
    }

    #[test]
    fn many_changes_equal_one(words in proptest::collection::vec((any::<u16>(), any::<u16>()), 1..20)) {
        let mut delta = ChecksumDelta::default();
        let (mut old, mut new) = (vec![0, 1], vec![0, 1]);
        for (before, after) in words {
            delta.replace(before, after);
            old.extend_from_slice(&before.to_be_bytes());
            new.extend_from_slice(&after.to_be_bytes());
        }
        prop_assert_eq!(apply(l4(0, &old), delta), l4(0, &new));
    }

    #[test]
    fn inserted_and_removed_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        let covered = [&[0, 9][..], &bytes].concat();
        let mut delta = ChecksumDelta::default();
        delta.replace_bytes(&[], &bytes, false);
        prop_assert_eq!(apply(l4(0, &[0, 9]), delta), l4(0, &covered));
    }

    #[test]
    fn pseudo_headers(src: [u8; 16], dst: [u8; 16], proto: u8, len: u32) {
        let v6 = [&src[..], &dst, &len.to_be_bytes(), &[0, 0, 0, proto]].concat();
        prop_assert_eq!(pseudo_v6(src, dst, proto, len), plain_sum(&v6));
        let (src, dst) = ([src[0], src[1], src[2], src[3]], [dst[0], dst[1], dst[2], dst[3]]);
        let len = len & 0xffff;
        let v4 = [&src[..], &dst, &[0, proto], &(len as u16).to_be_bytes()].concat();
        prop_assert_eq!(pseudo_v4(src, dst, proto, len), plain_sum(&v4));
    }

    #[test]
    fn sctp_ignores_its_field(mut packet in proptest::collection::vec(any::<u8>(), 12..80)) {
        fill_sctp(&mut packet);
        let mut zeroed = packet.clone();
        zeroed[8..12].fill(0);
        prop_assert_eq!(&packet[8..12], &crc32c::crc32c(&zeroed).to_le_bytes()[..]);
    }
}
