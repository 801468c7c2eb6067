// SPDX-License-Identifier: Apache-2.0
//! The threads of a process's workers. A thread runs the workers of one number of all datapaths
//! (docs/adr/0054).
//!
//! Begin with [`Crew`], which collects the workers before [`Crew::start`] starts the threads.

use super::sleeps;
use super::thread::{Member, ThreadSettings, pin, run};
use crate::sandbox::{self, ThreadKind};
use config::{Pace, WorkerConfig};
use port::wait::Wake;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{io, thread};

/// The workers of one thread that has not started yet.
struct Planned {
    config: WorkerConfig,
    alarm: Arc<Wake>,
    members: Vec<Member>,
}

impl Planned {
    fn new(config: &WorkerConfig, alarm: Arc<Wake>) -> Self {
        Self { config: *config, alarm, members: Vec::new() }
    }
}

/// Workers whose threads have not started yet, by their number in the configuration file.
#[derive(Default)]
pub struct Crew(BTreeMap<usize, Planned>);

impl Crew {
    /// Returns the alarm of the thread that will run a worker.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has no descriptor left.
    pub fn alarm(&mut self, worker: &WorkerConfig) -> io::Result<Arc<Wake>> {
        let thread = match self.0.entry(worker.number) {
            Entry::Occupied(thread) => thread.into_mut(),
            Entry::Vacant(place) => place.insert(Planned::new(worker, Arc::new(Wake::new()?))),
        };
        Ok(Arc::clone(&thread.alarm))
    }

    /// Adds a worker, which has the alarm of its thread.
    pub fn add(&mut self, worker: &WorkerConfig, member: Member) {
        let thread =
            self.0.entry(worker.number).or_insert_with(|| Planned::new(worker, member.shared.alarm()));
        thread.members.push(member);
    }

    /// Starts the threads. Each ends when all its workers are stopped.
    ///
    /// # Errors
    ///
    /// Returns an error if a thread cannot be started. The threads that were started before continue until
    /// their workers are stopped.
    pub fn start(self, pace: Pace) -> io::Result<WorkerThreads> {
        let mut started = WorkerThreads(Vec::new());
        for (number, Planned { config, alarm, members }) in self.0 {
            let settings = ThreadSettings { pace, sleeps: sleeps(config.idle) };
            let thread = thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
                if let Some(cpu) = config.cpu {
                    pin(&format!("worker {number}"), cpu);
                }
                sandbox::enter(ThreadKind::Worker);
                run(&members, &alarm, settings);
            });
            match thread {
                Ok(thread) => started.0.push(thread),
                Err(error) => {
                    // The datapaths stop the workers of these threads later, so do not wait here.
                    started.0.clear();
                    return Err(error);
                }
            }
        }
        Ok(started)
    }
}

/// Running threads of workers. Dropping it waits until they end, so all workers must be stopped before.
pub struct WorkerThreads(Vec<JoinHandle<()>>);

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker's thread had panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::start::start_workers;
    use crate::daemon::{Daemon, OpenPort, Stop};
    use config::Config;
    use flow::PortNo;
    use port::Queue;
    use port::mem::{MemHandle, pair};
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// A learning switch with two ports, whose worker is added to `crew`.
    fn datapath(folder: &Path, id: u64, stop: &Stop, crew: &mut Crew) -> (Daemon, Vec<MemHandle>) {
        let socket = folder.join(format!("{id}.sock"));
        let text = format!("control = {socket:?}\n[[worker]]\n[[datapath]]\nid = {id}\n");
        let config = Config::parse(&text).unwrap();
        let (ports, handles): (Vec<_>, Vec<_>) = (1..=2)
            .map(|number| {
                let (mut queues, handle) = pair(number, 1, 16);
                let queue = Box::new(queues.remove(0)) as Box<dyn Queue>;
                let name = format!("p{number}");
                (
                    OpenPort { number: PortNo(number), name, queues: vec![(0, queue)], device_lock: None },
                    handle,
                )
            })
            .unzip();
        let opened = Daemon::open(&config, || Ok(ports), crew).unwrap();
        let daemon = Daemon::prepare(&config, opened, None, stop, crew).unwrap().unwrap();
        (daemon, handles)
    }

    /// Sends a broadcast frame through port 1 and waits until it leaves through port 2.
    fn forwards(handles: &mut [MemHandle]) -> bool {
        let mut frame = vec![0xff; 60];
        frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        assert!(handles[0].push(0, &frame));
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if let Some(seen) = handles[1].pop(0) {
                return seen == frame;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }

    #[test]
    fn a_thread_runs_the_workers_of_two_datapaths_until_the_last_one_ends() {
        let folder = std::env::temp_dir().join(format!("shunt-crew-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (stop, _tell) = Stop::by_hand().unwrap();
        let mut crew = Crew::default();
        let (mut first, mut first_ports) = datapath(&folder, 1, &stop, &mut crew);
        let (mut second, mut second_ports) = datapath(&folder, 2, &stop, &mut crew);
        let members: Vec<_> = crew.0.values().map(|thread| thread.members.len()).collect();
        assert_eq!(members, [2]);
        start_workers(
            crew,
            &Config::parse("[[worker]]\n[[datapath]]\nid = 1\n").unwrap(),
            [&mut first, &mut second],
        )
        .unwrap();
        for _ in 0..3 {
            assert!(forwards(&mut first_ports) && forwards(&mut second_ports));
            // The thread falls asleep between the frames.
            thread::sleep(Duration::from_millis(5));
        }
        first.check_threads().unwrap();
        drop(first);
        second.check_threads().unwrap();
        assert!(forwards(&mut second_ports), "the end of one datapath stops the other");
        assert!(!forwards_soon(&mut first_ports), "a datapath that has ended forwards");
        drop(second);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Returns whether a frame is forwarded within a short time.
    fn forwards_soon(handles: &mut [MemHandle]) -> bool {
        handles[0].push(0, &[0xff; 60]);
        thread::sleep(Duration::from_millis(20));
        handles[1].pop(0).is_some()
    }
}
