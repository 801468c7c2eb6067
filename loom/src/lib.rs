// SPDX-License-Identifier: Apache-2.0
//! Tests of the synchronization protocols between threads. Loom runs each test under every interleaving with
//! a limited number of preemptions, and under every memory order that the language permits. The production
//! files are compiled again with loom's types, from `crate::sync`. The crate must not contain its own
//! protocol code. Begin with `sleep_model` and `epochs_model`.
//!
//! `LOOM_MAX_PREEMPTIONS` sets the maximum number of preemptions in an interleaving (default: 3).
#![cfg(test)]

mod epochs_model;
mod ring;
mod sleep_model;

#[path = "../../crates/worker/src/handover/epochs.rs"]
#[allow(dead_code, reason = "levels are not part of the protocol")]
mod epochs;
#[path = "../../crates/worker/src/sleep.rs"]
#[allow(dead_code, reason = "the models use a part of the module")]
mod sleep;

/// Replacement of `worker::sync` for loom.
mod sync {
    pub(crate) use crate::ring::{Consumer, Producer, PushError, RingBuffer};
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
}

/// Runs a model under all interleavings within the limit of preemptions.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    const PREEMPTIONS: usize = 3;
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(model);
}
