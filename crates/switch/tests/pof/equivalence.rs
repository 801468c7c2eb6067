// SPDX-License-Identifier: Apache-2.0
//! The same program, installed by POF and by flow syntax over OpenFlow, sends the same packets.
//!
//! `POF_PACKETS` (default 5,000) sets the number of random packets, and `POF_SEED` (default 1) their seed.
//! Captures beside the repository are used if they are present.

use crate::lab::{LONG, Lab};
use crate::openflow_peer::{Peer as OpenFlowPeer, add};
use crate::program::{self, FLOWS};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use switch::control::{Client, ControlRequest, FlowForm, FlowPart};
use wire::capture::{CaptureError, CaptureReader};

/// Number of packets between two markers.
const BATCH: usize = 32;
/// Longest packet that is sent.
const LENGTH_MAX: usize = 1_514;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// A switch with the program, and the packets that left its ports.
struct Side {
    lab: Lab,
    sent: [Vec<Vec<u8>>; 4],
}

impl Side {
    fn collect(&mut self) {
        for (port, sent) in self.lab.ports.iter_mut().zip(&mut self.sent) {
            sent.extend(std::iter::from_fn(|| port.pop(0)));
        }
    }

    /// Sends packets, and waits until two markers behind them have left port 4. The second marker is sent
    /// after the first has arrived, so all packets before the first have left their ports by then.
    fn send(&mut self, packets: &[Vec<u8>]) {
        packets.iter().for_each(|packet| self.lab.push(1, packet));
        for _ in 0..2 {
            let before = self.markers();
            self.lab.push(1, &program::marker());
            let end = Instant::now() + LONG;
            while self.markers() == before {
                assert!(Instant::now() < end, "no marker left port 4");
                self.collect();
                std::thread::sleep(Duration::from_micros(10));
            }
        }
    }

    fn markers(&self) -> usize {
        let marker = program::marker();
        self.sent[3].iter().filter(|packet| **packet == marker).count()
    }
}

/// Returns a switch with the program, installed by POF.
fn by_pof() -> (Side, crate::peer::Peer) {
    let lab = Lab::start("");
    let mut peer = lab.peer();
    program::messages().iter().for_each(|message| peer.tell(message));
    (Side { lab, sent: Default::default() }, peer)
}

/// Returns a switch with the program, installed by flow-mods that were written as flow syntax.
fn by_flows() -> Side {
    let lab = Lab::start("");
    let mut peer = OpenFlowPeer::connect(lab.openflow);
    for line in FLOWS {
        peer.send(&add(line));
    }
    peer.barrier();
    Side { lab, sent: Default::default() }
}

/// Sends the packets through both switches and compares what leaves each port. Returns the number of packets
/// that left each port, without markers.
fn compare(what: &str, pof: &mut Side, flows: &mut Side, packets: &[Vec<u8>]) -> [usize; 4] {
    let mut counts = [0; 4];
    for batch in packets.chunks(BATCH) {
        for side in [&mut *pof, &mut *flows] {
            side.send(batch);
        }
        for (port, count) in counts.iter_mut().enumerate() {
            let (mut one, mut other) =
                (std::mem::take(&mut pof.sent[port]), std::mem::take(&mut flows.sent[port]));
            // Packets of different flows have no order.
            one.sort_unstable();
            other.sort_unstable();
            let differs = one.iter().zip(&other).find(|(one, other)| one != other);
            assert_eq!(differs, None, "{what}: port {}", port + 1);
            assert_eq!(one.len(), other.len(), "{what}: port {}: {batch:02x?}", port + 1);
            *count += one.len() - if port == 3 { 2 } else { 0 };
        }
    }
    counts
}

/// Returns the packets of a capture, or none if it has another link layer than Ethernet.
fn capture(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = match CaptureReader::open(path) {
        Err(CaptureError::LinkType { .. }) => return Vec::new(),
        opened => opened.unwrap(),
    };
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        if packet.bytes.len() <= LENGTH_MAX {
            packets.push(packet.bytes.to_vec());
        }
    }
    packets
}

/// Returns the paths of the committed captures, and of those beside the repository.
fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<PathBuf> = ["built.pcap", "802.1ad_QinQ.pcap", "mpls-over-udp.pcap"]
        .iter()
        .map(|name| root.join("crates/wire/tests/data").join(name))
        .collect();
    paths.push(root.join("scripts/data/ptp_ethernet.pcap"));
    for folder in ["../shared/data/pcap", "../shared/data/pcap/proto"] {
        let files = std::fs::read_dir(root.join(folder)).into_iter().flatten();
        let found = files.filter_map(|file| Some(file.ok()?.path()));
        paths.extend(found.filter(|path| path.extension().is_some_and(|end| end == "pcap")));
    }
    paths
}

/// Returns the entries of a switch as lines of a flow file, which have the low-latency marks.
fn flows_of(side: &Side) -> Vec<String> {
    let mut client = Client::connect(&side.lab.control).unwrap();
    let mut lines = Vec::new();
    let request = ControlRequest::Flows { form: FlowForm::File };
    client
        .ask_parts::<FlowPart, serde_json::Value>(&request, |part| {
            let FlowPart::Lines(part) = part else { panic!("{part:?}") };
            lines.extend(part);
            Ok(())
        })
        .unwrap();
    lines.sort_unstable();
    lines
}

#[test]
fn both_switches_have_the_same_entries_and_marks() {
    let ((pof, _peer), flows) = (by_pof(), by_flows());
    let (one, other) = (flows_of(&pof), flows_of(&flows));
    assert_eq!(one, other);
    let with = |mark: &str| one.iter().filter(|line| line.split([',', ' ']).any(|word| word == mark)).count();
    assert_eq!(
        (one.len(), with("low_latency"), with("low_latency=false")),
        (program::COUNTERS as usize, 2, 1)
    );
}

#[test]
fn captures_leave_both_switches_alike() {
    let ((mut pof, _peer), mut flows) = (by_pof(), by_flows());
    let mut total = 0;
    for path in captures() {
        let packets = capture(&path);
        let counts = compare(&path.display().to_string(), &mut pof, &mut flows, &packets);
        total += counts.iter().sum::<usize>();
    }
    assert!(total > 0);
}

#[test]
fn random_packets_leave_both_switches_alike() {
    let ((mut pof, mut peer), mut flows) = (by_pof(), by_flows());
    let mut random = fastrand::Rng::with_seed(number("POF_SEED", 1));
    let mut left = number("POF_PACKETS", 5_000) as usize;
    let mut counts = [0; 4];
    while left > 0 {
        let packets: Vec<_> = (0..left.min(BATCH)).map(|_| program::random_packet(&mut random)).collect();
        left -= packets.len();
        if left % 10_000 < BATCH {
            // Answers the echo requests of the switch.
            peer.settle();
        }
        let found = compare("random packets", &mut pof, &mut flows, &packets);
        counts.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
    }
    // Packets leave each port of the program, and each of its entries is hit.
    assert!(counts[1..].iter().all(|count| *count > 0), "{counts:?}");
    for number in 1..=program::COUNTERS {
        crate::lab::until(&format!("entry {number} is hit"), || program::count(&mut peer, number) > 0);
    }
}
