// SPDX-License-Identifier: Apache-2.0
//! A worker with its traffic, driven by the calling thread while the control thread works on its model.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use flow::Nanos;
use frame::Frame;
use port::Queue;
use port::mem::LoopQueue;
use shunt_bench::rig::Rig;
use shunt_bench::scenario::{Draw, Popularity};
use shunt_bench::{EXPRESS_RECORDS, Window, allowed_cpus, pin_to};
use worker::{BackgroundTask, Worker, WorkerSet};

use crate::control::{Job, Link, Served, Work, serve};
use crate::delays::Delays;
use crate::rules::{Changes, OUT_PORTS, Sizes};
use crate::traffic::{RECOVERY_NS, Schedule, SendingQueue, TimedQueue, Traffic, lock};

/// If the control thread is behind by more than this time, the worker waits. Otherwise a control thread that
/// was off its core would make all missed changes at once.
const BEHIND_NS: u64 = 1_000_000;

/// Time for which a waiting worker sleeps before it checks again.
const WAIT: Duration = Duration::from_micros(20);

/// Maximum length of a window at full speed, as a multiple of its planned length.
const SPAN_MAX: u64 = 50;

/// Time between two calls of `Worker::housekeeping`, as in the daemon.
const KEEPING_NS: u64 = 100_000_000;

/// Number of packets that are received again and again.
const PACKETS: usize = 32_768;

/// Time for which a job runs before its window is measured.
pub const WARM_UP_NS: u64 = 10_000_000;

/// Result of a window in which packets arrive at fixed times.
#[derive(Clone, Debug)]
pub struct Measured {
    pub delays: Delays,
    pub sent: u64,
    pub lost: u64,
    pub excluded: u64,
    pub span_ns: u64,
    pub work: Work,
}

/// A worker and its traffic.
pub struct Side {
    worker: Worker,
    traffic: Arc<Mutex<Traffic>>,
    link: Arc<Link>,
    kept_ns: u64,
}

/// Result of a poll iteration.
struct Turned {
    received: u64,
    took_ns: u64,
    /// Whether no preemption happened during the iteration or shortly before it.
    is_whole: bool,
    now_ns: u64,
}

impl Side {
    /// Creates a worker for the calling thread, and its model for the control thread. `compile` runs
    /// background compilations.
    pub fn new(
        sizes: Sizes,
        (share, popularity): (usize, Popularity),
        compile: impl FnMut(BackgroundTask) + Send + 'static,
    ) -> Result<(Self, Served), Box<dyn Error>> {
        let traffic = Arc::new(Mutex::new(Traffic::new()));
        let (packets, mut draw, mut rng) =
            (sizes.packets(), Draw::new(sizes.flows, popularity), fastrand::Rng::with_seed(1));
        let count = if popularity == Popularity::InTurn { sizes.flows } else { PACKETS };
        let set = (0..count).map(|_| Frame::from_bytes(&packets[draw.flow(&mut rng)])).collect();
        let timed =
            |number, set| TimedQueue { queue: LoopQueue::new(number, set), traffic: Arc::clone(&traffic) };
        let mut queues: Vec<Box<dyn Queue>> = vec![Box::new(timed(1, set))];
        for number in OUT_PORTS {
            queues.push(Box::new(SendingQueue(timed(number, Vec::new()))));
        }
        let config = worker::WorkerSetConfig {
            lut_entries: 0,
            express_records: EXPRESS_RECORDS.max(sizes.flows * 3 / 2),
            clock: worker::Clock::of_machine(),
            ..worker::WorkerSetConfig::default()
        };
        let Rig { worker, mut model, .. } = Rig::with_queues(&config, queues, &sizes.rules(), None)?;
        let plane: &mut WorkerSet = model.plane_mut();
        plane.set_compiler(worker::BACKGROUND_ADDITIONS_MIN, Box::new(compile));
        let link = Arc::new(Link::default());
        let served = Served::new(model, Arc::clone(&link), Changes::new(sizes, share)?, sizes);
        Ok((Self { worker, traffic, link, kept_ns: 0 }, served))
    }

