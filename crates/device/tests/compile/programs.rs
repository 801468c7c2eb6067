// SPDX-License-Identifier: Apache-2.0
//! Programs of the use cases as flow files, and captured frames.

use std::path::PathBuf;
use std::{env, fs};

use fastrand::Rng;
use wire::capture::CaptureReader;

use crate::frames::is_beyond_parser;

/// Switch for layers 2 and 3.
pub const SWITCH: &str = include_str!("../../../../examples/device/layer-2-3.flows");

/// Packet filter on 5-tuples.
pub const FILTER: &str = include_str!("../../../../examples/device/filter.flows");
/// Forwarder by slices of the packet.
pub const ICN: &str = include_str!("../../../../examples/device/icn.flows");

/// Tables and flows of programs.
pub const PROGRAMS: [(&[u8], &str); 4] = [
    (&[1, 1], FILTER),
    (&[1, 1], ICN),
    (&[1, 2, 2], SWITCH),
    (&[1], "priority=1,dl_vlan=1,actions=pop_vlan,output:2\npriority=0,actions=dec_ttl,output:3"),
];

/// Returns a frame for the forwarder by slices.
pub fn icn_frame(rng: &mut Rng) -> Vec<u8> {
    let mut frame = vec![2; 64];
    frame[12..14].copy_from_slice(&[0x88, 0xb9]);
    frame[14..20].copy_from_slice(&[rng.u8(0..3), rng.u8(0..3), rng.u8(0..3), 9, 9, 9]);
    frame
}

/// Returns the frames of the captures, and the number of those that the device cannot parse or take.
/// DEVICE_CAPTURES is the folder of others, DEVICE_CAPTURES_MIN the least number of frames that it must add.
pub fn captured() -> (Vec<(u8, Vec<u8>)>, usize) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let folder = "crates/wire/tests/data";
    let names = ["802.1ad_QinQ.pcap", "built.pcap", "built.pcapng", "mpls-over-udp.pcap"];
    let mut paths: Vec<PathBuf> = names.iter().map(|name| format!("{root}{folder}/{name}").into()).collect();
    paths.push(format!("{root}scripts/data/ptp_ethernet.pcap").into());
    let (mut frames, mut beyond) = frames_of(&paths);
    if let Ok(folder) = env::var("DEVICE_CAPTURES") {
        let paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        let (others, others_beyond) = frames_of(&paths);
        let least = env::var("DEVICE_CAPTURES_MIN").map_or(1, |text| text.parse().unwrap());
        assert!(others.len() >= least, "{} frames are fewer than DEVICE_CAPTURES_MIN", others.len());
        frames.extend(others);
        beyond += others_beyond;
    }
    (frames, beyond)
}

/// Returns the frames of files with an extension, and the number of those that the device cannot parse or
/// take.
fn frames_of(paths: &[PathBuf]) -> (Vec<(u8, Vec<u8>)>, usize) {
    let (mut frames, mut beyond) = (Vec::new(), 0);
    for path in paths.iter().filter(|path| path.extension().is_some()) {
        let mut capture = CaptureReader::open(path).unwrap();
        while let Some(packet) = capture.next_packet().unwrap() {
            // Ethernet devices pad the frames that their host captures.
            let mut frame = packet.bytes.to_vec();
            frame.resize(frame.len().max(60), 0);
            if is_beyond_parser(&frame) || frame.len() > 1518 {
                beyond += 1;
            } else {
                frames.push((1, frame));
            }
        }
    }
    (frames, beyond)
}
