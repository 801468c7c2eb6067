// SPDX-License-Identifier: Apache-2.0
//! The thread that writes the store. Only this thread may wait for the disk.
//!
//! It appends transactions to a log, and now and then asks the model for the whole state and writes it to a
//! snapshot, beside the log. After a failure, the log has a gap. The thread then begins a new log and a new
//! snapshot, and repeats this until it succeeds. Begin with [`Writer::run`].

use crate::Durability;
use crate::clock::StoreClock;
use crate::encode::FrameEncoder;
use crate::folder::Folder;
use crate::format::{FileHeader, FileKind};
use crate::journal::WriterTask;
use crate::output::BatchedFile;
use crate::status::StoreCounters;
use crate::syncer::{SyncNumber, Syncer};
use model::StatePart;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time after a change at which it is made durable.
const SYNC_PERIOD: Duration = Duration::from_millis(25);
/// Bytes of changes that are written together.
const BATCH_BYTES: usize = 256 * 1_024;
/// Time between two looks whether the syncing thread is done.
const SYNC_STEP: Duration = Duration::from_millis(2);
/// Number of logs above which a snapshot is begun at the start.
const LOGS_MAX: usize = 8;
/// First and longest pause before the store is written again after a failure.
const RETRY: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Minimum time between two log lines about failures.
const LOG_PERIOD: Duration = Duration::from_secs(60);

/// Settings and state that the writer begins with.
#[derive(Debug)]
pub struct WriterStart {
    pub folder: Folder,
    pub durability: Durability,
    pub clock: StoreClock,
    pub datapath_id: u64,
    pub boot_id: [u8; 16],
    pub base_mark: u32,
    /// Number of the last transaction in the files.
    pub last: u64,
    /// Whether a snapshot is due at once.
    pub wants_snapshot: bool,
    /// Bytes of a log above which a snapshot is begun.
    pub snapshot_after_bytes: u64,
}

/// The writing thread's state.
#[derive(Debug)]
pub struct Writer {
    start: WriterStart,
    counters: Arc<StoreCounters>,
    syncer: Syncer,
    /// The current log, or `None` after a failure.
    log: Option<BatchedFile>,
    snapshot: Option<Snapshot>,
    /// Number of the last request for the state.
    requests: u64,
    /// Number of the last transaction taken from the queue.
    taken: u64,
    /// Whether the files give the state after each transaction: there is no gap before the current log.
    is_whole: bool,
    retry: Option<Retry>,
    logged: Option<Instant>,
}

/// A snapshot that is being written.
#[derive(Debug)]
struct Snapshot {
    output: BatchedFile,
    /// Number of the request for its parts.
    request: u64,
    /// Number in its name.
    first: u64,
    /// The sync after which the snapshot is complete, if all its parts are written.
    ending: Option<SyncNumber>,
}

