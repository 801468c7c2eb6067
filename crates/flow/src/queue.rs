// SPDX-License-Identifier: Apache-2.0
//! Egress queues of a port, between its packets and its device.

/// Settings of one egress queue. Rates are in kbit/s over the bytes of a frame, from its destination MAC to the end of what
/// it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EgressQueue {
    /// Its number at the port, at most [`EgressQueue::ID_MAX`].
    pub id: u32,
    /// What it is sent for sure, before all that other queues have beyond theirs; none: nothing.
    pub min_rate_kbps: Option<u32>,
    /// What it is sent at most; none: as much as there is.
    pub max_rate_kbps: Option<u32>,
    /// A queue of a higher priority goes before one of a lower; at most [`EgressQueue::PRIORITY_MAX`].
    pub priority: u8,
    /// Frames of each lane that may wait in it, 1 to [`EgressQueue::FRAMES_MAX`].
    pub limit_frames: u16,
}

impl EgressQueue {
    /// The highest number: those of Tag-and-Forward (QID) have three bits.
    pub const ID_MAX: u32 = 7;
    /// Queues of a port.
    pub const COUNT: usize = Self::ID_MAX as usize + 1;
    /// The queue of packets that chose none, or one that their port does not have.
    pub const DEFAULT_ID: u32 = 0;
    /// The highest priority.
    pub const PRIORITY_MAX: u8 = 7;
    /// The highest rate, kbit/s: 400 Gbit/s.
    pub const RATE_MAX_KBPS: u32 = 400_000_000;
    /// Most frames of a lane in a queue.
    pub const FRAMES_MAX: u16 = 4_096;
    /// As many as may wait unless it is said.
    pub const FRAMES: u16 = 512;

    /// The queues of a port that was given these, with different numbers, in their order: if there are any, the default queue
    /// is one of them.
    #[must_use]
    pub fn complete(mut queues: Vec<Self>) -> Vec<Self> {
        if !queues.is_empty() && !queues.iter().any(|queue| queue.id == Self::DEFAULT_ID) {
            queues.push(Self::new(Self::DEFAULT_ID));
        }
        queues.sort_unstable_by_key(|queue| queue.id);
        queues
    }

    /// A queue without rates, of the lowest priority.
    #[must_use]
    pub fn new(id: u32) -> Self {
        Self { id, min_rate_kbps: None, max_rate_kbps: None, priority: 0, limit_frames: Self::FRAMES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_queue_is_added_where_there_are_others() {
        let numbers = |queues: &[u32]| {
            let queues = EgressQueue::complete(queues.iter().map(|id| EgressQueue::new(*id)).collect());
            queues.iter().map(|queue| queue.id).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&[]), [0; 0]);
        assert_eq!(numbers(&[7, 2]), [0, 2, 7]);
        assert_eq!(numbers(&[5, 0, 1]), [0, 1, 5]);
    }

    #[test]
    fn a_queue_has_the_defaults_and_limits_of_the_documentation() {
        let queue = EgressQueue::new(3);
        assert_eq!((queue.id, queue.priority, queue.limit_frames), (3, 0, 512));
        assert_eq!((queue.min_rate_kbps, queue.max_rate_kbps), (None, None));
        assert_eq!((EgressQueue::ID_MAX, EgressQueue::COUNT, EgressQueue::PRIORITY_MAX), (7, 8, 7));
        assert_eq!((EgressQueue::RATE_MAX_KBPS, EgressQueue::FRAMES_MAX), (400_000_000, 4_096));
    }
}
