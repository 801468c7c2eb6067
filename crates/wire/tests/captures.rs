// SPDX-License-Identifier: Apache-2.0
//! Reads every available capture to its end and parses each packet and its prefixes.

// Clippy recognises tests by their attribute, which helper functions do not have.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use wire::capture::{CaptureError, CaptureReader};
use wire::layers::header;
use wire::{Depth, Layers, locate};

/// Returns the captures below `dir` in order, or none if the directory does not exist.
fn captures(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(captures(&path));
        } else if matches!(path.extension().and_then(OsStr::to_str), Some("pcap" | "pcapng")) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn samples() -> Vec<PathBuf> {
    captures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))
}

/// Returns the captures in a directory next to the repository, if it exists.
fn shared() -> Vec<PathBuf> {
    captures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pcap"))
}

/// Returns all packets of a capture, or `None` if its link type is not Ethernet.
fn packets(path: &Path) -> Option<Vec<Vec<u8>>> {
    let mut reader = match CaptureReader::open(path) {
        Err(CaptureError::LinkType { .. }) => return None,
        other => other.unwrap(),
    };
    let mut packets = Vec::new();
    while let Some(packet) =
        reader.next_packet().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    {
        assert_eq!(packet.truncated, packet.bytes.len() < packet.original_len as usize);
        packets.push(packet.bytes.to_vec());
    }
    Some(packets)
}

/// Checks that every offset that `locate` returns lies within the frame.
fn check(data: &[u8], layers: &Layers) {
    let len = data.len();
    let has = |bit| layers.present & bit != 0;
    assert!(layers.l4_end as usize <= len);
    assert!(layers.eth_type == 0 || usize::from(layers.type_at) + 2 <= len);
    for (bit, size) in
        [(header::MPLS, 4), (header::PBB, 4), (header::ARP, 28), (header::IPV4, 20), (header::IPV6, 40)]
    {
        assert!(!has(bit) || usize::from(layers.l3) + size <= len);
    }
    let end = layers.l4_end as usize;
    for (bit, size) in [
        (header::TCP, 20),
        (header::UDP, 8),
        (header::SCTP, 12),
        (header::ICMPV4, 4),
        (header::ICMPV6, 4),
        (header::ND, 24),
    ] {
        assert!(!has(bit) || usize::from(layers.l4) + size <= end);
    }
    assert!(!has(header::ND_SLL) || usize::from(layers.nd_sll) + 6 <= end);
    assert!(!has(header::ND_TLL) || usize::from(layers.nd_tll) + 6 <= end);
    assert_eq!(has(header::IP), has(header::IPV4) || has(header::IPV6));
}

const DEPTHS: [Depth; 4] = [Depth::None, Depth::L2, Depth::L3, Depth::L4];

/// Parses prefixes of a packet. Many prefixes end within a header.
fn check_prefixes(packet: &[u8]) {
    for depth in DEPTHS {
        let whole = locate(packet, depth);
        check(packet, &whole);
        for len in 0..packet.len().min(160) {
            let layers = locate(&packet[..len], depth);
            check(&packet[..len], &layers);
            // A shorter packet never has more headers. The exception is a truncated LLC frame, which looks
            // like a frame of another kind.
            assert_eq!(layers.present & !whole.present, 0, "the first {len} bytes of {packet:02x?}");
        }
    }
}

#[test]
fn samples_are_read() {
    let names: Vec<_> = samples().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["802.1ad_QinQ.pcap", "built.pcap", "built.pcapng", "dsa.pcap", "mpls-over-udp.pcap"]);
    for path in samples() {
        if let Some(packets) = packets(&path) {
            assert!(!packets.is_empty());
            packets.iter().for_each(|packet| check_prefixes(packet));
        } else {
            assert_eq!(path.file_name().unwrap(), "dsa.pcap");
        }
    }
}

#[test]
fn both_formats_hold_the_same_packets() {
    let [_, pcap, ng, ..] = &samples()[..] else { panic!("samples are missing") };
    let (mut pcap, mut ng) = (CaptureReader::open(pcap).unwrap(), CaptureReader::open(ng).unwrap());
    let mut count = 0;
    while let Some(packet) = pcap.next_packet().unwrap() {
        assert_eq!(Some(packet), ng.next_packet().unwrap());
        assert_eq!(packet.timestamp_ns, 1_700_000_000_000_000_001 + count * 1_000_000_003);
        count += 1;
    }
    assert_eq!((ng.next_packet().unwrap(), count), (None, 18));
}

#[test]
fn link_type_is_reported() {
    let path = samples().into_iter().find(|path| path.ends_with("dsa.pcap")).unwrap();
    let error = CaptureReader::open(path).unwrap_err();
    assert_eq!(error.to_string(), "link type DSA_TAG_DSA (284) is not supported: Ethernet (1) is needed");
}

#[test]
fn every_shared_capture_is_read() {
    let mut refused = Vec::new();
    for path in shared() {
        match packets(&path) {
            Some(packets) => packets.iter().for_each(|packet| check_prefixes(packet)),
            None => refused.push(path.file_name().unwrap().to_owned()),
        }
    }
    assert!(refused.iter().all(|name| name == "dsa.pcap"), "refused {refused:?}");
}

proptest! {
    #[test]
    fn random_bytes_cause_no_panic(data in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_prefixes(&data);
    }

    /// Real packets with changed bytes reach more code of the walk than random bytes do.
    #[test]
    fn corrupt_packets_cause_no_panic(
        which: usize,
        changes in proptest::collection::vec((12usize..140, prop_oneof![any::<u8>(), Just(0), Just(60), Just(44)]), 1..6),
        cut in 0usize..200,
    ) {
        let all: Vec<Vec<u8>> = samples().iter().filter_map(|path| packets(path)).flatten().collect();
        let mut packet = all[which % all.len()].clone();
        for (at, value) in changes {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        packet.truncate(cut.max(14));
        for depth in DEPTHS {
            check(&packet, &locate(&packet, depth));
        }
    }
}
