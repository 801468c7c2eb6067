// SPDX-License-Identifier: Apache-2.0
//! Cost of the worst packets and the worst rules for a table.
//!
//! Packets: many packets near a table's rules are timed separately, and the slowest are compared with
//! ordinary traffic. An attacker would need the compiled table to find these packets. Tables are measured
//! with and without a full delta, many tombstones, or the largest delta and number of tombstones without
//! recompilation.
//!
//! Rules: 65,536 rules that are nested, match every packet, or are equal under every coarse mask are compared
//! with as many routes of a real table.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use compiled::packet::Packet;
use compiled::{BURST, Rule, compiled, entry, lookups, sets};
use fastrand::Rng;
use flow::{EntryId, Field, FieldMatch, FlowEntry, Match};
use shunt_bench::{Alone, Bar, Figure, Plan, allowed_cpus, compare, pin_to};
use tables::rule_table::RuleChange;
use tables::{RuleTable, Table};

#[path = "tables/compiled.rs"]
mod compiled;

/// Number of packets that are timed.
const DRAWN: usize = 64 * ATTACK;

/// Number of packets of the attack: the slowest of the timed packets.
const ATTACK: usize = 2_048;

/// Number of separate lookups of each packet. The shortest time counts.
const TRIES: usize = 5;

/// Number of deleted rules: slightly fewer than cause an immediate compilation of a small table.
const DEAD: usize = 1_000;

/// Minimum speed of a table under attack, relative to ordinary traffic.
const LEFT: f64 = 0.8;

/// Number of rules in the worst sets.
const RULES: usize = 65_536;

/// Writes target/report/worst.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only tables whose names contain this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Number of window pairs.
    #[arg(long, default_value_t = 100)]
    windows: usize,
}

/// Creates the rules of a table.
type Maker = fn() -> Result<Vec<Rule>, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    let attacked: [(&str, Maker); 8] = [
        ("acl1 of 1k", || compiled::access_list("acl1_1k")),
        ("acl1 of 10k", || compiled::access_list("acl1_10k")),
        ("fw1 of 10k", || compiled::access_list("fw1_10k")),
        ("ipc1 of 10k", || compiled::access_list("ipc1_10k")),
        ("IPv4 routes", || compiled::routes("ipv4")),
        ("IPv6 routes", || compiled::routes("ipv6")),
        ("65,536 pairs of MAC addresses", || compiled::exact(65_536)),
        ("64 rules of acl1", || {
            Ok(compiled::access_list("acl1_1k")?.into_iter().step_by(11).take(64).collect())
        }),
    ];
    let wanted = |name: &str| name.contains(&arguments.case);
    for (name, rules) in attacked.into_iter().filter(|(name, _)| wanted(name)) {
        Tried::new(name, rules()?)?.attacked(arguments.windows)?;
        Tried::at_rest(name, rules()?)?.attacked(arguments.windows)?;
        Tried::with_full_delta(name, rules()?)?.attacked(arguments.windows)?;
        Tried::with_dead(name, rules()?)?.attacked(arguments.windows)?;
    }
    let worst: [(&str, Maker); 4] = [
        ("one prefix inside the other, by chance over all lengths", nested_routes),
        ("one rule inside the other in four fields", nested_rules),
        ("all match everything", || Ok((0..RULES).map(|at| ((at % 60_000) as u16, Match::any())).collect())),
        ("equal under every coarse mask", alike),
    ];
    let ordinary = compiled::routes("ipv4")?;
    let step = (ordinary.len() / RULES).max(1);
    let ordinary = Tried::new("routes", ordinary.into_iter().step_by(step).take(RULES).collect())?;
    for (name, rules) in worst.into_iter().filter(|(name, _)| wanted(name)) {
        Tried::new(name, rules()?)?.beside(&ordinary, arguments.windows)?;
    }
    Ok(())
}

/// Table with its rules.
struct Tried {
    name: String,
    table: Table,
    /// Rules that are in the table.
    rules: Vec<Arc<FlowEntry>>,
    /// Rules that were deleted from the table.
    gone: Vec<Arc<FlowEntry>>,
    build_ms: f64,
    bytes: usize,
}

