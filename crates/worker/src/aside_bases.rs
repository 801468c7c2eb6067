// SPDX-License-Identifier: Apache-2.0
//! Bases of tables that are compiled aside: on a thread of the caller's, while rules go on changing. So a controller that adds
//! rule after rule to a large table never waits until all of it is compiled.

use std::sync::mpsc::{Receiver, Sender, channel};
use tables::Master;
use tables::compile::Compiled;

/// Something to be done on another thread.
pub type Errand = Box<dyn FnOnce() + Send>;

/// Fewest additions beside a base for which the next one is compiled, unless somebody wants it otherwise.
pub const ASIDE_LEAST: usize = 48;

/// The way to that thread and back.
pub(crate) struct AsideBases {
    least: usize,
    run: Box<dyn FnMut(Errand) + Send>,
    sender: Sender<(u8, Compiled)>,
    done: Receiver<(u8, Compiled)>,
}

impl AsideBases {
    pub fn new(least: usize, run: Box<dyn FnMut(Errand) + Send>) -> Self {
        let (sender, done) = channel();
        Self { least, run, sender, done }
    }

    /// Has a table's next base compiled, if it is worth one, and frees what the table has no use for.
    pub fn follow(&mut self, number: u8, master: &mut Master) {
        let spent = master.take_spent();
        if !spent.is_empty() {
            (self.run)(Box::new(move || drop(spent)));
        }
        if let Some(job) = master.job_aside(self.least) {
            let sender = self.sender.clone();
            // Who asked may be gone: then nobody needs it.
            (self.run)(Box::new(move || drop(sender.send((number, job.run())))));
        }
    }

    /// A base that has been compiled, and its table's number.
    pub fn next(&mut self) -> Option<(u8, Compiled)> {
        self.done.try_recv().ok()
    }
}
