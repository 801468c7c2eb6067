// SPDX-License-Identifier: Apache-2.0
//! Attacks on the LUTs of the fast-forwarding path, in virtual time: scans and storms of new flows compete
//! with established flows. The LUTs have 256 records, all of them in use.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]

use dataplane::{DataPlane, LutFigures};
use fastrand::Rng;
use flow::syntax::{ParseOptions, parse_flow, parse_flows};
use flow::{FlowModCommand, Limits, Nanos, PortNo, TableId};
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem::{self, LoopQueue, MemHandle};
use std::path::Path;
use wire::PacketBuilder;
use wire::capture::CaptureReader;
use worker::{PortQueues, Worker, WorkerSet, build};

const MS: Nanos = Nanos::MILLISECOND;
const SECOND: Nanos = Nanos::SECOND;

/// Number of records per LUT.
const RECORDS: usize = 256;

/// Number of established flows. There are more flows than a LUT has records.
const FLOWS: u32 = 320;

/// Without lanes, each burst is finished before the next; with lanes, packets may wait.
const LANES: [LaneLimits; 2] = [LaneLimits::NONE, LaneLimits::USUAL];

struct Rig {
    model: Model<WorkerSet>,
    worker: Worker,
    port: MemHandle,
    now: Nanos,
}

impl Rig {
    /// Creates an access list (table 0) and routes (table 1). Packets from 10.1.0.0/16 to 10.2.0.0/16 are
    /// low-latency. So are all packets to 10.9.0.0/16, because of one broad entry. Everything else is normal.
    fn new(lanes: LaneLimits) -> Self {
        let config =
            worker::WorkerSetConfig { lut_entries: RECORDS, lanes, ..worker::WorkerSetConfig::default() };
        let (queues, port) = mem::pair(1, 1, Limits::BURST_PACKETS);
        let queues = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
        let sink = vec![(0, Box::new(LoopQueue::new(2, Vec::new())) as Box<dyn Queue>)];
        let plain = |number, queues| PortQueues { number, queues, egress: Vec::new() };
        let ports = vec![plain(PortNo(1), queues), plain(PortNo(2), sink)];
        let (plane, mut workers) = build(&config, ports);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in 1..=2 {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(1), desc, true).unwrap();
        }
        let mut rules = String::new();
        for n in 0..96 {
            let length = 20 + n % 5;
            rules += &format!(
                "low_latency,priority=100,tcp,nw_src=10.1.{n}.0/{length},nw_dst=10.2.0.0/16,actions=goto_table:1\n"
            );
            rules += &format!("priority=90,udp,nw_src=10.4.{n}.0/{length},tp_dst={n},actions=output:2\n");
        }
        // These rules make the tables examine every bit, so that each flow has its own values.
        rules += "priority=200,tcp,nw_src=192.0.2.7,nw_dst=192.0.2.8,tp_src=1,tp_dst=1,actions=drop\n\
                  low_latency,table=1,priority=42,ip,nw_dst=192.0.2.8,actions=drop\n";
        rules += "low_latency,priority=50,ip,nw_dst=10.9.0.0/16,actions=goto_table:1\n\
                  priority=40,tcp,tp_dst=22,actions=drop\n\
                  priority=10,ip,actions=goto_table:1\n\
                  low_latency,table=1,priority=1,ip,actions=output:2\n";
        for n in 0..96 {
            let length = 17 + n % 12;
            rules += &format!(
                "low_latency,table=1,priority={},ip,nw_dst=10.2.{n}.0/{length},actions=output:2\n",
                10 + length
            );
        }
        let mods = parse_flows(&rules, ParseOptions::default()).map(|line| line.unwrap());
        model.bundle(Nanos(1), mods.collect::<Vec<_>>()).unwrap();
        let mut rig = Self { model, worker: workers.remove(0), port, now: Nanos(1) };
        rig.send(&[]);
        for table in 0..2 {
            assert!(rig.lut(TableId(table)).is_some(), "table {table} has a LUT");
        }
        rig
    }

    /// Lets the worker forward packets, in bursts.
    fn send(&mut self, packets: &[Vec<u8>]) {
        for burst in packets.chunks(Limits::BURST_PACKETS).chain([&[][..]]) {
            burst.iter().for_each(|packet| assert!(self.port.push(0, packet)));
            while !self.worker.turn(self.now).is_idle() {}
        }
    }

    /// Advances the time and lets the control thread poll.
    fn wait(&mut self, ns: Nanos) {
        self.now += ns;
        while self.model.poll(self.now) {}
    }

    fn lut(&mut self, table: TableId) -> Option<LutFigures> {
        let mut tables = self.model.plane_mut().fast_tables();
        tables.find(|(number, _)| *number == table).and_then(|(_, lut)| lut).map(|lut| lut.figures)
    }

    fn evicted(&mut self) -> u64 {
        (0..2).filter_map(|table| self.lut(TableId(table))).map(|lut| lut.evicted).sum()
    }

    /// Returns how many of the packets completed on the fast-forwarding path.
    fn fast(&mut self, packets: &[Vec<u8>]) -> u64 {
        let before = self.model.plane_mut().totals().fast;
        self.send(packets);
        self.model.plane_mut().totals().fast - before
    }

    /// Returns packets of low-latency flows that have records. The LUTs are full of such records.
    fn establish(&mut self) -> Vec<Vec<u8>> {
        let flows: Vec<Vec<u8>> = (0..FLOWS).map(flow).collect();
        for _ in 0..30 {
            self.send(&flows);
            self.wait(100 * MS);
        }
        for table in 0..2 {
            let records = self.lut(TableId(table)).unwrap().records;
            assert!(records as usize >= RECORDS * 95 / 100, "table {table}: {records} records");
        }
        let established: Vec<Vec<u8>> =
            flows.into_iter().filter(|packet| self.fast(std::slice::from_ref(packet)) == 1).collect();
        assert!(established.len() > RECORDS / 2, "{} flows", established.len());
        established
    }
}

