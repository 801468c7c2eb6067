// SPDX-License-Identifier: Apache-2.0
//! Effect of added rules on low-latency packets, and the cost of the rules to a worker, for each consistency
//! mode of the LUTs.
//!
//! In virtual time, packets of low-latency flows arrive at a constant rate, and rules are added at another.
//! Each step takes its mean time; a step that occurs only because rules are added takes its 99.9th
//! percentile. A second run has the same packets and no new rules, so the rules cause the difference between
//! a packet's delays. The output port of every packet is compared with the rules.

mod plan;
mod stream;

use crate::cost::{CostError, CostProbe, CostTable, MeasurePlan as Measuring, Rig, Workload, measure};
use dataplane::{DataPlane, LutFigures};
use flow::{Nanos, TableId};
use pipeline::{BURST, ProbeStep};
use plan::{PORTS, Plan, Rule};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use stream::{Line, Stream};
use worker::{Consistency, Worker};

pub use plan::UpdateRules;

/// Number of poll iterations between two rules while costs are measured.
const RULE_TURNS: u64 = 16;

/// Offered load as a share of the worker's capacity.
const LOAD: f64 = 0.5;

/// Steps that occur only because rules are added.
const BY_RULES: [ProbeStep; 5] = [
    ProbeStep::Change,
    ProbeStep::Swap,
    ProbeStep::Clean,
    ProbeStep::Verify(TableId(0)),
    ProbeStep::Lookup(TableId(0)),
];

/// Minimum cost of a packet and of a poll iteration in nanoseconds, so that time always passes.
const LEAST_NS: f64 = 50.0;

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Kind of rules.
    pub rules: UpdateRules,
    /// Number of rules in the table before the first one is added.
    pub before: usize,
    /// Number of rules added.
    pub added: usize,
    /// Number of rules added per second.
    pub rate: u64,
    /// Number of rules added in one operation.
    pub together: usize,
    /// Number of flows. The flows send packets in turn.
    pub flows: usize,
    /// Number of records of a LUT.
    pub lut_entries: usize,
    /// Consistency mode of the LUTs.
    pub consistency: Consistency,
    /// Duration of the cost measurement.
    pub plan: Measuring,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Engine of the table.
    pub engine: &'static str,
    /// Costs from which virtual time is computed.
    pub costs: CostTable,
    /// Number of packets.
    pub packets: usize,
    /// Rate of the packets in packets per second.
    pub packets_per_s: f64,
    /// Largest additional delay of a packet due to the rules, in nanoseconds of virtual time.
    pub delay_max_ns: f64,
    /// Mean immediate cost of a rule for the worker, in nanoseconds: applying the rule and cleaning records.
    pub at_once_ns: f64,
    /// Mean later cost of a rule for the worker, in nanoseconds: verifying records and looking up packets in
    /// the table.
    pub later_ns: f64,
    /// Packets sent to a wrong port or not at all.
    pub wrong: u64,
    /// Packets that stayed on the fast-forwarding path.
    pub fast: u64,
    /// Activity of the LUTs while rules were added.
    pub luts: LutFigures,
}

/// Test harness: a worker, its ports, and the expected outputs of its packets.
struct UpdateHarness {
    rig: Rig,
    lines: Vec<Arc<Line>>,
    plan: Plan,
    rules: UpdateRules,
    flows: usize,
    together: usize,
    /// Rules that were submitted to the worker and are not applied yet.
    submitted: VecDeque<Rule>,
    /// Index of the flow that sends the next packet.
    next: usize,
}