/// Next attempt after a failure.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Writer {
    /// Creates the writer. It writes nothing before [`Writer::run`].
    ///
    /// # Errors
    /// Returns an error if the system refuses the syncing thread.
    pub fn new(start: WriterStart, counters: Arc<StoreCounters>, begin: fn()) -> io::Result<Self> {
        let taken = start.last;
        Ok(Self {
            start,
            counters,
            syncer: Syncer::start(begin)?,
            log: None,
            snapshot: None,
            requests: 0,
            taken,
            is_whole: true,
            retry: None,
            logged: None,
        })
    }

    /// Writes until the journal is dropped.
    pub fn run(mut self, work: &Receiver<WriterTask>) {
        let begun = self.begin_log();
        self.note(begun);
        let many_logs = self.start.folder.logs().is_ok_and(|logs| logs.len() > LOGS_MAX);
        if (self.start.wants_snapshot || many_logs) && self.log.is_some() {
            let begun = self.begin_snapshot();
            self.note(begun);
        }
        loop {
            match work.recv_timeout(self.longest_wait()) {
                Ok(first) => self.take(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while self.log.as_ref().is_none_or(|log| log.buffered() < BATCH_BYTES)
                && let Ok(next) = work.try_recv()
            {
                self.take(next);
            }
            let written = self.write(false).and_then(|()| self.end_snapshot());
            self.note(written);
            if self.retry.is_some_and(|retry| retry.at <= Instant::now()) {
                let begun = self.begin_again();
                self.note(begun);
            }
        }
        let written = self.write(true);
        self.note(written);
    }

    /// Returns how long the thread may wait for work.
    fn longest_wait(&self) -> Duration {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let sync =
            self.log.as_ref().and_then(BatchedFile::unsynced_since).map(|since| until(since + SYNC_PERIOD));
        let retry = self.retry.map(|retry| until(retry.at));
        let sync = sync.filter(|_| self.start.durability != Durability::Off);
        let ends = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.ending.is_some());
        let sync = if ends { Some(SYNC_STEP) } else { sync.map(|wait| wait.max(SYNC_STEP)) };
        sync.into_iter().chain(retry).min().unwrap_or(Duration::from_secs(1))
    }

    fn take(&mut self, work: WriterTask) {
        match work {
            WriterTask::Change { sequence, now, changes } => {
                self.counters.queued.fetch_sub(changes.len(), Ordering::Relaxed);
                let is_next = sequence == self.taken + 1;
                self.taken = sequence;
                if !is_next && self.log.is_some() {
                    self.fail(&"the disk is too slow for the changes, and the queue is full");
                }
                let Some(log) = &mut self.log else {
                    self.counters.skipped.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                let encoder = FrameEncoder { seed: log.seed, clock: self.start.clock };
                let left_out = encoder.transaction(log.buffer(), sequence, now, &changes);
                self.note_left_out(left_out);
            }
            WriterTask::State { sequence, now, part } => {
                self.counters.queued.fetch_sub(part.changes.len(), Ordering::Relaxed);
                let done = self.add_part(sequence, now, &part);
                self.note(done);
            }
        }
    }

    fn note_left_out(&self, count: usize) {
        if count > 0 && self.counters.left_out.fetch_add(count as u64, Ordering::Relaxed) == 0 {
            let path = self.start.folder.path().display();
            tracing::warn!("{path}: the store cannot keep rules longer than an OpenFlow message");
        }
    }

    /// Writes buffered changes, and makes them durable if it is time or `is_last`.
    fn write(&mut self, is_last: bool) -> io::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        log.write()?;
        match self.start.durability {
            Durability::Off => {}
            Durability::Barrier => log.sync()?,
            Durability::Interval if is_last => log.sync()?,
            Durability::Interval => {
                let is_due = log.unsynced_since().is_some_and(|since| since.elapsed() >= SYNC_PERIOD);
                if is_due && self.syncer.is_idle()? {
                    self.syncer.submit(log.file())?;
                    log.is_being_synced();
                }
            }
        }
        let log_bytes = log.bytes;
        self.counters.log_bytes.store(log_bytes, Ordering::Relaxed);
        let last_bytes = self.counters.snapshot_bytes.load(Ordering::Relaxed);
        let is_long = log_bytes > last_bytes.max(self.start.snapshot_after_bytes);
        let begins = is_long && self.snapshot.is_none() && !is_last;
        if begins {
            self.counters.is_snapshot_pending.store(true, Ordering::Release);
        }
        self.publish();
        if begins {
            self.begin_log()?;
            self.begin_snapshot()?;
        }
        Ok(())
    }

    /// Publishes the number of the last transaction that a restart would restore.
    fn publish(&self) {
        if self.is_whole && self.log.is_some() {
            self.counters.kept.store(self.taken, Ordering::Release);
        }
    }

    /// Ends the current log and begins a new one with the next transaction.
    fn begin_log(&mut self) -> io::Result<()> {
        if let Some(log) = &mut self.log {
            log.write()?;
            match self.start.durability {
                Durability::Off => {}
                Durability::Interval => drop(self.syncer.submit(log.file())?),
                Durability::Barrier => log.sync()?,
            }
        }
        let first = self.taken + 1;
        let path = self.start.folder.log(first);
        // A log of this name has no whole transaction.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut log = BatchedFile::create(path, &self.header(FileKind::Log, first))?;
        log.write()?;
        match self.start.durability {
            Durability::Off => {}
            Durability::Interval => {
                self.syncer.submit(log.file())?;
                self.syncer.submit(self.start.folder.directory())?;
                log.is_being_synced();
            }
            Durability::Barrier => {
                log.sync()?;
                self.start.folder.directory().sync_all()?;
            }
        }
        self.log = Some(log);
        self.publish();
        Ok(())
    }

    fn header(&self, kind: FileKind, first: u64) -> FileHeader {
        let WriterStart { datapath_id, boot_id, base_mark, .. } = self.start;
        FileHeader { kind, datapath_id, first, boot_id, base_mark }
    }

    /// Begins a snapshot beside the log that has just been begun, and asks for the state.
    fn begin_snapshot(&mut self) -> io::Result<()> {
        let first = self.taken + 1;
        let path = self.start.folder.unfinished(first);
        let output = BatchedFile::create(path, &self.header(FileKind::Snapshot, first))?;
        self.requests += 1;
        self.snapshot = Some(Snapshot { output, request: self.requests, first, ending: None });
        self.counters.is_snapshot_pending.store(true, Ordering::Release);
        self.counters.requested.store(self.requests, Ordering::Release);
        Ok(())
    }

    fn begin_again(&mut self) -> io::Result<()> {
        if let Some(retry) = &mut self.retry {
            retry.pause = (retry.pause * 2).min(RETRY[1]);
            retry.at = Instant::now() + retry.pause;
        }
        self.begin_log()?;
        self.begin_snapshot()?;
        if let Some(retry) = &mut self.retry {
            // The snapshot may need a while. If it fails, the pause goes on growing.
            retry.at = Instant::now() + Duration::from_secs(3_600);
        }
        Ok(())
    }

    /// Adds a part of the state to the snapshot. `sequence` is the number of the last transaction before it.
    fn add_part(&mut self, sequence: u64, now: flow::Nanos, part: &StatePart) -> io::Result<()> {
        let Some(snapshot) = self.snapshot.as_mut().filter(|snapshot| snapshot.request == part.number) else {
            return Ok(());
        };
        let output = &mut snapshot.output;
        let encoder = FrameEncoder { seed: output.seed, clock: self.start.clock };
        let left_out = encoder.transaction(output.buffer(), sequence, now, &part.changes);
        if part.is_last {
            encoder.end_of_snapshot(output.buffer(), sequence);
        }
        output.write()?;
        let syncs = self.start.durability != Durability::Off;
        if syncs && self.syncer.is_idle()? && !part.is_last {
            // Large files take long to become durable, so begin early.
            self.syncer.submit(output.file())?;
        }
        if part.is_last {
            // The snapshot may include all transactions up to here, so they must be in the log before it is
            // complete.
            let log = self.log.as_mut();
            log.map_or(Ok(()), BatchedFile::write)?;
            let log = self.log.as_ref().filter(|_| syncs);
            log.map_or(Ok(0), |log| self.syncer.submit(log.file()))?;
            snapshot.ending = Some(if syncs { self.syncer.submit(snapshot.output.file())? } else { 0 });
        }
        if part.is_first {
            self.note_left_out(left_out);
        }
        Ok(())
    }

    /// If the snapshot is complete, gives it its name and removes the files that it replaces.
    fn end_snapshot(&mut self) -> io::Result<()> {
        let Some(ending) = self.snapshot.as_ref().and_then(|snapshot| snapshot.ending) else { return Ok(()) };
        if !self.syncer.is_done(ending)? {
            return Ok(());
        }
        let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
        let folder = &self.start.folder;
        fs::rename(folder.unfinished(snapshot.first), folder.snapshot(snapshot.first))?;
        match self.start.durability {
            Durability::Off => {}
            Durability::Interval => drop(self.syncer.submit(folder.directory())?),
            Durability::Barrier => folder.directory().sync_all()?,
        }
        self.counters.snapshot_bytes.store(snapshot.output.bytes, Ordering::Relaxed);
        self.counters.snapshots.fetch_add(1, Ordering::Relaxed);
        if self.retry.take().is_some() {
            let path = folder.path().display();
            tracing::warn!("{path}: the store is complete again");
        }
        self.is_whole = true;
        self.counters.is_snapshot_pending.store(false, Ordering::Release);
        self.counters.set_trouble(None);
        self.publish();
        self.remove_old(snapshot.first)
    }

    /// Removes the files that are needed neither by the snapshot of this number nor by the one before it.
    fn remove_old(&self, newest: u64) -> io::Result<()> {
        let folder = &self.start.folder;
        let snapshots = folder.snapshots()?;
        let Some(kept) = snapshots.iter().rev().find(|file| file.number < newest) else { return Ok(()) };
        let logs = folder.logs()?;
        let mut old = snapshots.iter().chain(&logs).filter(|file| file.number < kept.number);
        old.try_for_each(|file| fs::remove_file(&file.path))
    }

    /// Handles the result of a step.
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.fail(&error);
        }
    }

    /// Gives up the current files, and sets the time of the next attempt.
    fn fail(&mut self, why: &dyn std::fmt::Display) {
        let path = self.start.folder.path().display();
        let trouble = format!("{why}");
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_PERIOD) {
            tracing::warn!(
                "{path}: the store cannot be written, and is tried again; forwarding goes on: {why}"
            );
            self.logged = Some(Instant::now());
        }
        self.counters.set_trouble(Some(trouble));
        self.log = None;
        self.is_whole = false;
        self.counters.requested.store(0, Ordering::Release);
        self.counters.is_snapshot_pending.store(false, Ordering::Release);
        if let Some(snapshot) = self.snapshot.take() {
            // If this fails, the next start removes it.
            let _ = fs::remove_file(self.start.folder.unfinished(snapshot.first));
        }
        let pause = self.retry.map_or(RETRY[0], |retry| retry.pause);
        self.retry = Some(Retry { at: Instant::now() + pause, pause });
    }
}
