// SPDX-License-Identifier: Apache-2.0
//! The default engine: one worker, run one poll iteration at a time.

use crate::replay::Options;
use crate::replay::engine::Forwarder;
use crate::replay::input::Burst;
use crate::replay::queue::{Numbered, ReplayQueue, Side};
use flow::{Nanos, PortNo};
use model::Model;
use pipeline::{BypassLimits, LaneLimits};
use port_cache::{MissFigures, PortCacheConfig};
use std::collections::{BTreeMap, BTreeSet};
use worker::{
    Clock, Consistency, PortQueues, Quanta, SearchTurn, SearchWorker, Turn, Worker, WorkerSet,
    WorkerSetConfig,
};

/// Sizes sufficient for any burst, so that no copy is lost for lack of a frame.
const SIZES: WorkerSetConfig = WorkerSetConfig {
    // Packets of a capture are processed in order, without overload.
    lanes: LaneLimits::NONE,
    quanta: Quanta::DEFAULT,
    workers: 1,
    small_frames: 8_192,
    large_frames: 1_024,
    controller_frames: 4_096,
    operations: 1_024,
    events: 8_192,
    lut_entries: 4_096,
    express_records: 16_384,
    express_bypass: BypassLimits::USUAL,
    port_cache: None,
    packet_in_rates: worker::PacketInRates::NONE,
    stopwatch: None,
    consistency: Consistency::Auto,
    timed_bursts: 1_024,
    handovers: 1,
    outbox_frames: 512,
    clock: Clock::stopped(),
};

/// One worker with a queue at each port.
pub(super) struct Workers {
    worker: Worker,
    /// The search worker of the port cache, if there is one.
    search: Option<SearchWorker>,
    sides: BTreeMap<PortNo, Side>,
    /// Time of the last poll iteration.
    now: Nanos,
}

impl Workers {
    pub fn build(ports: &BTreeSet<PortNo>, options: &Options) -> (WorkerSet, Self) {
        let size = |is_on, size| if is_on { size } else { 0 };
        let sizes = WorkerSetConfig {
            lut_entries: size(options.ffp, SIZES.lut_entries),
            express_records: size(options.has_records(), SIZES.express_records),
            port_cache: options.port_cache.cache_mode().map(|mode| PortCacheConfig {
                mode,
                searcher: options.searcher,
                ..PortCacheConfig::default()
            }),
            ..SIZES
        };
        Self::with_sizes(ports, &sizes)
    }

    fn with_sizes(ports: &BTreeSet<PortNo>, sizes: &WorkerSetConfig) -> (WorkerSet, Self) {
        let sides: BTreeMap<PortNo, Side> = ports.iter().map(|port| (*port, Side::default())).collect();
        let queues = sides.iter().map(|(number, side)| PortQueues {
            number: *number,
            queues: vec![(0, Box::new(ReplayQueue::new(number.0, side.clone())))],
            egress: Vec::new(),
        });
        let (mut set, mut workers) = worker::build(sizes, queues.collect());
        let search = set.take_search_worker();
        (set, Self { worker: workers.remove(0), search, sides, now: Nanos(0) })
    }

    /// Runs a poll iteration at this time, or at the time of the last one if it is later.
    fn turn(&mut self, now: Nanos) -> Turn {
        self.now = self.now.max(now);
        let mut turn = self.worker.turn(self.now);
        if let Some(SearchTurn { answers_ns, answered, .. }) = self.search.as_mut().map(|s| s.turn(self.now))
        {
            // An answer is taken in the next poll iteration.
            let answers_ns = answers_ns.into_iter().chain((answered > 0).then_some(self.now)).min();
            turn.answers_ns = turn.answers_ns.into_iter().chain(answers_ns).min();
        }
        turn
    }
}

impl Forwarder for Workers {
    type Plane = WorkerSet;

    fn settle(&mut self, model: &mut Model<WorkerSet>, now: Nanos) {
        while !model.is_applied(model.barrier()) {
            self.turn(now);
        }
    }

    fn forward(&mut self, _model: &mut Model<WorkerSet>, now: Nanos, burst: &Burst) {
        if let Some(side) = self.sides.get(&burst.in_port) {
            side.line().arriving.extend((burst.first..).zip(burst.packets.iter().map(|p| p.bytes.clone())));
        }
        let mut turn = self.turn(now);
        while !turn.is_idle() {
            // If packets wait only for a searcher, the time advances to its next answer.
            let is_idle = Turn { answers_ns: None, ..turn }.is_idle();
            turn = self.turn(turn.answers_ns.filter(|_| is_idle).unwrap_or(now));
        }
    }

    fn misses(model: &mut Model<WorkerSet>) -> MissFigures {
        model.plane_mut().miss_figures()
    }

    fn take_sent(&mut self, _model: &mut Model<WorkerSet>, mut each: impl FnMut(PortNo, Vec<Numbered>)) {
        for (port, side) in &self.sides {
            let mut sent = std::mem::take(&mut side.line().sent);
            if !sent.is_empty() {
                // The pipeline processes packets table by table, so the packets of a burst may be sent out of
                // order.
                sent.sort_by_key(|(number, _)| *number);
                each(*port, sent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::input::Arrival;
    use flow::FlowModCommand;
    use flow::syntax::{ParseOptions, parse_flow};
    use model::{ModelConfig, PortDesc};

    #[test]
    fn packets_that_wait_for_a_searcher_leave_at_the_time_of_its_answer() {
        let cache = PortCacheConfig { service_ns: Nanos(1_000_000), ..PortCacheConfig::default() };
        let ports = [1, 2].map(PortNo);
        let sizes = WorkerSetConfig { port_cache: Some(cache), ..SIZES };
        let (plane, mut workers) = Workers::with_sizes(&ports.into(), &sizes);
        let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
        for number in ports {
            let desc = PortDesc { number, name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(Nanos(0), desc, true).unwrap();
        }
        let flow = parse_flow("actions=output:2", FlowModCommand::Add, ParseOptions::default()).unwrap();
        model.flow_mod(Nanos(0), flow).unwrap();
        workers.settle(&mut model, Nanos(0));
        let arrival = |_| Arrival { timestamp_ns: Nanos(5), missing: 0, bytes: vec![2; 60] };
        let burst = Burst { in_port: PortNo(1), first: 0, packets: (0..3).map(arrival).collect() };
        workers.forward(&mut model, Nanos(5), &burst);
        let mut sent = Vec::new();
        workers.take_sent(&mut model, |port, packets| sent.push((port, packets.len())));
        assert_eq!((sent, workers.now), (vec![(PortNo(2), 3)], Nanos(1_000_005)));
        assert_eq!(Workers::misses(&mut model).searched, 1);
        workers.settle(&mut model, Nanos(6));
        assert_eq!(workers.now, Nanos(1_000_005), "the time never goes back");
    }
}
