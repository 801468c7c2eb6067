// SPDX-License-Identifier: Apache-2.0
//! What a queue counts. Every drop has a name.

/// Why a driver dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Drop {
    /// The kernel or device had no room in the receive queue.
    RxKernel,
    /// The device delivered only a part of the frame.
    RxTruncated,
    /// Shorter than an Ethernet header.
    RxRunt,
    /// Longer than any frame of the worker's pools.
    RxOversized,
    /// Long, and all large frames of the worker's pools are in use: what is behind it must not wait for one.
    RxNoLargeFrame,
    /// The device took it to be damaged.
    RxError,
    /// Longer than the device's MTU allows, and not to be cut into segments.
    TxOversized,
    /// Shorter than an Ethernet header.
    TxRunt,
    /// Segmentation or checksum left open in a way that can not be finished.
    TxUnfinished,
    /// The device is down or gone.
    TxLinkDown,
    /// The kernel or device dropped it for lack of room.
    TxNoBuffer,
    /// The device refused it for another reason.
    TxError,
    /// A fault injected by a test.
    Fault,
}

impl Drop {
    /// All reasons with their names, in the order of their counters.
    pub const ALL: [(Self, &'static str); 13] = [
        (Self::RxKernel, "rx_kernel"),
        (Self::RxTruncated, "rx_truncated"),
        (Self::RxRunt, "rx_runt"),
        (Self::RxOversized, "rx_oversized"),
        (Self::RxNoLargeFrame, "rx_no_large_frame"),
        (Self::RxError, "rx_error"),
        (Self::TxOversized, "tx_oversized"),
        (Self::TxRunt, "tx_runt"),
        (Self::TxUnfinished, "tx_unfinished"),
        (Self::TxLinkDown, "tx_link_down"),
        (Self::TxNoBuffer, "tx_no_buffer"),
        (Self::TxError, "tx_error"),
        (Self::Fault, "fault"),
    ];
}

/// A queue's counters since it was opened. Frames are counted as the pipeline sees them: a super-frame is one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames handed out by `receive`.
    pub rx_packets: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames the device took.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    drops: [u64; Drop::ALL.len()],
}

impl Statistics {
    /// Frames dropped for `reason`.
    #[must_use]
    pub fn drops(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }

    /// Every drop counter with its name.
    pub fn named_drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Drop::ALL.iter().map(|(reason, name)| (*name, self.drops(*reason)))
    }

    /// Frames dropped on receive, for any reason.
    #[must_use]
    pub fn rx_dropped(&self) -> u64 {
        self.sum("rx_")
    }

    /// Frames dropped on transmit, for any reason.
    #[must_use]
    pub fn tx_dropped(&self) -> u64 {
        self.sum("tx_")
    }

    /// Adds another queue's counters, for a port's total.
    pub fn add(&mut self, other: &Self) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        for (mine, others) in self.drops.iter_mut().zip(&other.drops) {
            *mine += others;
        }
    }

    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        self.rx_packets += 1;
        self.rx_bytes += bytes as u64;
    }

    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.tx_packets += 1;
        self.tx_bytes += bytes as u64;
    }

    #[inline]
    pub(crate) fn dropped(&mut self, reason: Drop) {
        self.dropped_many(reason, 1);
    }

    #[inline]
    pub(crate) fn dropped_many(&mut self, reason: Drop, count: u64) {
        self.drops[reason as usize] += count;
    }

    fn sum(&self, prefix: &str) -> u64 {
        self.named_drops().filter(|(name, _)| name.starts_with(prefix)).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_counts_under_its_own_name() {
        let mut statistics = Statistics::default();
        for (position, (reason, _)) in Drop::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, position);
            statistics.dropped_many(*reason, position as u64 + 1);
        }
        let mut twice = statistics;
        twice.add(&statistics);
        for (position, (_, count)) in twice.named_drops().enumerate() {
            assert_eq!(count, 2 * (position as u64 + 1));
        }
        assert_eq!((statistics.rx_dropped(), statistics.tx_dropped()), (21, 57));
    }
}
