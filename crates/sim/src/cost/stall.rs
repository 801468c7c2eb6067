// SPDX-License-Identifier: Apache-2.0
//! Delay of packets while all entries are deleted, and the rules by which these packets are processed.

use crate::clock::VirtualClock;
use crate::cost::rig::udp_frame;
use crate::cost::{CostError, CostProbe, CostSource, CostTable, Rig};
use dataplane::{DataPlane, Totals};
use flow::syntax::{ParseOptions, parse_flows};
use flow::{DropReason, FlowMod, FlowModCommand, Nanos, TableId};
use std::fmt::{self, Display, Formatter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use worker::Worker;

/// Number of distinct packets, which hit entries spread evenly over all entries.
const FRAMES: u32 = 4_096;
/// Duration in nanoseconds above which a poll iteration without operations counts as preempted.
const GAP_NS: u64 = 20_000;
/// Duration of the traffic before the delete, and of the traffic after the delete.
const FLOW: Duration = Duration::from_millis(50);

/// Results of loading many exact entries and then deleting all of them.
#[derive(Clone, Debug)]
pub struct Report {
    /// Number of entries.
    pub entries: u32,
    /// Time to parse the text of the flows into flow-mods.
    pub parse: Duration,
    /// Time until all flows were applied.
    pub load: Duration,
    /// CPU time for parsing and loading, without the time of other programs.
    pub cpu: Duration,
    /// Memory of the process per entry in bytes: model, compiled table and counters.
    pub entry_bytes: f64,
    /// Engine of the table.
    pub engine: &'static str,
    /// Costs from which virtual time is computed, measured with the loaded table.
    pub costs: CostTable,
    /// Time until the delete was submitted, which is the control thread's part.
    pub submit: Duration,
    /// Time until the delete was applied.
    pub barrier: Duration,
    /// Durations of poll iterations before, during and after the delete.
    pub turns: Turns,
    /// Numbers of packets processed before and after the delete was applied.
    pub judged: [u64; 2],
    /// Packets that hit an entry, as every packet before the delete must.
    pub by_old: u64,
    /// Packets that missed, as every packet after the delete must.
    pub by_new: u64,
    /// Packets that hit an entry after the barrier was answered.
    pub stale: u64,
    /// Packets with any other outcome.
    pub astray: u64,
}

/// Durations of poll iterations in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// Number of poll iterations.
    pub count: u64,
    /// Longest iteration in nanoseconds of virtual time, including operations.
    pub virtual_max_ns: f64,
    /// Real time of the longest iteration that applied an operation, in nanoseconds. Any preemption is
    /// included.
    pub real_operation_max_ns: u64,
    /// Real time of the longest iteration that applied no operation and was not preempted, in nanoseconds.
    pub real_max_ns: u64,
    /// Number of preempted iterations.
    pub gaps: u64,
    /// Total duration of preempted iterations in nanoseconds.
    pub gaps_ns: u64,
}

impl Turns {
    pub(super) fn add(&mut self, operation: bool, virtual_ns: f64, real_ns: u64) {
        self.count += 1;
        self.virtual_max_ns = self.virtual_max_ns.max(virtual_ns);
        if operation {
            self.real_operation_max_ns = self.real_operation_max_ns.max(real_ns);
        } else if real_ns > GAP_NS {
            self.gaps += 1;
            self.gaps_ns += real_ns;
        } else {
            self.real_max_ns = self.real_max_ns.max(real_ns);
        }
    }
}

impl Report {
    /// Returns the total time for parsing and loading.
    #[must_use]
    pub fn load_total(&self) -> Duration {
        self.parse + self.load
    }

    /// Returns whether each packet was processed either by all rules before the delete or by all rules after
    /// it.
    #[must_use]
    pub fn is_lawful(&self) -> bool {
        self.judged == [self.by_old, self.by_new] && self.stale == 0 && self.astray == 0
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Turns { count, virtual_max_ns, real_operation_max_ns, real_max_ns, gaps, gaps_ns } = self.turns;
        let total = self.load_total();
        writeln!(
            f,
            "{} entries: parsed in {:.2?}, applied after another {:.2?}, {total:.2?} in total, {:.2?} of CPU time",
            self.entries, self.parse, self.load, self.cpu
        )?;
        writeln!(f, "{:.0} bytes of memory per entry; engine {}", self.entry_bytes, self.engine)?;
        write!(f, "{}", self.costs)?;
        writeln!(f, "delete: submitted after {:.2?}, applied after {:.2?}", self.submit, self.barrier)?;
        writeln!(
            f,
            "{count} turns during the delete, the longest {:.1} us of virtual time",
            virtual_max_ns / 1e3
        )?;
        writeln!(
            f,
            "longest turn in real time: {:.1} us with an operation, {:.1} us without; {gaps} turns were preempted, for {:.1} ms in total",
            real_operation_max_ns as f64 / 1e3,
            real_max_ns as f64 / 1e3,
            gaps_ns as f64 / 1e6
        )?;
        let [before, after] = self.judged;
        writeln!(
            f,
            "packets: {before} before the delete, {} of them with a hit; {after} after the delete, {} of them with a miss",
            self.by_old, self.by_new
        )?;
        writeln!(f, "hits after the barrier: {}; other outcomes: {}", self.stale, self.astray)
    }
}