    /// Runs one poll iteration. Waits first if the control thread is too far behind.
    fn turn(&mut self) -> Result<Turned, Box<dyn Error>> {
        let (now_ns, gaps) = {
            let mut traffic = lock(&self.traffic);
            (traffic.clock.now_ns(), traffic.clock.gaps())
        };
        self.link.now_ns.store(now_ns, Ordering::Release);
        while now_ns > self.link.free_ns.load(Ordering::Acquire) + BEHIND_NS {
            if self.link.has_failed.load(Ordering::Acquire) {
                return Err("the control thread has failed".into());
            }
            thread::sleep(WAIT);
            lock(&self.traffic).clock.pause();
        }
        let turn = self.worker.turn(Nanos(now_ns));
        if now_ns.saturating_sub(self.kept_ns) >= KEEPING_NS {
            self.worker.housekeeping();
            self.kept_ns = now_ns;
        }
        let mut traffic = lock(&self.traffic);
        let end_ns = traffic.clock.now_ns();
        traffic.end_turn();
        let is_whole = traffic.clock.gaps() == gaps && now_ns >= traffic.clock.gap_end_ns() + RECOVERY_NS;
        Ok(Turned {
            received: turn.received as u64,
            took_ns: end_ns.saturating_sub(now_ns),
            is_whole,
            now_ns: end_ns,
        })
    }

    fn run_for(&mut self, span_ns: u64) -> Result<u64, Box<dyn Error>> {
        let begin_ns = lock(&self.traffic).clock.now_ns();
        loop {
            let now_ns = self.turn()?.now_ns;
            let past_ns = now_ns.saturating_sub(begin_ns);
            if past_ns >= span_ns {
                return Ok(past_ns);
            }
        }
    }

    /// Runs the worker until the control thread has taken this job and, if `quiet`, all changes are applied
    /// and all answers complete.
    fn run_until_taken(&mut self, number: u64, quiet: bool) -> Result<(), Box<dyn Error>> {
        loop {
            self.turn()?;
            let is_taken = self.link.taken.load(Ordering::Acquire) == number;
            if is_taken && (!quiet || self.link.is_quiet.load(Ordering::Acquire)) {
                return Ok(());
            }
            if self.link.has_failed.load(Ordering::Acquire) {
                return Err("the control thread has failed".into());
            }
        }
    }

    /// Runs the worker without requests until it has records of all flows.
    pub fn warm_up(&mut self) -> Result<(), Box<dyn Error>> {
        self.begin(Job::default(), None)?;
        self.run_for(5 * WARM_UP_NS)?;
        self.end()
    }

    /// Begins a job and runs the worker for a short time.
    fn begin(&mut self, job: Job, interval_ns: Option<f64>) -> Result<(), Box<dyn Error>> {
        let now_ns = {
            let mut traffic = lock(&self.traffic);
            traffic.clock.resume();
            let now_ns = traffic.clock.now_ns();
            traffic.begin(interval_ns.map(|interval_ns| Schedule { first_ns: now_ns, interval_ns }));
            now_ns
        };
        self.link.now_ns.store(now_ns, Ordering::Release);
        let number = self.link.set_job(job);
        self.run_until_taken(number, false)?;
        self.run_for(WARM_UP_NS)?;
        Ok(())
    }

    /// Ends the job, and runs the worker until all changes are applied.
    fn end(&mut self) -> Result<(), Box<dyn Error>> {
        lock(&self.traffic).begin(None);
        let number = self.link.set_job(Job::default());
        self.run_until_taken(number, true)
    }

    /// Runs the worker after the control thread has ended: first with a packet of each flow, then without
    /// packets until all hits of path records are counted. Returns false if this takes too many iterations.
    #[cfg(test)]
    pub fn settle(&mut self, served: &mut Served, flows: usize) -> bool {
        use dataplane::DataPlane;
        const NEVER: Schedule = Schedule { first_ns: u64::MAX, interval_ns: 1.0 };
        let mut received = 0;
        for _ in 0..10_000 {
            let now = Nanos(lock(&self.traffic).clock.now_ns());
            received += self.worker.turn(now).received;
            served.model.poll(now);
            if received >= flows {
                lock(&self.traffic).begin(Some(NEVER));
                if served.model.plane_mut().counted_until() == Nanos(u64::MAX) {
                    return true;
                }
            }
        }
        false
    }

