// SPDX-License-Identifier: Apache-2.0
//! Delay of packets while a controller changes flows as fast as it can.
//!
//! Each phase runs twice from the same initial state. The first run submits an operation every few poll
//! iterations, and measures the costs of steps. In the second run the queue of operations never runs empty,
//! and virtual time uses the 99.9th percentile of each step's cost.

mod scripts;

use crate::cost::stall::Turns;
use crate::cost::{CostError, CostProbe, CostSource, CostTable, MeasurePlan, Rig, Workload, measure};
use dataplane::DataPlane;
use flow::{FlowMod, FlowModCommand, Nanos, TableId};
use scripts::{Family, Script};
use std::collections::VecDeque;
use std::time::Instant;
use worker::Worker;

/// Number of operations in flight above which the control thread waits, as the agent does.
const PARKED_MAX: usize = 256;
/// Number of poll iterations between operations while costs are measured.
const OPERATION_TURNS: usize = 4;
/// Number of times that repeatable operations are repeated while costs are measured.
const REPEATS: usize = 10;
/// If an operation takes the control thread longer than this, it must have compiled a table, after which the
/// worker's CPU cache is cold.
const COMPILED_NS: u128 = 50_000;

/// Kinds of poll iterations, apart from kind 0 without an operation: the first iteration of a window, an
/// iteration with an operation, and an iteration with an operation that compiled a table.
const FIRST: u8 = 1;
const WARM: u8 = 2;
const COLD: u8 = 3;

/// Results of one stream of operations.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Name of the stream of operations.
    pub name: &'static str,
    /// Number of flow-mods.
    pub mods: usize,
    /// Engine of the first table at the start.
    pub engine: &'static str,
    /// Costs from which virtual time is computed.
    pub costs: CostTable,
    /// Durations of the worker's poll iterations while operations were queued. Their virtual time uses the
    /// 99.9th percentile of each step's cost.
    pub turns: Turns,
}

/// Runs every phase whose name contains `only` with `count` flows (at most 2^24), and passes each result to
/// `report`.
///
/// # Errors
/// Returns an error only if one of the generated flows is refused.
pub fn run(
    count: u32,
    costs: CostSource,
    only: &str,
    mut report: impl FnMut(Phase),
) -> Result<(), CostError> {
    for family in scripts::FAMILIES {
        let Family { frames, scripts } = family(count)?;
        let mut rig = Rig::new(2, frames)?;
        for script in scripts.into_iter().filter(|script| script.name.contains(only)) {
            let (phase, used) = phase(rig, script, costs)?;
            rig = used;
            report(phase);
        }
    }
    Ok(())
}

fn phase(mut rig: Rig, script: Script, costs: CostSource) -> Result<(Phase, Rig), CostError> {
    begin(&mut rig, &script)?;
    let engine = rig.model.plane_mut().engine(TableId(0)).0;
    let costs = match costs {
        CostSource::Measured(plan) => {
            let (costs, used) = paced(rig, &script, plan);
            rig = used;
            begin(&mut rig, &script)?;
            costs
        }
        CostSource::Even(unit_ns) => CostTable::even(unit_ns),
    };
    let mods = script.operations.iter().map(Vec::len).sum();
    let turns = queued(&mut rig, &costs, script.operations)?;
    Ok((Phase { name: script.name, mods, engine, costs, turns }, rig))
}

/// Measures costs while the operations of a script are submitted, with a few poll iterations between them.
fn paced(rig: Rig, script: &Script, plan: MeasurePlan) -> (CostTable, Rig) {
    let turns = 2 * plan.turns * (plan.warm_up + plan.windows);
    let repeats = if script.repeats { REPEATS } else { 1 };
    let todo: VecDeque<Vec<FlowMod>> =
        std::iter::repeat_n(&script.operations, repeats).flatten().cloned().collect();
    let spacing = (turns / todo.len().max(1)).max(OPERATION_TURNS);
    // Operations beyond the measured poll iterations are submitted between windows.
    let measured_per_window = plan.turns / spacing;
    let windows = turns / plan.turns.max(1);
    let extra = (todo.len() / windows.max(1)).saturating_sub(measured_per_window);
    let mut paced = Paced { rig, todo, spacing: spacing as u64, window: plan.turns as u64, extra };
    (measure(&mut paced, plan), paced.rig)
}

