// SPDX-License-Identifier: Apache-2.0
//! Restores the rules of an earlier process, and attaches the store to the model.

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
use flow::Nanos;
use model::{KeptChange, KeptState, Model};
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
pub fn finish(config: &Config, loading: LoadingStore) -> Result<OpenedStore, DaemonError> {
    let mut opened = loading.finish()?;
    if let Some(state) = &mut opened.state {
        // Without controllers in the file, no loss of a controller begins the standalone mode.
        state.standalone |= config.datapath.openflow.controllers.is_empty();
    }
    report(opened.store.path(), &opened.report, opened.state.is_some());
    Ok(opened)
}

/// Sets up the rules of a fresh model: those of the store, else those of the flow file. Returns `None` if the
/// daemon was stopped first.
pub fn set_up(
    model: &mut Model<Plane>,
    clock: MonotonicClock,
    opened: Option<OpenedStore>,
    flows: Option<&Path>,
    stop: &Stop,
) -> Result<Option<Option<StoreHandle>>, DaemonError> {
    let load_flows = |model: &mut Model<Plane>| match flows {
        Some(path) => load(model, clock, path, Some(stop)).map(|loaded| loaded.is_some()),
        None => Ok(true),
    };
    let Some(OpenedStore { store, state, report }) = opened else {
        return Ok(load_flows(model)?.then_some(None));
    };
    let path = store.path().to_owned();
    let first = match state {
        Some(state) => {
            let first = restore(model, clock.now(), &path, state, &report);
            if let Some(flows) = flows {
                say(&format!(
                    "shunt: the flows of {} are not loaded, because the store {} has rules",
                    flows.display(),
                    path.display()
                ));
            }
            first
        }
        None => {
            // The flow file is loaded later, as a change that the store keeps.
            let first = model.kept_state();
            let (journal, handle) = store.start(begin_thread)?;
            model.attach_journal(clock.now(), Box::new(journal), first);
            return Ok(load_flows(model)?.then_some(Some(handle)));
        }
    };
    let (journal, handle) = store.start(begin_thread)?;
    model.attach_journal(clock.now(), Box::new(journal), first);
    Ok(Some(Some(handle)))
}

/// Restores a state. Returns the changes that the store must know.
fn restore(
    model: &mut Model<Plane>,
    now: Nanos,
    path: &Path,
    state: KeptState,
    report: &LoadReport,
) -> Vec<KeptChange> {
    // Threads of the running switch must not start threads, but this is the start.
    set_run_in_parallel(model, Some(run_in_parallel));
    let begun = Instant::now();
    let restored = model.restore(now, state);
    let ms = begun.elapsed().as_millis();
    set_run_in_parallel(model, None);
    let path = path.display();
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
    let mut first = restored.gone;
    if !report.is_same_base {
        let current = model.kept_state().into_iter();
        first.extend(current.filter(|change| matches!(change, KeptChange::Stateless(_))));
    }
    first
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

/// Restores the state of the process that this one continues.
pub fn restore_handed_over(model: &mut Model<Plane>, now: Nanos, state: KeptState) {
    set_run_in_parallel(model, Some(run_in_parallel));
    let restored = model.restore(now, state);
    set_run_in_parallel(model, None);
    if restored.refused > 0 {
        let text = restored.reasons.join("; ");
        say(&format!("shunt: {} rules of the old program are refused and lost: {text}", restored.refused));
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

fn set_run_in_parallel(model: &mut Model<Plane>, run_in_parallel: Option<RunInParallel>) {
    if let Some(workers) = model.plane_mut().workers() {
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