impl Tried {
    fn new(name: &str, rules: Vec<Rule>) -> Result<Self, Box<dyn Error>> {
        let rules: Vec<_> = (0..).zip(rules).map(|(id, rule)| entry(id, rule)).collect();
        let mut rule_table = RuleTable::default();
        let start = Instant::now();
        let table = compiled(&mut rule_table, &rules)?;
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        let name = format!("{name}: {} rules, {}", rules.len(), table.engine_name());
        Ok(Self { name, table, rules, gone: Vec::new(), build_ms, bytes: rule_table.base_bytes() })
    }

    /// Creates a table with the largest delta that does not cause the compilation of a new base.
    fn with_full_delta(name: &str, rules: Vec<Rule>) -> Result<Self, Box<dyn Error>> {
        let mut rules: Vec<_> = (0..).zip(rules).map(|(id, rule)| entry(id, rule)).collect();
        Rng::with_seed(5).shuffle(&mut rules);
        let part = 1 + rules.len() / 2;
        let fill = |count: usize| -> Result<(Table, usize), Box<dyn Error>> {
            let (base, added) = rules.split_at(part);
            let mut rule_table = RuleTable::default();
            let mut table = compiled(&mut rule_table, base)?;
            for (count, rule) in added.iter().enumerate().take(count) {
                let updates = rule_table.change(&[RuleChange::Add(Arc::clone(rule))], 1, 1)?;
                if rule_table.compiled() > 1 {
                    return Ok((table, count));
                }
                updates.into_iter().flatten().for_each(|mut update| table.apply(&mut update));
            }
            Ok((table, added.len().min(count)))
        };
        let (_, room) = fill(usize::MAX)?;
        let (table, _) = fill(room)?;
        rules.truncate(part + room);
        let name = format!("{name}: {part} rules and a head of {room}, {}", table.engine_name());
        Ok(Self { name, table, rules, gone: Vec::new(), build_ms: 0.0, bytes: 0 })
    }

    /// Creates a table in which as many rules were replaced as possible without a background compilation.
    fn at_rest(name: &str, rules: Vec<Rule>) -> Result<Self, Box<dyn Error>> {
        let mut rules: Vec<_> = (0..).zip(rules).map(|(id, rule)| entry(id, rule)).collect();
        Rng::with_seed(7).shuffle(&mut rules);
        let mut spare = rules.split_off(rules.len() - rules.len() / 8);
        let mut rule_table = RuleTable::default();
        let mut table = compiled(&mut rule_table, &rules)?;
        let (mut gone, least) = (Vec::new(), worker::BACKGROUND_ADDITIONS_MIN.min(rules.len() / 4));
        while let Some(added) = spare.pop() {
            // The job is requested but not run.
            if rule_table.background_job(least).is_some() {
                break;
            }
            let removed = std::mem::replace(&mut rules[gone.len()], added);
            let changes = [RuleChange::Remove(removed.id), RuleChange::Add(Arc::clone(&rules[gone.len()]))];
            let updates = rule_table.change(&changes, 1, 1)?;
            updates.into_iter().flatten().for_each(|mut update| table.apply(&mut update));
            gone.push(removed);
        }
        let name = format!(
            "{name}: {} rules, {} of them added, and as many dead, {}",
            rules.len(),
            gone.len(),
            table.engine_name()
        );
        Ok(Self { name, table, rules, gone, build_ms: 0.0, bytes: 0 })
    }

