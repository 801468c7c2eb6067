// SPDX-License-Identifier: Apache-2.0
//! Test harness for one worker: the worker's ports, and the loop that drives the worker in virtual time.

use crate::arrivals::links::{LinkQueue, Links, VirtualTime, lock};
use crate::arrivals::observer::Observer;
use crate::arrivals::{Load, Report, Switch};
use crate::cost::{CostError, CostProbe, CostTable, MeasurePlan, Rig, Workload, measure_all};
use flow::{Nanos, PortNo};
use model::AsyncMessage;
use pipeline::{BURST, LaneLimits, Probe};
use port::Queue;
use std::sync::{Arc, Mutex};
use worker::{Turn, Worker};

/// Numbers of packets per poll iteration while costs are measured.
const SIZES: [usize; 8] = [1, 32, 2, 32, 8, 4, 16, 32];

/// Minimum duration of a poll iteration in nanoseconds, so that virtual time always advances.
const LEAST_NS: f64 = 1.0;

/// Interval between two polls of the model, in nanoseconds.
const CONTROL_NS: f64 = 1e6;

/// Number of idle poll iterations after the last arrival until the worker counts as empty.
const IDLE_TURNS: u32 = 64;

/// Maximum number of poll iterations in which packets that arrived before the run are processed.
const DRAIN_TURNS: u32 = 100_000;

/// Number of packets that each known flow sends before the run.
const PASSES: usize = 4;

/// Start of virtual time for the worker, in nanoseconds; 0 would mean that no time is set.
const START_NS: Nanos = Nanos(1_000_000_000);

/// A worker with the ports of a load and with its rules installed.
pub struct Harness<P: Probe = Observer> {
    rig: Rig<P>,
    links: Arc<Mutex<Links>>,
    clock: Arc<VirtualTime>,
    known: Vec<(usize, usize)>,
}

impl<P: Probe + Default> Harness<P> {
    fn over(switch: &Switch<'_>, load: &Load, end_ns: f64) -> Result<Self, CostError> {
        let clock = Arc::<VirtualTime>::default();
        let links = Links::new(load, switch.ports, Arc::clone(&clock), end_ns)?;
        let links = Arc::new(Mutex::new(links));
        let queue = |port| Box::new(LinkQueue { port, links: Arc::clone(&links) }) as Box<dyn Queue>;
        let queues = (1..=switch.ports).map(PortNo).map(queue).collect();
        let mut rig = Rig::over(&switch.config, queues, switch.maker, switch.marks.model())?;
        rig.clock.advance_to(START_NS);
        rig.load(switch.rules)?;
        rig.add(switch.added)?;
        switch.stateless.map_or(Ok(()), |config| rig.forward_stateless(config))?;
        let known = load.classes.iter().enumerate().filter(|(_, class)| class.known);
        let known = known.flat_map(|(at, class)| (0..class.flows.len()).map(move |flow| (at, flow)));
        Ok(Self { rig, known: known.collect(), clock, links })
    }

    /// Sends several packets of each known flow before the run. A full LUT makes a record only for a key that
    /// was looked up before.
    fn acquaint(&mut self) {
        for _ in 0..PASSES {
            for flows in self.known.chunks(BURST) {
                for (class, flow) in flows {
                    lock(&self.links).present(*class, *flow);
                }
                Self::settle_arrivals(&mut self.rig, &self.links);
            }
            self.poll();
        }
    }

    /// Runs the worker until no packet waits to be received or for the port cache. Packets that wait in the
    /// port cache make their records before others of their flows arrive.
    fn settle_arrivals(rig: &mut Rig<P>, links: &Mutex<Links>) {
        let mut answers_ns = None;
        while lock(links).any_waits() || answers_ns.is_some() {
            rig.clock.advance_by(Nanos(10_000));
            rig.clock.advance_to(answers_ns.unwrap_or_default());
            let turn = rig.turn();
            answers_ns = rig.search(rig.clock.now(), &turn);
        }
    }

    /// Runs the worker until it has processed the packets that remain from [`Self::acquaint`]. If they left
    /// during the run, they would count as packets of the run.
    fn drain(&mut self) {
        let mut idle = 0;
        for _ in 0..DRAIN_TURNS {
            let turn = self.rig.turn();
            idle = if (Turn { answers_ns: None, counting: false, ..turn }).is_idle() { idle + 1 } else { 0 };
            if idle == IDLE_TURNS {
                break;
            }
        }
    }

    fn poll(&mut self) {
        while self.rig.model.poll(self.rig.clock.now()) {}
        while let Some(message) = self.rig.model.next_async_message() {
            if let AsyncMessage::PacketIn(packet_in) = message {
                self.rig.model.recycle(packet_in.frame);
            }
        }
    }
}

impl Harness<Observer> {
    /// Creates a worker with the ports of the load and with its rules installed.
    ///
    /// # Errors
    /// Returns an error if a rule is refused.
    pub fn new(switch: &Switch<'_>, load: &Load) -> Result<Self, CostError> {
        let mut harness = Self::over(switch, load, load.end_ns())?;
        let outside = (Arc::clone(&harness.clock), Arc::clone(&harness.links));
        harness.rig.worker.probe().outside = Some(outside);
        Ok(harness)
    }

