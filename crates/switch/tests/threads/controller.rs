// SPDX-License-Identifier: Apache-2.0
//! The controller of the test, which constantly changes random rules, groups and meters. Each change is
//! recorded in the [`Book`] before it is sent.

use crate::Load;
use crate::book::{Book, EGRESS, Sends};
use crate::packet::{FLOWS, Tag, mac};
use crate::peer::{Peer, add, flow_mod};
use crate::stage::Shared;
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{Action, Field, FlowModCommand, GroupId, Match, MeterId, PortNo, TableId};
use openflow::Message;
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::{Answer, MultipartRequest, Query};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// First flow that uses a group for its output instead of the rule of table 1.
const GROUPED: usize = 8;
/// Maximum number of changes between two barriers.
const CHANGES: usize = 8;
const METER: MeterId = MeterId(1);

/// How table 1 or a group forwards the packets of a flow.
#[derive(Clone, Debug)]
struct Way {
    kind: Kind,
    ports: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Apply,
    Write,
    /// A group chooses one of its buckets. A rule of table 1 cannot choose, so it sends to the first port.
    Choose,
    Metered,
    Controller,
}

impl Way {
    fn random(random: &mut fastrand::Rng, load: Load) -> Self {
        let kinds = [Kind::Apply, Kind::Write, Kind::Choose, Kind::Metered, Kind::Controller];
        let kind = kinds[random.usize(..if load == Load::Storm { kinds.len() } else { 3 })];
        let least = usize::from(load == Load::Sleepy);
        let count = random.usize(least.max(usize::from(kind == Kind::Choose))..=EGRESS.len());
        let mut ports = EGRESS.to_vec();
        random.shuffle(&mut ports);
        ports.truncate(count);
        Self { kind, ports }
    }

    fn sends(&self, flow: usize) -> Sends {
        match self.kind {
            Kind::Choose if flow >= GROUPED => Sends::One(self.ports.clone()),
            _ => Sends::All(self.ports.clone()),
        }
    }

    /// Returns the actions of the rule of table 1.
    fn actions(&self, version: u32) -> String {
        let outputs: String = self.ports.iter().map(|port| format!(",output:{port}")).collect();
        let set = format!("set_field:{}->eth_src", mac(1, version));
        match self.kind {
            Kind::Write if self.ports.len() == 1 => format!("write_actions({set}{outputs})"),
            Kind::Metered => format!("meter:{METER},{set}{outputs}"),
            Kind::Controller => format!("{set}{outputs},controller"),
            _ => format!("{set}{outputs}"),
        }
    }

    fn group(&self, flow: usize, version: u32) -> Group {
        let [a, b, c, d, e, f] = version_bytes(version);
        let set = flow::syntax::parse_flow(
            &format!("actions=set_field:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}->eth_src"),
            FlowModCommand::Add,
            flow::syntax::ParseOptions::default(),
        );
        let set = set.unwrap().instructions.apply;
        let bucket = |port: &u32| Bucket {
            weight: u16::from(self.kind == Kind::Choose),
            actions: set.iter().cloned().chain([Action::output(PortNo(*port))]).collect(),
            ..Bucket::default()
        };
        let kind = if self.kind == Kind::Choose { GroupType::Select } else { GroupType::All };
        Group { id: GroupId(flow as u32), kind, buckets: self.ports.iter().map(bucket).collect() }
    }
}

fn version_bytes(version: u32) -> [u8; 6] {
    let [a, b] = crate::packet::MARKS[1];
    let [c, d, e, f] = version.to_be_bytes();
    [a, b, c, d, e, f]
}

/// Messages that the controller received.
#[derive(Debug, Default)]
pub struct Heard {
    /// For each flow, the number of packets counted by entries of table 0 that have since been removed.
    pub removed: [u64; FLOWS],
    /// Packets sent to the controller.
    pub packet_ins: Vec<Tag>,
    pub changes: usize,
    pub barriers: usize,
}

impl Heard {
    /// Records messages until the answer to a barrier arrives.
    pub fn until_barrier(&mut self, peer: &mut Peer) {
        let asked = peer.send(&Message::BarrierRequest);
        loop {
            match peer.receive() {
                (xid, Message::BarrierReply) if xid == asked => break,
                (_, Message::Error(error)) => panic!("refused: {}", error.code),
                (_, Message::FlowRemoved(removed)) if removed.table == TableId(0) => {
                    self.removed[flow_of(&removed.matching)] += removed.packets
                }
                (_, Message::PacketIn(packet)) => self.packet_ins.push(Tag::of(&packet.data)),
                _ => {}
            }
        }
    }

    /// Returns all packets sent to the controller. The switch must be idle.
    pub fn all_packet_ins(&mut self, peer: &mut Peer) -> &[Tag] {
        self.until_barrier(peer);
        let count = self.packet_ins.len();
        self.packet_ins.sort_unstable();
        self.packet_ins.dedup();
        assert_eq!(self.packet_ins.len(), count, "packets came to the controller twice");
        &self.packet_ins
    }
}

