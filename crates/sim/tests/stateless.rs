// SPDX-License-Identifier: Apache-2.0
//! Compares the pipeline's stateless forwarding with the reference, burst by burst. Configurations, ports,
//! keys and tags are random, and some headers are damaged. `STATELESS_PACKETS` (default 300,000) sets the
//! number of packets, and `STATELESS_SEED` sets the seed.

#![allow(clippy::expect_used, reason = "a test that cannot be set up has failed")]

use arrayvec::ArrayVec;
use dataplane::{Counters, Event, PortTable, Totals};
use fastrand::Rng;
use flow::stateless::{Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessConfig, TagTypes};
use flow::{DropReason, Limits, Nanos, Operation, Outcome, PortNo, PortState, QueueId, RuleVersion};
use frame::{Frame, Lane};
use pipeline::{BURST, BacklogShare, Egress, LaneLimits, Pipeline, Update, Updates};
use reference::{Reference, Sent, Unfinished};
use stateless::StatelessForwarder;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

/// Number of ports with consecutive numbers from 1. One further port has a much higher number.
const PORTS: PortNo = PortNo(7);
const FAR: PortNo = PortNo(70_000);

/// Number of packets per configuration.
const PACKETS_PER_LANE: usize = 96;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

/// Records transmitted frames.
#[derive(Default)]
struct Noted {
    sent: Vec<(Sent, Lane)>,
    freed: usize,
}

impl Egress for Noted {
    fn buffer(&mut self, _len: usize) -> Option<Frame> {
        None
    }

    fn controller_buffer(&mut self, _len: usize, _lane: Lane) -> Option<Frame> {
        None
    }

    fn transmit(&mut self, port: PortNo, queue: QueueId, frame: Frame) -> Result<(), (Frame, DropReason)> {
        self.sent.push((
            Sent { port, queue, bytes: frame.bytes().to_vec(), unfinished: Unfinished::default() },
            frame.meta.lane,
        ));
        Ok(())
    }

    fn transmit_all(&mut self, _: PortNo, _: Lane, _: &mut ArrayVec<Frame, BURST>) -> bool {
        false
    }

    fn report(&mut self, event: Event) -> Result<(), Event> {
        Err(event)
    }

    fn set_aside(&mut self, frame: Frame) -> Result<Frame, Frame> {
        Err(frame)
    }

    fn free(&mut self, _frame: Frame) {
        self.freed += 1;
    }

    fn may_hold(&self, _frame: &Frame, _share: BacklogShare) -> bool {
        true
    }
}

fn any_port(rng: &mut Rng) -> PortNo {
    if rng.u8(0..12) == 0 { FAR } else { PortNo(rng.u32(1..=PORTS.0)) }
}

fn some_ports(rng: &mut Rng) -> BTreeSet<PortNo> {
    let often = rng.u8(2..=12);
    (1..=PORTS.0).map(PortNo).chain([FAR]).filter(|_| rng.u8(0..8) < often).collect()
}

fn any_bank(rng: &mut Rng) -> Bank {
    let modulus = match rng.u8(0..8) {
        0 => rng.u32(2..),
        1 => rng.u32(2..1 << 17),
        2 => 1 << rng.u32(1..32),
        _ => rng.u32(2..40),
    };
    let arithmetic = if rng.bool() { Arithmetic::Integer } else { Arithmetic::Polynomial };
    let id = NodeId::new(arithmetic, modulus).expect("a valid ID");
    let most = id.residues().min(Limits::LABEL_MAX + 1);
    let any_label = |rng: &mut Rng| match rng.u8(0..8) {
        0 => Label::Tables,
        _ => Label::Port(any_port(rng)),
    };
    let mut labels = BTreeMap::new();
    for at in 0..most.min(300) {
        let label = if most > 300 { rng.u32(0..most) } else { at };
        if rng.u8(0..8) != 0 {
            labels.insert(label, any_label(rng));
        }
    }
    let backups = (0..rng.usize(0..6)).map(|_| (any_port(rng), any_port(rng))).collect();
    Bank { id, labels, backups }
}