    /// Runs the worker with these costs until every packet that arrived has been sent or lost.
    pub fn run(mut self, costs: &CostTable) -> Report {
        costs.drive_by_size(&mut self.rig.worker.probe().costs);
        self.acquaint();
        self.drain();
        // Packets that return pass the switch once more, by another port.
        while lock(&self.links).present_returning() {
            Self::settle_arrivals(&mut self.rig, &self.links);
            self.drain();
        }
        costs.drive_by_size(&mut self.rig.worker.probe().costs);
        self.rig.worker.probe().pass(0.0);
        lock(&self.links).begin();
        let begin = self.rig.clock.now();
        let (mut turns, mut received, mut busy_ns, mut control_ns, mut idle) = (0, 0, 0.0, CONTROL_NS, 0);
        loop {
            let start_ns = self.clock.now_ns();
            self.rig.clock.advance_to(begin + Nanos(start_ns as u64));
            let turn = self.rig.turn();
            let answers_ns = self.rig.search(begin + Nanos(self.clock.now_ns() as u64), &turn);
            turns += 1;
            received += turn.received as u64;
            let probe = self.rig.worker.probe();
            let least_ns = LEAST_NS - (self.clock.now_ns() - start_ns);
            if least_ns > 0.0 {
                probe.pass(least_ns);
            }
            let now_ns = self.clock.now_ns();
            // The worker has no packets while it only waits to count hits.
            let without_search = Turn { answers_ns: None, ..turn };
            let only_counts = turn.counting && Turn { counting: false, ..without_search }.is_idle();
            if only_counts {
                idle = 0;
            } else if without_search.is_idle() {
                let answers_ns = answers_ns.map_or(f64::INFINITY, |at| at.saturating_sub(begin).0 as f64);
                let next_ns = lock(&self.links).next_ns().min(answers_ns);
                idle += 1;
                if next_ns.is_finite() {
                    // Idle poll iterations are all alike, so those before the next arrival are skipped.
                    let turn_ns = now_ns - start_ns;
                    let spare = ((next_ns - now_ns) / turn_ns).floor().max(0.0);
                    self.rig.worker.probe().pass(spare * turn_ns);
                } else if idle > IDLE_TURNS && !lock(&self.links).any_waits() {
                    break;
                }
            } else {
                idle = 0;
                busy_ns += now_ns - start_ns;
            }
            if now_ns >= control_ns {
                control_ns = now_ns + CONTROL_NS;
                self.poll();
            }
        }
        let misses = self.rig.model.plane_mut().miss_figures();
        let report = lock(&self.links).report(turns, received, busy_ns);
        let free_steps = costs.free_steps(&mut self.rig.worker.probe().costs);
        Report { misses, free_steps, ..report }
    }
}

/// A workload whose costs are measured.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Switch under measurement.
    pub switch: Switch<'a>,
    /// Traffic mix. Its rates are ignored.
    pub load: &'a Load,
    /// Whether the worker keeps up with its load.
    pub pressure: Pressure,
}

/// Whether a worker keeps up with its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// Packets wait only briefly.
    KeepsUp,
    /// More packets arrive than the worker can process. Packets of a full backlog have left the CPU caches,
    /// and cost up to twice as much.
    Overloaded,
}

/// Measures the cost of each worker's steps under its load, in bursts of all sizes. The measurement windows
/// of all workers alternate, so that disturbances of the machine affect all workers equally.
///
/// # Errors
/// Returns an error if a rule is refused.
pub fn measure(cases: &[Case<'_>], plan: MeasurePlan) -> Result<Vec<CostTable>, CostError> {
    let roads = cases.iter().map(|case| {
        let mut harness: Harness<CostProbe> = Harness::over(&case.switch, case.load, f64::INFINITY)?;
        harness.acquaint();
        let config = &case.switch.config;
        let waits = case.pressure == Pressure::KeepsUp && config.lanes != LaneLimits::NONE;
        let quantum = waits.then_some(config.quanta.small.max(1));
        Ok(Measured { harness, quantum, arrivals: 0, rest: 0 })
    });
    Ok(measure_all(&mut roads.collect::<Result<Vec<_>, CostError>>()?, plan))
}

/// Workload in which packets of a load arrive before a poll iteration.
struct Measured {
    harness: Harness<CostProbe>,
    /// Number of packets processed per poll iteration, if the backlog must be empty before the next arrivals.
    quantum: Option<usize>,
    /// Number of bursts that have arrived.
    arrivals: u64,
    /// Number of poll iterations until the next arrivals.
    rest: usize,
}

/// First number that [`Workload::prepare`] returns for poll iterations without arrivals. Lower numbers are
/// burst sizes.
const RESTING: usize = 64;

impl Workload for Measured {
    fn prepare(&mut self, _: u64) -> u8 {
        let now = self.harness.rig.clock.advance_by(Nanos(1_000));
        self.harness.rig.search(now, &Turn::default());
        if self.rest > 0 {
            self.rest -= 1;
            return (RESTING + self.rest) as u8;
        }
        // The order of sizes is pseudo-random, so that it is not synchronized with the measurement windows.
        let size = SIZES[(self.arrivals.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize];
        self.arrivals += 1;
        self.rest = self.quantum.map_or(0, |quantum| (size - 1) / quantum);
        let mut links = lock(&self.harness.links);
        links.forget();
        for _ in 0..size {
            links.arrive();
        }
        size as u8
    }

    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos) {
        (&mut self.harness.rig.worker, self.harness.rig.clock.now())
    }
}
