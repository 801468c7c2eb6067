// SPDX-License-Identifier: Apache-2.0
//! Synchronization types for the protocols between threads. The models in `loom/` compile the same protocols
//! with loom's types, to explore all interleavings of the production code.

pub(crate) use rtrb::{Consumer, Producer, PushError, RingBuffer};
pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
