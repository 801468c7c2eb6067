// SPDX-License-Identifier: Apache-2.0
//! Tests with capture files built byte by byte: both formats, both byte orders, and damaged files.

use proptest::prelude::*;

use super::*;

type Read1 = (u64, u32, u32, bool, Vec<u8>);

/// Returns all packets. If an error ended the file early, also returns the error.
fn read(file: Vec<u8>) -> (Vec<Read1>, Option<String>) {
    let mut packets = Vec::new();
    let mut reader = match CaptureReader::new(Cursor::new(file)) {
        Ok(reader) => reader,
        Err(error) => return (packets, Some(error.to_string())),
    };
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => packets.push((
                packet.timestamp_ns,
                packet.interface,
                packet.original_len,
                packet.truncated,
                packet.bytes.to_vec(),
            )),
            Ok(None) => return (packets, None),
            Err(error) => {
                assert!(reader.next_packet().unwrap().is_none());
                return (packets, Some(error.to_string()));
            }
        }
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Returns a big-endian pcap file with two packets, of which the second is truncated.
fn pcap(magic: u32, link_type: u32) -> Vec<u8> {
    let mut file = words(&[magic, 0x0002_0004, 0, 0, 4, link_type]);
    file.extend(words(&[10, 20, 4, 4, 0x01020304]));
    file.extend(words(&[11, 21, 4, 1500, 0x05060708]));
    file
}

/// Returns a big-endian block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = 12 + body.len() as u32;
    [&words(&[kind, len])[..], body, &words(&[len])].concat()
}

fn section() -> Vec<u8> {
    block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX]))
}

/// Returns an interface block with options of at most 8 bytes, each (code, length, value).
fn interface(link_type: u32, options: &[(u16, u16, [u32; 2])]) -> Vec<u8> {
    let mut body = words(&[link_type << 16, 0]);
    for (code, len, value) in options {
        body.extend(words(&[u32::from(*code) << 16 | u32::from(*len)]));
        body.extend_from_slice(&words(value)[..usize::from(len.next_multiple_of(4))]);
    }
    body.extend(words(&[0]));
    block(1, &body)
}

fn enhanced(interface: u32, units: u64, captured_len: u32, original_len: u32) -> Vec<u8> {
    let (high, low) = ((units >> 32) as u32, units as u32);
    block(6, &words(&[interface, high, low, captured_len, original_len, 0x01020304]))
}

#[test]
fn pcap_in_both_resolutions() {
    let second = |unit: u64| 11_000_000_000 + 21 * unit;
    for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
        let (packets, error) = read(pcap(magic, 1));
        assert_eq!(error, None);
        assert_eq!(packets[0], (10_000_000_000 + 20 * unit, 0, 4, false, vec![1, 2, 3, 4]));
        assert_eq!(packets[1], (second(unit), 0, 1500, true, vec![5, 6, 7, 8]));
    }
}

#[test]
fn other_link_types_are_named() {
    let sentence = "link type DSA_TAG_EDSA (285) is not supported: Ethernet (1) is needed";
    let (_, error) = read(pcap(0xa1b2_c3d4, 285));
    assert_eq!(error.unwrap(), sentence);
    let (_, error) = read([section(), interface(285, &[])].concat());
    assert_eq!(error.unwrap(), sentence);
    let (_, error) = read(pcap(0xa1b2_c3d4, 12345));
    assert_eq!(error.unwrap(), "link type of unknown name (12345) is not supported: Ethernet (1) is needed");
}

#[test]
fn errors_of_truncated_files_name_the_packet() {
    let file = pcap(0xa1b2_c3d4, 1);
    for len in 45..64 {
        let (packets, error) = read(file[..len].to_vec());
        assert_eq!(packets.len(), 1, "{len} bytes");
        assert_eq!(error.unwrap(), "packet 2: the file ends within it, or its length is corrupt");
    }
    assert_eq!(read(file[..44].to_vec()), (vec![read(file.clone()).0.remove(0)], None));
    assert_eq!(
        read(file[..20].to_vec()).1.unwrap(),
        "bad capture header: the file ends within it, or its length is corrupt"
    );
    assert_eq!(
        read(b"#!/bin/sh".to_vec()).1.unwrap(),
        "not a capture: begins with [23, 21, 2f, 62]; a pcap or pcapng file is needed"
    );
    assert!(read(Vec::new()).1.unwrap().starts_with("not a capture"));
}

