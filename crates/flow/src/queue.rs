// SPDX-License-Identifier: Apache-2.0
//! Egress queues of a port, with the settings of their scheduler.

use crate::QueueId;

/// Settings of one egress queue. Rates are in kbit/s and count frames from the destination MAC address to the
/// end of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EgressQueue {
    /// Number of the queue at its port, at most [`EgressQueue::ID_MAX`].
    pub id: QueueId,
    /// Guaranteed rate in kbit/s, or `None` for no guarantee. All guarantees are served before any queue
    /// sends more.
    pub min_rate_kbps: Option<u32>,
    /// Maximum rate in kbit/s, or `None` for no limit.
    pub max_rate_kbps: Option<u32>,
    /// Priority, at most [`EgressQueue::PRIORITY_MAX`]. A higher priority is served first.
    pub priority: u8,
    /// Maximum number of queued frames per lane, 1 to [`EgressQueue::FRAMES_MAX`].
    pub limit_frames: u16,
}

impl EgressQueue {
    /// Highest queue number. The queue ID (QID) of Tag-and-Forward has 3 bits.
    pub const ID_MAX: QueueId = QueueId(7);
    /// Maximum number of queues of a port.
    pub const COUNT: usize = Self::ID_MAX.0 as usize + 1;
    /// Queue of packets that selected no queue, or a queue that their port does not have.
    pub const DEFAULT_ID: QueueId = QueueId(0);
    /// Highest priority.
    pub const PRIORITY_MAX: u8 = 7;
    /// Highest rate in kbit/s: 400 Gbit/s.
    pub const RATE_MAX_KBPS: u32 = 400_000_000;
    /// Upper bound of `limit_frames`.
    pub const FRAMES_MAX: u16 = 4_096;
    /// Default of `limit_frames`.
    pub const FRAMES: u16 = 512;

    /// Returns the queues of a port, and adds the default queue if it is missing from a list that is not
    /// empty. The queues must have distinct numbers.
    #[must_use]
    pub fn complete(mut queues: Vec<Self>) -> Vec<Self> {
        if !queues.is_empty() && !queues.iter().any(|queue| queue.id == Self::DEFAULT_ID) {
            queues.push(Self::new(Self::DEFAULT_ID));
        }
        queues.sort_unstable_by_key(|queue| queue.id);
        queues
    }

    /// Returns a queue of the lowest priority without rate limits.
    #[must_use]
    pub fn new(id: QueueId) -> Self {
        Self { id, min_rate_kbps: None, max_rate_kbps: None, priority: 0, limit_frames: Self::FRAMES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_queue_is_added_to_other_queues() {
        let numbers = |queues: &[u32]| {
            let queues =
                EgressQueue::complete(queues.iter().map(|id| EgressQueue::new(QueueId(*id))).collect());
            queues.iter().map(|queue| queue.id.0).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[]), [0; 0]);
        assert_eq!(numbers(&[7, 2]), [0, 2, 7]);
        assert_eq!(numbers(&[5, 0, 1]), [0, 1, 5]);
    }

    #[test]
    fn a_queue_has_the_defaults_and_limits_of_the_documentation() {
        let queue = EgressQueue::new(QueueId(3));
        assert_eq!((queue.id, queue.priority, queue.limit_frames), (QueueId(3), 0, 512));
        assert_eq!((queue.min_rate_kbps, queue.max_rate_kbps), (None, None));
        assert_eq!((EgressQueue::ID_MAX, EgressQueue::COUNT, EgressQueue::PRIORITY_MAX), (QueueId(7), 8, 7));
        assert_eq!((EgressQueue::RATE_MAX_KBPS, EgressQueue::FRAMES_MAX), (400_000_000, 4_096));
    }
}