/// Returns a packet of a low-latency flow.
fn flow(n: u32) -> Vec<u8> {
    let [_, _, high, low] = (n * 7).to_be_bytes();
    ipv4([10, 1, high, low], [10, 2, low, high]).tcp(40_000 + n as u16, 443).build()
}

fn ipv4(source: [u8; 4], destination: [u8; 4]) -> PacketBuilder {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(source, destination)
}

/// Returns a packet of a new flow to `network`.0.0/16.
fn new_flow(rng: &mut Rng, network: [u8; 2]) -> Vec<u8> {
    let [a, b] = network;
    let packet = ipv4([172, 16, rng.u8(..), rng.u8(..)], [a, b, rng.u8(..), rng.u8(..)]);
    let (source, destination) = (rng.u16(..), rng.u16(..));
    if rng.bool() { packet.tcp(source, destination).build() } else { packet.udp(source, destination).build() }
}

/// Returns a scan of all ports of a host, like that of `nmap -sS`: one source, few source ports.
fn scan() -> Vec<Vec<u8>> {
    let probe = |port: u16| {
        let packet = ipv4([192, 0, 2, 1], [198, 51, 100, 7]).tcp(36_050 + port % 2, port);
        packet.tcp_flags(2).pad_to(60).build()
    };
    (1..=2_000).map(probe).collect()
}

/// Returns a captured scan, if the capture is available.
fn captured_scan() -> Option<Vec<Vec<u8>>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/pcap/synscan.pcap");
    if !path.exists() {
        return None;
    }
    let mut capture = CaptureReader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = capture.next_packet().unwrap() {
        packets.push(packet.bytes.to_vec());
    }
    Some(packets)
}

#[test]
fn packets_that_hit_normal_entries_evict_no_records() {
    LANES.into_iter().for_each(normal_ones_evict_nothing);
}

fn normal_ones_evict_nothing(lanes: LaneLimits) {
    let mut rng = Rng::with_seed(1);
    let storm = |rng: &mut Rng, network| (0..100_000).map(|_| new_flow(rng, network)).collect::<Vec<_>>();
    let storms =
        [Some(scan()), captured_scan(), Some(storm(&mut rng, [10, 200])), Some(storm(&mut rng, [10, 2]))];
    for packets in storms.into_iter().flatten() {
        let mut rig = Rig::new(lanes);
        let flows = rig.establish();
        let (before, evicted) = (rig.lut(TableId(0)).unwrap(), rig.evicted());
        // Sending all parts takes 10 s, which is long enough for unused records to become idle.
        let parts = 100;
        for part in packets.chunks(packets.len().div_ceil(parts)) {
            rig.send(part);
            rig.wait(10 * SECOND / parts as u64);
            assert_eq!(rig.fast(&flows), flows.len() as u64, "all flows still have their records");
        }
        let after = rig.lut(TableId(0)).unwrap();
        assert!(
            after.misses - before.misses > 1_000,
            "the storm caused too few misses: {before:?} {after:?}"
        );
        assert_eq!(rig.evicted() - evicted, 0);
        // Records that have not been hit for a long time are not evicted either.
        rig.wait(100 * SECOND);
        rig.send(&packets);
        assert_eq!(rig.evicted() - evicted, 0);
        assert_eq!(rig.fast(&flows), flows.len() as u64);
    }
}

