// SPDX-License-Identifier: Apache-2.0
//! Stateless forwarding. The computation of residues is compared with `u128 % u128`. A core node is compared
//! with port-to-port forwarding, and with forwarding by tables of 10,000 entries.

use flow::{Nanos, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use fastrand::Rng;
use flow::stateless::{Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessConfig};
use shunt_bench::rig::{Case, Rig};
use shunt_bench::{Bar, Contender, Figure, GAP_LIMIT, Loop, Plan, allowed_cpus, compare, pin_to};
use stateless::residue::Residue;
use wire::PacketBuilder;
use wire::tf::Form;

/// Number of bursts per window, which takes a third of a millisecond.
const TURNS: u32 = 100;

/// Number of entries in the peer's tables.
const ENTRIES: usize = 10_000;
/// Number of packets in each set.
const PACKETS: usize = 4_096;

/// Number of keys in a set.
const KEYS: usize = 4_096;
/// Number of keys per loop iteration, processed in groups of eight, as in the pipeline.
const KEYS_A_TURN: usize = 128;

/// Measures stateless forwarding; writes target/report/stateless.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Pairs of windows per figure.
    #[arg(long, default_value_t = 100)]
    windows: usize,
    /// Run only figures whose names contain this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Seed of keys and packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    residues(&arguments)?;
    nodes(&arguments)
}

/// Appends a comparison of two contenders to the report.
fn put_down(
    arguments: &Arguments,
    (figure, case, unit): (&str, &str, &str),
    ours: &mut dyn Contender,
    peer: &mut dyn Contender,
    bar: Bar,
) -> Result<(), Box<dyn Error>> {
    let found = compare(&Plan::new(arguments.windows), ours, peer)?;
    Figure::new(figure, case, unit, &found, bar).append(Path::new("target/report"), "stateless")?;
    writeln!(io::stdout(), "{figure}, {case}: {}: {:?}", found.in_words(unit), found.verdict(bar))?;
    Ok(())
}

/// Compares residues by reciprocals and folded limbs, or by tables, with `u128 % u128`.
fn residues(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut rng = Rng::with_seed(arguments.seed);
    let keys: Vec<u128> = (0..KEYS).map(|_| rng.u128(..)).collect();
    let bytes: Vec<[u8; 16]> = keys.iter().map(|key| key.to_be_bytes()).collect();
    let eights = bytes.as_chunks::<8>().0;
    for (name, arithmetic, modulus) in [
        ("integers, ID 251", Arithmetic::Integer, 251),
        ("integers, ID 65521", Arithmetic::Integer, 65_521),
        ("integers, ID 4294967291", Arithmetic::Integer, 4_294_967_291),
        ("polynomials, ID 0x1002d", Arithmetic::Polynomial, 0x1_002d),
    ] {
        if !name.contains(&arguments.case) {
            continue;
        }
        let id = NodeId::new(arithmetic, modulus).ok_or("an ID is at least 2")?;
        let residue = Residue::by(id);
        for eight in eights {
            let (found, expected) = (residue.of_all(eight), eight.map(|key| reference::residue(&key, id)));
            if found != expected {
                return Err(format!(
                    "the residues of {eight:02x?} by {modulus} are {found:?}, not {expected:?}"
                )
                .into());
            }
        }
        let mut at = 0;
        let mut ours = Loop::new(TURNS, || {
            at = (at + KEYS_A_TURN / 8) % eights.len();
            for eight in &eights[at..at + KEYS_A_TURN / 8] {
                black_box(residue.of_all(black_box(eight)));
            }
            KEYS_A_TURN as u64
        });
        let modulus = u128::from(modulus);
        let mut place = 0;
        let mut peer = Loop::new(TURNS, || {
            place = (place + KEYS_A_TURN) % KEYS;
            let (keys, modulus) = black_box((&keys[place..place + KEYS_A_TURN], modulus));
            black_box(keys.iter().fold(0, |sum, key| sum ^ (key % modulus)));
            KEYS_A_TURN as u64
        });
        let case = format!("128-bit keys, {name}, against `u128 % u128`");
        let figure = ("residue", case.as_str(), "M keys/CPU-s");
        put_down(arguments, figure, &mut ours, &mut peer, Bar::AtLeast(2.0))?;
    }
    Ok(())
}

/// Returns a node with four ports. Packets arrive on port 1.
fn node(name: &str, flows: String, packets: Vec<Vec<u8>>) -> Case {
    Case {
        name: name.into(),
        flows,
        ports: 4,
        sources: vec![(1, packets)],
        burst: 32,
        forwards: true,
        lut_entries: 0,
        express_records: 0,
    }
}

fn contender(case: &Case, config: Option<StatelessConfig>) -> Result<impl Contender + use<>, Box<dyn Error>> {
    let mut rig = Rig::new(&Case {
        flows: if config.is_some() { "priority=0,actions=output:2".into() } else { case.flows.clone() },
        sources: case.sources.clone(),
        name: case.name.clone(),
        ..*case
    })?;
    if let Some(config) = config {
        rig.model.set_stateless(Nanos(1), Some(Arc::new(config)))?;
        rig.warm_up(1_000);
        let before = rig.model.totals();
        let received: u64 = (0..16).map(|_| rig.turn()).sum();
        let after = rig.model.totals();
        let (taken, copies) = (after.stateless - before.stateless, after.copies - before.copies);
        if (taken, copies) != (received, received) {
            return Err(
                format!("{}: of {received} packets, stateless forwarding took {taken}", case.name).into()
            );
        }
    }
    Ok(Loop::new(TURNS, move || rig.turn()).gap_limit(GAP_LIMIT))
}