/// Runs a case.
///
/// # Errors
/// Returns an error only if one of the generated rules is refused.
pub fn run(case: &Case) -> Result<Report, CostError> {
    let mut harness = UpdateHarness::new(case)?;
    let costs = measure(&mut Adding { harness: &mut harness, together: case.together, since: 0 }, case.plan);
    let mut harness = UpdateHarness::new(case)?;
    let engine = harness.rig.model.plane_mut().engine(TableId(0)).0;
    let burst_steps =
        [ProbeStep::Extract(TableId(0)), ProbeStep::Probe(TableId(0)), ProbeStep::Execute(TableId(0))];
    let steps = [ProbeStep::Receive, ProbeStep::Admit, ProbeStep::Finish, ProbeStep::Transmit]
        .into_iter()
        .chain(burst_steps);
    let packet_ns: f64 = steps.map(|step| costs.cost_ns(step)).sum();
    let packet_ns = packet_ns + costs.cost_ns(ProbeStep::Turn) / BURST as f64;
    let spacing_ns = packet_ns.max(LEAST_NS) / LOAD;
    let span_ns = case.added as f64 * 1e9 / case.rate as f64;
    let packets = (span_ns / spacing_ns) as usize;
    // The run is long enough for each flow to send a packet.
    harness.drive(&costs, spacing_ns, 2 * case.flows, 0, 0.0)?;
    let quiet = harness.drive(&costs, spacing_ns, packets, 0, 0.0)?;
    let before = harness.rig.model.plane_mut().totals().fast;
    let luts_before = harness.luts();
    let busy = harness.drive(&costs, spacing_ns, packets, case.added, span_ns / case.added.max(1) as f64)?;
    let units = harness.rig.worker.probe().take_counts();
    let each = case.added.max(1) as f64;
    let later = busy.ready_ns.iter().zip(&quiet.ready_ns).map(|(busy, quiet)| busy - quiet);
    Ok(Report {
        engine,
        packets,
        packets_per_s: 1e9 / spacing_ns,
        delay_max_ns: later.fold(0.0, f64::max),
        at_once_ns: costs.part_ns(&units, &[ProbeStep::Change, ProbeStep::Swap, ProbeStep::Clean]) / each,
        later_ns: costs.part_ns(&units, &[ProbeStep::Verify(TableId(0)), ProbeStep::Lookup(TableId(0))])
            / each,
        wrong: quiet.wrong + busy.wrong,
        fast: harness.rig.model.plane_mut().totals().fast - before,
        luts: since(harness.luts(), luts_before),
        costs,
    })
}

/// Returns the increase of the counters between two readings.
fn since(now: LutFigures, before: LutFigures) -> LutFigures {
    LutFigures {
        hits: now.hits - before.hits,
        misses: now.misses - before.misses,
        verified: now.verified - before.verified,
        walked: now.walked - before.walked,
        learned: now.learned - before.learned,
        cleaned: now.cleaned - before.cleaned,
        ..now
    }
}

/// A sequence of packets.
#[derive(Default)]
struct Stretch {
    /// Time at which each packet's poll iteration ended, in nanoseconds since the start of the sequence.
    ready_ns: Vec<f64>,
    wrong: u64,
}

impl UpdateHarness {
    fn new(case: &Case) -> Result<Self, CostError> {
        let (plan, start) = Plan::new(case.rules, case.flows, case.before);
        let mut frames = Some(plan.frames());
        let (queues, lines) =
            (1..=3).map(|number| Stream::pair(number, frames.take().unwrap_or_default())).unzip();
        let config = worker::WorkerSetConfig {
            lut_entries: case.lut_entries,
            consistency: case.consistency,
            ..worker::WorkerSetConfig::default()
        };
        let mut rig = Rig::over(&config, queues, None, model::ModelConfig::default())?;
        let mods = start.iter().map(|rule| rule.flow_mod(case.rules)).collect::<Result<Vec<_>, _>>()?;
        rig.model.bundle(Nanos(0), mods).map_err(|(_, error)| error)?;
        rig.settle();
        let (rules, flows, together) = (case.rules, case.flows, case.together.max(1));
        Ok(Self { rig, lines, plan, rules, flows, together, submitted: VecDeque::new(), next: 0 })
    }

    fn luts(&mut self) -> LutFigures {
        let table = self.rig.model.plane_mut().fast_tables().next();
        table.and_then(|(_, lut)| lut).map(|lut| lut.figures).unwrap_or_default()
    }