pub struct Controller {
    peer: Peer,
    book: &'static Book,
    load: Load,
    random: fastrand::Rng,
    /// For each flow, whether a rule of higher priority matches its packets.
    shadowed: [bool; FLOWS],
    noise: Vec<String>,
    heard: Heard,
}

/// Returns the initial output of table 1 or of the group for a flow.
pub fn first(flow: usize) -> Sends {
    first_way(flow).sends(flow)
}

fn first_way(flow: usize) -> Way {
    Way { kind: Kind::Apply, ports: vec![EGRESS[flow % EGRESS.len()]] }
}

/// Returns the rule of table 0 for a flow.
fn classify(flow: usize, priority: u32, low_latency: bool, version: u32) -> String {
    let set = mac(0, version);
    format!(
        "table=0,priority={priority},send_flow_rem,low_latency={low_latency},ip,nw_src=10.0.0.{flow},\
         actions=set_field:{set}->eth_dst,goto_table:1"
    )
}

/// Returns the rule of table 1 for a flow.
fn forward(flow: usize, low_latency: bool, way: &Way, version: u32) -> String {
    let actions = if flow < GROUPED { way.actions(version) } else { format!("group:{flow}") };
    format!("table=1,priority=7,low_latency={low_latency},ip,nw_src=10.0.0.{flow},actions={actions}")
}

/// Returns the rules of state 0 as lines of a flow file, without the flows that use groups.
pub fn first_lines() -> Vec<String> {
    let lines = |flow| [classify(flow, 100, true, 0), forward(flow, true, &first_way(flow), 0)];
    (0..GROUPED).flat_map(lines).collect()
}

impl Controller {
    /// Installs the first rules.
    pub fn start(mut peer: Peer, book: &'static Book, seed: u64, load: Load) -> Self {
        peer.send(&flow_mod(FlowModCommand::Delete, "table=0"));
        let meter = Meter { id: METER, packets: true, stats: false, burst: false, bands: Vec::new() };
        peer.send(&Message::MeterMod(MeterMod { command: GroupChange::Add, meter }));
        for flow in 0..FLOWS {
            let way = first_way(flow);
            if flow >= GROUPED {
                let group = way.group(flow, 0);
                peer.send(&Message::GroupMod(GroupMod { command: GroupChange::Add, group }));
            }
            peer.send(&add(&classify(flow, 100, true, 0)));
            peer.send(&add(&forward(flow, true, &way, 0)));
        }
        peer.barrier();
        let random = fastrand::Rng::with_seed(seed ^ 0xc0de);
        let (shadowed, noise, heard) = ([false; FLOWS], Vec::new(), Heard::default());
        Self { peer, book, load, random, shadowed, noise, heard }
    }

    /// Changes rules until it is stopped. Each barrier reply confirms the states from before the barrier.
    pub fn run(mut self, shared: &Shared) -> (Peer, Heard) {
        while !shared.stop.load(Ordering::Relaxed) {
            while shared.quiet.load(Ordering::SeqCst) {
                shared.is_quiet.store(true, Ordering::SeqCst);
                shared.controller.beat();
                std::thread::sleep(Duration::from_micros(20));
            }
            shared.is_quiet.store(false, Ordering::SeqCst);
            for _ in 0..self.random.usize(1..=CHANGES) {
                self.change();
            }
            self.barrier();
            shared.controller.beat();
            if self.random.u8(..) < 64 {
                std::thread::sleep(Duration::from_micros(self.random.u64(..400)));
            }
        }
        shared.is_quiet.store(true, Ordering::SeqCst);
        (self.peer, self.heard)
    }

    fn barrier(&mut self) {
        let newest = self.book.newest();
        self.heard.until_barrier(&mut self.peer);
        self.book.confirm(newest);
        self.heard.barriers += 1;
    }

    fn change(&mut self) {
        self.heard.changes += 1;
        let flow = self.random.usize(..FLOWS);
        let priority = if self.shadowed[flow] { 200 } else { 100 };
        match self.random.u8(..if self.load == Load::Storm { 16 } else { 14 }) {
            0..4 => {
                let version = self.book.note(flow, [true, false], None);
                let low_latency = self.random.bool();
                self.modify(classify(flow, priority, low_latency, version));
            }
            4..8 => self.redirect(flow),
            8..10 if flow < GROUPED => self.bundle(flow, priority),
            8..12 => self.shadow(flow),
            12..14 => self.noise(),
            _ => {
                let rate = self.random.u32(1..100_000);
                let band = MeterBand { band: Band::Drop, rate, burst: 0 };
                let meter = Meter { id: METER, packets: true, stats: false, burst: false, bands: vec![band] };
                self.peer.send(&Message::MeterMod(MeterMod { command: GroupChange::Modify, meter }));
            }
        }
    }

