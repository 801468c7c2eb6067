// SPDX-License-Identifier: Apache-2.0
//! Table engines compared on the same rules and packets: `mask` with `scan` on access lists, `lpm` with
//! `mask` and (for up to 1,000 routes) with `scan` on routes. Also measures build time and memory. The choice
//! of engine is based on these figures (docs/adr/0011).

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use engines::base::Engine;
use engines::lpm::{Lpm, Piece};
use engines::mask::Mask;
use engines::scan::Scan;
use engines::{BitSet, KeyPlan};
use fastrand::Rng;
use flow::{EntryId, Field, FlowEntry, Instructions, Match, TableId};
use packet::Packet;
use shunt_bench::{
    Alone, Bar, Comparison, Figure, Loop, Plan, ThreadCpu, allowed_cpus, compare, measure, median, pin_to,
    whole,
};
use tables::rule_table::RuleChange;
use tables::{RuleTable, Table, TableUpdate};

#[path = "../../../crates/engines/tests/engines/packet.rs"]
mod packet;
#[path = "../../../crates/engines/tests/engines/sets.rs"]
mod sets;

/// Number of distinct keys, looked up 32 at a time. The keys and a large table's data exceed the CPU caches.
const KEYS: usize = 100_000;
const BURST: usize = 32;
/// Number of updates timed together, because reading a thread's clock takes longer than one update.
const UPDATES: usize = 32;

/// Measures the engines; writes target/report/engines.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only cases whose names begin with this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Windows, or pairs of windows, per figure.
    #[arg(long, default_value_t = 60)]
    windows: usize,
}

/// Rules in order of precedence, each with its row.
struct Rules {
    plan: KeyPlan,
    len: usize,
    values: Vec<u64>,
    masks: Vec<u64>,
    keys: Vec<u64>,
}

impl Rules {
    fn new(matches: &[Match]) -> Result<Self, Box<dyn Error>> {
        let mut fields: Vec<Field> = matches.iter().flat_map(|m| m.fields().map(|c| c.field)).collect();
        fields.sort_unstable();
        fields.dedup();
        let plan = KeyPlan::new(&fields)?;
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        matches.iter().for_each(|m| plan.encode(m, &mut values, &mut masks));
        let mut rng = Rng::with_seed(1);
        let keys = (0..KEYS)
            .flat_map(|_| {
                let rule = &matches[rng.usize(..matches.len())];
                Packet::matching(&mut rng, rule).key(&plan)
            })
            .collect();
        Ok(Self { plan, len: matches.len(), values, masks, keys })
    }

    fn scan(&self) -> Engine {
        Engine::Scan(Scan::new(self.plan.words(), self.len, &self.values, &self.masks))
    }

    fn mask(&self) -> Engine {
        Engine::Mask(Mask::new(&self.plan, self.len, &self.values, &self.masks))
    }