#[test]
fn impossible_lengths_are_corrupt() {
    let mut file = words(&[0xa1b2_c3d4, 0x0002_0004, 0, 0, 4, 1, 0, 0, 262_145, 262_145]);
    file.resize(file.len() + 262_145, 0);
    assert_eq!(
        read(file).1.unwrap(),
        "packet 1: its length of 262145 bytes exceeds the maximum of 262144; the file is corrupt"
    );
}

#[test]
fn pcapng_blocks() {
    let file = [
        section(),
        interface(1, &[(2, 3, [0x65746800, 0])]),
        interface(1, &[(9, 1, [0x0900_0000, 0]), (14, 8, [0, 100])]),
        interface(1, &[(9, 1, [0x8a00_0000, 0])]),
        enhanced(0, 5, 3, 3),
        block(0xbad, &[0; 8]),
        enhanced(1, 7, 4, 60),
        enhanced(2, 1536, 4, 4),
        block(3, &words(&[2, 0x090a0000])),
        block(2, &words(&[0x0001_0000, 0, 9, 4, 4, 0x01020304])),
    ]
    .concat();
    let (packets, error) = read(file);
    assert_eq!(error, None);
    assert_eq!(
        packets,
        [
            (5000, 0, 3, false, vec![1, 2, 3]),
            (100_000_000_007, 1, 60, true, vec![1, 2, 3, 4]),
            (1_500_000_000, 2, 4, false, vec![1, 2, 3, 4]),
            (0, 0, 2, false, vec![9, 10]),
            (100_000_000_009, 1, 4, false, vec![1, 2, 3, 4]),
        ]
    );
}

#[test]
fn pcapng_errors_name_the_packet() {
    let start = [section(), interface(1, &[])].concat();
    for (bad, sentence) in [
        (
            enhanced(1, 0, 4, 4),
            "packet 2: it belongs to interface 1, but the number of interfaces described before it is 1",
        ),
        (enhanced(0, 0, 5, 5), "packet 2: its length is 5 bytes, but its block has space for 4"),
        (block(6, &words(&[0, 0, 0])), "packet 2: its block is too short for its kind"),
        (
            block(6, &words(&[0, 0]))[..12].to_vec(),
            "packet 2: the file ends within it, or its length is corrupt",
        ),
        (words(&[6, 13, 0, 0]), "packet 2: corrupt: Invalid field value: Block: (initial_len % 4) != 0"),
    ] {
        let (packets, error) = read([&start[..], &enhanced(0, 1, 4, 4), &bad].concat());
        assert_eq!((packets.len(), error.as_deref()), (1, Some(sentence)));
    }
    // Interfaces of one section are not valid in the next section.
    let (_, error) = read([&start[..], &section(), &enhanced(0, 0, 4, 4)].concat());
    assert_eq!(
        error.unwrap(),
        "packet 1: it belongs to interface 0, but the number of interfaces described before it is 0"
    );
}

#[test]
fn written_packets_are_read_back() {
    let mut writer = CaptureWriter::new(Vec::new()).unwrap();
    writer.write(1_700_000_000_123_456_789, 0, &[1, 2, 3]).unwrap();
    writer.write(5, 99, &[]).unwrap();
    assert_eq!(writer.packets(), 2);
    let error = writer.write(0, 0, &vec![0; PACKET_LEN_MAX + 1]).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the capture, packet 3: "), "{error}");
    let (packets, error) = read(writer.finish().unwrap());
    assert_eq!(error, None);
    assert_eq!(packets, [(1_700_000_000_123_456_789, 0, 3, false, vec![1, 2, 3]), (5, 0, 99, true, vec![]),]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Reading a damaged file must give packets or an error, never a panic, and no more packets than fit into
    /// the file.
    #[test]
    fn damaged_files_give_packets_or_an_error(
        ng: bool,
        cut in 0usize..250,
        changes in proptest::collection::vec((4usize..250, any::<u8>()), 0..6),
    ) {
        let mut file = if ng {
            [section(), interface(1, &[(9, 1, [0x0900_0000, 0])]), enhanced(0, 5, 3, 3), enhanced(0, 7, 4, 60)].concat()
        } else {
            pcap(0xa1b2_c3d4, 1)
        };
        for (at, value) in changes {
            if let Some(byte) = file.get_mut(at) {
                *byte = value;
            }
        }
        file.truncate(file.len().saturating_sub(cut / 4));
        let len = file.len();
        let (packets, _) = read(file);
        prop_assert!(packets.iter().map(|packet| packet.4.len()).sum::<usize>() <= len);
    }
}