    fn modify(&mut self, line: String) {
        self.peer.send(&flow_mod(FlowModCommand::ModifyStrict, &line.replace("send_flow_rem,", "")));
    }

    /// Changes the output of table 1 or of the group.
    fn redirect(&mut self, flow: usize) {
        let way = Way::random(&mut self.random, self.load);
        let version = self.book.note(flow, [false, true], Some(way.sends(flow)));
        if flow < GROUPED {
            let low_latency = self.random.bool();
            self.modify(forward(flow, low_latency, &way, version));
        } else {
            let group = way.group(flow, version);
            self.peer.send(&Message::GroupMod(GroupMod { command: GroupChange::Modify, group }));
        }
    }

    /// Changes the rules of both tables in one operation.
    fn bundle(&mut self, flow: usize, priority: u32) {
        let way = Way::random(&mut self.random, self.load);
        let version = self.book.note(flow, [true, true], Some(way.sends(flow)));
        let lines = [
            classify(flow, priority, self.random.bool(), version).replace("send_flow_rem,", ""),
            forward(flow, self.random.bool(), &way, version),
        ];
        let control = |kind| Message::BundleControl(BundleControl { bundle_id: 5, kind, flags: 3 });
        self.peer.send(&control(BundleKind::OpenRequest));
        for line in lines {
            let message = Box::new(flow_mod(FlowModCommand::ModifyStrict, &line));
            self.peer.send(&Message::BundleAdd(BundleAdd { bundle_id: 5, flags: 3, message }));
        }
        self.peer.send(&control(BundleKind::CommitRequest));
    }

    /// Adds a rule of higher priority. If there is one already, changes the lower rule and then removes the
    /// higher one.
    fn shadow(&mut self, flow: usize) {
        let low_latency = self.random.bool();
        let version = self.book.note(flow, [true, false], None);
        if self.shadowed[flow] {
            self.modify(classify(flow, 100, low_latency, version));
            let line = format!("table=0,priority=200,ip,nw_src=10.0.0.{flow}");
            self.peer.send(&flow_mod(FlowModCommand::DeleteStrict, &line));
        } else {
            self.peer.send(&add(&classify(flow, 200, low_latency, version)));
        }
        self.shadowed[flow] ^= true;
    }

    /// Adds or removes rules that match no packet but change how tables are compiled.
    fn noise(&mut self) {
        if self.noise.len() > 200 || self.random.u8(..4) == 0 {
            for line in self.noise.drain(..) {
                self.peer.send(&flow_mod(FlowModCommand::DeleteStrict, &line));
            }
            return;
        }
        for _ in 0..self.random.usize(1..40) {
            let (byte, bits) = (self.random.u8(..), self.random.u8(16..=32));
            let low_latency = self.random.bool();
            let table = self.random.u8(..2);
            let matched = match self.random.u8(..3) {
                0 => format!("table={table},priority=50,ip,nw_src=10.1.{byte}.0/{bits}"),
                1 => format!("table={table},priority=300,udp,nw_src=10.2.0.{byte},tp_dst={byte}"),
                _ => format!("table={table},priority=20,in_port=9,ip,nw_dst=10.0.1.{byte}"),
            };
            self.peer.send(&add(&format!("{matched},low_latency={low_latency},actions=output:3")));
            self.noise.push(matched);
        }
    }
}

/// Returns the flow whose packets an entry of table 0 matches.
fn flow_of(matching: &Match) -> usize {
    let source = matching.get(Field::Ipv4Src).expect("every rule has a source address").value as usize;
    source & 0xff
}

/// Returns the number of packets counted by each flow's entries of table 0, including entries removed since
/// the last barrier.
pub fn counted(peer: &mut Peer) -> [u64; FLOWS] {
    let query = Query::Flow(FlowQuery { table: Some(TableId(0)), ..FlowQuery::default() });
    let asked = peer.send(&Message::MultipartRequest(MultipartRequest { more: false, query }));
    let mut packets = [0; FLOWS];
    loop {
        match peer.receive() {
            (_, Message::FlowRemoved(removed)) if removed.table == TableId(0) => {
                packets[flow_of(&removed.matching)] += removed.packets
            }
            (xid, Message::MultipartReply(reply)) if xid == asked => {
                let Answer::Flow(entries) = reply.answer else { panic!("unexpected answer") };
                // Rules that match no packet are among the entries.
                for entry in entries.iter().filter(|entry| entry.packets > 0) {
                    packets[flow_of(&entry.matching)] += entry.packets;
                }
                if !reply.more {
                    return packets;
                }
            }
            (_, Message::Error(error)) => panic!("refused: {}", error.code),
            _ => {}
        }
    }
}
