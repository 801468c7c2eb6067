// SPDX-License-Identifier: Apache-2.0
//! A thread that makes files durable, so that the writing thread can go on writing.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

/// Number of a sync, in the order of their submission.
pub type SyncNumber = u64;

/// The thread and its queue.
#[derive(Debug)]
pub struct Syncer {
    /// `None` only while the value is dropped.
    files: Option<Sender<File>>,
    thread: Option<JoinHandle<()>>,
    results: Receiver<io::Result<()>>,
    submitted: SyncNumber,
    done: SyncNumber,
}

impl Syncer {
    /// Starts the thread, which calls `begin` first. When the value is dropped, the thread ends after the
    /// submitted syncs.
    ///
    /// # Errors
    /// Returns an error if the system refuses a thread.
    pub fn start(begin: fn()) -> io::Result<Self> {
        let (files, work) = channel::<File>();
        let (report, results) = channel();
        let run = move || {
            begin();
            while let Ok(file) = work.recv() {
                if report.send(file.sync_data()).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("store-sync".into()).spawn(run)?;
        Ok(Self { files: Some(files), thread: Some(thread), results, submitted: 0, done: 0 })
    }

    /// Makes durable what has been written to a file or folder, after all earlier syncs.
    ///
    /// # Errors
    /// Returns an error if the process has no descriptor left.
    pub fn submit(&mut self, file: &File) -> io::Result<SyncNumber> {
        let ended = || io::Error::other("the syncing thread has ended");
        let files = self.files.as_ref().ok_or_else(ended)?;
        files.send(file.try_clone()?).map_err(|_| ended())?;
        self.submitted += 1;
        Ok(self.submitted)
    }

    /// Returns whether a sync and all earlier ones are done.
    ///
    /// # Errors
    /// Returns the error of a sync, once.
    pub fn is_done(&mut self, number: SyncNumber) -> io::Result<bool> {
        loop {
            match self.results.try_recv() {
                Ok(result) => {
                    self.done += 1;
                    result?;
                }
                Err(TryRecvError::Empty) => return Ok(self.done >= number),
                Err(TryRecvError::Disconnected) => {
                    return Err(io::Error::other("the syncing thread has ended"));
                }
            }
        }
    }

    /// Returns whether nothing is being made durable.
    ///
    /// # Errors
    /// Returns the error of a sync, once.
    pub fn is_idle(&mut self) -> io::Result<bool> {
        self.is_done(self.submitted)
    }
}

impl Drop for Syncer {
    /// Waits for the thread, because its descriptor of the folder keeps the folder locked.
    fn drop(&mut self) {
        self.files = None;
        if let Some(thread) = self.thread.take() {
            // The thread has nothing to report.
            let _ = thread.join();
        }
    }
}
