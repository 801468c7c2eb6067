// SPDX-License-Identifier: Apache-2.0
//! The control thread. It owns the models and serves requests in small steps, like the daemon.
//!
//! Both threads follow the worker's clock. On this clock, a step of the control thread takes its CPU time,
//! and the next step begins afterwards. The worker waits if the control thread is too far behind.

use std::collections::VecDeque;
use std::error::Error;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use dataplane::DataPlane;
use flow::Nanos;
use model::{AsyncMessage, FlowCursor, FlowFilter, Model};
use shunt_bench::ThreadCpu;
use worker::WorkerSet;

use crate::rules::{Changes, Sizes};

/// Number of entries that a dump examines in one step, as in `model::agent`.
const ENTRIES_PER_STEP: usize = 256;

/// No request is taken while this many operations wait, as in the daemon.
const PARKED_MAX: usize = 256;

/// Time for which the control thread sleeps if nothing is due.
const IDLE: Duration = Duration::from_micros(20);

/// What the control thread does after a step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// Sleep, because nothing is due.
    Sleep,
    /// Check again soon: the worker's clock will shortly reach the end of the last step.
    Spin,
    /// Run the next step.
    Step,
}

/// If less than this time of a step remains, the control thread spins instead of sleeping.
const SPIN_NS: u64 = 200_000;

/// Number of spin-loop iterations between two readings of the worker's clock (about 2 us). Each reading
/// causes a cache miss when the worker next writes the clock.
const SPINS: u32 = 100;

/// Requests that arrive while a job lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Rule changes per second.
    pub changes: u64,
    /// Requests for the statistics of one flow per second.
    pub statistics: u64,
    /// Whether all entries are dumped once, at the beginning.
    pub dump: bool,
}

/// Work that the control thread has done since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    pub changes: u64,
    /// Number of added rules that examine a new field.
    pub widened: u64,
    /// Number of changes of the key plan, which lists the bits in keys.
    pub plans: u64,
    /// CPU time of the changes in nanoseconds.
    pub changes_ns: u64,
    /// Number of entries that dumps returned.
    pub dumped: u64,
    /// CPU time of dumps in nanoseconds.
    pub dump_ns: u64,
    pub statistics: u64,
    /// CPU time of the statistics requests in nanoseconds.
    pub statistics_ns: u64,
    /// Packets that hit a path record.
    pub hits: u64,
    /// All packets of the express path, with and without a record.
    pub packets: u64,
}

impl Work {
    /// Returns the work since an earlier reading.
    pub fn since(self, before: Self) -> Self {
        Self {
            changes: self.changes - before.changes,
            widened: self.widened - before.widened,
            plans: self.plans - before.plans,
            changes_ns: self.changes_ns - before.changes_ns,
            dumped: self.dumped - before.dumped,
            dump_ns: self.dump_ns - before.dump_ns,
            statistics: self.statistics - before.statistics,
            statistics_ns: self.statistics_ns - before.statistics_ns,
            hits: self.hits - before.hits,
            packets: self.packets - before.packets,
        }
    }
}

/// State shared by the control thread and a worker's thread.
#[derive(Debug, Default)]
pub struct Link {
    /// Job and its number.
    job: Mutex<(u64, Job)>,
    /// Number of the job that the control thread works on.
    pub taken: AtomicU64,
    /// Whether no change waits for the worker, and no answer is in progress.
    pub is_quiet: AtomicBool,
    /// Present time on the worker's clock.
    pub now_ns: AtomicU64,
    /// Time on the worker's clock at which the last step of the control thread ends.
    pub free_ns: AtomicU64,
    pub work: Mutex<Work>,
    pub has_failed: AtomicBool,
}

impl Link {
    /// Gives the control thread a job. Returns its number.
    pub fn set_job(&self, job: Job) -> u64 {
        let mut current = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (current.0 + 1, job);
        current.0
    }

