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
mod handover;
mod items;
mod journal;
mod load;
mod output;
mod pages;
mod reader;
mod state;
mod status;
mod syncer;
mod writer;

pub use clock::StoreClock;
pub use error::StoreError;
pub use handover::{decode_handover, encode_handover};
pub use journal::StoreJournal;
pub use status::StoreStatus;

use flow::stateless::StatelessConfig;
use folder::Folder;
use model::KeptState;
use pages::SequencePage;
use reader::{Found, RunningReader, StoreReader};
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
    /// Time since this change. After a restart of the machine, it follows from the time of day, otherwise
    /// from the monotonic clock. `None` if it is unknown, or if the time of day is earlier than that of the
    /// change.
    pub last_age: Option<Duration>,
    /// Number of changes after it that are lost, or `None` if it is unknown.
    pub lost: Option<u64>,
    /// Number of items that cannot be decoded, except flow entries, which are decoded later.
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

/// A store whose folder is locked, and whose files a thread reads. Dropping it waits for the thread.
#[derive(Debug)]
pub struct LoadingStore {
    config: StoreConfig,
    clock: StoreClock,
    boot_id: [u8; 16],
    base_mark: u32,
    reading: RunningReader,
}

impl LoadingStore {
    /// Waits until everything except the flow entries is read. Two threads decode these while they are taken,
    /// and end when the state is dropped.
    ///
    /// # Errors
    /// Returns an error if the files cannot be read. Damaged files are no error, but are reported.
    pub fn finish(self) -> Result<OpenedStore, StoreError> {
        let Self { config, clock, boot_id, base_mark, reading } = self;
        let Found { folder, state, report, is_damaged: wants_snapshot } = reading.finish()?;
        let last = report.last;
        let store = RuleStore { folder, config, clock, boot_id, base_mark, last, wants_snapshot };
        Ok(OpenedStore { store, state, report })
    }
}

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

    /// Makes the store ask for the whole state soon, because the model's state does not come from the folder.
    #[must_use]
    pub fn with_new_snapshot(mut self) -> Self {
        self.wants_snapshot = true;
        self
    }

    /// Locks the folder, creates it if it is missing, and loads the newest whole state.
    ///
    /// # Errors
    /// Returns the errors of [`RuleStore::begin`] and [`LoadingStore::finish`].
    pub fn open(config: StoreConfig, clock: StoreClock) -> Result<OpenedStore, StoreError> {
        Self::begin(config, clock)?.finish()
    }

    /// Locks the folder, creates it if it is missing, and starts a thread that reads the newest whole state.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be used, if another process uses it, or if the system refuses a
    /// thread.
    pub fn begin(config: StoreConfig, clock: StoreClock) -> Result<LoadingStore, StoreError> {
        let folder = Folder::open(&config.path)?;
        let boot_id = clock::boot_id();
        let base_mark = encode::mark_of(config.stateless.clone());
        let reader = StoreReader { folder, clock, datapath_id: config.datapath_id, boot_id, base_mark };
        let reading = reader.start()?;
        Ok(LoadingStore { config, clock, boot_id, base_mark, reading })
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