    /// Submits one more rule.
    fn add(&mut self) -> Result<(), CostError> {
        let rule = self.plan.next();
        self.rig.model.flow_mod(self.rig.clock.now(), rule.flow_mod(self.rules)?)?;
        self.submitted.push_back(rule);
        Ok(())
    }

    /// Runs one poll iteration and returns the number of packets received. Counts the packets that were not
    /// sent to their ports.
    fn turn(&mut self, wrong: &mut u64) -> usize {
        let sent = |lines: &[Arc<Line>]| PORTS.map(|port| lines[port.0 as usize - 1].sent.load(Relaxed));
        let before = sent(&self.lines);
        let turn = self.rig.worker.turn(self.rig.clock.now());
        for _ in 0..turn.applied {
            if let Some(rule) = self.submitted.pop_front() {
                self.plan.take(&rule);
            }
        }
        let after = sent(&self.lines);
        let mut expected = [0; PORTS.len()];
        for _ in 0..turn.received {
            let port = self.plan.port(self.next);
            PORTS
                .iter()
                .zip(&mut expected)
                .filter(|(one, _)| **one == port)
                .for_each(|(_, count)| *count += 1);
            self.next = (self.next + 1) % self.flows;
        }
        for ((after, before), expected) in after.iter().zip(before).zip(expected) {
            *wrong += (after - before).abs_diff(expected);
        }
        turn.received
    }

    /// Lets packets arrive `spacing_ns` nanoseconds apart, while rules are added.
    fn drive(
        &mut self,
        costs: &CostTable,
        spacing_ns: f64,
        packets: usize,
        rules: usize,
        rule_spacing_ns: f64,
    ) -> Result<Stretch, CostError> {
        let mut stretch = Stretch { ready_ns: Vec::with_capacity(packets), wrong: 0 };
        let (mut now_ns, mut arrived, mut added) = (0.0, 0, 0);
        costs.drive_by_tails_of(self.rig.worker.probe(), &BY_RULES);
        let mut worked_ns = 0.0;
        while stretch.ready_ns.len() < packets || !self.submitted.is_empty() {
            let due = packets.min((now_ns / spacing_ns) as usize + 1);
            self.lines[0].waiting.fetch_add(due - arrived, Relaxed);
            arrived = due;
            while added < rules && (added - added % self.together) as f64 * rule_spacing_ns <= now_ns {
                self.add()?;
                added += 1;
            }
            let received = self.turn(&mut stretch.wrong);
            let took_ns = (self.rig.worker.probe().virtual_ns() - worked_ns).max(LEAST_NS);
            worked_ns = self.rig.worker.probe().virtual_ns();
            now_ns += took_ns;
            self.rig.clock.advance_by(Nanos(took_ns as u64));
            stretch.ready_ns.extend(std::iter::repeat_n(now_ns, received));
            self.rig.model.poll(self.rig.clock.now());
            while self.rig.model.next_async_message().is_some() {}
        }
        Ok(stretch)
    }
}

/// Workload for measuring costs: full bursts and, from time to time, a rule.
struct Adding<'a> {
    harness: &'a mut UpdateHarness,
    together: usize,
    since: u64,
}

impl Workload for Adding<'_> {
    fn prepare(&mut self, turn: u64) -> u8 {
        self.harness.rig.clock.advance_by(Nanos(1_000));
        self.harness.lines[0].waiting.store(BURST, Relaxed);
        self.since += 1;
        if !turn.is_multiple_of(RULE_TURNS) {
            // The kind of a poll iteration is the number of iterations since the last rule.
            return self.since.min(u64::from(u8::MAX)) as u8;
        }
        self.since = 0;
        self.harness.rig.model.poll(self.harness.rig.clock.now());
        for _ in 0..self.together {
            let done = self.harness.add();
            debug_assert!(done.is_ok(), "{done:?}");
        }
        0
    }

    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos) {
        (&mut self.harness.rig.worker, self.harness.rig.clock.now())
    }
}