/// Restores the initial state of the script.
fn begin(rig: &mut Rig, script: &Script) -> Result<(), CostError> {
    rig.worker.probe().off();
    rig.settle();
    rig.model
        .flow_mod(Nanos(0), FlowMod { command: FlowModCommand::Delete, table: None, ..FlowMod::default() })?;
    rig.settle();
    rig.model.bundle(Nanos(0), script.setup.clone()).map_err(|(_, error)| error)?;
    rig.settle();
    Ok(())
}

fn submit(rig: &mut Rig, mut operation: Vec<FlowMod>) -> Result<(), CostError> {
    let now = rig.clock.now();
    match operation.len() {
        1 => operation.pop().map_or(Ok(()), |flow_mod| rig.model.flow_mod(now, flow_mod).map(drop))?,
        _ => rig.model.bundle(now, operation).map(drop).map_err(|(_, error)| error)?,
    }
    Ok(())
}

fn poll(rig: &mut Rig) {
    rig.model.poll(rig.clock.now());
    while rig.model.next_async_message().is_some() {}
}

/// Keeps the queue full: operations are submitted before each poll iteration.
fn queued(rig: &mut Rig, costs: &CostTable, operations: Vec<Vec<FlowMod>>) -> Result<Turns, CostError> {
    costs.drive_by_tails(rig.worker.probe());
    let mut operations = operations.into_iter();
    let mut turns = Turns::default();
    let mut virtual_ns = 0.0;
    loop {
        poll(rig);
        while rig.model.plane_mut().parked() < PARKED_MAX
            && let Some(operation) = operations.next()
        {
            submit(rig, operation)?;
        }
        let start = Instant::now();
        let turn = rig.worker.turn(rig.clock.now());
        let real_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let took_ns = rig.worker.probe().virtual_ns() - virtual_ns;
        virtual_ns += took_ns;
        rig.clock.advance_by(Nanos(took_ns as u64));
        turns.add(turn.applied > 0, took_ns, real_ns);
        if operations.len() == 0 && turn.applied == 0 && rig.model.is_applied(rig.model.barrier()) {
            return Ok(turns);
        }
    }
}

/// Submits operations one by one while costs are measured, spread evenly over all windows.
struct Paced {
    rig: Rig,
    todo: VecDeque<Vec<FlowMod>>,
    /// Poll iterations between operations.
    spacing: u64,
    /// Poll iterations per window.
    window: u64,
    /// Number of operations before each window, which are not measured.
    extra: usize,
}

impl Paced {
    fn next(&mut self) {
        if let Some(operation) = self.todo.pop_front() {
            let done = submit(&mut self.rig, operation);
            debug_assert!(done.is_ok(), "{done:?}");
        }
    }
}

impl Workload for Paced {
    /// Returns the kind of the poll iteration. Iterations of one kind have similar numbers of changes and a
    /// similarly warm CPU cache.
    fn prepare(&mut self, turn: u64) -> u8 {
        self.rig.clock.advance_by(Nanos(1_000));
        if turn.is_multiple_of(self.window) && self.extra > 0 {
            self.rig.worker.probe().pause(true);
            for _ in 0..self.extra {
                self.next();
                self.rig.worker.apply();
            }
            poll(&mut self.rig);
            self.rig.worker.probe().pause(false);
            return FIRST;
        }
        if !turn.is_multiple_of(self.spacing) || self.todo.is_empty() {
            return 0;
        }
        poll(&mut self.rig);
        let start = Instant::now();
        self.next();
        if start.elapsed().as_nanos() > COMPILED_NS { COLD } else { WARM }
    }

    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos) {
        (&mut self.rig.worker, self.rig.clock.now())
    }
}
