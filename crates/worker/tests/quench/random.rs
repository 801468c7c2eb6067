// SPDX-License-Identifier: Apache-2.0
//! Random flows, rules and answers. Whatever the controller does, packets of a flow that were not sent to it
//! leave in order, and every packet is counted once.

use crate::lab::{LATE_NS, LIMITS, Lab, MISS, number, packet, quench};
use flow::meter::{Band, Meter, MeterBand};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, MeterId, Nanos, PortNo, TableId};
use model::MeterCommand;
use openflow::packet::PacketInMessage;
use pipeline::LaneLimits;
use port_cache::{MissFigures, MissLimits, QuenchConfig, QuenchedTables};
use std::collections::{BTreeMap, BTreeSet};
use worker::WorkerSetConfig;

const FLOWS: u32 = 12;

/// How the controller and the rules behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    /// Each packet-in is answered with its packet, in order, or not at all. The rules always examine the same
    /// fields.
    Orderly,
    /// Answers come in any order, twice, or without the packet. The rules examine changing fields.
    Wild,
}

struct Run {
    lab: Lab,
    rng: fastrand::Rng,
    behaviour: Behaviour,
    timeout_ns: Nanos,
    /// Packet-ins that were not answered, with their times, and whether all packet-ins of the poll iteration
    /// were quenched.
    asked: Vec<(Nanos, PacketInMessage, bool)>,
    /// Number of packet-ins that were not quenched.
    unquenched: u64,
    /// Number of the last packet of each flow that was sent to the controller.
    last_asked: BTreeMap<u32, u32>,
    /// Numbers of the packets of each flow that were sent to the controller and need not keep their order.
    /// With `Behaviour::Wild`, these are all such packets. Otherwise, they are the packets of poll iterations
    /// in which some packet-in was not quenched.
    reported: BTreeSet<(u32, u32)>,
    pushed: [u32; FLOWS as usize],
}

/// Returns the number of a packet, from its first bytes.
fn first_number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[42..46].try_into().unwrap())
}

