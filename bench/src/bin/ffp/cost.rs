// SPDX-License-Identifier: Apache-2.0
//! Checks the cost model of docs/model.md: derives predictions for mixed traffic from runs with one kind of
//! traffic, and compares them with measurements of mixed traffic.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use pipeline::{Probe, ProbeStep};
use shunt_bench::scenario::{Kind, Options};
use shunt_bench::{Figure, Interval, median, median_interval};

use crate::course::{BURST, Course, scenario};

const STAGES: usize = 3;
const RULES: usize = 1_000;
const FLOWS: usize = 1_000;
/// Number of flows that hit a normal entry in table 1.
const NORMAL_FLOWS: usize = 100;

/// Share of the packets that belong to these flows, in thousandths.
const NORMAL_PER_MILLE: u32 = 200;
const FRAMES: usize = 128 * BURST;
/// Number of packets in a small burst.
const SMALL: usize = 8;
const LUT_ENTRIES: usize = 4_096;

/// Number of bursts per run. Bursts that take longer than the limit were preempted and are excluded.
const TURNS: usize = 400;
const LIMIT_NS: u64 = 120_000;

/// Permitted relative error of a prediction.
const OFF: f64 = 0.15;

/// Time and packets of one stage.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    ns: f64,
    packets: f64,
    /// Number of packets whose entry the stage executed.
    ran: f64,
}

impl Part {
    fn each(self) -> f64 {
        self.ns / self.packets.max(1.0)
    }
}

/// Probe that assigns time to stages. A burst first visits the tables in ascending order on the path. Packets
/// that left the path then begin again at a lower table. The time until then is assigned to the path, later
/// time to the tables.
#[derive(Debug)]
struct Stages {
    last: Instant,
    path: [Part; STAGES],
    tables: [Part; STAGES],
    /// All other time, per packet.
    rest: Part,
    in_tables: bool,
    at: usize,
}

impl Default for Stages {
    fn default() -> Self {
        let none = [Part::default(); STAGES];
        Self {
            last: Instant::now(),
            path: none,
            tables: none,
            rest: Part::default(),
            in_tables: false,
            at: 0,
        }
    }
}

impl Probe for Stages {
    fn mark(&mut self, step: ProbeStep, units: u32) {
        let now = Instant::now();
        let ns = (now - self.last).as_nanos() as f64;
        let units = f64::from(units);
        match step {
            ProbeStep::Extract(table)
            | ProbeStep::Probe(table)
            | ProbeStep::Lookup(table)
            | ProbeStep::Execute(table) => {
                let table = table.index();
                self.in_tables |= table < self.at;
                self.at = table;
                let paths = if self.in_tables { &mut self.tables } else { &mut self.path };
                if let Some(part) = paths.get_mut(table) {
                    part.ns += ns;
                    match step {
                        ProbeStep::Extract(_) => part.packets += units,
                        ProbeStep::Execute(_) => part.ran += units,
                        _ => {}
                    }
                }
            }
            ProbeStep::Admit => {
                (self.in_tables, self.at) = (false, 0);
                self.rest.ns += ns;
                self.rest.packets += units;
            }
            _ => self.rest.ns += ns,
        }
        self.last = Instant::now();
    }
}

/// Result of a run: the time in each stage of the path, in each table, and elsewhere.
struct Run {
    path: [Part; STAGES],
    tables: [Part; STAGES],
    rest: f64,
    /// Total time per packet.
    whole: f64,
}

/// Measures the cost of each stage over `TURNS` poll iterations. Iterations longer than `LIMIT_NS` are left
/// out, because the thread was probably preempted.
fn measured(course: &mut Course<Stages>) -> Run {
    let mut sum = Stages::default();
    for _ in 0..TURNS {
        *course.rig.worker.probe() = Stages::default();
        let begin = Instant::now();
        course.rig.turn();
        if begin.elapsed().as_nanos() as u64 > LIMIT_NS {
            continue;
        }
        let one = course.rig.worker.probe();
        for (to, from) in [(&mut sum.path, &one.path), (&mut sum.tables, &one.tables)] {
            for (to, from) in to.iter_mut().zip(from) {
                to.ns += from.ns;
                to.packets += from.packets;
                to.ran += from.ran;
            }
        }
        sum.rest.ns += one.rest.ns;
        sum.rest.packets += one.rest.packets;
    }
    let spent = |parts: &[Part; STAGES]| parts.iter().map(|part| part.ns).sum::<f64>();
    let whole = (spent(&sum.path) + spent(&sum.tables) + sum.rest.ns) / sum.rest.packets.max(1.0);
    Run { path: sum.path, tables: sum.tables, rest: sum.rest.each(), whole }
}

/// A quantity: its name, its predicted value, and its measured value.
type Pair = (String, f64, f64);

/// Cost model of a stage: a cost per packet and a cost per batch.
#[derive(Clone, Copy, Debug)]
struct Law {
    packet: f64,
    batch: f64,
}

impl Law {
    /// Derives the model from the cost per packet in large and in small bursts, of whose packets the stage
    /// processes `share`.
    fn new(large: f64, small: f64, share: f64) -> Self {
        let (big, few) = (BURST as f64 * share, SMALL as f64 * share);
        let batch = ((small - large) / (1.0 / few - 1.0 / big)).max(0.0);
        Self { packet: large - batch / big, batch }
    }

    /// Returns the cost per packet in batches of the given size.
    fn of(self, packets: f64) -> f64 {
        self.packet + self.batch / packets.max(1.0)
    }
}

