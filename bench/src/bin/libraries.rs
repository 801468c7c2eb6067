// SPDX-License-Identifier: Apache-2.0
//! Shunt's table engines compared with the DPDK libraries on the same rules and keys, for up to 32 keys at a
//! time: `mask` with `rte_acl`, `lpm` with `rte_fib` and `rte_fib6`, `exact` with `rte_hash`. The libraries
//! may use 512-bit vectors. They have no counters and no updates under traffic; for prefixes, they have no
//! priorities.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use case::{BURST, Case};
use clap::Parser;
use peer::{Memory, Peer};
use shunt_bench::{
    Alone, Contender, Figure, Loop, Measure, Plan, allowed_cpus, compare, measure, pin_to, read_text, whole,
};

#[path = "libraries/case.rs"]
mod case;
#[path = "paper/peer.rs"]
mod peer;

/// Number of keys for which both results are compared before the measurement.
const CHECKED: usize = 4_096;

/// An iteration that takes longer counts as preempted. The slowest table needs a few tens of microseconds.
const GAP_LIMIT: Duration = Duration::from_micros(100);

/// Targets for the geometric means over all lists, by the number of keys per lookup.
const MEANS: [(&str, f64); 3] = [("lookup", 1.2), ("lookup of 8", 2.0), ("lookup of 1", 2.0)];
const MEANS_OF: &str = "mask by rte_acl avx512";

/// Measures the engines against the libraries; writes target/report/libraries.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only cases whose names begin with this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Pairs of windows per figure.
    #[arg(long, default_value_t = 100)]
    windows: usize,
    /// Skip tables of medium size, and lists of 100,000 rules, which take the library minutes to build.
    #[arg(long)]
    quick: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let program = peer::compile()?;
    if program.is_none() {
        writeln!(io::stderr(), "libraries: {}", peer::MISSING)?;
    }
    let memory = Memory::best();
    if memory == Memory::Ordinary {
        writeln!(
            io::stderr(),
            "libraries: too few huge pages are free, so the libraries use ordinary pages"
        )?;
    }
    let cpu = *allowed_cpus()?.last().ok_or("no CPU is allowed")?;
    pin_to(cpu)?;
    let bench = Bench { arguments, program, memory, cpu, ratios: RefCell::default() };
    for (list, size, file) in case::access::LISTS {
        if bench.arguments.quick && *size == "100k" {
            continue;
        }
        let Some(text) = whole(&format!("classbench/{list}_{file}.rules.gz"))? else { continue };
        for version in [4, 6] {
            bench.run(&format!("{list} of {size}, IPv{version}"), |name| {
                Case::access_list(name, &text, version)
            })?;
        }
    }
    if whole("classbench/acl1_1k.rules.gz")?.is_none() {
        let text = sample("acl1.rules")?;
        bench.run("acl1, a sample, IPv4", |name| Case::access_list(name, &text, 4))?;
    }
    bench.means()?;
    for version in [4, 6] {
        let text = whole(&format!("rib/ipv{version}_full.txt.gz"))?;
        let text = text.map_or_else(|| sample(&format!("ipv{version}.txt")), Ok)?;
        let sizes: &[usize] = if bench.arguments.quick { &[] } else { &[1_000, 10_000, 100_000] };
        for &size in sizes {
            bench.run(&format!("{size} routes, IPv{version}"), |name| {
                Case::routes(name, &text, version, size, false)
            })?;
        }
        bench.run(&format!("all routes, IPv{version}"), |name| {
            Case::routes(name, &text, version, usize::MAX, false)
        })?;
        bench.run(&format!("all routes to 256 next hops, IPv{version}"), |name| {
            Case::routes(name, &text, version, usize::MAX, true)
        })?;
    }
    for layout in case::exact::LAYOUTS {
        let sizes: &[usize] =
            if bench.arguments.quick { &[65_536, 1_048_576] } else { &[1_000, 65_536, 1_048_576] };
        for &size in sizes {
            bench.run(&format!("{size} {}", layout.name), |name| Case::exact(name, layout, size))?;
        }
    }
    Ok(())
}