fn nodes(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut rng = Rng::with_seed(arguments.seed);
    let keyed: Vec<Vec<u8>> = (0..PACKETS).map(|_| with_key(&mut rng)).collect();
    let tagged: Vec<Vec<u8>> = (0..PACKETS).map(|_| with_tag(&mut rng)).collect();
    let exact = exact();
    let mask = mask(&mut rng);
    for (name, packets, config) in [
        ("KeyFlow, 128-bit keys", &keyed, keyflow(Arithmetic::Integer)?),
        ("polynomials, 128-bit keys", &keyed, keyflow(Arithmetic::Polynomial)?),
        ("Tag-and-Forward", &tagged, gates()?),
    ] {
        let port_to_port = node("port to port", "in_port=1,actions=output:2".into(), packets.clone());
        for (against, peer, least) in [
            ("port to port, same packets", &port_to_port, 0.9),
            ("10k exact table", &exact, 1.2),
            ("10k mask table", &mask, 2.0),
        ] {
            let case = format!("{name}, against {against}");
            if !case.contains(&arguments.case) {
                continue;
            }
            let mut ours = contender(&node(name, String::new(), packets.clone()), Some(config.clone()))?;
            let figure = ("core node", case.as_str(), "Mpps/CPU-s");
            put_down(arguments, figure, &mut ours, &mut contender(peer, None)?, Bar::AtLeast(least))?;
        }
    }
    Ok(())
}

fn base(rng: &mut Rng) -> PacketBuilder {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, rng.u8(..)], [2, 0, 0, 0, 0, rng.u8(..)])
}

/// Returns a packet of at least 60 bytes (64 with the FCS) that begins with the given headers.
fn under(header: PacketBuilder) -> Vec<u8> {
    let mut bytes = header.ipv4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).payload(&[0; 18]).build();
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

fn with_key(rng: &mut Rng) -> Vec<u8> {
    let key: Vec<u8> = (0..16).map(|_| rng.u8(..)).collect();
    under(base(rng).keyflow(0, 64, &key))
}

fn with_tag(rng: &mut Rng) -> Vec<u8> {
    under(base(rng).tf(Form::Paper, 0, 0, rng.u16(1..=48)))
}

/// Returns a node whose residues lead to three ports.
fn keyflow(arithmetic: Arithmetic) -> Result<StatelessConfig, Box<dyn Error>> {
    let id = NodeId::new(arithmetic, 251).ok_or("an ID is at least 2")?;
    let labels = (0..id.residues()).map(|label| (label, Label::Port(PortNo(2 + label % 3)))).collect();
    let bank = Bank { id, labels, backups: BTreeMap::new() };
    Ok(StatelessConfig {
        trusted: BTreeSet::from([PortNo(1)]),
        mtu_bytes: BTreeMap::from([(PortNo(2), 1_600), (PortNo(3), 1_600), (PortNo(4), 1_600)]),
        banks: [Some(bank), None],
        ..StatelessConfig::default()
    })
}

/// Returns a node with three gates of 16 servers each.
fn gates() -> Result<StatelessConfig, Box<dyn Error>> {
    let gate = |number| {
        let number = NonZeroU32::new(number).ok_or("a gate is at least 1")?;
        Ok::<_, Box<dyn Error>>(Gate { number, flag: GateFlag::None })
    };
    let ports = BTreeMap::from([(PortNo(2), gate(16)?), (PortNo(3), gate(32)?), (PortNo(4), gate(48)?)]);
    let gates = Gates { down_d: 16, ports, ..Gates::default() };
    Ok(StatelessConfig {
        trusted: BTreeSet::from([PortNo(1)]),
        gates: Some(gates),
        ..StatelessConfig::default()
    })
}

/// Returns a case with 10,000 addresses.
fn exact() -> Case {
    let mac = |n: usize| [2, 0, 0, 0, (n >> 8) as u8, n as u8];
    let mut flows = String::new();
    let mut packets = Vec::with_capacity(ENTRIES);
    for n in 0..ENTRIES {
        let text = mac(n).map(|byte| format!("{byte:02x}")).join(":");
        // Formatting to a string cannot fail.
        let _ = writeln!(flows, "dl_dst={text},actions=output:{}", 2 + n % 3);
        packets.push(under(PacketBuilder::ethernet(mac(n), [2, 1, 0, 0, 0, 1])));
    }
    Rng::with_seed(3).shuffle(&mut packets);
    node("10k exact", flows, packets)
}

/// Returns a case with 10,000 rules of an access list. Each rule matches prefixes of both addresses and a
/// protocol, and some rules also match a port. There is one packet per rule.
fn mask(rng: &mut Rng) -> Case {
    let mut flows = String::new();
    let mut packets = Vec::with_capacity(ENTRIES);
    for n in 0..ENTRIES {
        let (from, to, port) = (rng.u32(..), rng.u32(..), rng.u16(1..1_024));
        let (from_bits, to_bits) =
            ([8, 16, 20, 24, 32][rng.usize(0..5)], [16, 20, 24, 28, 32][rng.usize(0..5)]);
        let cut = |address: u32, bits: u32| std::net::Ipv4Addr::from(address & u32::MAX << (32 - bits));
        let ports = if rng.bool() { format!(",tp_dst={port}") } else { String::new() };
        let _ = writeln!(
            flows,
            "priority={},udp,nw_src={}/{from_bits},nw_dst={}/{to_bits}{ports},actions=output:{}",
            1 + n,
            cut(from, from_bits),
            cut(to, to_bits),
            2 + n % 3
        );
        let header = base(rng).ipv4(from.to_be_bytes(), to.to_be_bytes()).udp(9, port);
        let mut bytes = header.payload(&[0; 18]).build();
        bytes.resize(bytes.len().max(60), 0);
        packets.push(bytes);
    }
    rng.shuffle(&mut packets);
    node("10k mask", flows, packets)
}