    /// Measures packets that arrive at a constant rate.
    pub fn paced(&mut self, job: Job, interval_ns: f64, span_ns: u64) -> Result<Measured, Box<dyn Error>> {
        let before = self.link.work();
        self.begin(job, Some(interval_ns))?;
        lock(&self.traffic).clear();
        let span_ns = self.run_for(span_ns)?;
        let measured = {
            let traffic = lock(&self.traffic);
            let (sent, lost, excluded) = (traffic.sent, traffic.lost, traffic.excluded);
            Measured { delays: traffic.delays.clone(), sent, lost, excluded, span_ns, work: before }
        };
        self.end()?;
        Ok(Measured { work: self.link.work().since(before), ..measured })
    }

    /// Measures a window at full speed. Only poll iterations without preemption count.
    pub fn full_speed(&mut self, job: Job, span_ns: u64) -> Result<(Window, Work), Box<dyn Error>> {
        let before = self.link.work();
        self.begin(job, None)?;
        let begin_ns = lock(&self.traffic).clock.now_ns();
        let mut window = Window { units: 0, cpu_ns: 0, wall_ns: 0, gaps: 0, stolen_ns: 0 };
        // Under preemption, the window may end without an iteration that counts. It is then extended.
        while window.wall_ns < span_ns || window.units == 0 && window.wall_ns < SPAN_MAX * span_ns {
            let turned = self.turn()?;
            window.wall_ns = turned.now_ns - begin_ns;
            if turned.is_whole {
                window.units += turned.received;
                window.cpu_ns += turned.took_ns;
            }
        }
        self.end()?;
        Ok((window, self.link.work().since(before)))
    }
}

/// Two sides with equal rules, the thread that serves their models, and the thread that compiles.
pub struct Pair {
    pub sides: [Side; 2],
    stop: Arc<AtomicBool>,
    control: JoinHandle<Result<Vec<Served>, String>>,
}

impl Pair {
    /// Creates both sides. The calling thread is pinned to the last CPU, the other threads to the first.
    pub fn new(sizes: Sizes, share: usize, popularity: Popularity) -> Result<Self, Box<dyn Error>> {
        let cpus = allowed_cpus()?;
        let (first, last) =
            (*cpus.first().ok_or("no CPU is allowed")?, *cpus.last().ok_or("no CPU is allowed")?);
        pin_to(last)?;
        let (tasks, work) = channel::<BackgroundTask>();
        thread::spawn(move || compile(first, &work));
        let make = || {
            let tasks = tasks.clone();
            Side::new(sizes, (share, popularity), move |task| drop(tasks.send(task)))
        };
        let ((ours, our_model), (peer, peer_model)) = (make()?, make()?);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let control = thread::spawn(move || {
            pin_to(first).map_err(|error| error.to_string())?;
            serve(vec![our_model, peer_model], &stopped)
        });
        let mut pair = Self { sides: [ours, peer], stop, control };
        for side in &mut pair.sides {
            side.warm_up()?;
        }
        Ok(pair)
    }

    /// Ends the control thread. Returns each side with its model.
    pub fn end(self) -> Result<Vec<(Side, Served)>, Box<dyn Error>> {
        self.stop.store(true, Ordering::Release);
        let served = self.control.join().map_err(|_| "the control thread has panicked")??;
        Ok(self.sides.into_iter().zip(served).collect())
    }
}

/// Runs background compilations until all senders are gone.
fn compile(cpu: usize, work: &Receiver<BackgroundTask>) {
    // If this fails, the thread may run on any CPU.
    drop(pin_to(cpu));
    for task in work {
        task();
    }
}