    fn job(&self) -> (u64, Job) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn work(&self) -> Work {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model, and the requests for it.
pub struct Served {
    pub model: Model<WorkerSet>,
    pub link: Arc<Link>,
    pub changes: Changes,
    sizes: Sizes,
    number: u64,
    job: Job,
    begun_ns: u64,
    issued: u64,
    requested: u64,
    answers: VecDeque<(FlowFilter, FlowCursor)>,
    dump: Option<FlowCursor>,
    /// Whether an answer is in progress.
    is_busy: bool,
    work: Work,
}

impl Served {
    pub fn new(model: Model<WorkerSet>, link: Arc<Link>, changes: Changes, sizes: Sizes) -> Self {
        Self {
            model,
            link,
            changes,
            sizes,
            number: 0,
            job: Job::default(),
            begun_ns: 0,
            issued: 0,
            requested: 0,
            answers: VecDeque::new(),
            dump: None,
            is_busy: false,
            work: Work::default(),
        }
    }

    /// Does the next part of the work.
    fn step(&mut self) -> Result<Next, Box<dyn Error>> {
        let (number, job) = self.link.job();
        let now_ns = self.link.now_ns.load(Ordering::Acquire);
        let free_ns = self.link.free_ns.load(Ordering::Relaxed);
        let rest_ns = free_ns.saturating_sub(now_ns);
        if rest_ns > 0 {
            // The clock of the unmeasured side stands still, so spinning is useless.
            let is_soon = rest_ns < SPIN_NS && number == self.number && self.job != Job::default();
            return Ok(if is_soon { Next::Spin } else { Next::Sleep });
        }
        // The next part of an answer begins when the last part ends, even if the worker's clock is later.
        let is_same = number == self.number;
        let now_ns = if self.is_busy && is_same { free_ns } else { now_ns };
        let cpu = ThreadCpu::now();
        if !is_same {
            (self.number, self.job, self.begun_ns) = (number, job, now_ns);
            (self.issued, self.requested) = (0, 0);
            self.dump = job.dump.then(FlowCursor::default);
            self.answers.clear();
        }
        let mut more = self.model.poll(Nanos(now_ns));
        while let Some(message) = self.model.next_async_message() {
            if let AsyncMessage::PacketIn(packet_in) = message {
                self.model.recycle(packet_in.frame);
            }
        }
        self.change(now_ns)?;
        self.is_busy = self.answer(now_ns)?;
        more |= self.is_busy;
        self.note();
        let barrier = self.model.barrier();
        let is_quiet = self.model.is_applied(barrier) && !more;
        self.link.free_ns.store(now_ns + cpu.elapsed_ns(), Ordering::Release);
        self.link.is_quiet.store(is_quiet, Ordering::Release);
        self.link.taken.store(self.number, Ordering::Release);
        Ok(if more { Next::Step } else { Next::Sleep })
    }

    /// Returns how many requests have arrived since the job began, at `rate` requests per second.
    fn due(&self, now_ns: u64, rate: u64) -> u64 {
        (u128::from(now_ns.saturating_sub(self.begun_ns)) * u128::from(rate) / 1_000_000_000) as u64
    }

    /// Makes the changes that are due.
    fn change(&mut self, now_ns: u64) -> Result<(), Box<dyn Error>> {
        let due = self.due(now_ns, self.job.changes);
        if self.issued == due {
            return Ok(());
        }
        let cpu = ThreadCpu::now();
        while self.issued < due && self.model.plane_mut().parked() < PARKED_MAX {
            let change = self.changes.next().ok_or("there are no rules to add")?;
            self.model.flow_mod(Nanos(now_ns), change)?;
            self.issued += 1;
            self.work.changes += 1;
        }
        self.work.changes_ns += cpu.elapsed_ns();
        Ok(())
    }

    /// Produces the next part of the dump and of the oldest answer. Returns whether further parts remain.
    fn answer(&mut self, now_ns: u64) -> Result<bool, Box<dyn Error>> {
        if let Some(cursor) = &mut self.dump {
            let cpu = ThreadCpu::now();
            let part = self.model.flows(Nanos(now_ns), &FlowFilter::default(), cursor, ENTRIES_PER_STEP);
            self.work.dumped += black_box(part).len() as u64;
            self.dump = self.dump.filter(|cursor| !cursor.is_done());
            self.work.dump_ns += cpu.elapsed_ns();
        }
        let due = self.due(now_ns, self.job.statistics);
        while self.requested < due {
            self.requested += 1;
            let (table, matching) = self.sizes.route_match(self.requested as usize * 7 % self.sizes.flows)?;
            let filter = FlowFilter { table: Some(table), matching, ..FlowFilter::default() };
            self.answers.push_back((filter, FlowCursor::default()));
        }
        let cpu = ThreadCpu::now();
        if let Some((filter, cursor)) = self.answers.front_mut() {
            let part = self.model.flows(Nanos(now_ns), filter, cursor, ENTRIES_PER_STEP);
            black_box(part);
            if cursor.is_done() {
                self.answers.pop_front();
                self.work.statistics += 1;
            }
            self.work.statistics_ns += cpu.elapsed_ns();
        }
        Ok(self.dump.is_some() || !self.answers.is_empty())
    }

    fn note(&mut self) {
        let plane = self.model.plane_mut();
        let figures = plane.express_figures();
        self.work.hits = figures.hits;
        self.work.packets = figures.hits + figures.misses + figures.bypassed;
        self.work.plans = plane.express_plan().version().0;
        self.work.widened = self.changes.widened() as u64;
        *self.link.work.lock().unwrap_or_else(PoisonError::into_inner) = self.work;
    }
}

/// Serves all models until `stop` is set. Returns them.
pub fn serve(mut all: Vec<Served>, stop: &AtomicBool) -> Result<Vec<Served>, String> {
    while !stop.load(Ordering::Acquire) {
        let mut next = Next::Sleep;
        for served in &mut all {
            let wanted = served.step().map_err(|error| {
                served.link.has_failed.store(true, Ordering::Release);
                error.to_string()
            })?;
            next = next.max(wanted);
        }
        match next {
            Next::Sleep => thread::sleep(IDLE),
            Next::Spin => (0..SPINS).for_each(|_| spin_loop()),
            Next::Step => {}
        }
    }
    Ok(all)
}
