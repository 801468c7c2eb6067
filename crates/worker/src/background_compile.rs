// SPDX-License-Identifier: Apache-2.0
//! Background compilation of table bases on another thread. A controller that adds rules one by one never
//! waits for the compilation of a whole table.

use flow::{Nanos, TableId};
use std::sync::mpsc::{Receiver, Sender, channel};
use tables::RuleTable;
use tables::compile::{Compiled, Job};

/// A job for another thread.
pub type BackgroundTask = Box<dyn FnOnce() + Send>;

/// Default for the minimum number of rules in the delta before the next base is compiled.
pub const BACKGROUND_ADDITIONS_MIN: usize = 48;

/// Time in nanoseconds without changes after which a table is compiled with all its rules.
const REST_NS: Nanos = Nanos(2_000_000_000);

/// The number of changes of a table at the last check, and the time of its last change.
#[derive(Clone, Copy, Default)]
struct Seen {
    changes: u64,
    at: Nanos,
}

/// The job queue of the compiler thread, and the channel for its results.
pub(crate) struct BackgroundCompiler {
    least: usize,
    run: Box<dyn FnMut(BackgroundTask) + Send>,
    sender: Sender<(TableId, Compiled)>,
    done: Receiver<(TableId, Compiled)>,
    /// State of the last check, indexed by table.
    seen: [Seen; 256],
}

impl BackgroundCompiler {
    pub fn new(least: usize, run: Box<dyn FnMut(BackgroundTask) + Send>) -> Self {
        let (sender, done) = channel();
        Self { least, run, sender, done, seen: [Seen::default(); 256] }
    }

    /// Starts compiling a table's next base if the delta is large enough, and frees retired state of the
    /// table. Both happen on the compiler thread.
    pub fn follow(&mut self, number: TableId, rule_table: &mut RuleTable) {
        let retired = rule_table.take_retired();
        if !retired.is_empty() {
            (self.run)(Box::new(move || drop(retired)));
        }
        if let Some(job) = rule_table.background_job(self.least) {
            self.send(number, job);
        }
    }

    /// Starts compiling a table's next base if the table has not changed for `REST_NS`.
    pub fn rest(&mut self, now: Nanos, number: TableId, rule_table: &mut RuleTable) {
        let seen = &mut self.seen[number.index()];
        if seen.changes != rule_table.changes() {
            *seen = Seen { changes: rule_table.changes(), at: now };
        } else if now.saturating_sub(seen.at) >= REST_NS
            && let Some(job) = rule_table.job_at_rest()
        {
            self.send(number, job);
        }
    }

    fn send(&mut self, number: TableId, job: Job) {
        let sender = self.sender.clone();
        // If the receiver is gone, the result is not needed.
        (self.run)(Box::new(move || drop(sender.send((number, job.run())))));
    }

    /// Takes the next compiled base, with the number of its table.
    pub fn next(&mut self) -> Option<(TableId, Compiled)> {
        self.done.try_recv().ok()
    }
}
