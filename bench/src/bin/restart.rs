// SPDX-License-Identifier: Apache-2.0
//! A start with kept rules: the time from the opened store until a worker has all rules. Each round runs in a
//! separate process, as a restart does, so that its memory is new.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use flow::syntax::{ParseOptions, parse_line};
use flow::{Nanos, PortNo};
use model::{Change, Model, ModelConfig, PortDesc};
use port::Queue;
use port::mem::LoopQueue;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use shunt_bench::Figure;
use store::{Durability, RuleStore, StoreClock, StoreConfig};
use worker::{PortQueues, Worker, WorkerSet, WorkerSetConfig};

/// Measures starts with kept rules; writes target/report/restart.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of flow entries.
    #[arg(long, default_value_t = 100_000)]
    flows: u32,
    /// Number of groups, to which the entries send.
    #[arg(long, default_value_t = 1_000)]
    groups: u32,
    /// Number of rounds.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Run one round with the store in this folder, and print its figures as JSON.
    #[arg(long, hide = true)]
    one: Option<PathBuf>,
}

/// Figures of one round.
#[derive(Debug, Serialize, Deserialize)]
struct Round {
    read_ms: f64,
    restore_ms: f64,
    apply_ms: f64,
    total_ms: f64,
    cpu_ms: f64,
    peak_mb: f64,
}

/// Name and unit of a figure, and its value in a round.
type Line = (&'static str, &'static str, fn(&Round) -> f64);

const FIGURES: [Line; 6] = [
    ("read the store", "ms", |round| round.read_ms),
    ("decode the rules and install them in the model", "ms", |round| round.restore_ms),
    ("apply the rules in the worker", "ms", |round| round.apply_ms),
    ("start with kept rules", "ms", |round| round.total_ms),
    ("start with kept rules, CPU time", "ms", |round| round.cpu_ms),
    ("largest memory", "MB", |round| round.peak_mb),
];

/// Time of the model's clock at which every process starts.
const START: Nanos = Nanos(1_000_000_000);
/// Longest time in which the store must be written.
const WRITE_LIMIT: Duration = Duration::from_secs(120);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(folder) = &arguments.one {
        return one(folder, arguments.flows);
    }
    let folder = std::env::temp_dir().join(format!("shunt-restart-{}", std::process::id()));
    let measured =
        prepare(&folder, arguments.flows, arguments.groups).and_then(|()| measure(&arguments, &folder));
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn measure(arguments: &Arguments, folder: &Path) -> Result<()> {
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--one").arg(folder).args(["--flows", &arguments.flows.to_string()]);
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("a round failed: {}", output.status).into());
        }
        rounds.push(serde_json::from_slice::<Round>(&output.stdout)?);
    }
    let case = format!("{} flows, {} groups", arguments.flows, arguments.groups);
    for (name, unit, value) in FIGURES {
        let values: Vec<f64> = rounds.iter().map(value).collect();
        let figure = Figure::limited(name, &case, unit, &values, None).ok_or("no rounds")?;
        figure.append(Path::new("target/report"), "restart")?;
        let Figure { ours, low, high, .. } = figure;
        writeln!(io::stdout(), "{name}: {ours:.1} {unit} ({low:.1} to {high:.1})")?;
    }
    Ok(())
}

fn config(folder: &Path) -> StoreConfig {
    StoreConfig {
        path: folder.to_owned(),
        durability: Durability::Off,
        datapath_id: 1,
        stateless: None,
        snapshot_after_bytes: store::SNAPSHOT_AFTER_BYTES,
    }
}

