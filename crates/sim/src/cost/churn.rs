// SPDX-License-Identifier: Apache-2.0
//! How long packets wait while a controller changes flow after flow under them.

use crate::cost::rig::udp_frame;
use crate::cost::stall::{Turns, forward};
use crate::cost::{CostError, CostProbe, CostTable, Plan, Rig, Workload, measure};
use flow::syntax::{ParseOptions, parse_flows};
use flow::{Action, Command, FlowMod, Instructions, Nanos};
use model::DataPlane;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use worker::Worker;

/// Different packets, drawn from all flows.
const FRAMES: u32 = 4_096;
/// Operations on their way above which the control thread waits, as the agent does.
const PARKED_MAX: usize = 256;
/// Turns from one flow-mod to the next while costs are measured.
const MOD_TURNS: u64 = 4;

/// One stream of flow-mods, and what it did to the packets.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What was done.
    pub name: &'static str,
    /// Flow-mods.
    pub mods: usize,
    /// Until all were in force.
    pub took: Duration,
    /// Turns of the worker meanwhile.
    pub turns: Turns,
}

/// Streams of flow-mods over a table in use.
#[derive(Clone, Debug)]
pub struct Report {
    /// The costs that virtual time is made of, measured while flow-mods of all sorts came.
    pub costs: CostTable,
    /// One after the other.
    pub phases: Vec<Phase>,
}

/// A UDP flow to port 53; packets of it leave by port 2.
fn flow(command: Command, n: u32, port: u32) -> Result<FlowMod, CostError> {
    let [_, b, c, d] = n.to_be_bytes();
    let text = format!("udp,nw_src=10.{b}.{c}.{d},nw_dst=192.168.0.1,tp_src=1000,tp_dst=53 actions=output:2");
    let mut flow = parse_flows(&text, ParseOptions::default()).next().transpose()?.unwrap_or_default();
    flow.command = command;
    flow.instructions = Instructions::apply(vec![Action::output(port)]);
    Ok(flow)
}

fn flows(command: Command, flows: u32, port: u32) -> Result<Vec<FlowMod>, CostError> {
    (0..flows).map(|n| flow(command, n, port)).collect()
}

fn of_all(command: Command, port: u32) -> FlowMod {
    let instructions = Instructions::apply(vec![Action::output(port)]);
    FlowMod { command, table: Some(0), instructions, ..FlowMod::default() }
}

/// Adds this many flows (at most 2^24) one by one, modifies each, modifies all at once, replaces all at once, deletes
/// each, while a worker forwards packets of them.
///
/// # Errors
/// Not unless the flows made for it are refused.
pub fn run(count: u32, plan: Plan) -> Result<Report, CostError> {
    let frame = |n: u32| {
        let [_, b, c, d] = ((u64::from(n) * u64::from(count) / u64::from(FRAMES)) as u32).to_be_bytes();
        udp_frame([10, b, c, d], [192, 168, 0, 1], 1_000)
    };
    let rig = Rig::new(2, (0..FRAMES).map(frame).collect())?;
    let mut stream = Stream { rig, mods: Vec::new(), next: 0 };
    let mut replaced = vec![of_all(Command::Delete, 1)];
    replaced.extend(flows(Command::Add, count, 2)?);
    // Costs first: all sorts of flow-mods over a table that grows and shrinks.
    for command in [Command::Add, Command::ModifyStrict, Command::DeleteStrict] {
        stream.mods.extend(flows(command, count.min(4_096), 1)?);
    }
    let costs = measure(&mut stream, plan);
    let mut rig = stream.rig;
    let all = |command| of_all(command, 2);
    rig.model.flow_mod(rig.clock.now(), all(Command::Delete))?;
    rig.settle();
    let phases: [(&'static str, bool, Vec<FlowMod>); 5] = [
        ("adds", false, flows(Command::Add, count, 2)?),
        ("strict modifies", false, flows(Command::ModifyStrict, count, 1)?),
        ("a modify of all", false, vec![all(Command::Modify)]),
        ("a replacement of all in a bundle", true, replaced),
        ("strict deletes", false, flows(Command::DeleteStrict, count, 2)?),
    ];
    let mut report = Report { costs, phases: Vec::new() };
    for (name, bundle, mods) in phases {
        report.phases.push(phase(&mut rig, &report.costs, name, bundle, mods)?);
        rig.settle();
    }
    Ok(report)
}

/// Does flow-mods while packets flow in another thread.
fn phase(
    rig: &mut Rig,
    costs: &CostTable,
    name: &'static str,
    bundle: bool,
    mods: Vec<FlowMod>,
) -> Result<Phase, CostError> {
    let count = mods.len();
    let Rig { model, worker, clock } = rig;
    costs.drive(worker.probe());
    let stop = AtomicBool::new(false);
    let mut done = Ok(());
    let mut turns = Turns::default();
    let start = Instant::now();
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| forward(worker, clock, &stop));
        done = if bundle {
            model.bundle(0, mods).map(drop).map_err(|(_, error)| error)
        } else {
            mods.into_iter().try_for_each(|flow_mod| {
                while model.plane_mut().parked() >= PARKED_MAX {
                    model.poll(0);
                }
                model.flow_mod(0, flow_mod).map(drop)
            })
        };
        let barrier = model.barrier();
        while !model.is_applied(barrier) {
            std::hint::spin_loop();
        }
        took = start.elapsed();
        stop.store(true, Ordering::Release);
        turns = forwarding.join().unwrap_or_default();
    });
    done?;
    Ok(Phase { name, mods: count, took, turns })
}

/// Flow-mods one by one, round and round, while costs are measured.
struct Stream {
    rig: Rig,
    mods: Vec<FlowMod>,
    next: usize,
}

impl Workload for Stream {
    fn prepare(&mut self, turn: u64) -> u8 {
        let now = self.rig.clock.advance_by(1_000);
        if !turn.is_multiple_of(MOD_TURNS) || self.mods.is_empty() {
            return 0;
        }
        self.rig.model.poll(now);
        let flow_mod = self.mods[self.next % self.mods.len()].clone();
        self.next += 1;
        let done = self.rig.model.flow_mod(now, flow_mod);
        debug_assert!(done.is_ok(), "{done:?}");
        1
    }

    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos) {
        (&mut self.rig.worker, self.rig.clock.now())
    }
}