fn any_gates(rng: &mut Rng) -> Gates {
    let most = [9, 40, 70_000, u32::MAX][rng.usize(0..4)];
    let flags = [GateFlag::None, GateFlag::None, GateFlag::Server, GateFlag::External, GateFlag::Assists];
    let mut ports = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for _ in 0..rng.usize(0..9) {
        let number = NonZeroU32::new(rng.u32(1..=most)).expect("not 0");
        if taken.insert(number) {
            ports.insert(any_port(rng), Gate { number, flag: flags[rng.usize(0..5)] });
        }
    }
    let mut d = || {
        let most = most.min(1 << rng.u32(1..32));
        if rng.u8(0..5) == 0 { 0 } else { rng.u32(1..=most) }
    };
    Gates { down_d: d(), up_d: d(), external_d: d(), server_gate_max: d(), ports }
}

fn any_stateless(rng: &mut Rng) -> StatelessConfig {
    let mut types = TagTypes::default();
    if rng.u8(0..4) == 0 {
        types = TagTypes { keyflow: 0x9999, polka: 0x9998, tf: 0x88b5, tf_wide: 0x9997 };
    }
    let mut bank = || (rng.u8(0..5) != 0).then(|| any_bank(rng));
    let (banks, polka) = ([bank(), bank()], bank());
    let mtu = |rng: &mut Rng| if rng.bool() { rng.usize(68..140) } else { 1_500 };
    StatelessConfig {
        types,
        trusted: some_ports(rng),
        mtu_bytes: (0..rng.usize(0..4)).map(|_| (any_port(rng), mtu(rng))).collect(),
        banks,
        polka,
        gates: (rng.u8(0..5) != 0).then(|| any_gates(rng)),
    }
}

fn any_ports(rng: &mut Rng) -> Vec<PortState> {
    let there: Vec<PortNo> = (1..=PORTS.0).map(PortNo).chain([FAR]).filter(|_| rng.u8(0..30) != 0).collect();
    let mut odd = || rng.u8(0..25) == 0;
    there
        .into_iter()
        .map(|number| PortState { up: !odd(), no_recv: odd(), no_fwd: odd(), ..PortState::up(number) })
        .collect()
}

/// Returns a gate number that is likely to be relevant: a small one, or one near an existing gate.
fn gate(rng: &mut Rng, stateless_config: &StatelessConfig) -> u32 {
    let gates: Vec<u32> = stateless_config
        .gates
        .iter()
        .flat_map(|gates| gates.ports.values().map(|gate| gate.number.get()))
        .chain(stateless_config.gates.iter().map(|gates| gates.server_gate_max))
        .collect();
    match rng.u8(0..4) {
        0 => rng.u32(0..12),
        1 => rng.u32(..),
        _ if gates.is_empty() => 0,
        _ => gates[rng.usize(0..gates.len())].wrapping_sub(rng.u32(0..8).saturating_sub(5)),
    }
}

fn any_frame(rng: &mut Rng, stateless_config: &StatelessConfig) -> Vec<u8> {
    let types = stateless_config.types;
    let mut frame: Vec<u8> = (0..12).map(|_| rng.u8(..)).collect();
    let random = |rng: &mut Rng, count: usize| (0..count).map(|_| rng.u8(..)).collect::<Vec<u8>>();
    let hops = if rng.u8(0..4) == 0 { rng.u8(0..3) } else { rng.u8(..) };
    match rng.u8(0..20) {
        0..9 => {
            let units = if rng.u8(0..20) == 0 { rng.u8(..) } else { rng.u8(1..=4) };
            let first = if rng.u8(0..20) == 0 { rng.u8(..) } else { 0x10 | rng.u8(0..16) };
            frame.extend(types.keyflow.to_be_bytes());
            frame.extend([first, hops, units, rng.u8(..), 8, 0, rng.u8(..), rng.u8(..)]);
            frame.extend(random(rng, 8 * usize::from(units.min(5))));
        }
        9..12 => {
            frame.extend(types.polka.to_be_bytes());
            frame.extend([if rng.u8(0..20) == 0 { rng.u8(..) } else { 0 }, hops, 8, 0]);
            frame.extend(random(rng, 16));
        }
        12..18 => {
            let (eth_type, down_bits) = if rng.bool() { (types.tf, 13) } else { (types.tf_wide, 16) };
            let (qid, up, down) = (rng.u64(0..8), gate(rng, stateless_config), gate(rng, stateless_config));
            let (up, down) = (u64::from(up) % (1 << (45 - down_bits)), u64::from(down) % (1 << down_bits));
            let word = qid << 45 | up << down_bits | down;
            frame.extend(eth_type.to_be_bytes());
            frame.extend(&word.to_be_bytes()[2..]);
            frame.extend([8, 0]);
        }
        18 => frame.extend([8, 0]),
        _ => frame.extend(random(rng, 2)),
    }
    let payload = [0, 30, 46, 60, 100][rng.usize(0..5)];
    frame.extend(random(rng, payload));
    if rng.u8(0..12) == 0 {
        frame.truncate(rng.usize(0..=frame.len()));
    }
    frame
}

