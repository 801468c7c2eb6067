// SPDX-License-Identifier: Apache-2.0
//! Keeps the rules of a datapath in a folder, so that a restart finds them (docs/adr/0060).
//!
//! [`RuleStore::open`] locks the folder and returns the kept state. [`RuleStore::start`] starts the thread
//! that writes changes, and returns the [`StoreJournal`] for the model. The control thread never waits for
//! the disk, and a disk that fails never disturbs it.
//!
//! Files of the folder: `log-N` (transactions from number N on), `snapshot-N` (the state to which the
//! transactions from N on must be applied), `sequence` (the number of the last transaction), and `damaged-*`
//! (files that could not be read).
//!
//! Begin with `format.rs` (the layout), then `load.rs` and `writer.rs`.

mod clock;
mod decode;
mod encode;
mod error;
mod folder;
mod format;
mod items;
mod journal;
mod load;
mod output;
mod pages;
mod state;
mod status;
mod syncer;
mod writer;

pub use clock::StoreClock;
pub use error::StoreError;
pub use journal::StoreJournal;
pub use status::StoreStatus;

use flow::stateless::StatelessConfig;
use folder::Folder;
use load::{Findings, LastChange};
use model::KeptState;
use pages::SequencePage;
use state::FileTime;
use status::StoreCounters;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use writer::{Writer, WriterStart};

/// Longest time that the end of a datapath waits until the last changes are kept.
const END_LIMIT: Duration = Duration::from_secs(2);

/// When a change is made durable, so that it survives a loss of power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Whenever the kernel writes it. A killed process loses nothing that was written.
    Off,
    /// At most 50 ms after the change, if the disk is fast enough.
    #[default]
    Interval,
    /// Before a barrier after the change is answered.
    Barrier,
}

/// Settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The folder.
    pub path: PathBuf,
    /// When changes are made durable.
    pub durability: Durability,
    /// ID of the datapath. The files of another one are not loaded.
    pub datapath_id: u64,
    /// Configuration of the stateless forwarder with which the datapath starts. If it has changed since the
    /// last start, the kept one is not restored.
    pub stateless: Option<Arc<StatelessConfig>>,
    /// Bytes of a log above which a snapshot is made, unless the last snapshot is larger.
    pub snapshot_after_bytes: u64,
}

/// Usual value of [`StoreConfig::snapshot_after_bytes`].
pub const SNAPSHOT_AFTER_BYTES: u64 = 4 << 20;

/// What a start found in the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Number of the last change that is restored, or 0 if there is none.
    pub last: u64,
    /// Time since this change. After a restart of the machine, it follows from the time of day, otherwise from
    /// the monotonic clock. `None` if it is unknown, or if the time of day is earlier than that of the change.
    pub last_age: Option<Duration>,
    /// Number of changes after it that are lost, or `None` if it is unknown.
    pub lost: Option<u64>,
    /// Number of items that cannot be decoded.
    pub undecodable: usize,
    /// Whether [`StoreConfig::stateless`] is the same as at the last start.
    pub is_same_base: bool,
    /// One sentence for each problem.
    pub problems: Vec<String>,
}

/// A store that has been opened.
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub store: RuleStore,
    /// The newest whole state, or `None` if the store is new or nothing in it can be read.
    pub state: Option<KeptState>,
    /// What was found.
    pub report: LoadReport,
}

/// The folder of a store, which no other process can use while this exists.
#[derive(Debug)]
pub struct LockedFolder(Folder);

/// A locked folder whose state has been loaded.
#[derive(Debug)]
pub struct RuleStore {
    folder: Folder,
    config: StoreConfig,
    clock: StoreClock,
    boot_id: [u8; 16],
    base_mark: u32,
    last: u64,
    wants_snapshot: bool,
}

impl RuleStore {
    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Locks the folder, creates it if it is missing, and loads the newest whole state.
    ///
    /// # Errors
    /// Returns the errors of [`RuleStore::lock`] and [`RuleStore::load`].
    pub fn open(config: StoreConfig, clock: StoreClock) -> Result<OpenedStore, StoreError> {
        Self::load(Self::lock(&config.path)?, config, clock)
    }

    /// Locks a folder, and creates it if it is missing.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be used, or if another process uses it.
    pub fn lock(path: &Path) -> Result<LockedFolder, StoreError> {
        Folder::open(path).map(LockedFolder)
    }

