// SPDX-License-Identifier: Apache-2.0
//! Model of `rtrb`'s ring for loom: the same interface, the same atomics with the same memory orders, and the
//! same cached position of the other end. Only the slots differ: each has a lock, which is never contended.

use loom::sync::atomic::{AtomicUsize, Ordering};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};

pub struct RingBuffer<T> {
    slots: Vec<Mutex<Option<T>>>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

#[derive(Debug, PartialEq, Eq)]
pub enum PushError<T> {
    Full(T),
}

/// Error that reports an empty ring.
#[derive(Debug, PartialEq, Eq)]
pub struct Empty;

pub struct Producer<T> {
    ring: Arc<RingBuffer<T>>,
    tail: usize,
    cached_head: usize,
}

pub struct Consumer<T> {
    ring: Arc<RingBuffer<T>>,
    head: usize,
    cached_tail: Cell<usize>,
}

impl<T> RingBuffer<T> {
    #[allow(clippy::new_ret_no_self, reason = "`rtrb` has the same signature")]
    pub fn new(capacity: usize) -> (Producer<T>, Consumer<T>) {
        let slots = (0..capacity).map(|_| Mutex::new(None)).collect();
        let ring = Arc::new(Self { slots, head: AtomicUsize::new(0), tail: AtomicUsize::new(0) });
        let producer = Producer { ring: Arc::clone(&ring), tail: 0, cached_head: 0 };
        (producer, Consumer { ring, head: 0, cached_tail: Cell::new(0) })
    }

    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, position: usize) -> MutexGuard<'_, Option<T>> {
        self.slots[position % self.slots.len()].lock().unwrap()
    }
}

impl<T> Producer<T> {
    pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.tail - self.cached_head == self.ring.capacity() {
            self.cached_head = self.ring.head.load(Ordering::Acquire);
            if self.tail - self.cached_head == self.ring.capacity() {
                return Err(PushError::Full(item));
            }
        }
        *self.ring.slot(self.tail) = Some(item);
        self.tail += 1;
        self.ring.tail.store(self.tail, Ordering::Release);
        Ok(())
    }

    pub fn slots(&self) -> usize {
        self.ring.capacity() - (self.tail - self.ring.head.load(Ordering::Acquire))
    }

    pub fn buffer(&self) -> &RingBuffer<T> {
        &self.ring
    }
}

/// Reference to the first item of a ring.
pub struct Peeked<'a, T>(MutexGuard<'a, Option<T>>);

impl<T> std::ops::Deref for Peeked<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().unwrap()
    }
}

impl<T> Consumer<T> {
    pub fn peek(&self) -> Result<Peeked<'_, T>, Empty> {
        if self.head == self.cached_tail.get() {
            self.cached_tail.set(self.ring.tail.load(Ordering::Acquire));
            if self.head == self.cached_tail.get() {
                return Err(Empty);
            }
        }
        Ok(Peeked(self.ring.slot(self.head)))
    }

    pub fn pop(&mut self) -> Result<T, Empty> {
        drop(self.peek()?);
        let item = self.ring.slot(self.head).take();
        self.head += 1;
        self.ring.head.store(self.head, Ordering::Release);
        item.ok_or(Empty)
    }

    pub fn slots(&self) -> usize {
        self.ring.tail.load(Ordering::Acquire) - self.head
    }

    pub fn is_empty(&self) -> bool {
        self.peek().is_err()
    }
}