impl Rig {
    /// Sends packets of the flows with lognormal gaps while a storm of new flows hits the broad low-latency
    /// entry. The storm has `rate` packets per second and repeats each flow `times` times. Returns the number
    /// of packets of the flows, and how many completed on the fast-forwarding path.
    fn storm(
        &mut self,
        rng: &mut Rng,
        flows: &[Vec<u8>],
        (rate, times): (u64, usize),
        time: Nanos,
    ) -> (u64, u64) {
        let end = self.now + time;
        let mut next: Vec<Nanos> = flows.iter().map(|_| self.now + gap(rng)).collect();
        let (mut sent, mut fast) = (0, 0);
        while self.now < end {
            for _ in 0..rate / 1_000 / times as u64 {
                let packet = new_flow(rng, [10, 9]);
                self.send(&vec![packet; times]);
            }
            let mut due = Vec::new();
            for (flow, next) in flows.iter().zip(&mut next).filter(|(_, next)| **next <= self.now) {
                due.push(flow.clone());
                *next = self.now + gap(rng);
            }
            sent += due.len() as u64;
            fast += self.fast(&due);
            self.wait(MS);
        }
        (sent, fast)
    }
}

/// Returns a random gap between two packets of a flow: lognormal with mu 0.9 and sigma 2.3, in ms.
fn gap(rng: &mut Rng) -> Nanos {
    let normal = (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    Nanos(((0.9 + 2.3 * normal).exp() * MS.0 as f64) as u64)
}

#[test]
fn storms_on_a_broad_low_latency_entry_leave_established_flows_their_records() {
    LANES.into_iter().for_each(flows_keep_their_records);
}

fn flows_keep_their_records(lanes: LaneLimits) {
    for (rate, times) in [(2_000, 1), (10_000, 1), (10_000, 2)] {
        let (mut rng, mut rig) = (Rng::with_seed(2), Rig::new(lanes));
        let flows = rig.establish();
        let (sent, fast) = rig.storm(&mut rng, &flows, (rate, times), 30 * SECOND);
        assert!(sent > 100_000, "{sent}");
        assert!(
            fast * 100 >= sent * 99,
            "{rate} new packets a second, {times} per flow: {fast} of {sent} hit"
        );
    }
}

#[test]
fn flows_that_begin_in_a_storm_get_records_nevertheless() {
    LANES.into_iter().for_each(new_flows_get_records);
}

fn new_flows_get_records(lanes: LaneLimits) {
    let (mut rng, mut rig) = (Rng::with_seed(3), Rig::new(lanes));
    rig.storm(&mut rng, &[], (5_000, 1), 3 * SECOND);
    assert!(
        rig.lut(TableId(0)).unwrap().records as usize >= RECORDS * 95 / 100,
        "the storm has filled the LUT"
    );
    let flows: Vec<Vec<u8>> = (0..150).map(flow).collect();
    rig.storm(&mut rng, &flows, (5_000, 1), 10 * SECOND);
    let (sent, fast) = rig.storm(&mut rng, &flows, (5_000, 1), 5 * SECOND);
    assert!(fast * 10 >= sent * 9, "{fast} of {sent} hit");
}

/// Packets of flows whose entries are no longer low-latency arrive at the same rate as packets of new
/// low-latency flows. The new flows must be able to displace the records of the old ones.
#[test]
fn entries_that_are_unmarked_leave_the_lut_to_others() {
    LANES.into_iter().for_each(unmarked_ones_leave_the_lut);
}

fn unmarked_ones_leave_the_lut(lanes: LaneLimits) {
    let (mut rng, mut rig) = (Rng::with_seed(4), Rig::new(lanes));
    let flows = rig.establish();
    let others: Vec<Vec<u8>> = (0..100).map(|_| new_flow(&mut rng, [10, 9])).collect();
    for n in 0..96 {
        let of = format!("table=0,tcp,nw_src=10.1.{n}.0/{},nw_dst=10.2.0.0/16", 20 + n % 5);
        let line = format!("low_latency=false,{of},actions=goto_table:1");
        rig.model
            .flow_mod(rig.now, parse_flow(&line, FlowModCommand::Modify, ParseOptions::default()).unwrap())
            .unwrap();
    }
    // In the next table, packets no longer hit the records of these flows. The records are still kept for
    // some time because of their earlier hits.
    for _ in 0..60 {
        assert_eq!(rig.fast(&flows), 0, "no packet completes on the path");
        rig.send(&others);
        rig.wait(SECOND / 2);
    }
    let fast = rig.fast(&others);
    assert!(fast * 10 >= others.len() as u64 * 9, "{fast} of {} hit", others.len());
}
