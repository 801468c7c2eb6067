// SPDX-License-Identifier: Apache-2.0
//! Compares tables of the paper's kind (tries) with the DPDK libraries that they represent: ternary rules
//! with `rte_acl`, prefixes with `rte_lpm6`. The tries are peers in the benchmarks of the fast-forwarding
//! path. To be realistic, they must reach 0.8 of the scalar libraries' speed.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use fastrand::Rng;
use peer::{Memory, Peer};
use shunt_bench::paper::{AccessList, Route};
use shunt_bench::{
    Bar, Contender, Figure, Loop, Measure, Plan, allowed_cpus, compare, measure, pin_to, whole,
};
use table::{Rules, Trie};

#[path = "paper/peer.rs"]
mod peer;
#[path = "paper/table.rs"]
mod table;

/// Number of lookups per iteration, for all batch sizes.
const TURN: usize = 32;

/// Number of lookups for which both results are compared before the measurement.
const CHECKED: usize = 4_096;

/// An iteration that takes longer counts as preempted. The slowest table needs a few tens of microseconds.
const GAP_LIMIT: Duration = Duration::from_micros(100);

/// Measures the tables of the paper's kind; writes target/report/paper.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only cases whose names begin with this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Pairs of windows per figure.
    #[arg(long, default_value_t = 100)]
    windows: usize,
}

/// Measurement settings.
struct Bench {
    arguments: Arguments,
    cpu: usize,
    program: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let program = peer::compile()?;
    if program.is_none() {
        writeln!(io::stderr(), "paper: {}", peer::MISSING)?;
    }
    let cpu = *allowed_cpus()?.last().ok_or("no CPU is allowed")?;
    pin_to(cpu)?;
    let bench = Bench { arguments, cpu, program };
    for set in ["acl1", "fw1", "ipc1"] {
        for size in ["1k", "10k"] {
            let (name, text) = match whole(&format!("classbench/{set}_{size}.rules.gz"))? {
                Some(text) => (format!("{set}_{size}"), text),
                None => (format!("sample of {set}"), sample(&format!("{set}.rules"))?),
            };
            let list = AccessList::parse(&text);
            bench.case(&format!("{name}, IPv6"), &Rules::Access(list.to_ipv6()))?;
            bench.case(&format!("{name}, IPv4"), &Rules::Access(list))?;
        }
    }
    let (name, text) = match whole("rib/ipv6_full.txt.gz")? {
        Some(text) => ("IPv6 routes", text),
        None => ("sample of IPv6 routes", sample("ipv6.txt")?),
    };
    let routes = routes(&text);
    for size in [1_000, 10_000, usize::MAX] {
        let step = (routes.len() / size).max(1);
        let mut some: Vec<Route> = routes.iter().step_by(step).take(size).copied().collect();
        (0..).zip(&mut some).for_each(|(id, route)| route.id = id);
        bench.case(&format!("{name}, {}", some.len()), &Rules::Routes(some))?;
    }
    Ok(())
}

impl Bench {
    fn case(&self, case: &str, rules: &Rules) -> Result<(), Box<dyn Error>> {
        if !case.starts_with(&self.arguments.case) {
            return Ok(());
        }
        let packets = rules.draw(&mut Rng::with_seed(1));
        let keys = rules.rows(&packets);
        let start = Instant::now();
        let trie = Trie::new(rules).ok_or("the trie refused the rules")?;
        let build_ms = start.elapsed().as_secs_f64() * 1e3;
        let Some(program) = &self.program else {
            self.report(case, &trie, build_ms, None)?;
            return self.alone(case, rules, &trie, &keys);
        };
        let file = std::env::temp_dir().join(format!("shunt-paper-{}", std::process::id()));
        let peer = rules
            .write(&packets, &file)
            .map_err(Box::from)
            .and_then(|()| Peer::new(program, self.cpu, &file, Memory::best()));
        std::fs::remove_file(&file)?;
        let mut peer = peer?;
        self.report(case, &trie, build_ms, Some(peer.build_ms))?;
        let (library, methods) = match rules {
            Rules::Access(_) => ("rte_acl", &["scalar", "avx2", "avx512"][..]),
            Rules::Routes(_) => ("rte_lpm6", &["bulk"][..]),
        };
        let mut ours = vec![0; CHECKED];
        trie.lookup(&keys[..CHECKED * rules.words()], &mut ours);
        for method in methods {
            match peer.found(method, CHECKED)? {
                Some(theirs) if theirs == ours => {}
                Some(_) => return Err(format!("{case}: {library} ({method}) finds different rules").into()),
                None => {
                    writeln!(io::stderr(), "paper: {library} has no {method} on this machine")?;
                    continue;
                }
            }
            for batch in [1, 8, 32] {
                let name = format!("lookup, batch {batch}, trie by {library} {method}");
                self.against(&name, case, (rules, &trie, &keys), (&mut peer, method), batch)?;
            }
        }
        Ok(())
    }

