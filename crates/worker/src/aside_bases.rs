// SPDX-License-Identifier: Apache-2.0
//! Bases of tables that are compiled aside: on a thread of the caller's, while rules go on changing. So a controller that adds
//! rule after rule to a large table never waits until all of it is compiled.

use flow::Nanos;
use std::sync::mpsc::{Receiver, Sender, channel};
use tables::Master;
use tables::compile::{Compiled, Job};

/// Something to be done on another thread.
pub type Errand = Box<dyn FnOnce() + Send>;

/// Fewest additions beside a base for which the next one is compiled, unless somebody wants it otherwise.
pub const ASIDE_LEAST: usize = 48;

/// A table that has not changed for so long is compiled with all of its rules: what stands beside a base makes lookups slower,
/// most of all those of packets chosen for it.
const REST_NS: Nanos = 2_000_000_000;

/// How many changes of a table have been seen, and when the last of them was.
#[derive(Clone, Copy, Default)]
struct Seen {
    changes: u64,
    at: Nanos,
}

/// The way to that thread and back.
pub(crate) struct AsideBases {
    least: usize,
    run: Box<dyn FnMut(Errand) + Send>,
    sender: Sender<(u8, Compiled)>,
    done: Receiver<(u8, Compiled)>,
    /// By table.
    seen: [Seen; 256],
}

impl AsideBases {
    pub fn new(least: usize, run: Box<dyn FnMut(Errand) + Send>) -> Self {
        let (sender, done) = channel();
        Self { least, run, sender, done, seen: [Seen::default(); 256] }
    }

    /// Has a table's next base compiled, if it is worth one, and frees what the table has no use for.
    pub fn follow(&mut self, number: u8, master: &mut Master) {
        let spent = master.take_spent();
        if !spent.is_empty() {
            (self.run)(Box::new(move || drop(spent)));
        }
        if let Some(job) = master.job_aside(self.least) {
            self.send(number, job);
        }
    }

    /// The same for a table at rest.
    pub fn rest(&mut self, now: Nanos, number: u8, master: &mut Master) {
        let seen = &mut self.seen[usize::from(number)];
        if seen.changes != master.changes() {
            *seen = Seen { changes: master.changes(), at: now };
        } else if now.saturating_sub(seen.at) >= REST_NS
            && let Some(job) = master.job_at_rest()
        {
            self.send(number, job);
        }
    }

    fn send(&mut self, number: u8, job: Job) {
        let sender = self.sender.clone();
        // Who asked may be gone: then nobody needs it.
        (self.run)(Box::new(move || drop(sender.send((number, job.run())))));
    }

    /// A base that has been compiled, and its table's number.
    pub fn next(&mut self) -> Option<(u8, Compiled)> {
        self.done.try_recv().ok()
    }
}