fn sample(name: &str) -> Result<String, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engines/tests/engines/data");
    Ok(read_text(&folder.join(name))?)
}

/// Measurement settings.
struct Bench {
    arguments: Arguments,
    program: Option<PathBuf>,
    memory: Memory,
    cpu: usize,
    /// Ratios of the cases measured so far, by figure: the median and the two ends of its interval.
    ratios: RefCell<BTreeMap<String, Vec<[f64; 3]>>>,
}

impl Bench {
    fn run(
        &self,
        name: &str,
        make: impl FnOnce(&str) -> Result<Case, Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        if !name.starts_with(&self.arguments.case) {
            return Ok(());
        }
        let case = make(name)?;
        self.report(&case)?;
        let Some(program) = &self.program else { return self.alone(&case) };
        let path = std::env::temp_dir().join(format!("shunt-libraries-{}", std::process::id()));
        let peer = std::fs::write(&path, &case.file)
            .map_err(Box::from)
            .and_then(|()| Peer::new(program, self.cpu, &path, self.memory));
        std::fs::remove_file(&path)?;
        let mut peer = match peer {
            Ok(peer) => peer,
            Err(error) => {
                writeln!(
                    io::stdout(),
                    "{name}: {} was not built in 5 minutes, or failed: {error}",
                    case.library
                )?;
                return self.alone(&case);
            }
        };
        writeln!(io::stdout(), "{name}: the library built its table in {:.0} ms", peer.build_ms)?;
        let mut ours = Vec::new();
        for keys in case.keys.chunks_exact(BURST * case.words).take(CHECKED / BURST) {
            let mut slots = [0; BURST];
            case.look_up(keys, &mut slots);
            ours.extend(slots.map(|slot| case.rule_of(slot)));
        }
        for method in case.methods {
            match peer.found(method, CHECKED)? {
                Some(theirs) if theirs == ours => {
                    for &batch in case.batches {
                        self.against(&case, &mut peer, method, batch)?;
                    }
                }
                Some(_) => {
                    return Err(format!("{name}: {} ({method}) finds different rules", case.library).into());
                }
                None => writeln!(
                    io::stderr(),
                    "libraries: {method} of {} is not available on this machine",
                    case.library
                )?,
            }
        }
        Ok(())
    }

    /// Reports the memory of Shunt's engine and its build time.
    fn report(&self, case: &Case) -> Result<(), Box<dyn Error>> {
        let engine = case.engine_name();
        for (what, value, unit) in [("memory", case.bytes() as f64, "bytes"), ("build", case.build_ms, "ms")]
        {
            let found = Alone { median: value, low: value, high: value, runs: 1, set_aside: 0 };
            let figure = Figure::alone(&format!("{what}, {engine}"), &case.name, unit, &found);
            figure.append(Path::new("target/report"), "libraries")?;
        }
        writeln!(
            io::stdout(),
            "{}: {} entries, {engine} holds {} bytes, built in {:.0} ms",
            case.name,
            case.len,
            case.bytes(),
            case.build_ms
        )?;
        Ok(())
    }