    fn lpm(&self, field: Field) -> Engine {
        let pieces = Piece::of_field(&self.plan, field);
        Engine::Lpm(Lpm::new(self.plan.words(), &pieces, self.len, &self.values, &self.masks))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    for set in ["acl1", "fw1", "ipc1"] {
        for (size, file) in [(16, "1k"), (32, "1k"), (64, "1k"), (100, "1k"), (1_000, "1k"), (10_000, "10k")]
        {
            access_list(&arguments, set, size, &format!("{set}_{file}.rules"))?;
        }
        access_list(&arguments, set, 100_000, &format!("{set}_100k.gen.rules"))?;
    }
    for file in ["acl1_100k.gen.rules", "fw1_100k.gen.rules"] {
        one_by_one(&arguments, file)?;
        half_full_delta(&arguments, file)?;
    }
    for (name, field) in [("ipv4", Field::Ipv4Dst), ("ipv6", Field::Ipv6Dst)] {
        for size in [16, 32, 64, 1_000, usize::MAX] {
            routes(&arguments, name, field, size)?;
        }
    }
    Ok(())
}

/// Measures `size` rules, evenly spread over a list.
fn access_list(arguments: &Arguments, set: &str, size: usize, file: &str) -> Result<(), Box<dyn Error>> {
    let case = format!("{set}, {size} rules");
    if !case.starts_with(&arguments.case) {
        return Ok(());
    }
    let Some(text) = whole(&format!("classbench/{file}.gz"))?.or_else(|| sample(&format!("{set}.rules")))
    else {
        return Err("no rule sets were found".into());
    };
    let list = sets::access_list(&text);
    let step = (list.len() / size).max(1);
    let matches: Vec<Match> = list.into_iter().step_by(step).take(size).flatten().collect();
    let rules = Rules::new(&matches)?;
    let case = format!("{case} ({} entries)", rules.len);
    let mask = built("mask", &case, rules.len, || rules.mask())?;
    if rules.len > 20_000 {
        return alone(arguments, &case, &rules, "mask", &mask);
    }
    let scan = built("scan", &case, rules.len, || rules.scan())?;
    against(arguments, &case, &rules, ("mask", &mask), ("scan", &scan))
}

/// Adds the rules of a list one by one, in random order, to a table with one worker. Measures the control
/// thread's time per rule, including compilation, and the time for which an update interrupts the worker.
fn one_by_one(arguments: &Arguments, file: &str) -> Result<(), Box<dyn Error>> {
    let Some(text) = whole(&format!("classbench/{file}.gz"))?.or_else(|| sample("acl1.rules")) else {
        return Err("no rule sets were found".into());
    };
    let mut matches: Vec<Match> = sets::access_list(&text).into_iter().flatten().take(100_000).collect();
    let case = format!("one by one, {} entries of {file}", matches.len());
    if !case.starts_with(&arguments.case) {
        return Ok(());
    }
    let mut rng = Rng::with_seed(1);
    rng.shuffle(&mut matches);
    let (mut per_rule_us, mut mean_us, mut tail_us, mut swaps) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for _ in 0..3 {
        let (mut rule_table, mut view) = (RuleTable::default(), Table::default());
        let mut control = Duration::ZERO;
        let (mut waiting, mut batches_ns) = (Vec::with_capacity(UPDATES), Vec::new());
        swaps = 0;
        for (id, matching) in (0..).zip(&matches) {
            let entry = Arc::new(entry(id, rng.u16(..), matching.clone()));
            let start = ThreadCpu::now();
            let updates = rule_table.change(&[RuleChange::Add(entry)], 1, 1)?;
            control += Duration::from_nanos(start.elapsed_ns());
            for update in updates.into_iter().flatten() {
                swaps += usize::from(matches!(update, TableUpdate::Swap(_)));
                waiting.push(update);
            }
            if waiting.len() >= UPDATES {
                let start = ThreadCpu::now();
                waiting.iter_mut().for_each(|update| view.apply(update));
                batches_ns.push(start.elapsed_ns() as f64 / waiting.len() as f64);
                waiting.clear();
            }
        }
        per_rule_us.push(control.as_secs_f64() * 1e6 / matches.len() as f64);
        mean_us.push(batches_ns.iter().sum::<f64>() / batches_ns.len() as f64 / 1e3);
        batches_ns.sort_unstable_by(f64::total_cmp);
        tail_us.push(batches_ns[batches_ns.len() - 1 - batches_ns.len() / 1_000] / 1e3);
    }
    writeln!(io::stdout(), "{case}: compiled {swaps} times")?;
    row("add a rule, control thread", &case, "us", &per_rule_us)?;
    row("apply an update, worker, batches of 32", &case, "us", &mean_us)?;
    row("apply an update, worker, batches of 32, p99.9", &case, "us", &tail_us)
}

/// Compares lookups in a table whose delta is half full with lookups in a compiled table of the same rules.
/// The table has 100,000 rules in random order. The last ninth of them is added one by one and fills half of
/// the delta.
fn half_full_delta(arguments: &Arguments, file: &str) -> Result<(), Box<dyn Error>> {
    let Some(text) = whole(&format!("classbench/{file}.gz"))?.or_else(|| sample("acl1.rules")) else {
        return Err("no rule sets were found".into());
    };
    let mut matches: Vec<Match> = sets::access_list(&text).into_iter().flatten().take(100_000).collect();
    let mut rng = Rng::with_seed(1);
    rng.shuffle(&mut matches);
    let case = format!("half-full head, {} entries of {file}", matches.len());
    if !case.starts_with(&arguments.case) {
        return Ok(());
    }
    let rules = Rules::new(&matches)?;
    let adds: Vec<RuleChange> = (0..)
        .zip(&matches)
        .map(|(id, matching)| RuleChange::Add(Arc::new(entry(id, rng.u16(..), matching.clone()))))
        .collect();
    let (first, last) = adds.split_at(adds.len() - adds.len() / 9);
    let (mut partly, mut compiled) = (Table::default(), Table::default());
    let mut rule_table = RuleTable::default();
    let mut all = rule_table.change(first, first.len(), 1)?;
    for add in last {
        let updates = rule_table.change(std::slice::from_ref(add), 1, 1)?;
        if updates.iter().flatten().any(|update| matches!(update, TableUpdate::Swap(_))) {
            return Err("the delta is full, although it should be half full".into());
        }
        all.extend(updates);
    }
    all.iter_mut().flatten().for_each(|update| partly.apply(update));
    RuleTable::default()
        .change(&adds, adds.len(), 1)?
        .iter_mut()
        .flatten()
        .for_each(|update| compiled.apply(update));
    if *partly.plan() != rules.plan || *compiled.plan() != rules.plan {
        return Err("the plan of a table differs from the plan by which the keys were encoded".into());
    }
    let plan = Plan { attempts_max: 20 * arguments.windows, ..Plan::new(arguments.windows) };
    let found = compare(&plan, &mut table_lookups(&rules, &partly), &mut table_lookups(&rules, &compiled))?;
    let figure = Figure::new("lookup, half-full head by none", &case, "M/CPU-s", &found, Bar::AtLeast(1.0));
    // The figure is reported without a verdict.
    Figure { bar: None, verdict: None, ..figure }.append(Path::new("target/report"), "engines")?;
    print(&case, "lookup", &found)
}

fn table_lookups<'t>(rules: &'t Rules, table: &'t Table) -> Loop<impl FnMut() -> u64 + 't> {
    let mut ids = [EntryId::NONE; BURST];
    let mut bursts = rules.keys.chunks_exact(BURST * rules.plan.words()).cycle();
    let lookup = move || {
        if let Some(keys) = bursts.next() {
            table.lookup(keys, black_box(&mut ids));
        }
        BURST as u64
    };
    Loop::new(64, lookup).gap_limit(Duration::from_micros(200))
}

fn entry(id: u32, priority: u16, matching: Match) -> FlowEntry {
    FlowEntry {
        id: EntryId(id),
        table: TableId(0),
        priority,
        matching,
        instructions: Instructions::default().into(),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: flow::EntryFlags::default(),
        low_latency: false,
    }
}

/// Measures `size` routes, evenly spread over a routing table.
fn routes(arguments: &Arguments, name: &str, field: Field, size: usize) -> Result<(), Box<dyn Error>> {
    let Some(text) = whole(&format!("rib/{name}_full.txt.gz"))?.or_else(|| sample(&format!("{name}.txt")))
    else {
        return Err("no routes were found".into());
    };
    let mut matches = sets::routes(&text);
    let step = (matches.len() / size).max(1);
    matches = matches.into_iter().step_by(step).take(size).collect();
    // Longest prefix first, because longer prefixes have higher priorities.
    matches.sort_by_key(|route| route.fields().last().map(|c| std::cmp::Reverse(c.mask.count_ones())));
    let case = format!("{name}, {} routes", matches.len());
    if !case.starts_with(&arguments.case) {
        return Ok(());
    }
    let rules = Rules::new(&matches)?;
    let lpm = built("lpm", &case, rules.len, || rules.lpm(field))?;
    if rules.len <= 1_000 {
        let scan = built("scan", &case, rules.len, || rules.scan())?;
        against(arguments, &case, &rules, ("lpm", &lpm), ("scan", &scan))?;
    }
    let mask = built("mask", &case, rules.len, || rules.mask())?;
    against(arguments, &case, &rules, ("lpm", &lpm), ("mask", &mask))
}

/// Builds an engine several times, and reports build time and memory.
fn built(name: &str, case: &str, rules: usize, build: impl Fn() -> Engine) -> Result<Engine, Box<dyn Error>> {
    let mut times = Vec::new();
    let mut engine = build();
    for _ in 0..if rules > 50_000 { 3 } else { 9 } {
        drop(engine);
        let start = Instant::now();
        engine = build();
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    row(&format!("build, {name}"), case, "ms", &times)?;
    row(&format!("memory, {name}"), case, "bytes/entry", &[bytes(&engine) as f64 / rules as f64])?;
    Ok(engine)
}

fn bytes(engine: &Engine) -> usize {
    match engine {
        Engine::Exact(engine) => engine.bytes(),
        Engine::Lpm(engine) => engine.bytes(),
        Engine::Mask(engine) => engine.bytes(),
        Engine::Scan(engine) => engine.bytes(),
        Engine::Foreign(engine) => engine.bytes(),
    }
}

fn row(figure: &str, case: &str, unit: &str, values: &[f64]) -> Result<(), Box<dyn Error>> {
    let found = Alone {
        median: median(values).ok_or("no values")?,
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        runs: values.len(),
        set_aside: 0,
    };
    Figure::alone(figure, case, unit, &found).append(Path::new("target/report"), "engines")?;
    writeln!(
        io::stdout(),
        "{case}: {figure} {:.3} {unit} ({:.3} to {:.3})",
        found.median,
        found.low,
        found.high
    )?;
    Ok(())
}

/// Looks up the keys in bursts, repeatedly.
fn lookups<'e>(rules: &'e Rules, engine: &'e Engine) -> Loop<impl FnMut() -> u64 + 'e> {
    let words = rules.plan.words();
    let dead = BitSet::new(rules.len);
    let mut slots = [0; BURST];
    let mut bursts = rules.keys.chunks_exact(BURST * words).cycle();
    let turns = (100_000 / rules.len).clamp(if rules.len > 20_000 { 64 } else { 4 }, 256) as u32;
    // In a large table, a burst may take long without preemption.
    let gap_limit = Duration::from_micros(50 + rules.len as u64 / 10);
    let lookup = move || {
        if let Some(keys) = bursts.next() {
            look_up(engine, keys, &dead, black_box(&mut slots));
        }
        BURST as u64
    };
    Loop::new(turns, lookup).gap_limit(gap_limit)
}

fn look_up(engine: &Engine, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
    match engine {
        Engine::Exact(engine) => engine.lookup(keys, dead, slots),
        Engine::Lpm(engine) => engine.lookup(keys, dead, slots),
        Engine::Mask(engine) => engine.lookup(keys, dead, slots),
        Engine::Scan(engine) => engine.lookup(keys, dead, slots),
        Engine::Foreign(engine) => engine.lookup(keys, dead, slots),
    }
}

fn alone(
    arguments: &Arguments,
    case: &str,
    rules: &Rules,
    name: &str,
    engine: &Engine,
) -> Result<(), Box<dyn Error>> {
    let found = measure(&Plan::new(arguments.windows), &mut lookups(rules, engine))?;
    let figure = format!("lookup, {name}");
    Figure::alone(&figure, case, "M/CPU-s", &found).append(Path::new("target/report"), "engines")?;
    writeln!(io::stdout(), "{case}: {figure} {:.2} M/CPU-s", found.median)?;
    Ok(())
}

fn against(
    arguments: &Arguments,
    case: &str,
    rules: &Rules,
    (ours_name, ours): (&str, &Engine),
    (peer_name, peer): (&str, &Engine),
) -> Result<(), Box<dyn Error>> {
    let dead = BitSet::new(rules.len);
    let (mut right, mut found) = (vec![0; 512], vec![0; 512]);
    let keys = &rules.keys[..512 * rules.plan.words()];
    look_up(ours, keys, &dead, &mut found);
    look_up(peer, keys, &dead, &mut right);
    if found != right {
        return Err(format!("{case}: {ours_name} and {peer_name} find different rules").into());
    }
    let plan = Plan { attempts_max: 20 * arguments.windows, ..Plan::new(arguments.windows) };
    let found = compare(&plan, &mut lookups(rules, ours), &mut lookups(rules, peer))?;
    let (figure, bar) = (format!("lookup, {ours_name} by {peer_name}"), Bar::AtLeast(1.0));
    Figure::new(&figure, case, "M/CPU-s", &found, bar).append(Path::new("target/report"), "engines")?;
    print(case, &figure, &found)
}

/// Prints a result.
fn print(case: &str, figure: &str, found: &Comparison) -> Result<(), Box<dyn Error>> {
    writeln!(
        io::stdout(),
        "{case}: {figure} {:.2} and {:.2} M/CPU-s, ratio {:.2} ({:.2} to {:.2})",
        found.ours.median,
        found.peer.median,
        found.ratio,
        found.low,
        found.high
    )?;
    Ok(())
}

fn sample(name: &str) -> Option<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engines/tests/engines/data");
    std::fs::read_to_string(folder.join(name)).ok()
}
