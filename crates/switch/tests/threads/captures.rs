// SPDX-License-Identifier: Apache-2.0
//! A run over capture ports: files are received again and again, and what leaves is judged in its files.

use crate::Run;
use crate::book::{Book, EGRESS};
use crate::controller::{self, Controller};
use crate::judge::INGRESSES;
use crate::packet::{FLOWS, Seen, Tag};
use crate::stage::{Shared, Stage, folder, head, perform};
use crate::totals::{self, Outside};
use std::fmt::Write;
use std::path::Path;
use switch::config::Config;
use wire::capture::{CaptureReader, CaptureWriter};

/// Packets of a file.
const PACKETS: u32 = 3_000;
/// A file is received once more for so many milliseconds of a run.
const ROUND_MS: u32 = 15;

/// Writes what port number `ingress` receives: the flows in turn.
fn write(path: &Path, ingress: u8) {
    let mut writer = CaptureWriter::create(path).unwrap();
    for number in 0..PACKETS {
        let (flow, sequence) = (number as usize % FLOWS, number / FLOWS as u32);
        let frame = Tag { flow: flow as u8, ingress, sequence }.frame();
        writer.write(u64::from(number), frame.len() as u32, &frame).unwrap();
    }
    writer.finish().unwrap();
}

fn config(run: &Run, rounds: u32, folder: &Path) -> Config {
    let mut text = head(folder, run.workers);
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut port = |number: u32, device: String, worker: usize| {
        write!(
            text,
            "[[datapath.port]]\nnumber = {number}\nname = \"p{number}\"\ndriver = \"pcap\"\ndevice = {device:?}\nworkers = [{worker}]\n"
        )
        .unwrap();
    };
    for ingress in 0..2 {
        let input = format!("in{ingress}");
        write(&folder.join(&input), ingress);
        port(u32::from(ingress) + 1, format!("in={},loop={rounds}", path(&input)), usize::from(ingress));
    }
    for egress in EGRESS {
        port(egress, format!("out={}", path(&format!("out{egress}"))), egress as usize % run.workers);
    }
    let mut config = Config::parse(&text).unwrap();
    std::fs::write(
        folder.join("flows"),
        controller::first_lines().join("\n") + "\npriority=1,actions=drop\n",
    )
    .unwrap();
    config.datapath.flows = Some(folder.join("flows"));
    config
}

/// What left by one port, in the order in which it left; returns how many packets.
fn judge(book: &Book, rounds: u32, at: usize, path: &Path) -> u64 {
    /// The packets of one flow and one port.
    #[derive(Clone, Default)]
    struct Stream {
        /// Number of the last one, and the state of the rules that it met.
        last: Option<(u32, u32)>,
        rounds: u32,
    }
    let mut streams = vec![Stream::default(); FLOWS * INGRESSES];
    let (mut reader, mut count, mut copies) = (CaptureReader::open(path).unwrap(), 0, [0; 3]);
    copies[at] = 1;
    while let Some(packet) = reader.next_packet().unwrap() {
        let seen = Seen::of(packet.bytes);
        let state = book.state(&seen);
        let Tag { flow, ingress, sequence } = seen.tag;
        let sends = book.sends(flow, state);
        assert!(sends.allows(copies, true), "{seen:?} left by port {}: {sends:?}", EGRESS[at]);
        let stream = &mut streams[usize::from(flow) * INGRESSES + usize::from(ingress)];
        // A packet that leaves out of its order, or twice, looks like another round.
        let (last, newest) = stream.last.replace((sequence, state)).unwrap_or((u32::MAX, 0));
        stream.rounds += u32::from(sequence <= last);
        assert!(
            state >= newest,
            "{seen:?} met older rules than the packet before it, which met state {newest}"
        );
        assert!(stream.rounds <= rounds, "more than {rounds} rounds left port {}: {seen:?}", EGRESS[at]);
        count += 1;
    }
    count
}

/// A run over capture ports.
pub fn play(run: Run) {
    let folder = folder();
    let rounds = (run.time.as_millis() as u32 / ROUND_MS).max(1);
    let config = config(&run, rounds, &folder);
    let mut stage = Stage::start(folder, &config, || switch::daemon::open(&config));
    let shared = Shared::new();
    let controller = Controller::start(stage.peer.take().unwrap(), &shared.book, run.seed, run.load);
    let mut client = stage.client();
    let pushed = u64::from(2 * PACKETS * rounds);
    let (_peer, heard, (mut client, counters)) = perform(&run, shared, controller, move || {
        let counters = totals::settle(&mut client, pushed, || shared.wire.beat());
        (client, counters)
    });
    let left = totals::sent(&mut client);
    let outside =
        Outside { pushed, left, seen: counters.forwarded, packet_ins: heard.packet_ins.len() as u64 };
    totals::judge(&mut client, &counters, outside, run.load);
    drop(client);
    stage.end(|folder| {
        for (at, sent) in left.into_iter().enumerate() {
            let path = folder.join(format!("out{}", EGRESS[at]));
            assert_eq!(judge(&shared.book, rounds, at, &path), sent, "packets in {}", path.display());
        }
    });
    println!(
        "{run:?}: {pushed} packets, {left:?} copies, {} changes, {} barriers",
        heard.changes, heard.barriers
    );
}
