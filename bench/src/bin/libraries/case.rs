// SPDX-License-Identifier: Apache-2.0
//! Table under test: Shunt's engine with its keys, and the same data for the program with the DPDK libraries.

use std::error::Error;
use std::time::Instant;

use engines::base::Engine;
use engines::{BitSet, KeyPlan, NONE};
use flow::{Field, FieldMatch, Slice, SliceBase};
use shunt_bench::Bar;
use shunt_bench::paper::FiveTuple;

pub mod access;
pub mod exact;
mod routes;

/// Number of keys per lookup.
pub const BURST: usize = 32;

/// Number of distinct keys.
const KEYS: usize = 100_000;

/// A table under test: Shunt's engine, the keys to look up, and the input of the library's program.
pub struct Case {
    /// Name of the case in the report.
    pub name: String,
    /// Name of the library, and its lookup methods.
    pub library: &'static str,
    pub methods: &'static [&'static str],
    /// Number of entries.
    pub len: usize,
    /// Number of words per key.
    pub words: usize,
    /// Keys, one after another.
    pub keys: Vec<u64>,
    /// Input of `bench/dpdk/libraries.c`.
    pub file: Vec<u8>,
    /// Numbers of keys per lookup that are measured.
    pub batches: &'static [usize],
    /// Number of keys between two clock readings.
    pub turn: usize,
    /// Whether all keys are looked up before a window, because the peer may have evicted them from the
    /// caches.
    pub warm: bool,
    /// Targets for the speed ratio to the library's fastest method, by the number of keys per lookup.
    pub bars: Vec<(usize, Bar)>,
    /// Build time of Shunt's engine in milliseconds.
    pub build_ms: f64,
    engine: Engine,
    dead: BitSet,
    /// Rule index of each entry. The list is empty if each entry is a separate rule.
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

    /// Sets the keys. A packet is encoded as a row with full masks.
    fn keys_of(&mut self, plan: &KeyPlan, packets: impl Iterator<Item = Vec<FieldMatch>>) {
        self.words = plan.words();
        let mut masks = Vec::new();
        packets.for_each(|fields| plan.encode_fields(fields, &mut self.keys, &mut masks));
    }

    /// Returns the rule of an entry.
    pub fn rule_of(&self, slot: u32) -> u32 {
        if slot == NONE { slot } else { self.rules.get(slot as usize).copied().unwrap_or(slot) }
    }

    /// Returns the name of Shunt's engine.
    pub fn engine_name(&self) -> &'static str {
        match self.engine {
            Engine::Exact(_) => "exact",
            Engine::Lpm(_) | Engine::Foreign(_) => "lpm",
            _ => "mask",
        }
    }

    /// Returns the memory of Shunt's engine in bytes.
    pub fn bytes(&self) -> usize {
        match &self.engine {
            Engine::Exact(engine) => engine.bytes(),
            Engine::Lpm(engine) => engine.bytes(),
            Engine::Mask(engine) => engine.bytes(),
            Engine::Scan(engine) => engine.bytes(),
            Engine::Foreign(engine) => engine.bytes(),
        }
    }

    /// Looks up keys.
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

/// Returns the fields `EtherType`, addresses, protocol and ports. Ports are slices, because OpenFlow's port
/// fields cannot be masked.
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