/// Results of a burst according to the reference.
struct Expected {
    sent: Vec<Sent>,
    dropped: BTreeMap<DropReason, u64>,
}

fn expected(reference: &mut Reference, burst: &[(PortNo, Vec<u8>)]) -> Expected {
    let mut made = Expected { sent: Vec::new(), dropped: BTreeMap::new() };
    for (port, bytes) in burst {
        let processed = reference.process(*port, bytes);
        made.sent.extend(processed.sent);
        if let Outcome::Dropped(reason) = processed.outcome {
            *made.dropped.entry(reason).or_default() += 1;
        }
    }
    made
}

fn totals(counters: &Counters) -> Totals {
    let mut totals = Totals::default();
    counters.add_to(&mut totals);
    totals
}

#[test]
fn the_stateless_forwarder_agrees_with_the_reference() {
    let packets = number("STATELESS_PACKETS", 300_000) as usize;
    let mut rng = Rng::with_seed(number("STATELESS_SEED", 1));
    let counters = Arc::new(Counters::default());
    let mut pipeline = Pipeline::new(Arc::clone(&counters), LaneLimits::default());
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut done, mut version) = (0, 0);
    while done < packets {
        let (stateless_config, ports) = (any_stateless(&mut rng), any_ports(&mut rng));
        stateless_config.check().expect("a valid configuration");
        version += 1;
        let mut updates = Updates {
            version: RuleVersion(version),
            parts: vec![
                Update::SwapPorts(Arc::new(PortTable::new(ports.clone()))),
                Update::SwapStateless(Some(Arc::new(StatelessForwarder::compile(&stateless_config)))),
            ],
        };
        pipeline.apply(&mut updates, &mut ());
        let mut reference = Reference::new();
        for state in ports {
            reference.apply(&Operation::Port(state)).expect("a valid port");
        }
        reference
            .apply(&Operation::Stateless(Some(Arc::new(stateless_config.clone()))))
            .expect("a valid configuration");
        for _ in 0..PACKETS_PER_LANE / 16 {
            let count = rng.usize(0..=32);
            let burst: Vec<_> =
                (0..count).map(|_| (any_port(&mut rng), any_frame(&mut rng, &stateless_config))).collect();
            let before = totals(&counters);
            let mut egress = Noted::default();
            let mut frames = burst
                .iter()
                .map(|(port, bytes)| {
                    let mut frame = Frame::from_bytes(bytes);
                    frame.meta.in_port = port.0;
                    frame
                })
                .collect();
            pipeline.forward(&mut frames, Nanos(1), &mut egress, &mut ());
            let expected = expected(&mut reference, &burst);
            let context = || format!("{stateless_config:?}\n{burst:02x?}");
            let sent: Vec<Sent> = egress.sent.iter().map(|(sent, _)| sent.clone()).collect();
            assert_eq!(sent, expected.sent, "{}", context());
            assert!(egress.sent.iter().all(|(_, lane)| *lane == Lane::LowLatency));
            assert_eq!(egress.freed, count - sent.len(), "one frame is sent or freed per packet");
            let after = totals(&counters);
            for reason in DropReason::ALL {
                let dropped = after.dropped.of(*reason) - before.dropped.of(*reason);
                let expected = expected.dropped.get(reason).copied().unwrap_or_default();
                assert_eq!(dropped, expected, "{} of {}", reason.name(), context());
                *seen.entry(reason.name()).or_default() += dropped;
            }
            *seen.entry("sent").or_default() += sent.len() as u64;
            done += count;
        }
    }
    println!("{done} packets: {seen:?}");
    for reason in [
        "sent",
        "untrusted_tag",
        "malformed_tag",
        "no_label",
        "hop_limit",
        "no_gate",
        "over_mtu",
        "port_down",
        "table_miss",
        "port_not_receiving",
        "runt",
    ] {
        assert!(seen.get(reason).is_some_and(|count| *count > done as u64 / 2_000), "{reason}: {seen:?}");
    }
}