    fn against(
        &self,
        name: &str,
        case: &str,
        (rules, trie, keys): (&Rules, &Trie, &[u64]),
        (peer, method): (&mut Peer, &str),
        batch: usize,
    ) -> Result<(), Box<dyn Error>> {
        // A window takes about 1.5 ms on the slower side.
        let mut probe = || -> Result<f64, Box<dyn Error>> {
            let slower = Measure::CpuNsPerUnit.of(&peer.windows(method, batch, 50).window()?);
            Ok(slower.max(Measure::CpuNsPerUnit.of(&lookups(rules, trie, keys, batch, 50).window()?)))
        };
        let turns = ((1_500_000.0 / probe()? / TURN as f64) as u32).clamp(20, 2_000);
        let plan = Plan { attempts_max: 20 * self.arguments.windows, ..Plan::new(self.arguments.windows) };
        let mut ours = lookups(rules, trie, keys, batch, turns);
        let found = compare(&plan, &mut ours, &mut peer.windows(method, batch, turns))?;
        let mut figure = Figure::new(name, case, "M/CPU-s", &found, Bar::AtLeast(0.8));
        if method.starts_with("avx") {
            // This case is reported without a target.
            (figure.bar, figure.verdict) = (None, None);
        }
        figure.append(Path::new("target/report"), "paper")?;
        writeln!(
            io::stdout(),
            "{case}: {name} {:.1} and {:.1} ns, ratio {:.2} ({:.2} to {:.2}) {:?}",
            1e3 / found.ours.median,
            1e3 / found.peer.median,
            found.ratio,
            found.low,
            found.high,
            figure.verdict,
        )?;
        Ok(())
    }

    fn alone(&self, case: &str, rules: &Rules, trie: &Trie, keys: &[u64]) -> Result<(), Box<dyn Error>> {
        for batch in [1, 8, 32] {
            let plan =
                Plan { attempts_max: 20 * self.arguments.windows, ..Plan::new(self.arguments.windows) };
            let found = measure(&plan, &mut lookups(rules, trie, keys, batch, 500))?;
            let name = format!("lookup, batch {batch}, trie");
            Figure::alone(&name, case, "M/CPU-s", &found).append(Path::new("target/report"), "paper")?;
            writeln!(io::stdout(), "{case}: {name} {:.1} ns", 1e3 / found.median)?;
        }
        Ok(())
    }

    fn report(&self, case: &str, trie: &Trie, ours_ms: f64, peer_ms: Option<f64>) -> io::Result<()> {
        let peer = peer_ms.map_or(String::new(), |ms| format!(" (the library's {ms:.0})"));
        let (tries, kilobytes) = (trie.tries(), trie.bytes() / 1_024);
        writeln!(io::stdout(), "{case}: built in {ours_ms:.0} ms{peer}, tries {tries}, {kilobytes} KiB")
    }
}

/// Looks up the keys repeatedly, in batches.
fn lookups<'t>(
    rules: &Rules,
    trie: &'t Trie,
    keys: &'t [u64],
    batch: usize,
    turns: u32,
) -> Loop<impl FnMut() -> u64 + 't> {
    let words = rules.words();
    let mut out = [0; TURN];
    let mut batches = keys.chunks_exact(batch * words).cycle();
    let lookup = move || {
        for _ in 0..TURN / batch {
            if let Some(keys) = batches.next() {
                trie.lookup(keys, black_box(&mut out[..batch]));
            }
        }
        TURN as u64
    };
    Loop::new(turns, lookup).gap_limit(GAP_LIMIT)
}

fn routes(text: &str) -> Vec<Route> {
    let parse = |line: &str| {
        let (address, length) = line.trim().split_once('/')?;
        let address: std::net::Ipv6Addr = address.parse().ok()?;
        Some(Route { value: address.into(), length: length.parse().ok()?, id: 0 })
    };
    text.lines().filter_map(parse).collect()
}

fn sample(name: &str) -> Result<String, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engines/tests/engines/data");
    Ok(std::fs::read_to_string(folder.join(name))?)
}
