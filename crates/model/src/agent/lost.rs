// SPDX-License-Identifier: Apache-2.0
//! Messages lost because a controller does not read, and buffered packets that no controller has sent. The
//! channels of OpenFlow and POF use these counters.

use super::limits::LOST_NS;
use flow::Nanos;
use openflow::role::AsyncKind;
use std::fmt;

/// Numbers of messages dropped because a channel's output was full, and of expired buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostMessages {
    /// Lost packet-ins.
    pub packet_in: u64,
    /// Lost flow-removed messages.
    pub flow_removed: u64,
    /// Lost port-status messages.
    pub port_status: u64,
    /// Lost replies.
    pub reply: u64,
    /// Buffered packets that no controller has sent before their time was over.
    pub expired_buffer: u64,
}

impl LostMessages {
    /// Returns each count with its name (see docs/counters.md).
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 5] {
        [
            ("packet_in", self.packet_in),
            ("flow_removed", self.flow_removed),
            ("port_status", self.port_status),
            ("reply", self.reply),
            ("expired_buffer", self.expired_buffer),
        ]
    }

    pub(super) fn note(&mut self, kind: AsyncKind) {
        match kind {
            AsyncKind::PacketIn(_) => self.packet_in += 1,
            AsyncKind::FlowRemoved(_) => self.flow_removed += 1,
            AsyncKind::PortStatus(_) => self.port_status += 1,
        }
    }

    /// Returns the sums.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            packet_in: self.packet_in.wrapping_add(other.packet_in),
            flow_removed: self.flow_removed.wrapping_add(other.flow_removed),
            port_status: self.port_status.wrapping_add(other.port_status),
            expired_buffer: self.expired_buffer.wrapping_add(other.expired_buffer),
            reply: self.reply.wrapping_add(other.reply),
        }
    }

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            packet_in: self.packet_in.wrapping_sub(earlier.packet_in),
            flow_removed: self.flow_removed.wrapping_sub(earlier.flow_removed),
            port_status: self.port_status.wrapping_sub(earlier.port_status),
            expired_buffer: self.expired_buffer.wrapping_sub(earlier.expired_buffer),
            reply: self.reply.wrapping_sub(earlier.reply),
        }
    }
}

impl fmt::Display for LostMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, count) in self.by_name().into_iter().filter(|(_, count)| *count != 0) {
            write!(f, "{separator}{count} {name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// Messages lost on one channel, and those that the log already names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounters {
    /// Numbers of messages lost since the channel was opened.
    pub counts: LostMessages,
    reported: LostMessages,
    /// Time of the last report.
    reported_at: Option<Nanos>,
}

impl LossCounters {
    /// Returns the numbers of messages lost since the last report, at most once per second. Returns `None` if
    /// there are none.
    pub fn unreported(&mut self, now: Nanos) -> Option<LostMessages> {
        if self.reported == self.counts || self.reported_at.is_some_and(|at| now.saturating_sub(at) < LOST_NS)
        {
            return None;
        }
        let lost = self.counts.since(self.reported);
        (self.reported, self.reported_at) = (self.counts, Some(now));
        Some(lost)
    }
}
