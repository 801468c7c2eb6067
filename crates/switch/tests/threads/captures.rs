// SPDX-License-Identifier: Apache-2.0
//! Runs with capture ports: packets come from files, and the output files are checked.

use crate::Run;
use crate::book::{Book, EGRESS};
use crate::controller::{self, Controller};
use crate::judge::Judge;
use crate::packet::{FLOWS, Tag};
use crate::stage::{Shared, Stage, folder, head, perform};
use crate::totals::{self, Late};
use config::Config;
use std::fmt::Write;
use std::path::Path;
use wire::capture::{CaptureReader, CaptureWriter};

/// Number of packets in a file per ms of the run.
const PACKETS_PER_MS: u32 = 200;

/// Writes the input file of port `ingress`. The flows send packets in turn.
fn write(path: &Path, ingress: u8, packets: u32) {
    let mut writer = CaptureWriter::create(path).unwrap();
    for number in 0..packets {
        let (flow, sequence) = (number as usize % FLOWS, number / FLOWS as u32);
        let frame = Tag { flow: flow as u8, ingress, sequence }.frame();
        writer.write(u64::from(number), frame.len() as u32, &frame).unwrap();
    }
    writer.finish().unwrap();
}

fn config(run: &Run, packets: u32, folder: &Path) -> Config {
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
        write(&folder.join(&input), ingress, packets);
        port(u32::from(ingress) + 1, format!("in={}", path(&input)), usize::from(ingress));
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

/// Returns a judge to which all received packets were reported.
fn received(book: &Book, packets: u32) -> Judge<'_> {
    let mut judge = Judge::new(book, true);
    for ingress in 0..2 {
        for number in 0..packets {
            let tag = judge.next(number as usize % FLOWS, ingress);
            // The arrival time is unknown, so the packet may have met the first rules.
            judge.arrives(tag, 0);
        }
    }
    judge
}

/// Carries out a run in which all ports are packet captures.
pub fn play(run: Run) {
    let folder = folder();
    let packets = (run.time.as_millis() as u32).max(1) * PACKETS_PER_MS;
    let config = config(&run, packets, &folder);
    let mut stage = Stage::start(folder, &config, || switch::daemon::open(&config));
    let shared = Shared::new();
    let controller = Controller::start(stage.peer.take().unwrap(), &shared.book, run.seed, run.load);
    let mut client = stage.client();
    let mut judge = received(&shared.book, packets);
    let pushed = judge.pushed;
    let (mut peer, mut heard, (mut client, counters)) = perform(&run, shared, controller, move || {
        let counters = totals::settle(&mut client, pushed, || shared.wire.beat());
        (client, counters)
    });
    let packet_ins = heard.all_packet_ins(&mut peer);
    // A capture port accepts all frames, so its outbox never overflows and each copy is sent.
    let ports = totals::ports(&mut client, pushed, counters.copies);
    drop(client);
    stage.end(|folder| {
        for (at, egress) in EGRESS.into_iter().enumerate() {
            let mut reader = CaptureReader::open(folder.join(format!("out{egress}"))).unwrap();
            while let Some(packet) = reader.next_packet().unwrap() {
                judge.leaves(at, packet.bytes);
            }
        }
    });
    judge.end();
    let outside = judge.outside(packet_ins);
    totals::judge(&counters, &ports, outside, Late::Nothing);
    println!(
        "{run:?}: {pushed} packets, {:?} copies, {} changes, {} barriers",
        outside.left, heard.changes, heard.barriers
    );
}
