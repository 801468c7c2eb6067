// SPDX-License-Identifier: Apache-2.0
//! Restores the rules of an earlier process, and attaches the store to the model.
//!
//! [`RestoredModel::new`] restores rules while the ports are opened. [`RestoredModel::complete`] restores the
//! configurations of ports and the learned MACs when the model has its ports.

use super::DaemonError;
use super::clock::MonotonicClock;
use super::load::load;
use super::stop::Stop;
use crate::log::say;
use crate::plane::Plane;
use crate::sandbox::{self, ThreadKind};
use crate::upgrade::SuccessorError;
use config::trace::TracedPlane;
use config::{Config, Durable};
use model::{KeptChange, KeptState, Model, PartlyRestored, RestoreReport};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{Durability, LoadReport, LoadingStore, OpenedStore, RuleStore};
use store::{StoreClock, StoreConfig, StoreError, StoreHandle};
use worker::RunInParallel;

/// Longest time for which the process before may hold the lock of a store.
const LOCK_LIMIT: Duration = Duration::from_secs(3);

/// Is called by the threads of a store when they begin.
fn begin_thread() {
    sandbox::enter(ThreadKind::Store);
}

/// Locks the store of a datapath, if it has one, and begins to read it.
pub fn begin(config: &Config, clock: MonotonicClock) -> Result<Option<LoadingStore>, DaemonError> {
    let Some(kept) = &config.datapath.kept_rules else { return Ok(None) };
    let settings = StoreConfig {
        path: kept.path.clone(),
        durability: match kept.durable {
            Durable::Off => Durability::Off,
            Durable::Interval => Durability::Interval,
            Durable::Barrier => Durability::Barrier,
        },
        datapath_id: config.datapath.id,
        stateless: config.datapath.stateless.clone(),
        snapshot_after_bytes: store::SNAPSHOT_AFTER_BYTES,
    };
    Ok(Some(RuleStore::begin(settings, StoreClock::at(clock.now()))?))
}

/// Waits until the store of a datapath is read, and reports what it contains.
fn finish(config: &Config, loading: LoadingStore) -> Result<OpenedStore, DaemonError> {
    let mut opened = loading.finish()?;
    if let Some(state) = &mut opened.state {
        // Without controllers in the file, no loss of a controller begins the standalone mode.
        state.standalone |= config.datapath.openflow.controllers.is_empty();
    }
    report(opened.store.path(), &opened.report, opened.state.is_some());
    Ok(opened)
}

/// Where the rules of a datapath come from at the start.
pub enum KeptSource {
    /// A store that is being read, or `None` if the datapath has no store.
    Store(Option<LoadingStore>),
    /// The process that this one continues.
    Predecessor(KeptState),
}

impl KeptSource {
    /// Waits until the store is read, and reports what it contains. Its entries may not be decoded yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn read(self, config: &Config) -> Result<ReadRules, DaemonError> {
        let (opened, state) = match self {
            Self::Predecessor(state) => (None, Some(state)),
            Self::Store(None) => (None, None),
            Self::Store(Some(loading)) => {
                let mut opened = finish(config, loading)?;
                let state = opened.state.take();
                (Some(opened), state)
            }
        };
        Ok(ReadRules { opened, state })
    }
}

/// What a [`KeptSource`] contained.
pub struct ReadRules {
    /// The store, if the datapath has one and continues no other process.
    opened: Option<OpenedStore>,
    /// The kept state, or `None` if no rules were kept.
    state: Option<KeptState>,
}

/// A model at the start: its rules are restored, but the configurations of its ports and its MACs are not.
pub struct RestoredModel {
    pub model: Model<Plane>,
    /// The part of the kept state that needs ports, and the time that the other part took. `None` if no rules
    /// were kept.
    restored: Option<(PartlyRestored, Duration)>,
    /// The store, if the datapath has one and continues no other process.
    opened: Option<OpenedStore>,
}

/// A model, and the handle of its store, if it has one.
pub type ModelWithStore = (Model<Plane>, Option<StoreHandle>);

impl RestoredModel {
    /// Restores flow entries, groups and meters in a fresh model. It needs no ports.
    pub fn new(clock: MonotonicClock, mut model: Model<Plane>, read: ReadRules) -> Self {
        let ReadRules { opened, state } = read;
        let begun = Instant::now();
        let restored = state.map(|state| model.restore_rules(clock.now(), state));
        let restored = restored.map(|restored| (restored, begun.elapsed()));
        Self { model, restored, opened }
    }

    /// Returns whether the rules come from the process that this one continues.
    pub fn is_handed_over(&self) -> bool {
        self.restored.is_some() && self.opened.is_none()
    }

    /// Replaces a waiting data plane by the one that forwards.
    pub fn start_plane(&mut self, mut plane: Plane) {
        let begun = Instant::now();
        // Threads of the running switch must not start threads, but this is the start.
        set_run_in_parallel(&mut plane, Some(run_in_parallel));
        self.model.plane_mut().start(plane);
        set_run_in_parallel(self.model.plane_mut(), None);
        if let Some((_, elapsed)) = &mut self.restored {
            *elapsed += begun.elapsed();
        }
    }

