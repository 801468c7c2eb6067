// SPDX-License-Identifier: Apache-2.0
//! The shared types of the protocols between threads. The models in `loom/` compile the same protocols against
//! loom's types, so that they explore every interleaving of the code that runs in production.

pub(crate) use rtrb::{Consumer, Producer, PushError, RingBuffer};
pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard};