/// Returns a model with two ports and a worker, both without rules.
fn switch() -> Result<(Model<WorkerSet>, Worker)> {
    let queues = (1..=2).map(|number| PortQueues {
        number: PortNo(number),
        queues: vec![(0, Box::new(LoopQueue::new(number, Vec::new())) as Box<dyn Queue>)],
        egress: Vec::new(),
    });
    let sizes = WorkerSetConfig { express_records: 8_192, ..WorkerSetConfig::default() };
    let (plane, mut workers) = worker::build(&sizes, queues.collect());
    let mut model = Model::new(ModelConfig::default(), plane, START);
    for number in 1..=2 {
        let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
        model.add_port(START, desc, true)?;
    }
    Ok((model, workers.pop().ok_or("there is no worker")?))
}

/// Writes a store with the rules that scripts/tests/test_restart.sh uses.
fn prepare(folder: &Path, flows: u32, groups: u32) -> Result<()> {
    let mut text = String::new();
    for group in 0..groups {
        text += &format!("group group_id={group},type=indirect,bucket=output:{}\n", 1 + group % 2);
    }
    // Rules with another mask make the table use the engine for any masks.
    for port in 1..=flows.min(2) {
        text += &format!("priority=10,in_port={port},cookie={port},actions=group:0\n");
    }
    for n in 2..flows {
        let [_, b, c, d] = n.to_be_bytes();
        let group = n % groups.max(1);
        text += &format!("priority=20,ip,nw_dst=10.{}.{c}.{d},cookie={n},actions=group:{group}\n", 100 + b);
    }
    let opened = RuleStore::open(config(folder), StoreClock::at(START))?;
    let (mut model, mut worker) = switch()?;
    let (journal, handle) = opened.store.start(|| ())?;
    let first = model.kept_state();
    model.attach_journal(START, Box::new(journal), first);
    let lines =
        text.lines().zip(1..).filter_map(|(line, number)| parse_line(line, number, ParseOptions::default()));
    let changes = lines.map(|line| line.map(Change::from)).collect::<std::result::Result<Vec<_>, _>>()?;
    model.bundle(START, changes).map_err(|(at, error)| format!("line {}: {error}", at + 1))?;
    let end = Instant::now() + WRITE_LIMIT;
    loop {
        worker.apply();
        model.poll(START);
        let status = handle.status();
        if status.kept == status.recorded && status.queued == 0 && !status.is_snapshot_pending {
            break;
        }
        if Instant::now() > end {
            return Err(format!("the store is not written: {status:?}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(model);
    drop(handle);
    Ok(())
}

fn run_in_parallel(on_other_thread: &mut (dyn FnMut() + Send), on_this_thread: &mut dyn FnMut()) {
    std::thread::scope(|scope| {
        scope.spawn(on_other_thread);
        on_this_thread();
    });
}

fn one(folder: &Path, flows: u32) -> Result<()> {
    let (mut model, mut worker) = switch()?;
    let (cpu, begun) = (cpu_ms(), Instant::now());
    let opened = RuleStore::open(config(folder), StoreClock::at(START))?;
    let read = begun.elapsed();
    model.plane_mut().set_run_in_parallel(Some(run_in_parallel));
    let report = model.restore(
        START,
        opened.state.ok_or_else(|| format!("the store has no state: {:?}", opened.report.problems))?,
    );
    if (report.flows as u32, report.refused) != (flows, 0) {
        return Err(format!("{} flows are restored: {:?}", report.flows, report.reasons).into());
    }
    let restored = begun.elapsed();
    let barrier = model.barrier();
    while !model.is_applied(barrier) {
        worker.apply();
    }
    let total = begun.elapsed();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let round = Round {
        read_ms: ms(read),
        restore_ms: ms(restored - read),
        apply_ms: ms(total - restored),
        total_ms: ms(total),
        cpu_ms: cpu_ms() - cpu,
        peak_mb: peak_mb()?,
    };
    writeln!(io::stdout(), "{}", serde_json::to_string(&round)?)?;
    Ok(())
}

/// Returns the CPU time that this process has used, in ms.
fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

/// Returns the largest memory that this process has used, in MB.
fn peak_mb() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kb: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kb * 1_024.0 / 1e6)
}
