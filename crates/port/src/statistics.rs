// SPDX-License-Identifier: Apache-2.0
//! Counters of a queue. Every drop is counted under a named reason.

/// Reason why a driver dropped a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum PortDrop {
    /// The receive queue of the kernel or device was full.
    RxKernel,
    /// The device delivered only a part of the frame.
    RxTruncated,
    /// The received frame is shorter than an Ethernet header.
    RxRunt,
    /// The received frame is longer than any frame of the worker's pools.
    RxOversized,
    /// The frame needs a large buffer and none is free.
    RxNoLargeFrame,
    /// The device marked the received frame as damaged.
    RxError,
    /// The frame exceeds the device's MTU and cannot be segmented.
    TxOversized,
    /// The frame to send is shorter than an Ethernet header.
    TxRunt,
    /// The frame's checksum or segmentation metadata is invalid, so the frame cannot be completed.
    TxUnfinished,
    /// The frame has passed the maximum number of patch ports.
    TxHopLimit,
    /// The device is down or gone.
    TxLinkDown,
    /// The kernel or device had no space for the frame.
    TxNoBuffer,
    /// The device refused the frame for another reason.
    TxError,
    /// A test has injected a fault.
    Fault,
}

impl PortDrop {
    /// All reasons with their names, in the order of their counters.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::RxKernel, "rx_kernel"),
        (Self::RxTruncated, "rx_truncated"),
        (Self::RxRunt, "rx_runt"),
        (Self::RxOversized, "rx_oversized"),
        (Self::RxNoLargeFrame, "rx_no_large_frame"),
        (Self::RxError, "rx_error"),
        (Self::TxOversized, "tx_oversized"),
        (Self::TxRunt, "tx_runt"),
        (Self::TxUnfinished, "tx_unfinished"),
        (Self::TxHopLimit, "tx_hop_limit"),
        (Self::TxLinkDown, "tx_link_down"),
        (Self::TxNoBuffer, "tx_no_buffer"),
        (Self::TxError, "tx_error"),
        (Self::Fault, "fault"),
    ];
}

/// Counters of a queue since it was opened. A super-frame counts as one packet, as in the pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames returned by `receive`.
    pub rx_packets: u64,
    /// Bytes of the frames returned by `receive`.
    pub rx_bytes: u64,
    /// Frames that the device accepted.
    pub tx_packets: u64,
    /// Bytes of the frames that the device accepted.
    pub tx_bytes: u64,
    drops: [u64; PortDrop::ALL.len()],
}

impl Statistics {
    /// Returns the number of frames dropped for `reason`.
    #[must_use]
    pub fn drops(&self, reason: PortDrop) -> u64 {
        self.drops[reason as usize]
    }

    /// Returns every drop counter with its name.
    pub fn named_drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        PortDrop::ALL.iter().map(|(reason, name)| (*name, self.drops(*reason)))
    }

    /// Returns the number of frames dropped on receive, for any reason.
    #[must_use]
    pub fn rx_dropped(&self) -> u64 {
        self.sum("rx_")
    }

    /// Returns the number of frames dropped on transmit, for any reason.
    #[must_use]
    pub fn tx_dropped(&self) -> u64 {
        self.sum("tx_")
    }

    /// Adds another queue's counters, for the total of a port.
    pub fn add(&mut self, other: &Self) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        for (mine, others) in self.drops.iter_mut().zip(&other.drops) {
            *mine += others;
        }
    }

    /// Counts a received frame.
    #[inline]
    pub fn received(&mut self, bytes: usize) {
        self.received_many(1, bytes);
    }

    /// Counts received frames and their bytes.
    #[inline]
    pub(crate) fn received_many(&mut self, frames: usize, bytes: usize) {
        self.rx_packets += frames as u64;
        self.rx_bytes += bytes as u64;
    }

    /// Counts a sent frame.
    #[inline]
    pub fn sent(&mut self, bytes: usize) {
        self.sent_many(1, bytes);
    }

    /// Counts sent frames and their bytes.
    #[inline]
    pub(crate) fn sent_many(&mut self, frames: usize, bytes: usize) {
        self.tx_packets += frames as u64;
        self.tx_bytes += bytes as u64;
    }

    #[inline]
    pub(crate) fn dropped(&mut self, reason: PortDrop) {
        self.dropped_many(reason, 1);
    }

    #[inline]
    pub(crate) fn dropped_many(&mut self, reason: PortDrop, count: u64) {
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
        for (position, (reason, _)) in PortDrop::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, position);
            statistics.dropped_many(*reason, position as u64 + 1);
        }
        let mut twice = statistics;
        twice.add(&statistics);
        for (position, (_, count)) in twice.named_drops().enumerate() {
            assert_eq!(count, 2 * (position as u64 + 1));
        }
        assert_eq!((statistics.rx_dropped(), statistics.tx_dropped()), (21, 70));
    }
}
