// SPDX-License-Identifier: Apache-2.0
//! Verifies checksums with tshark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wire::capture::{CaptureReader, CaptureWriter};

/// Fields that hold the result of a verification. For a tunnelled packet, tshark prints one result per layer.
const FIELDS: [&str; 6] = [
    "ip.checksum.status",
    "tcp.checksum.status",
    "udp.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
    "sctp.checksum.status",
];

/// Fragments are not reassembled, because tshark would mix fragments of different copies.
const OPTIONS: [&str; 6] = [
    "ip.check_checksum:TRUE",
    "tcp.check_checksum:TRUE",
    "udp.check_checksum:TRUE",
    "sctp.checksum:crc-32c",
    "ip.defragment:FALSE",
    "tcp.desegment_tcp_streams:FALSE",
];

const BAD: &str = "0";
const GOOD: &str = "1";

/// For each field, the numbers of correct and wrong layers of a packet.
type Verdicts = [(usize, usize); FIELDS.len()];

pub fn has_tshark() -> bool {
    Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Position of a packet in a capture.
#[derive(Clone, Debug)]
struct Place {
    capture: PathBuf,
    number: usize,
    timestamp_ns: u64,
}

/// Packets of many captures in one file, so that tshark is started only once.
struct Merged {
    path: PathBuf,
    writer: CaptureWriter<std::io::BufWriter<fs::File>>,
    places: Vec<Place>,
}

impl Merged {
    fn create(path: PathBuf) -> Self {
        Self { writer: CaptureWriter::create(&path).unwrap(), path, places: Vec::new() }
    }

    fn add(&mut self, capture: &Path) {
        let mut reader = CaptureReader::open(capture).unwrap();
        let mut number = 0;
        while let Some(packet) = reader.next_packet().unwrap() {
            number += 1;
            // tshark skips packets without bytes.
            if packet.bytes.is_empty() {
                continue;
            }
            self.writer.write(packet.timestamp_ns, packet.original_len, packet.bytes).unwrap();
            let place = Place { capture: capture.to_path_buf(), number, timestamp_ns: packet.timestamp_ns };
            self.places.push(place);
        }
    }

    fn judge(self) -> Vec<(Place, Verdicts)> {
        self.writer.finish().unwrap();
        let mut command = Command::new("tshark");
        command.arg("-n").arg("-r").arg(&self.path).args(["-T", "fields", "-E", "separator=;"]);
        command.args(["-e", "frame.number"]).args(FIELDS.iter().flat_map(|field| ["-e", field]));
        command.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let verdicts = text.lines().map(|line| {
            let words: Vec<&str> = line.split(';').skip(1).collect();
            let count = |at: usize, wanted| words[at].split(',').filter(|status| *status == wanted).count();
            std::array::from_fn(|at| (count(at, GOOD), count(at, BAD)))
        });
        let judged: Vec<_> = self.places.into_iter().zip(verdicts).collect();
        assert_eq!(text.lines().count(), judged.len(), "tshark reports every packet");
        judged
    }
}

/// Captures before and after replays.
pub struct Check {
    before: Merged,
    after: Merged,
    /// For each capture, the range of its packets in `before` and the range of their copies in `after`.
    spans: Vec<[std::ops::Range<usize>; 2]>,
}

impl Check {
    pub fn new(folder: &Path) -> Self {
        Self {
            before: Merged::create(folder.join("before.pcap")),
            after: Merged::create(folder.join("after.pcap")),
            spans: Vec::new(),
        }
    }

    /// Adds a capture and the folder of its replay.
    pub fn add(&mut self, capture: &Path, out: &Path) {
        let starts = [self.before.places.len(), self.after.places.len()];
        self.before.add(capture);
        for entry in fs::read_dir(out).unwrap() {
            self.after.add(&entry.unwrap().path());
        }
        let ends = [self.before.places.len(), self.after.places.len()];
        self.spans.push([starts[0]..ends[0], starts[1]..ends[1]]);
    }

    /// Asserts that no correct checksum became wrong. Returns the number of correct checksums in copies. A
    /// copy and its packet have the same time stamp.
    pub fn finish(self) -> usize {
        let (before, after) = (self.before.judge(), self.after.judge());
        let mut right = 0;
        for [packets, copies] in self.spans {
            for (copy, verdicts) in &after[copies] {
                let Place { capture, number, timestamp_ns } = copy;
                let copied = format!("packet {number} of {}, at {timestamp_ns} ns", capture.display());
                let originals = || {
                    let packets = before[packets.clone()].iter();
                    packets.filter(|(packet, _)| packet.timestamp_ns == *timestamp_ns)
                };
                assert!(originals().next().is_some(), "{copied} is a copy of no packet");
                for (at, (good, bad)) in verdicts.iter().enumerate() {
                    right += good;
                    let was_right =
                        || originals().all(|(_, v)| v[at].1 == 0) && originals().any(|(_, v)| v[at].0 > 0);
                    assert!(*bad == 0 || !was_right(), "{} was correct and is wrong in {copied}", FIELDS[at]);
                }
            }
        }
        right
    }
}
