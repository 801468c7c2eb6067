// SPDX-License-Identifier: Apache-2.0
//! Requests that wait for their turn, in bounded memory. The channels of OpenFlow and POF use this queue.

use std::collections::VecDeque;

/// Maximum total size in bytes of the waiting requests of all channels of a protocol. Above it, the smaller
/// limits of [`QueueLimits`] apply to each channel.
const TOTAL_BYTES: usize = 16 * 1_024 * 1_024;

/// Limits of a channel's queue. The last request may exceed a limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum number of waiting requests.
    pub requests: usize,
    /// Maximum total size in bytes of the waiting requests.
    pub bytes: usize,
    /// Maximum number of waiting requests while those of all channels exceed the total limit.
    pub over_limit_requests: usize,
    /// Maximum total size in bytes of the waiting requests while those of all channels exceed the total
    /// limit.
    pub over_limit_bytes: usize,
}

/// Requests of a channel that wait for their turn, in the order of arrival.
#[derive(Debug)]
pub struct RequestQueue<R> {
    /// Each request with its size in bytes.
    waiting: VecDeque<(R, usize)>,
    bytes: usize,
    limits: QueueLimits,
    /// Whether the waiting requests of all channels exceed the total limit.
    is_over_limit: bool,
}

impl<R> RequestQueue<R> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(limits: QueueLimits) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, limits, is_over_limit: false }
    }

    /// Returns whether the queue has space for a request.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let QueueLimits { requests, bytes, over_limit_requests, over_limit_bytes } = self.limits;
        let (most, most_bytes) =
            if self.is_over_limit { (over_limit_requests, over_limit_bytes) } else { (requests, bytes) };
        self.waiting.len() < most && self.bytes < most_bytes
    }

    /// Returns the total size in bytes of the waiting requests.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the next request.
    #[must_use]
    pub fn front(&self) -> Option<&R> {
        self.waiting.front().map(|(request, _)| request)
    }

    /// Adds a request of this size. The caller checks [`RequestQueue::has_room`] before it reads a request.
    pub fn push(&mut self, request: R, bytes: usize) {
        self.bytes += bytes;
        self.waiting.push_back((request, bytes));
    }

    /// Takes the next request.
    pub fn pop(&mut self) -> Option<R> {
        let (request, bytes) = self.waiting.pop_front()?;
        self.bytes -= bytes;
        Some(request)
    }

    /// Discards all requests.
    pub fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

/// Total size in bytes of the requests that wait in all channels of a protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueuedBytes(usize);

impl QueuedBytes {
    /// Selects the limits of a queue before a step of its channel. Returns the size of the queue, for
    /// [`QueuedBytes::after`].
    pub fn before<R>(self, queue: &mut RequestQueue<R>) -> usize {
        queue.is_over_limit = self.0 >= TOTAL_BYTES;
        queue.bytes
    }

    /// Updates the total after a step of a channel. `before` is the size of its queue before the step.
    pub fn after<R>(&mut self, before: usize, queue: &RequestQueue<R>) {
        self.0 = self.0.saturating_sub(before) + queue.bytes;
    }

    /// Subtracts the requests of a closed channel.
    pub fn remove<R>(&mut self, queue: &RequestQueue<R>) {
        self.0 = self.0.saturating_sub(queue.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: QueueLimits =
        QueueLimits { requests: 4, bytes: 100, over_limit_requests: 2, over_limit_bytes: 10 };

    #[test]
    fn a_queue_is_full_by_number_or_by_bytes() {
        let mut queue = RequestQueue::new(LIMITS);
        for number in 0..4 {
            assert!(queue.has_room());
            queue.push(number, 1);
        }
        assert!(!queue.has_room());
        assert_eq!(queue.front(), Some(&0));
        assert_eq!((queue.pop(), queue.bytes()), (Some(0), 3));
        assert!(queue.has_room());
        // The last request exceeds the limit.
        queue.push(4, 1_000);
        assert_eq!((queue.pop(), queue.has_room(), queue.bytes()), (Some(1), false, 1_002));
        queue.clear();
        assert_eq!((queue.has_room(), queue.is_empty(), queue.bytes(), queue.pop()), (true, true, 0, None));
    }

    #[test]
    fn queues_are_shorter_while_those_of_all_channels_are_long() {
        let mut total = QueuedBytes::default();
        let (mut long, mut short) = (RequestQueue::new(LIMITS), RequestQueue::new(LIMITS));
        let before = total.before(&mut long);
        long.push('a', TOTAL_BYTES - 1);
        total.after(before, &long);
        let before = total.before(&mut short);
        short.push('b', 1);
        short.push('c', 1);
        total.after(before, &short);
        assert!(short.has_room());
        let before = total.before(&mut short);
        assert!(!short.has_room(), "two requests are the maximum now");
        short.pop();
        assert!(short.has_room());
        short.push('d', 9);
        short.pop();
        assert!(short.has_room());
        short.push('e', 1);
        short.pop();
        short.push('f', 9);
        assert!(!short.has_room(), "10 bytes are the maximum now");
        short.clear();
        total.after(before, &short);
        assert_eq!(total, QueuedBytes(TOTAL_BYTES - 1));
        total.before(&mut short);
        assert!(short.has_room());
        total.remove(&long);
        assert_eq!(total, QueuedBytes(0));
    }
}