/// Returns the flow of a packet, by its destination address and its UDP port.
fn flow_of(bytes: &[u8]) -> u32 {
    (u32::from(bytes[5]) - 3) * 4 + u32::from(bytes[37])
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let behaviour = if seed.is_multiple_of(2) { Behaviour::Orderly } else { Behaviour::Wild };
        let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
        let mut config = WorkerSetConfig { lanes: [LaneLimits::NONE, lanes][rng.usize(0..2)], ..quench(0) };
        let entries = if behaviour == Behaviour::Orderly { 16 } else { [2, 4, 16][rng.usize(0..3)] };
        let limits = MissLimits { entries, queue: [4, 16, 64][rng.usize(0..3)], ..LIMITS };
        let timeout_ns = Nanos([30_000, 300_000][rng.usize(0..2)]);
        if let Some(cache) = &mut config.port_cache {
            let tables = QuenchedTables::of([TableId(0), TableId(1)]);
            let quench = cache.quench.map(|_| QuenchConfig { timeout_ns, tables });
            (cache.limits, cache.quench) = (limits, quench);
        }
        let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
        let fields = "dl_dst=02:00:00:00:00:02,udp,tp_dst=9,actions=output:2";
        let mut lab = Lab::new(&config, &[fields, low_latency, MISS]);
        // Some flows reach the table-miss entry of another table. On the way, a meter drops packets.
        if rng.bool() {
            let band = MeterBand { band: Band::Drop, rate: 100_000, burst: 3 };
            let meter = Meter { id: MeterId(1), packets: true, stats: false, burst: true, bands: vec![band] };
            lab.model.meter_mod(lab.now, MeterCommand::Add, meter).unwrap();
            lab.flow("table=1,priority=0,actions=controller:64");
            lab.flow("priority=7,dl_dst=02:00:00:00:00:05,actions=meter:1,goto_table:1");
            lab.turns();
        }
        let (asked, reported) = (Vec::new(), BTreeSet::new());
        Self {
            lab,
            rng,
            behaviour,
            timeout_ns,
            asked,
            unquenched: 0,
            last_asked: BTreeMap::new(),
            reported,
            pushed: [0; FLOWS as usize],
        }
    }

    fn push(&mut self) {
        let flow = self.rng.u32(0..FLOWS);
        let next = &mut self.pushed[flow as usize];
        self.lab.push(1, &packet((flow % 4) as u16, (flow / 4) as u8 + 3, *next));
        *next += 1;
    }

    fn turn(&mut self) {
        let held = self.lab.totals().held;
        self.lab.turn();
        let (now, is_orderly) = (self.lab.now, self.behaviour == Behaviour::Orderly);
        let unquenched = self.lab.figures().unquenched;
        let before = std::mem::replace(&mut self.unquenched, unquenched);
        let is_quenched = before == unquenched;
        // Only packets that have waited in vain are sent to the controller at once.
        assert!(!is_orderly || unquenched - before <= held, "{} of {held} packets", unquenched - before);
        for packet_in in self.lab.packet_ins() {
            let (flow, number) = (flow_of(&packet_in.data), first_number(&packet_in.data));
            let earlier = self.last_asked.insert(flow, number);
            assert!(
                earlier.is_none_or(|earlier| earlier < number),
                "flow {flow}: {number} after {earlier:?}"
            );
            let of_flow = |asked: &&(Nanos, PacketInMessage, bool)| flow_of(&asked.1.data) == flow;
            let in_flight = |(at, _, is_quenched): &(Nanos, PacketInMessage, bool)| {
                *is_quenched && now < *at + self.timeout_ns
            };
            if !is_orderly || !is_quenched {
                self.reported.insert((flow, number));
            }
            if is_orderly && is_quenched {
                let further = self.asked.iter().filter(of_flow).any(in_flight);
                assert!(!further, "flow {flow}: a second packet-in is in flight");
            }
            self.asked.push((now, packet_in, is_quenched));
        }
    }

    /// Returns the text of a rule for a flow.
    fn rule(&mut self, flow: u32) -> String {
        let more = match self.behaviour {
            Behaviour::Orderly => "",
            Behaviour::Wild => ["", ",nw_tos=0", ",nw_src=10.10.10.10", ",in_port=1"][self.rng.usize(0..4)],
        };
        format!("dl_dst=02:00:00:00:00:0{},udp,tp_dst={}{more},actions=output:3", flow / 4 + 3, flow % 4)
    }

    fn answer(&mut self) {
        if self.asked.is_empty() {
            return;
        }
        let at = if self.behaviour == Behaviour::Orderly { 0 } else { self.rng.usize(0..self.asked.len()) };
        let (_, packet_in, _) = self.asked[at].clone();
        if self.behaviour == Behaviour::Orderly || self.rng.bool() {
            self.asked.remove(at);
        }
        let rule = self.rule(flow_of(&packet_in.data));
        let data = if packet_in.buffer_id.is_none() { &packet_in.data[..] } else { &[] };
        match self.rng.u32(0..if self.behaviour == Behaviour::Orderly { 3 } else { 5 }) {
            0 => self.lab.add(&rule, packet_in.buffer_id),
            1 => self.lab.packet_out(packet_in.buffer_id, data, PortNo(3)),
            2 => {
                self.lab.add(&rule, None);
                self.lab.packet_out(packet_in.buffer_id, data, PortNo(3));
            }
            3 => self.lab.add(&rule, None),
            _ => self.lab.packet_out(packet_in.buffer_id, data, PortNo(2)),
        }
    }

    /// Removes the rules of a flow.
    fn remove(&mut self) {
        let flow = self.rng.u32(0..FLOWS);
        let text = format!("dl_dst=02:00:00:00:00:0{},udp,tp_dst={}", flow / 4 + 3, flow % 4);
        let flow = parse_flow(&text, FlowModCommand::Delete, ParseOptions::default()).unwrap();
        self.lab.model.flow_mod(self.lab.now, flow).unwrap();
    }

    fn step(&mut self) {
        match self.rng.u32(0..20) {
            0..10 => self.push(),
            10..16 => self.turn(),
            16 | 17 => self.answer(),
            18 => self.remove(),
            _ if self.rng.u32(0..10) == 0 => self.lab.now += self.timeout_ns + LATE_NS,
            _ => {}
        }
    }

    /// Lets all packets leave, and checks their order.
    fn finish(mut self) -> MissFigures {
        let flows: Vec<String> = (0..FLOWS).map(|flow| self.rule(flow)).collect();
        flows.iter().for_each(|rule| self.lab.add(rule, None));
        for _ in 0..100 {
            self.lab.now += Nanos(20_000_000);
            (0..20).for_each(|_| self.turn());
        }
        assert_eq!(self.lab.totals().held, 0, "nothing waits for ever");
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        for bytes in std::iter::from_fn(|| self.lab.handles[2].pop(0)) {
            let (flow, number) = (flow_of(&bytes), number(&bytes));
            if self.reported.contains(&(flow, number)) {
                continue;
            }
            let before = last.insert(flow, number);
            assert!(before.is_none_or(|before| before < number), "flow {flow}: {number} after {before:?}");
        }
        self.lab.figures()
    }
}

#[test]
fn packets_keep_their_order_whatever_the_controller_does() {
    let mut sum = MissFigures::default();
    for seed in 0..200 {
        let run = std::panic::catch_unwind(|| {
            let mut run = Run::new(seed);
            (0..600).for_each(|_| run.step());
            run.finish()
        });
        let Ok(figures) = run else { panic!("seed {seed}") };
        sum.add(&figures);
    }
    let MissFigures { asked, returned, unquenched, unanswered, merged, dropped, .. } = sum;
    let counts = [asked, unquenched, unanswered, merged, dropped];
    assert!(counts.iter().all(|count| *count > 200) && returned > 20, "{sum:?}");
}
