// SPDX-License-Identifier: Apache-2.0
//! The thread of the search worker: it runs poll iterations while there are searches and sleeps while there
//! are none. Begin with [`start`].

use super::clock::MonotonicClock;
use super::thread::pin;
use crate::sandbox::{self, ThreadKind};
use flow::Nanos;
use port::wait::{Wake, wait};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};
use worker::{PublishFence, SearchTurn, SearchWorker, SharedWorker};

/// Longest sleep of the thread.
const SLEEP: Duration = Duration::from_secs(1);

/// The part of the search worker's thread that other threads share.
pub struct SharedSearch(SharedWorker<SearchWorker, Wake>);

impl SharedSearch {
    pub fn new(worker: SearchWorker) -> io::Result<Self> {
        let flag = worker.sleeping();
        Ok(Self(SharedWorker::new(worker, flag, Wake::new()?)))
    }

    /// Applies queued operations for a sleeping search worker, or wakes it.
    pub fn apply_or_wake(&self) {
        self.0.apply_or_wake();
    }

    /// Applies all queued operations. The thread must not have started yet.
    pub fn apply(&self) {
        let mut worker = self.0.lock();
        while worker.apply() > 0 {}
    }

    /// Wakes the search worker if it sleeps, so that it serves requests that were published before.
    pub fn wake(&self, published: &PublishFence) {
        self.0.wake_once(published);
    }

    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Starts the thread, pinned to `cpu` if it is given. It sleeps after `spin_ns` without searches, or never if
/// this is `None`.
pub fn start(
    shared: Arc<SharedSearch>,
    cpu: Option<usize>,
    spin_ns: Option<Nanos>,
    clock: MonotonicClock,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("search".into()).spawn(move || {
        if let Some(cpu) = cpu {
            pin("the search worker", cpu);
        }
        sandbox::enter(ThreadKind::Worker);
        run(&shared.0, spin_ns, clock);
    })
}

fn run(shared: &SharedWorker<SearchWorker, Wake>, spin_ns: Option<Nanos>, clock: MonotonicClock) {
    let mut worker = shared.lock();
    // However this thread ends, packets then no longer wait for it.
    let _end = worker.end();
    let mut active_ns = clock.now();
    while !shared.is_stopped() && !worker.is_closed() {
        let now = clock.now();
        let SearchTurn { applied, searched, .. } = worker.turn(now);
        if applied + searched > 0 {
            active_ns = now;
        } else if spin_ns.is_none_or(|spin_ns| now.saturating_sub(active_ns) < spin_ns) {
            std::hint::spin_loop();
        } else {
            worker = shared.sleep(
                worker,
                |_| (),
                |()| {
                    if wait(&[shared.alarm().descriptor()], Some(SLEEP)).is_err() {
                        thread::sleep(Duration::from_millis(1));
                    }
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port_cache::{PortCacheConfig, SearcherKind};
    use worker::WorkerSetConfig;

    #[test]
    fn workers_notice_the_end_of_the_thread() {
        let cache = PortCacheConfig { searcher: SearcherKind::Worker, ..PortCacheConfig::default() };
        let config =
            WorkerSetConfig { express_records: 16, port_cache: Some(cache), ..WorkerSetConfig::default() };
        let (mut plane, _workers) = worker::build(&config, Vec::new());
        let shared = Arc::new(SharedSearch::new(plane.take_search_worker().unwrap()).unwrap());
        assert!(plane.reaches_search_worker());
        let thread = start(Arc::clone(&shared), None, Some(Nanos(0)), MonotonicClock::new()).unwrap();
        shared.stop();
        thread.join().unwrap();
        assert!(!plane.reaches_search_worker(), "the search worker still exists, but answers nothing");
    }
}