    /// Loads the newest whole state of a locked folder. `config` has the path of the folder.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read. Damaged files are no error, but are reported.
    pub fn load(
        folder: LockedFolder,
        config: StoreConfig,
        clock: StoreClock,
    ) -> Result<OpenedStore, StoreError> {
        let LockedFolder(folder) = folder;
        debug_assert_eq!(folder.path(), config.path);
        let failed = |source| StoreError::Folder { path: config.path.clone(), source };
        let mut findings = Findings::default();
        let images = load::read(&folder, config.datapath_id, &mut findings).map_err(failed)?;
        let boot_id = clock::boot_id();
        let base_mark = encode::mark_of(config.stateless.clone());
        let recorded = SequencePage::read(&folder.sequence());
        let mut report = LoadReport::default();
        let is_new = images.logs.is_empty() && images.snapshots.is_empty() && findings.problems.is_empty();
        let loaded = load::load(&images, &folder, &mut findings);
        let state = loaded.map(|loaded| {
            let LastChange { sequence, time, boot_id: then } = loaded.last;
            report.last = sequence;
            report.last_age = age_of(time, then == boot_id, clock);
            report.is_same_base = loaded.base_mark == base_mark;
            // After a restart of the machine, the time since the last change is unknown and does not count.
            let now = if then == boot_id { clock.set_up() } else { time.monotonic };
            let created = |at: i64| clock.before(now.saturating_sub(at));
            let (mut state, undecodable) = decode::decode(&loaded.state, created);
            report.undecodable = undecodable;
            if !report.is_same_base {
                state.stateless = None;
            }
            state
        });
        report.lost = match recorded {
            Some(recorded) => Some(recorded.saturating_sub(report.last)),
            None => is_new.then_some(0),
        };
        if let Err(error) = remove_unusable(&folder, report.last) {
            findings.problems.push(format!("{}: {error}", folder.path().display()));
        }
        report.problems = std::mem::take(&mut findings.problems);
        let wants_snapshot = findings.is_damaged;
        let store = Self { folder, config, clock, boot_id, base_mark, last: report.last, wants_snapshot };
        Ok(OpenedStore { store, state, report })
    }

    /// Starts the threads that write changes, which call `begin` first. Returns the journal for the model,
    /// and a handle that waits for the threads when it is dropped, after the journal.
    ///
    /// # Errors
    /// Returns an error if the system refuses a thread.
    pub fn start(self, begin: fn()) -> Result<(StoreJournal, StoreHandle), StoreError> {
        let Self { folder, config, clock, boot_id, base_mark, last, wants_snapshot } = self;
        let page = match SequencePage::open(&folder.sequence(), last) {
            Ok(page) => Some(page),
            Err(error) => {
                let path = folder.sequence();
                tracing::warn!("{}: {error}; a restart cannot count lost changes", path.display());
                None
            }
        };
        let counters = Arc::new(StoreCounters::default());
        counters.recorded.store(last, Ordering::Relaxed);
        let durability = config.durability;
        let start = WriterStart {
            folder,
            durability,
            clock,
            datapath_id: config.datapath_id,
            boot_id,
            base_mark,
            last,
            wants_snapshot,
            snapshot_after_bytes: config.snapshot_after_bytes,
        };
        let writer = Writer::new(start, Arc::clone(&counters), begin).map_err(StoreError::Thread)?;
        let (sender, work) = channel();
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || {
                begin();
                writer.run(&work);
            })
            .map_err(StoreError::Thread)?;
        let journal = StoreJournal {
            work: sender,
            counters: Arc::clone(&counters),
            page,
            durability,
            sequence: last,
            unkept: VecDeque::new(),
        };
        Ok((journal, StoreHandle { path: config.path, counters, thread: Some(thread) }))
    }
}

/// Returns the time since a change, which was made in this boot of the machine or in an earlier one.
fn age_of(time: FileTime, is_same_boot: bool, clock: StoreClock) -> Option<Duration> {
    if time == FileTime::default() {
        return None;
    }
    if is_same_boot {
        let age = clock.set_up().saturating_sub(time.monotonic).max(0);
        return Some(Duration::from_nanos(age.unsigned_abs()));
    }
    clock.wall_ms().checked_sub(time.wall_ms).map(Duration::from_millis)
}

/// Removes snapshots that were never completed, and files that do not continue the loaded state. If a file
/// has content, it is kept under another name.
fn remove_unusable(folder: &Folder, last: u64) -> std::io::Result<()> {
    folder.remove_unfinished()?;
    let snapshots = folder.snapshots()?.into_iter().filter(|file| file.number > last + 1);
    let logs = folder.logs()?.into_iter().filter(|file| file.number > last);
    for file in snapshots.chain(logs) {
        let is_empty = std::fs::metadata(&file.path)?.len() <= format::HEADER_BYTES as u64;
        if !is_empty {
            folder.keep_aside(&file.path)?;
        }
        std::fs::remove_file(&file.path)?;
    }
    Ok(())
}

/// Handle of the writing thread.
#[derive(Debug)]
pub struct StoreHandle {
    path: PathBuf,
    counters: Arc<StoreCounters>,
    thread: Option<JoinHandle<()>>,
}

impl StoreHandle {
    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the condition of the store.
    #[must_use]
    pub fn status(&self) -> StoreStatus {
        self.counters.status()
    }
}

impl Drop for StoreHandle {
    /// Waits until the thread has ended, at most for [`END_LIMIT`]. The journal must have been dropped
    /// before. A disk that hangs must not delay the end of the process.
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let end = Instant::now() + END_LIMIT;
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            // The panic hook has logged a panic.
            let _ = thread.join();
        } else {
            tracing::warn!(
                "{}: the last changes are not kept, because the disk does not answer",
                self.path.display()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_an_earlier_boot_has_no_age_if_the_clock_was_set_back() {
        let clock = StoreClock::at(flow::Nanos(0));
        let at = |monotonic, wall_ms| FileTime { monotonic, wall_ms };
        let up = clock.set_up();
        assert_eq!(age_of(at(up - 5, 1), true, clock), Some(Duration::from_nanos(5)));
        assert!(age_of(at(1, clock.wall_ms() - 5), false, clock).is_some_and(|age| age.as_millis() >= 5));
        assert_eq!(age_of(at(1, u64::MAX), false, clock), None);
        assert_eq!(age_of(FileTime::default(), true, clock), None);
    }
}