    /// Restores the rest of the kept state, and attaches the store. The model must have its ports. If no
    /// rules were kept, loads the flow file. Returns `None` if the daemon was stopped first.
    ///
    /// # Errors
    ///
    /// Returns an error if the flow file is wrong, or if the system refuses a thread of the store.
    pub fn complete(
        self,
        clock: MonotonicClock,
        flows: Option<&Path>,
        stop: &Stop,
    ) -> Result<Option<ModelWithStore>, DaemonError> {
        let Self { mut model, restored, opened } = self;
        let restored = restored.map(|(partly, elapsed)| {
            let begun = Instant::now();
            (model.restore_ports(clock.now(), partly), elapsed + begun.elapsed())
        });
        let mut store = None;
        if let Some(OpenedStore { store: rule_store, report, .. }) = opened {
            let first = match &restored {
                Some((restored, elapsed)) => {
                    report_restored(rule_store.path(), restored, &report, *elapsed, flows);
                    changes_at_start(&mut model, restored, &report)
                }
                // A flow file is loaded later, as a change that the store keeps.
                None => model.kept_state(),
            };
            let (journal, handle) = rule_store.start(begin_thread)?;
            model.attach_journal(clock.now(), Box::new(journal), first);
            store = Some(handle);
        } else if let Some((restored, _)) = &restored
            && restored.refused > 0
        {
            let text = restored.reasons.join("; ");
            let refused = restored.refused;
            say(&format!("shunt: {refused} rules of the old program are refused and lost: {text}"));
        }
        if let Some(path) = flows.filter(|_| restored.is_none())
            && load(&mut model, clock, path, Some(stop))?.is_none()
        {
            return Ok(None);
        }
        Ok(Some((model, store)))
    }
}

/// Returns the changes that the store must know after rules were restored from it.
fn changes_at_start(
    model: &mut Model<Plane>,
    restored: &RestoreReport,
    report: &LoadReport,
) -> Vec<KeptChange> {
    let mut first = restored.gone.clone();
    if !report.is_same_base {
        let current = model.kept_state().into_iter();
        first.extend(current.filter(|change| matches!(change, KeptChange::Stateless(_))));
    }
    first
}

/// Reports which rules were restored from the store at `path`.
fn report_restored(
    path: &Path,
    restored: &RestoreReport,
    report: &LoadReport,
    elapsed: Duration,
    flows: Option<&Path>,
) {
    let (path, ms) = (path.display(), elapsed.as_millis());
    say(&format!(
        "shunt: store {path}: restored {} flows, {} groups, {} meters and {} MACs in {ms} ms",
        restored.flows, restored.groups, restored.meters, restored.macs
    ));
    let undecodable = report.undecodable + restored.undecodable;
    if undecodable > 0 {
        say(&format!("shunt: store {path}: {undecodable} rules cannot be decoded and are lost"));
    }
    if restored.refused > 0 {
        let text = restored.reasons.join("; ");
        say(&format!("shunt: store {path}: {} rules are refused and lost: {text}", restored.refused));
    }
    if let Some(flows) = flows {
        say(&format!(
            "shunt: the flows of {} are not loaded, because the store {path} has rules",
            flows.display()
        ));
    }
}

/// Decodes the state of the process that this one continues.
pub fn decode(config: &Config, clock: MonotonicClock, bytes: &[u8]) -> Result<KeptState, DaemonError> {
    let incomplete = |problem: String| DaemonError::from(SuccessorError::Incomplete(problem));
    let id = config.datapath.id;
    match store::decode_handover(bytes, id, clock.now()) {
        Some((state, 0)) => Ok(state),
        Some((_, lost)) => Err(incomplete(format!("{lost} rules of datapath {id} cannot be decoded"))),
        None => Err(incomplete(format!("the state of datapath {id} is damaged"))),
    }
}

/// Opens the store of a datapath whose state came from the process before, and attaches it. That process may
/// have locked it for a moment.
pub fn attach(
    config: &Config,
    clock: MonotonicClock,
    model: &mut Model<Plane>,
) -> Result<Option<StoreHandle>, DaemonError> {
    let end = Instant::now() + LOCK_LIMIT;
    let loading = loop {
        match begin(config, clock) {
            Err(DaemonError::Store(StoreError::InUse(_))) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => break other?,
        }
    };
    let Some(loading) = loading else { return Ok(None) };
    let OpenedStore { store, state, .. } = loading.finish()?;
    drop(state);
    let (journal, handle) = store.with_new_snapshot().start(begin_thread)?;
    model.attach_journal(clock.now(), Box::new(journal), Vec::new());
    Ok(Some(handle))
}

fn set_run_in_parallel(plane: &mut Plane, run_in_parallel: Option<RunInParallel>) {
    if let Some(workers) = plane.workers() {
        workers.set_run_in_parallel(run_in_parallel);
    }
}

/// Runs both functions, the first one on a thread of its own if the system allows one.
fn run_in_parallel(on_other_thread: &mut (dyn FnMut() + Send), on_this_thread: &mut dyn FnMut()) {
    let on_other_thread = Mutex::new(on_other_thread);
    let run = || on_other_thread.lock().unwrap_or_else(PoisonError::into_inner)();
    std::thread::scope(|scope| {
        let other = std::thread::Builder::new().name("restore".into()).spawn_scoped(scope, run);
        on_this_thread();
        if other.is_err() {
            run();
        }
    });
}

fn report(path: &Path, report: &LoadReport, has_state: bool) {
    let path = path.display();
    for problem in &report.problems {
        say(&format!("shunt: store {path}: {problem}"));
    }
    if !has_state {
        let why = if report.problems.is_empty() { "is new" } else { "has no whole state" };
        say(&format!("shunt: store {path}: {why}"));
        return;
    }
    let age = report
        .last_age
        .map(|age| format!(", made {}.{:03} s before this start", age.as_secs(), age.subsec_millis()));
    let lost = match report.lost {
        Some(0) => "no later change is lost".to_owned(),
        Some(1) => "1 later change is lost".to_owned(),
        Some(lost) => format!("{lost} later changes are lost"),
        None => "how many later changes are lost is unknown".to_owned(),
    };
    let age = age.unwrap_or_default();
    say(&format!("shunt: store {path}: the last change kept is number {}{age}; {lost}", report.last));
}
