// SPDX-License-Identifier: Apache-2.0
//! Sends packets to ports, runs poll iterations of the workers, and collects the frames that they send.

use super::Driver;
use super::setup::LARGE_FRAMES;
use crate::log::Arrival;
use crate::offload::{unfinished_frame, unfinished_of};
use crate::templates::{Shape, Template};
use crate::views;
use dataplane::DataPlane;
use flow::{Nanos, PortNo};
use frame::Meta;
use worker::{SearchTurn, Turn};

/// Maximum number of packets that wait in one receive queue in a tight case.
const TIGHT_WAITING_MAX: usize = 8;

/// Maximum number of packets that wait in one receive queue, so that the outboxes can hold all copies of a
/// poll iteration.
const WAITING_MAX: usize = 16;

/// Maximum number of packets that wait for one worker, so that there are enough frames and outbox space for
/// all copies.
const ALL_WAITING_MAX: usize = 64;

/// Maximum number of packets that wait for one worker in a tight case.
const TIGHT_ALL_WAITING_MAX: usize = 20;

/// Maximum number of a worker's large buffers that unsent packets and their copies may use. The other half is
/// a reserve: the number of copies is only estimated, and workers drop some frames if fewer than a quarter of
/// the buffers are free.
const LARGE_TAKEN_MAX: usize = LARGE_FRAMES / 2;

/// Maximum number of rounds over all workers until everything is sent, including frames that egress queues
/// hold back.
const ROUNDS_MAX: usize = 10_000;

/// Number of steps of a case after which the search worker ends, on average.
const SEARCH_STEPS: u16 = 8_000;

impl Driver {
    /// Puts some packets into the queues of one worker.
    pub(super) fn push(&mut self) {
        let worker = self.rng.usize(0..self.options.workers);
        // Only the first `most` templates are used, so that some flows send more than others.
        let most = self.rng.usize(1..=self.templates.len());
        // Occasionally all packets arrive on one port in one burst.
        let one = self.rng.usize(0..self.homes.len());
        let one = (self.rng.u8(0..5) == 0).then_some(self.homes[one]);
        for _ in 0..self.rng.usize(1..12) {
            let template = self.rng.usize(0..most);
            let port = one.unwrap_or_else(|| self.port_of(template));
            let at = port.0 as usize - 1;
            let worker = worker % self.handles[at].queues();
            let most = if self.tight { TIGHT_WAITING_MAX } else { WAITING_MAX };
            let all: usize = self.waiting.iter().map(|waiting| waiting[worker]).sum();
            let all_most = if self.tight { TIGHT_ALL_WAITING_MAX } else { ALL_WAITING_MAX };
            if self.waiting[at][worker] == most || all >= all_most {
                continue;
            }
            if !self.take_large(worker, template, port) {
                continue;
            }
            let tag = self.record.arrivals.len();
            let bytes = if self.style.ttl_varies && self.rng.bool() {
                let ttl = [0, 1, 2, 2, 3, 64, 65][self.rng.usize(0..7)];
                self.templates[template].with_ttl(ttl).tagged(tag)
            } else {
                self.templates[template].tagged(tag)
            };
            let unfinished = self.templates[template].unfinished;
            if !self.handles[at].push_frame(worker, &unfinished_frame(&bytes, unfinished)) {
                return;
            }
            // Device drivers drop frames shorter than an Ethernet header, so such frames never arrive.
            if bytes.len() < port::MIN_FRAME_BYTES {
                *self.record.runts.entry(port).or_default() += 1;
                continue;
            }
            self.waiting[at][worker] += 1;
            let sequence = self.sequences[at][worker];
            self.sequences[at][worker] += 1;
            let flow = match self.templates[template].shape {
                Shape::Broken => 1 << 32 | tag as u64,
                Shape::Whole | Shape::Short => template as u64,
            };
            self.record.arrivals.push(Arrival {
                port,
                unfinished,
                worker,
                sequence,
                flow,
                bytes,
                acknowledged: self.acknowledged,
            });
        }
    }

    /// Reserves large buffers of a worker for a packet and its copies. Returns false if too few are left.
    fn take_large(&mut self, worker: usize, template: usize, port: PortNo) -> bool {
        let Template { bytes, unfinished, .. } = &self.templates[template];
        if bytes.len() <= port::SMALL_FRAME_BYTES {
            return true;
        }
        let copies = self.shadow.process_unfinished(port, bytes, *unfinished).sent.len();
        let taken = self.large_taken[worker] + 1 + copies;
        let has_room = taken <= LARGE_TAKEN_MAX;
        if has_room {
            self.large_taken[worker] = taken;
        }
        has_room
    }

    fn turn_one(&mut self, worker: usize) -> Turn {
        let worker = &mut self.workers[worker];
        worker.probe().begin(self.now);
        worker.turn(self.now)
    }

    /// Runs a poll iteration of the search worker in half of the calls. Rarely, it ends for the rest of the
    /// case.
    pub(super) fn search_sometimes(&mut self) {
        if self.search.is_none() {
            return;
        }
        match self.rng.u16(0..SEARCH_STEPS) {
            0 => self.search = None,
            other if other % 2 == 1 => drop(self.search()),
            _ => {}
        }
    }

