// SPDX-License-Identifier: Apache-2.0
//! A table under test: our engine with its keys, and the same as the program of the DPDK libraries reads it.

use std::error::Error;
use std::time::Instant;

use flow::{Field, FieldMatch, Slice, SliceBase};
use shunt_bench::Bar;
use shunt_bench::paper::FiveTuple;
use tables::base::Engine;
use tables::{BitSet, KeyPlan, NONE};

pub mod access;
pub mod exact;
mod routes;

/// Keys of a lookup.
pub const BURST: usize = 32;

/// Keys that are looked up in turn.
const KEYS: usize = 100_000;

/// See above.
pub struct Case {
    /// Under which figures stand.
    pub name: String,
    /// The library, and its ways to look up.
    pub library: &'static str,
    pub methods: &'static [&'static str],
    /// Our entries.
    pub len: usize,
    /// Words of a key.
    pub words: usize,
    /// Keys, one behind the other.
    pub keys: Vec<u64>,
    /// What `bench/dpdk/libraries.c` reads.
    pub file: Vec<u8>,
    /// How many keys are looked up at a time.
    pub batches: &'static [usize],
    /// Keys of a turn, between two looks at the clock.
    pub turn: usize,
    /// Before a window all keys are looked up: others had the caches.
    pub warm: bool,
    /// How many times as fast as the library's fastest way lookups of so many keys must be, where a bar is set.
    pub bars: Vec<(usize, Bar)>,
    /// How long our engine took to build, ms.
    pub build_ms: f64,
    engine: Engine,
    dead: BitSet,
    /// The rule of each entry; empty if each is a rule of its own.
    rules: Vec<u32>,
}

/// Rows of values and masks in the layout of a plan.
struct Rows {
    plan: KeyPlan,
    values: Vec<u64>,
    masks: Vec<u64>,
}

impl Rows {
    fn new(fields: &[Field]) -> Result<Self, Box<dyn Error>> {
        Ok(Self { plan: KeyPlan::new(fields)?, values: Vec::new(), masks: Vec::new() })
    }

    fn push(&mut self, fields: impl IntoIterator<Item = FieldMatch>) {
        self.plan.encode_fields(fields, &mut self.values, &mut self.masks);
    }

    fn len(&self) -> usize {
        self.values.len() / self.plan.words()
    }
}

impl Case {
    fn new(
        name: &str,
        len: usize,
        engine: impl FnOnce() -> Engine,
        (library, methods): (&'static str, &'static [&'static str]),
    ) -> Self {
        let start = Instant::now();
        let engine = engine();
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        Self {
            name: name.to_owned(),
            library,
            methods,
            len,
            words: 0,
            keys: Vec::new(),
            file: Vec::new(),
            batches: &[32],
            turn: BURST,
            warm: false,
            bars: Vec::new(),
            build_ms,
            engine,
            dead: BitSet::new(len),
            rules: Vec::new(),
        }
    }

    /// A packet that has all fields is a row whose masks are full.
    fn keys_of(&mut self, plan: &KeyPlan, packets: impl Iterator<Item = Vec<FieldMatch>>) {
        self.words = plan.words();
        let mut masks = Vec::new();
        packets.for_each(|fields| plan.encode_fields(fields, &mut self.keys, &mut masks));
    }

    /// The rule of an entry.
    pub fn rule_of(&self, slot: u32) -> u32 {
        if slot == NONE { slot } else { self.rules.get(slot as usize).copied().unwrap_or(slot) }
    }

    /// Our engine's name.
    pub fn engine_name(&self) -> &'static str {
        match self.engine {
            Engine::Exact(_) => "exact",
            Engine::Lpm(_) | Engine::Foreign(_) => "lpm",
            _ => "mask",
        }
    }

    /// Bytes that our engine holds.
    pub fn bytes(&self) -> usize {
        match &self.engine {
            Engine::Exact(engine) => engine.bytes(),
            Engine::Lpm(engine) => engine.bytes(),
            Engine::Mask(engine) => engine.bytes(),
            Engine::Scan(engine) => engine.bytes(),
            Engine::Foreign(engine) => engine.bytes(),
        }
    }

    /// Looks keys up.
    #[inline]
    pub fn look_up(&self, keys: &[u64], slots: &mut [u32]) {
        match &self.engine {
            Engine::Exact(engine) => engine.lookup(keys, &self.dead, slots),
            Engine::Lpm(engine) => engine.lookup(keys, &self.dead, slots),
            Engine::Mask(engine) => engine.lookup(keys, &self.dead, slots),
            Engine::Scan(engine) => engine.lookup(keys, &self.dead, slots),
            Engine::Foreign(engine) => engine.lookup(keys, &self.dead, slots),
        }
    }
}

fn head(kind: u8, rules: usize, keys: usize) -> Vec<u8> {
    [u32::from(kind), rules as u32, keys as u32].into_iter().flat_map(u32::to_le_bytes).collect()
}

fn ether_type(version: u8) -> FieldMatch {
    FieldMatch::exact(Field::EthType, if version == 6 { 0x86dd } else { 0x0800 })
}

/// `EtherType`, addresses, protocol, ports as slices: OpenFlow's fields for ports cannot be masked.
fn tuple_fields(version: u8) -> Result<[Field; 6], Box<dyn Error>> {
    let [source, destination] =
        if version == 6 { [Field::Ipv6Src, Field::Ipv6Dst] } else { [Field::Ipv4Src, Field::Ipv4Dst] };
    let port = |offset| Slice::new(SliceBase::L4, offset, 16).map(Field::Slice);
    Ok([Field::EthType, source, destination, Field::IpProto, port(0)?, port(16)?])
}

fn exact_fields(fields: &[Field; 6], version: u8, packet: &FiveTuple) -> Vec<FieldMatch> {
    let [source, destination] = packet.addresses;
    let [from, to] = packet.ports.map(u128::from);
    let values = [source, destination, packet.protocol.into(), from, to];
    let others = fields[1..].iter().zip(values).map(|(&field, value)| FieldMatch::exact(field, value));
    [ether_type(version)].into_iter().chain(others).collect()
}