/// Switches that are measured in one round.
struct Switches {
    /// Two switches with the fast-forwarding path, which receive only low-latency packets: the first in full
    /// bursts, the second in small bursts.
    path: [Course<Stages>; 2],
    /// Like `path`, but for switches without the path.
    tables: [Course<Stages>; 2],
    /// Like `path`, but half of the packets are normal. They give t_k, which other traffic cannot give.
    half: [Course<Stages>; 2],
    mixed: Course<Stages>,
}

/// Runs one round and returns predicted and measured values.
fn round(switches: &mut Switches) -> Vec<Pair> {
    let [path, small_path] = switches.path.each_mut().map(measured);
    let [tables, small_tables] = switches.tables.each_mut().map(measured);
    let [half, small_half] = switches.half.each_mut().map(measured);
    let mix = measured(&mut switches.mixed);
    let normal = switches.mixed.normal_share();
    // A switch without the path visits tables in ascending order only, so all time is assigned to the path.
    let laws = |large: &Run, small: &Run| -> Vec<Law> {
        let parts = large.path.iter().zip(&small.path);
        parts.map(|(large, small)| Law::new(large.each(), small.each(), 1.0)).collect()
    };
    let (l, p) = (laws(&path, &small_path), laws(&tables, &small_tables));
    let burst = BURST as f64;
    let (stay, leave) = (burst * (1.0 - normal), burst * normal);
    let t_l = [l[0].of(burst), l[1].of(burst), l[2].of(stay)];
    let t_p = p[2].of(leave);
    let known = |run: &Run| run.tables[1].ns / run.tables[1].ran.max(1.0);
    let t_k = Law::new(known(&half), known(&small_half), switches.half[0].normal_share()).of(leave);
    let mut pairs: Vec<Pair> = Vec::new();
    for (i, (t_l, part)) in t_l.iter().zip(&mix.path).enumerate() {
        pairs.push((format!("t_l of stage {}", i + 1), *t_l, part.each()));
    }
    // Normal packets of mixed traffic leave the path at stage 2, so they need table lookups only in stage 3.
    pairs.push(("t_p of stage 3".into(), t_p, mix.tables[2].each()));
    pairs.push(("t_k of stage 2".into(), t_k, known(&mix)));
    let rho = [1.0, 1.0 - normal, 1.0];
    for (i, rho) in rho.into_iter().enumerate() {
        let part = mix.path[i];
        pairs.push((format!("rho of stage {}", i + 1), rho, part.ran / part.packets.max(1.0)));
    }
    // The LUT of stage 2 has records of normal flows, so their packets leave the path there without a table
    // lookup. Their instructions in stage 2 are still executed.
    let low_latency = path.rest + t_l.iter().sum::<f64>();
    let leaving = path.rest + t_l[0] + t_l[1] + t_k + t_p;
    let mix_low = mix.rest + mix.path.iter().map(|part| part.each()).sum::<f64>();
    let mix_normal = mix.rest + mix.path[0].each() + mix.path[1].each() + known(&mix) + mix.tables[2].each();
    pairs.push(("latency of low-latency packets".into(), low_latency, mix_low));
    pairs.push(("latency of normal packets".into(), leaving, mix_normal));
    let mean = low_latency * (1.0 - normal) + leaving * normal;
    pairs.push(("mean of all packets".into(), mean, mix.whole));
    pairs
}

/// Measures all scenarios whose names begin with `case`.
pub fn run(case: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    for kind in Kind::ALL {
        let percent = NORMAL_PER_MILLE / 10;
        let name =
            format!("{}, {RULES} rules, {percent} % normal packets, predicted by measured", kind.name());
        if !name.starts_with(case) {
            continue;
        }
        let options = Options { normal_flows: NORMAL_FLOWS, bytes: 256, ..Options::new(kind, RULES, FLOWS) };
        let scenario = scenario(&options)?;
        let course = |lut_entries, traffic| -> Result<Course<Stages>, Box<dyn Error>> {
            let mut course = Course::mixed(&scenario, FRAMES, (lut_entries, 0), None, traffic)?;
            course.prepare()?;
            Ok(course)
        };
        let mut switches = Switches {
            path: [course(LUT_ENTRIES, (0, BURST))?, course(LUT_ENTRIES, (0, SMALL))?],
            tables: [course(0, (0, BURST))?, course(0, (0, SMALL))?],
            half: [course(LUT_ENTRIES, (500, BURST))?, course(LUT_ENTRIES, (500, SMALL))?],
            mixed: course(LUT_ENTRIES, (NORMAL_PER_MILLE, BURST))?,
        };
        let rounds: Vec<Vec<Pair>> = (0..rounds.max(6)).map(|_| round(&mut switches)).collect();
        for (at, (quantity, ..)) in rounds[0].iter().enumerate() {
            let of =
                |value: fn(&Pair) -> f64| rounds.iter().map(|pairs| value(&pairs[at])).collect::<Vec<_>>();
            let ratios = of(|pair| pair.1 / pair.2);
            let (Some(ours), Some(peer), Some(ratio), Some(Interval { low, high, .. })) = (
                median(&of(|pair| pair.1)),
                median(&of(|pair| pair.2)),
                median(&ratios),
                median_interval(&ratios),
            ) else {
                continue;
            };
            let unit = if quantity.starts_with("rho") { "share" } else { "ns" };
            let figure =
                Figure::within(quantity, &name, unit, (ours, peer), (ratio, low, high), (rounds.len(), OFF));
            figure.append(Path::new("target/report"), "ffp_model")?;
            writeln!(
                io::stdout(),
                "{name}: {quantity}: {ours:.2} by {peer:.2} {unit}, ratio {ratio:.3} ({low:.3} to {high:.3}): {:?}",
                figure.verdict
            )?;
        }
    }
    Ok(())
}
