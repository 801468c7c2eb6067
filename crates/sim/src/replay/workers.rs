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
use worker::{Clock, Consistency, PortQueues, Quanta, Worker, WorkerSet, WorkerSetConfig};

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
    sides: BTreeMap<PortNo, Side>,
}

impl Workers {
    pub fn build(ports: &BTreeSet<PortNo>, options: &Options) -> (WorkerSet, Self) {
        let sides: BTreeMap<PortNo, Side> = ports.iter().map(|port| (*port, Side::default())).collect();
        let queues = sides.iter().map(|(number, side)| PortQueues {
            number: *number,
            queues: vec![(0, Box::new(ReplayQueue::new(number.0, side.clone())))],
            egress: Vec::new(),
        });
        let size = |is_on, size| if is_on { size } else { 0 };
        let sizes = WorkerSetConfig {
            lut_entries: size(options.ffp, SIZES.lut_entries),
            express_records: size(options.has_records(), SIZES.express_records),
            port_cache: options
                .port_cache
                .cache_mode()
                .map(|mode| PortCacheConfig { mode, ..PortCacheConfig::default() }),
            ..SIZES
        };
        let (set, mut workers) = worker::build(&sizes, queues.collect());
        (set, Self { worker: workers.remove(0), sides })
    }
}

impl Forwarder for Workers {
    type Plane = WorkerSet;

    fn settle(&mut self, model: &mut Model<WorkerSet>, now: Nanos) {
        while !model.is_applied(model.barrier()) {
            self.worker.turn(now);
        }
    }

    fn forward(&mut self, _model: &mut Model<WorkerSet>, now: Nanos, burst: &Burst) {
        if let Some(side) = self.sides.get(&burst.in_port) {
            side.line().arriving.extend((burst.first..).zip(burst.packets.iter().map(|p| p.bytes.clone())));
        }
        while !self.worker.turn(now).is_idle() {}
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