    fn against(
        &self,
        case: &Case,
        peer: &mut Peer,
        method: &str,
        batch: usize,
    ) -> Result<(), Box<dyn Error>> {
        // A window takes about a millisecond on the slower side.
        let slower = Measure::CpuNsPerUnit.of(&peer.windows(method, batch, 50).window()?);
        let slower = slower.max(Measure::CpuNsPerUnit.of(&lookups(case, batch, 50).window()?));
        let turns = ((1_000_000.0 / slower / case.turn as f64) as u32).clamp(20, 4_000);
        let plan = Plan { attempts_max: 20 * self.arguments.windows, ..Plan::new(self.arguments.windows) };
        let found =
            compare(&plan, &mut lookups(case, batch, turns), &mut peer.windows(method, batch, turns))?;
        let name = format!("{}, {} by {} {method}", lookup_of(batch), case.engine_name(), case.library);
        let ratios = [found.ratio, found.low, found.high];
        self.ratios.borrow_mut().entry(name.clone()).or_default().push(ratios);
        let bar = case.bars.iter().find(|(of, _)| *of == batch).map(|(_, bar)| *bar);
        let figure = match bar {
            Some(bar) if case.methods.last() == Some(&method) => {
                Figure::new(&name, &case.name, "M/CPU-s", &found, bar)
            }
            _ => Figure::beside(&name, &case.name, "M/CPU-s", &found),
        };
        figure.append(Path::new("target/report"), "libraries")?;
        writeln!(
            io::stdout(),
            "{}: {name} {:.1} and {:.1} M/CPU-s, ratio {:.2} ({:.2} to {:.2})",
            case.name,
            found.ours.median,
            found.peer.median,
            found.ratio,
            found.low,
            found.high
        )?;
        Ok(())
    }

    /// Reports the geometric means of the ratios of each figure, over all cases since the last call.
    fn means(&self) -> Result<(), Box<dyn Error>> {
        for (name, ratios) in self.ratios.take() {
            let mean = |at: usize| {
                let sum: f64 = ratios.iter().map(|ratio| ratio[at].ln()).sum();
                (sum / ratios.len() as f64).exp()
            };
            let least = ratios.iter().map(|ratio| ratio[0]).fold(f64::INFINITY, f64::min);
            let (median, low, high) = (mean(0), mean(1), mean(2));
            let found = Alone { median, low, high, runs: ratios.len(), set_aside: 0 };
            let figure = format!("{name}, geometric mean of ratios");
            let figure = match MEANS.iter().find(|(lookup, _)| name == format!("{lookup}, {MEANS_OF}")) {
                Some((_, least)) => Figure::at_least(&figure, "all lists", "times", &found, *least),
                None => Figure::alone(&figure, "all lists", "times", &found),
            };
            figure.append(Path::new("target/report"), "libraries")?;
            writeln!(
                io::stdout(),
                "{name}: geometric mean {median:.2} ({low:.2} to {high:.2}) of {} cases, minimum {least:.2}",
                ratios.len()
            )?;
        }
        Ok(())
    }

    fn alone(&self, case: &Case) -> Result<(), Box<dyn Error>> {
        for &batch in case.batches {
            let found = measure(&Plan::new(self.arguments.windows), &mut lookups(case, batch, 200))?;
            let name = format!("{}, {}", lookup_of(batch), case.engine_name());
            Figure::alone(&name, &case.name, "M/CPU-s", &found)
                .append(Path::new("target/report"), "libraries")?;
            writeln!(io::stdout(), "{}: {name} {:.1} M/CPU-s", case.name, found.median)?;
        }
        Ok(())
    }
}

fn lookup_of(batch: usize) -> String {
    if batch == BURST { "lookup".to_owned() } else { format!("lookup of {batch}") }
}

/// Looks up the keys repeatedly, `batch` at a time.
fn lookups(case: &Case, batch: usize, turns: u32) -> impl Contender {
    let mut slots = [0; BURST];
    let mut bursts = case.keys.chunks_exact(BURST * case.words).cycle();
    let mut look_on = move |count: usize, batch: usize| {
        for keys in bursts.by_ref().take(count / BURST) {
            for keys in keys.chunks_exact(batch * case.words) {
                case.look_up(keys, black_box(&mut slots[..batch]));
            }
        }
        count as u64
    };
    move || {
        if case.warm {
            look_on(case.keys.len() / case.words, BURST);
        }
        Loop::new(turns, || look_on(case.turn, batch)).gap_limit(GAP_LIMIT).window()
    }
}