    /// Runs a poll iteration of the search worker, if there is one.
    fn search(&mut self) -> SearchTurn {
        self.search.as_mut().map(|search| search.turn(self.now)).unwrap_or_default()
    }

    pub(super) fn turn(&mut self, worker: usize) -> Result<(), String> {
        self.turn_one(worker);
        self.count_lookups();
        self.nothing_waits(worker);
        self.untaken += 1;
        let room = self.record.room;
        if !self.tight || self.untaken > room.untaken_max || self.rng.u8(0..room.untaken_max as u8) == 0 {
            self.collect();
        }
        self.record.judged += views::compare_traces(&mut self.model)?;
        Ok(())
    }

    /// Records that the worker has received all packets queued for it.
    fn nothing_waits(&mut self, worker: usize) {
        self.waiting.iter_mut().for_each(|waiting| waiting[worker] = 0);
    }

    /// Counts the lookups since the last poll iteration under the engines that served them.
    fn count_lookups(&mut self) {
        let plane = self.model.plane_mut();
        for table in self.style.tables.iter().map(|t| t.number).chain([self.style.linear]) {
            let lookups = plane.table_counters(table).lookups;
            let before = self.lookups.insert(table, lookups).unwrap_or_default();
            *self.record.lookups.entry(plane.engine(table)).or_default() += lookups - before;
        }
    }

    /// Collects sent frames from all ports. Returns their number.
    fn collect(&mut self) -> usize {
        let mut taken = 0;
        self.untaken = 0;
        for ((port, queue, frames), left) in self.record.sent.iter_mut().zip(&mut self.record.unfinished) {
            let handle = &mut self.handles[port.0 as usize - 1];
            let look = |bytes: &[u8], meta: &Meta| (bytes.to_vec(), unfinished_of(meta));
            while let Some((bytes, unfinished)) = handle.pop_with(*queue, look) {
                frames.push(bytes);
                left.push(unfinished);
                taken += 1;
            }
        }
        while let Some(bytes) = self.mirror.as_mut().and_then(|mirror| mirror.pop(0)) {
            self.record.mirrored.push(bytes);
        }
        taken
    }

    /// Runs poll iterations until all packets are sent and all operations are applied.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        // Whether the remaining frames wait only because of the maximum rates of egress queues.
        let mut rate_holds = false;
        for _ in 0..ROUNDS_MAX {
            let (mut idle, mut still, mut opens_ns, mut taken) = (true, true, None::<Nanos>, 0);
            for worker in 0..self.workers.len() {
                let turn = self.turn_one(worker);
                self.count_lookups();
                idle &= turn.is_idle();
                still &= Turn { sent: 0, opens_ns: None, ..turn }.is_idle();
                opens_ns = opens_ns.into_iter().chain(turn.opens_ns).chain(turn.answers_ns).min();
                self.nothing_waits(worker);
                taken += self.collect();
                self.record.judged += views::compare_traces(&mut self.model)?;
            }
            let search = self.search();
            idle &= SearchTurn { answers_ns: None, ..search } == SearchTurn::default();
            opens_ns = opens_ns.into_iter().chain(search.answers_ns).min();
            if rate_holds {
                self.record.rate_held += taken;
            }
            rate_holds = still && opens_ns.is_some();
            self.control()?;
            let barrier = self.model.barrier();
            if idle && self.model.is_applied(barrier) && self.model.pending_removals() == 0 {
                self.large_taken.fill(0);
                return Ok(());
            }
            // Advances the time to the moment at which egress queues may send again, or at which a search of
            // the port cache is answered or ends.
            self.now = self.now.max(opens_ns.unwrap_or_default());
        }
        Err("workers and control thread do not become idle".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CaseOptions;
    use flow::{Action, DropReason, FlowMod, Instructions};

    /// Seed of a case with long frames, enough room, and devices that do not always accept frames.
    const SEED: u64 = 85;

    #[test]
    fn long_frames_with_many_copies_never_make_buffers_scarce() {
        let mut driver = Driver::new(SEED, CaseOptions::without_packets());
        assert!(driver.tight && driver.record.egress.is_empty() && driver.record.room.is_ample());
        driver.templates.truncate(1);
        driver.templates[0].bytes =
            wire::PacketBuilder::ethernet([2; 6], [4; 6]).payload(&[0; 40_000]).build();
        let apply = [2, 3].repeat(8).into_iter().map(|port| Action::output(PortNo(port))).collect();
        let entry = FlowMod { instructions: Instructions::apply(apply), ..FlowMod::default() };
        assert!(driver.model.flow_mod(driver.now, entry).is_ok());
        assert_eq!(driver.settle(), Ok(()));
        for _ in 0..60 {
            driver.push();
            assert_eq!(driver.turn(0), Ok(()));
        }
        assert_eq!(driver.settle(), Ok(()));
        let totals = driver.model.plane_mut().totals();
        let lost = DropReason::SCARCITY.iter().map(|reason| totals.dropped_in_all(*reason));
        assert_eq!((lost.sum::<u64>(), totals.copies >= 100), (0, true), "{totals:?}");
    }
}