    /// Creates a table from which [`DEAD`] rules were deleted, but at most half of all rules.
    fn with_dead(name: &str, rules: Vec<Rule>) -> Result<Self, Box<dyn Error>> {
        let mut rules: Vec<_> = (0..).zip(rules).map(|(id, rule)| entry(id, rule)).collect();
        let mut rule_table = RuleTable::default();
        let mut table = compiled(&mut rule_table, &rules)?;
        Rng::with_seed(6).shuffle(&mut rules);
        let gone = rules.split_off(rules.len() - DEAD.min(rules.len() / 2));
        for rule in &gone {
            let updates = rule_table.change(&[RuleChange::Remove(rule.id)], 1, 1)?;
            updates.into_iter().flatten().for_each(|mut update| table.apply(&mut update));
        }
        if rule_table.compiled() > 1 {
            return Err("the deleted rules caused a new base".into());
        }
        let name = format!("{name}: {} rules and {} dead, {}", rules.len(), gone.len(), table.engine_name());
        Ok(Self { name, table, rules, gone, build_ms: 0.0, bytes: 0 })
    }

    /// Returns a packet of ordinary traffic.
    fn ordinary(&self, rng: &mut Rng) -> Vec<u64> {
        let rule = &self.rules[rng.usize(..self.rules.len())];
        Packet::matching(rng, &rule.matching).key(self.table.plan())
    }

    /// Returns a packet that is likely to be expensive: it combines fields of two rules, has one bit changed,
    /// or matches a deleted rule. Some packets are ordinary.
    fn crafted(&self, rng: &mut Rng) -> Vec<u64> {
        let mut key = match rng.choice(&self.gone).filter(|_| rng.bool()) {
            Some(gone) => Packet::matching(rng, &gone.matching).key(self.table.plan()),
            None => self.ordinary(rng),
        };
        match rng.u8(..3) {
            0 if !key.is_empty() => {
                let other = self.ordinary(rng);
                for (word, other) in key.iter_mut().zip(other) {
                    let taken =
                        [0, u64::MAX, 0xffff_ffff, u64::MAX << 32, 0xffff_0000_0000_ffff][rng.usize(..5)];
                    *word = *word & !taken | other & taken;
                }
            }
            1 if !key.is_empty() => {
                let word = rng.usize(..key.len());
                key[word] ^= 1 << rng.u32(..64);
            }
            _ => {}
        }
        key
    }

    /// Returns the slowest of many packets, each timed separately.
    fn attack(&self, rng: &mut Rng) -> Vec<u64> {
        let mut ids = [EntryId::NONE; BURST];
        let mut timed: Vec<(u128, Vec<u64>)> = (0..DRAWN)
            .map(|_| {
                let key = self.crafted(rng);
                let keys = key.repeat(BURST);
                let took = || {
                    let start = Instant::now();
                    self.table.lookup(black_box(&keys), black_box(&mut ids));
                    start.elapsed().as_nanos()
                };
                (std::iter::repeat_with(took).take(TRIES).min().unwrap_or(0), key)
            })
            .collect();
        timed.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        let mut slowest: Vec<Vec<u64>> = timed.into_iter().take(ATTACK).map(|(_, key)| key).collect();
        rng.shuffle(&mut slowest);
        slowest.concat()
    }

    /// Compares lookups of the attack with lookups of ordinary traffic.
    fn attacked(&self, windows: usize) -> Result<(), Box<dyn Error>> {
        let mut rng = Rng::with_seed(1);
        let attack = self.attack(&mut rng);
        let ordinary = (0..ATTACK).map(|_| self.ordinary(&mut rng)).collect::<Vec<_>>().concat();
        let plan = Plan { attempts_max: 20 * windows, ..Plan::new(windows) };
        let found = compare(&plan, &mut lookups(&self.table, &attack), &mut lookups(&self.table, &ordinary))?;
        Figure::new("slowest packets by ordinary ones", &self.name, "M/CPU-s", &found, Bar::AtLeast(LEFT))
            .append(Path::new("target/report"), "worst")?;
        writeln!(
            io::stdout(),
            "{}: slowest packets {:.1}, ordinary ones {:.1} M/CPU-s, ratio {:.2} ({:.2} to {:.2})",
            self.name,
            found.ours.median,
            found.peer.median,
            found.ratio,
            found.low,
            found.high
        )?;
        Ok(())
    }

