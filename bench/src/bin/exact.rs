// SPDX-License-Identifier: Apache-2.0
//! Speed of engine `exact` when an attacker who knows its code, but not its hash seed, chooses packets and
//! rules. The peer looks up random packets with the same rules. Also measures build time and memory.

use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Parser;
use engines::BitSet;
use engines::exact::Exact;
use engines::hash::Seed;
use engines::hash::simd::Aes;
use fastrand::Rng;
use shunt_bench::{Alone, Bar, Contender, Figure, Loop, Plan, allowed_cpus, compare, pin_to};

const BURST: usize = 32;

/// Number of keys between two clock readings.
const TURN: usize = 256;

/// An iteration that takes longer counts as preempted.
const GAP_LIMIT: Duration = Duration::from_micros(100);

/// Minimum speed under attack traffic, relative to random packets.
const BAR: Bar = Bar::AtLeast(0.8);

/// Measures the engine; writes target/report/exact.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only cases whose names begin with this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Pairs of windows per figure.
    #[arg(long, default_value_t = 60)]
    windows: usize,
    /// Number of rules.
    #[arg(long, default_value_t = 65_536)]
    rules: usize,
}

/// Rules of an engine. All rows have the same first word.
struct Rules {
    name: String,
    words: usize,
    rows: Vec<u64>,
    engine: Exact,
}

const ALIKE: u64 = 0x0800;

impl Rules {
    fn new(kind: &str, words: usize, count: usize) -> Result<Self, Box<dyn Error>> {
        let mut rng = Rng::with_seed(1);
        let mut seen = HashSet::new();
        let guess = Seed::of_number(7);
        let aes = Aes::new(guess);
        let mut next = 0;
        let mut rows = Vec::with_capacity(count * (words + 1));
        while seen.len() < count {
            next += 1;
            let mut row: Vec<u64> = match kind {
                "sequential" => (0..words as u64).map(|word| if word == 0 { next } else { 5 }).collect(),
                "structured" => (0..words as u64).map(|word| next << (8 * word)).collect(),
                _ => (0..words).map(|_| rng.u64(..)).collect(),
            };
            // With the guessed seed, all values would fall into one of 16 parts of the table.
            let hash = aes.as_ref().map_or_else(|| guess.hash_masked(&row), |aes| aes.hash(&row));
            if kind == "crafted" && hash & 0xf000_0000 != 0 {
                continue;
            }
            row.insert(0, ALIKE);
            if seen.insert(row.clone()) {
                rows.extend(row);
            }
        }
        let name = format!("{count} {kind} rules of {} bytes", (words + 1) * 8);
        let mask = vec![u64::MAX; words + 1];
        let values = rows.clone();
        let start = Instant::now();
        let engine = Exact::new(words + 1, &mask, values, count, count);
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        let bytes = engine.bytes() as f64 / count as f64;
        for (what, value, unit) in [("build", build_ms, "ms"), ("memory", bytes, "bytes a rule")] {
            let found = Alone { median: value, low: value, high: value, runs: 1, set_aside: 0 };
            Figure::alone(what, &name, unit, &found).append(Path::new("target/report"), "exact")?;
        }
        writeln!(
            io::stdout(),
            "{name}: built in {build_ms:.1} ms, {bytes:.1} bytes a rule, {} spilled",
            engine.spilled()
        )?;
        Ok(Self { name, words: words + 1, rows, engine })
    }

    /// Returns the packets of one kind of traffic, as many as there are rules.
    fn traffic(&self, kind: &str) -> Vec<u64> {
        let mut rng = Rng::with_seed(2);
        let count = self.rows.len() / self.words;
        let mut keys = Vec::with_capacity(self.rows.len());
        for at in 0..count {
            let drawn = if kind == "rules in turn" { at } else { rng.usize(..count) };
            let mut row = self.rows[drawn * self.words..][..self.words].to_vec();
            match kind {
                "values near those of rules" => row[1 + at % (self.words - 1)] ^= 1 << rng.u32(..64),
                "random values" => row[1..].iter_mut().for_each(|word| *word = rng.u64(..)),
                "other packets" => row[0] ^= 1 << rng.u32(..64),
                "other packets among others" if rng.bool() => row[0] ^= 1 << rng.u32(..64),
                "unknown values among others" if rng.bool() => row[1] ^= 1 << rng.u32(..64),
                _ => {}
            }
            keys.extend(row);
        }
        keys
    }

    /// Creates a contender that looks up the keys, after a warm-up of the caches.
    fn lookups<'k>(&'k self, keys: &'k [u64], turns: u32) -> impl Contender + 'k {
        let dead = BitSet::new(self.rows.len() / self.words);
        let mut slots = [0; BURST];
        let mut bursts = keys.chunks_exact(BURST * self.words).cycle();
        let mut look_on = move |count: usize| {
            for keys in bursts.by_ref().take(count / BURST) {
                self.engine.lookup(keys, &dead, black_box(&mut slots));
            }
            count as u64
        };
        move || {
            look_on(keys.len() / self.words);
            Loop::new(turns, || look_on(TURN)).gap_limit(GAP_LIMIT).window()
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    pin_to(*allowed_cpus()?.last().ok_or("no CPU is allowed")?)?;
    let plan = Plan { attempts_max: 20 * arguments.windows, ..Plan::new(arguments.windows) };
    for words in [2, 5] {
        let random = Rules::new("random", words, arguments.rules)?;
        for kind in ["random", "sequential", "structured", "crafted"] {
            let rules = Rules::new(kind, words, arguments.rules)?;
            if !rules.name.starts_with(&arguments.case) {
                continue;
            }
            let usual = rules.traffic("random packets");
            if kind != "random" {
                let others = random.traffic("random packets");
                let found =
                    compare(&plan, &mut rules.lookups(&usual, 200), &mut random.lookups(&others, 200))?;
                tell(&rules.name, "random packets by those of random rules", &found)?;
            }
            for traffic in [
                "rules in turn",
                "random values",
                "values near those of rules",
                "unknown values among others",
                "other packets",
                "other packets among others",
            ] {
                let hostile = rules.traffic(traffic);
                let found =
                    compare(&plan, &mut rules.lookups(&hostile, 200), &mut rules.lookups(&usual, 200))?;
                tell(&rules.name, &format!("{traffic} by random packets"), &found)?;
            }
        }
    }
    for count in [100_000, 1_000_000] {
        for words in [1, 2, 3, 5] {
            Rules::new("random", words, count)?;
        }
    }
    Ok(())
}

fn tell(case: &str, what: &str, found: &shunt_bench::Comparison) -> Result<(), Box<dyn Error>> {
    let figure = Figure::new(what, case, "M/CPU-s", found, BAR);
    figure.append(Path::new("target/report"), "exact")?;
    writeln!(
        io::stdout(),
        "{case}: {what} {:.1} and {:.1} M/CPU-s, ratio {:.2} ({:.2} to {:.2}), {:?}",
        found.ours.median,
        found.peer.median,
        found.ratio,
        found.low,
        found.high,
        found.verdict(BAR)
    )?;
    Ok(())
}
