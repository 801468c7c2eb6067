// SPDX-License-Identifier: Apache-2.0
//! Random programs of changes on a model without packets, and the model's state after each change.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::panic)]

mod fold;
mod plane;
mod program;

pub use fold::{Folded, Recorder, Recording};
pub use plane::FakePlane;
#[allow(unused_imports)]
pub use program::{PORTS, Program};

use flow::Nanos;
use model::{Journal, Model, ModelConfig, PortDesc};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use store::{Durability, OpenedStore, RuleStore, StoreClock, StoreConfig, StoreHandle};

pub type Fake = Model<FakePlane>;

/// Time at which every model of a test starts.
pub const START: Nanos = Nanos(400 * 86_400 * 1_000_000_000);
/// Longest time that a test waits for the writing thread.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Returns the number in an environment variable.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A folder that is removed at the end of a test.
pub struct TestFolder(pub PathBuf);

impl TestFolder {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = base.join(format!("store-{name}-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// Returns a copy of the folder.
    pub fn copy(&self, name: &str) -> Self {
        let copy = Self::new(name);
        std::fs::create_dir_all(&copy.0).unwrap();
        for file in files(&self.0) {
            std::fs::copy(&file, copy.0.join(file.file_name().unwrap())).unwrap();
        }
        copy
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the files of a folder in the order of their names.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Corrects the checksums of a file's header and frames.
pub fn seal(file: &mut [u8]) {
    let seed = crc32c::crc32c(&file[..60]);
    file[60..64].copy_from_slice(&seed.to_le_bytes());
    let mut rest = &mut file[64..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let (frame, after) = rest.split_at_mut(24 + length);
        let crc = crc32c::crc32c_append(seed, &frame[4..]);
        frame[..4].copy_from_slice(&crc.to_le_bytes());
        rest = after;
    }
}

pub fn config(path: &Path, durability: Durability) -> StoreConfig {
    StoreConfig {
        path: path.to_owned(),
        durability,
        datapath_id: 7,
        stateless: None,
        snapshot_after_bytes: 8 * 1_024,
    }
}

/// Returns a model with ports but without rules.
pub fn fresh() -> Fake {
    let mut model = Model::new(ModelConfig::default(), FakePlane::default(), START);
    for number in PORTS {
        let desc = PortDesc { number, name: format!("p{number}"), ..PortDesc::default() };
        model.add_port(START, desc, true).unwrap();
    }
    while model.next_async_message().is_some() {}
    model
}

/// Opens a store and returns a model with its state, the number of its last change, and the report.
pub fn restored(config: StoreConfig, clock: StoreClock) -> (Fake, OpenedStore) {
    let mut opened = RuleStore::open(config, clock).unwrap();
    let mut model = fresh();
    if let Some(state) = opened.state.take() {
        let report = model.restore(START, state);
        assert_eq!(report.refused, 0, "{:?}", report.reasons);
    }
    (model, opened)
}

/// Opens a store, restores its state, and attaches it to the model. All transactions are added to
/// `recording`. The model must be dropped before the handle.
pub fn attached(config: StoreConfig, clock: StoreClock, recording: &Recording) -> (StoreHandle, Fake) {
    let (mut model, opened) = restored(config, clock);
    let last = opened.report.last;
    let first = if last == 0 { model.kept_state() } else { Vec::new() };
    let (journal, handle) = opened.store.start(|| ()).unwrap();
    let journal: Box<dyn Journal> = Box::new(Recorder::new(journal, last, recording));
    model.attach_journal(START, journal, first);
    (handle, model)
}

/// Returns a state in a form that can be compared.
pub fn state(model: &Fake) -> Folded {
    let mut folded = Folded::default();
    folded.apply(&model.kept_state());
    folded
}

/// Waits until the store has written all changes. The model answers its requests for the state.
pub fn settle(model: &mut Fake, handle: &StoreHandle) {
    let end = Instant::now() + LIMIT;
    loop {
        model.poll(START);
        let status = handle.status();
        if status.kept == status.recorded && status.queued == 0 && !status.is_snapshot_pending {
            return;
        }
        assert!(Instant::now() < end, "{status:?}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