    /// Compares lookups of packets that match these rules with lookups in another table.
    fn beside(&self, other: &Self, windows: usize) -> Result<(), Box<dyn Error>> {
        let mut rng = Rng::with_seed(2);
        let mut keys = |of: &Self| (0..ATTACK).map(|_| of.ordinary(&mut rng)).collect::<Vec<_>>().concat();
        let (own, others) = (keys(self), keys(other));
        let plan = Plan { attempts_max: 20 * windows, ..Plan::new(windows) };
        let found = compare(&plan, &mut lookups(&self.table, &own), &mut lookups(&other.table, &others))?;
        let folder = Path::new("target/report");
        Figure::beside("worst rules by as many routes", &self.name, "M/CPU-s", &found)
            .append(folder, "worst")?;
        for (what, value, unit) in [
            ("memory", self.bytes as f64 / self.rules.len() as f64, "bytes/rule"),
            ("build", self.build_ms, "ms"),
        ] {
            let found = Alone { median: value, low: value, high: value, runs: 1, set_aside: 0 };
            Figure::alone(&format!("{what}, worst rules"), &self.name, unit, &found)
                .append(folder, "worst")?;
        }
        writeln!(
            io::stdout(),
            "{}: {:.1}, routes {:.1} M/CPU-s, ratio {:.2} ({:.2} to {:.2}); {:.0} bytes a rule, built in {:.0} ms",
            self.name,
            found.ours.median,
            found.peer.median,
            found.ratio,
            found.low,
            found.high,
            self.bytes as f64 / self.rules.len() as f64,
            self.build_ms
        )?;
        Ok(())
    }
}

fn prefix(field: Field, value: u128, length: u32) -> FieldMatch {
    let bits = u32::from(field.location().length_bits);
    let mask = if length == 0 { 0 } else { field.full_mask() >> (bits - length) << (bits - length) };
    FieldMatch { field, value: value & mask, mask }
}

/// Returns prefixes of all lengths around a few addresses, so that each prefix is nested in many others.
fn nested_routes() -> Result<Vec<Rule>, Box<dyn Error>> {
    let mut rng = Rng::with_seed(3);
    let centers: Vec<u128> = (0..RULES / 100).map(|_| rng.u128(..)).collect();
    let route = |_| {
        let (length, near) = (rng.u32(1..=128), centers[rng.usize(..centers.len())]);
        let ether_type = FieldMatch::exact(Field::EthType, 0x86dd);
        Ok((length as u16, Match::new([ether_type, prefix(Field::Ipv6Dst, near, length)])?))
    };
    (0..RULES).map(route).collect()
}

/// Returns prefixes around one packet in four fields, in random order.
fn nested_rules() -> Result<Vec<Rule>, Box<dyn Error>> {
    let mut rng = Rng::with_seed(4);
    let [from, to] = sets::ports().ok_or("ports can be slices")?;
    let rule = |_| {
        let near = [
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::IpProto, 6),
            prefix(Field::Ipv4Src, 0x0a0a_0a0a, rng.u32(..=32)),
            prefix(Field::Ipv4Dst, 0x0b0b_0b0b, rng.u32(..=32)),
            prefix(from, 80, rng.u32(..=16)),
            prefix(to, 443, rng.u32(..=16)),
        ];
        Ok((rng.u16(..), Match::new(near)?))
    };
    (0..RULES).map(rule).collect()
}

/// Returns a condition on some of the last twelve bits of a port field.
fn some_bits(field: Field, rng: &mut Rng) -> FieldMatch {
    let mask = rng.u128(1..1 << 12);
    FieldMatch { field, value: rng.u128(..) & mask, mask }
}

/// Returns rules that are equal in the bits of all coarse masks, and differ in other bits.
fn alike() -> Result<Vec<Rule>, Box<dyn Error>> {
    let mut rng = Rng::with_seed(5);
    let [from, to] = sets::ports().ok_or("ports can be slices")?;
    let rule = |_| {
        let near = [
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::IpProto, 17),
            prefix(Field::Ipv4Src, 0x0a00_0000, 8),
            some_bits(from, &mut rng),
            some_bits(to, &mut rng),
        ];
        Ok((rng.u16(..), Match::new(near)?))
    };
    (0..RULES).map(rule).collect()
}