fn address(entry: u32) -> [u8; 4] {
    let [_, b, c, d] = entry.to_be_bytes();
    [10, b, c, d]
}

fn source_port(entry: u32) -> u16 {
    1_000 + (entry % 50_000) as u16
}

/// Returns the flows as text of a flow file.
fn flows(entries: u32) -> String {
    let mut text = String::with_capacity(entries as usize * 90);
    for entry in 0..entries {
        let [a, b, c, d] = address(entry);
        let port = source_port(entry);
        // Formatting to a string cannot fail.
        let _ = writeln!(
            text,
            "udp,nw_src={a}.{b}.{c}.{d},nw_dst=192.168.0.1,tp_src={port},tp_dst=53 actions=output:2"
        );
    }
    text
}

/// Returns the resident memory of the process in bytes, or 0 if the system does not report it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1_024
}

/// Returns the CPU time of this thread, or 0 if the system does not report it.
fn cpu_time() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = schedule.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

/// Loads `entries` entries (at most 2^24) and deletes them all while a worker forwards packets that hit them.
///
/// # Errors
/// Returns an error only if one of the generated flows is refused.
pub fn run(entries: u32, costs: CostSource) -> Result<Report, CostError> {
    let step = (u64::from(entries) * 618 / 1_000).max(1);
    let hit = |n: u32| (u64::from(n) * step % u64::from(entries)) as u32;
    let frame = |n| udp_frame(address(hit(n)), [192, 168, 0, 1], source_port(hit(n)));
    let mut rig = Rig::new(2, (0..FRAMES).map(frame).collect())?;
    let text = flows(entries);
    let before_bytes = resident_bytes();
    let (start, start_cpu) = (Instant::now(), cpu_time());
    let mods: Vec<FlowMod> = parse_flows(&text, ParseOptions::default()).collect::<Result<_, _>>()?;
    let parse = start.elapsed();
    rig.model.bundle(Nanos(0), mods).map_err(|(_, error)| error)?;
    rig.settle();
    let load = start.elapsed() - parse;
    let cpu = cpu_time().saturating_sub(start_cpu);
    let grown_bytes = resident_bytes().saturating_sub(before_bytes);
    drop(text);
    let engine = rig.model.plane_mut().engine(TableId(0)).0;
    let costs = costs.of(&mut rig);
    rig.settle();
    let mut report = Report {
        entries,
        parse,
        load,
        cpu,
        entry_bytes: grown_bytes as f64 / f64::from(entries),
        engine,
        costs,
        submit: Duration::ZERO,
        barrier: Duration::ZERO,
        turns: Turns::default(),
        judged: [0; 2],
        by_old: 0,
        by_new: 0,
        stale: 0,
        astray: 0,
    };
    delete(rig, &mut report);
    Ok(report)
}

/// Deletes all entries while another thread forwards packets.
fn delete(mut rig: Rig, report: &mut Report) {
    let mut worker = rig.worker;
    let mut clock = rig.clock;
    let model = &mut rig.model;
    report.costs.drive(worker.probe());
    let begin = model.plane_mut().totals();
    let begin_packets = worker.probe().packets();
    let stop = AtomicBool::new(false);
    let mut old_at_barrier = 0;
    std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| {
            let turns = forward(&mut worker, &mut clock, &stop);
            (turns, worker.probe().applied(), worker.probe().packets())
        });
        std::thread::sleep(FLOW);
        let start = Instant::now();
        let all = FlowMod { command: FlowModCommand::Delete, table: Some(TableId(0)), ..FlowMod::default() };
        let done = model.flow_mod(Nanos(0), all);
        debug_assert!(done.is_ok(), "{done:?}");
        report.submit = start.elapsed();
        let barrier = model.barrier();
        while !model.is_applied(barrier) {
            std::hint::spin_loop();
        }
        report.barrier = start.elapsed();
        old_at_barrier = model.plane_mut().totals().forwarded;
        while model.poll(Nanos(0)) || model.pending_removals() != 0 {}
        std::thread::sleep(FLOW);
        stop.store(true, Ordering::Release);
        if let Ok((turns, applied, packets)) = forwarding.join() {
            report.turns = turns;
            let before = applied.map_or(packets, |(_, packets)| packets);
            report.judged = [before - begin_packets, packets - before];
        }
    });
    let end = model.plane_mut().totals();
    let misses = |totals: &Totals| totals.dropped.of(DropReason::TableMiss);
    report.by_old = end.forwarded - begin.forwarded;
    report.by_new = misses(&end) - misses(&begin);
    report.stale = end.forwarded - old_at_barrier;
    report.astray = end.received - begin.received - report.by_old - report.by_new;
}

/// Runs poll iterations until `stop` is set.
fn forward(worker: &mut Worker<CostProbe>, clock: &mut VirtualClock, stop: &AtomicBool) -> Turns {
    let mut turns = Turns::default();
    let mut virtual_ns = worker.probe().virtual_ns();
    while !stop.load(Ordering::Acquire) {
        let start = Instant::now();
        let turn = worker.turn(clock.now());
        let real_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let took_ns = worker.probe().virtual_ns() - virtual_ns;
        virtual_ns += took_ns;
        clock.advance_by(Nanos(took_ns as u64));
        turns.add(turn.applied > 0, took_ns, real_ns);
    }
    turns
}
