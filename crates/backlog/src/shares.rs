// SPDX-License-Identifier: Apache-2.0
//! Admission to the backlog. Known normal and unknown packets have one share each.
//!
//! A port may use as many places of the unknown packets' share as are still free (dynamic thresholds, after
//! Choudhury and Hahne). A port that floods thus leaves capacity to other ports.

use crate::LaneLimits;
use flow::{DropReason, Limits, PortNo};

const BURST: usize = Limits::BURST_PACKETS;

/// Number of port counters. The low bits of a port number select its counter.
const PORTS: usize = 64;

/// Number of poll iterations for which an operation waits before the shares shrink.
const PATIENT_TURNS: u32 = 8;

/// Maximum size of each share between two successive operations, in packets.
const BETWEEN: usize = 4 * BURST;

/// Share of the backlog in which a packet is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogShare {
    /// Packets that hit a normal entry, or wait for a table that has only normal entries.
    Normal,
    /// Packets that wait for a table whose LUT has no record of their value.
    Unknown,
}

impl BacklogShare {
    /// Returns the drop reason of a packet that arrives when this share is full.
    #[must_use]
    pub fn refused(self) -> DropReason {
        match self {
            Self::Normal => DropReason::BacklogNormal,
            Self::Unknown => DropReason::BacklogUnknown,
        }
    }
}

/// Number of packets in the backlog, by share and port.
#[derive(Debug)]
pub struct Shares {
    limits: LaneLimits,
    normal: usize,
    unknown: usize,
    ports: [u16; PORTS],
    /// Number of poll iterations for which the current operation has waited.
    closing: u32,
    /// Current maximum size of each share, in packets: [`BETWEEN`] between two successive operations,
    /// otherwise unlimited.
    most: usize,
}

impl Shares {
    /// Creates the shares of an empty backlog.
    #[must_use]
    pub fn new(limits: LaneLimits) -> Self {
        Self { limits, normal: 0, unknown: 0, ports: [0; PORTS], closing: 0, most: usize::MAX }
    }

    /// Returns the current size of a share. It shrinks while an operation waits, so that the backlog drains
    /// under any load.
    #[inline]
    fn shrunk(&self, share: u16) -> usize {
        let turns = self.closing.saturating_sub(PATIENT_TURNS) as usize;
        usize::from(share).min(self.most).saturating_sub(turns.saturating_mul(BURST))
    }

    fn port(in_port: PortNo) -> usize {
        in_port.0 as usize % PORTS
    }

    /// Returns whether a packet of a port may join the backlog in this share.
    #[must_use]
    #[inline]
    pub fn has_room(&self, share: BacklogShare, in_port: PortNo) -> bool {
        match share {
            BacklogShare::Normal => self.normal_room() > 0,
            BacklogShare::Unknown => {
                let free = self.shrunk(self.limits.unknown).saturating_sub(self.unknown);
                usize::from(self.ports[Self::port(in_port)]) < free
            }
        }
    }

    /// Returns the number of known normal packets that may join the backlog.
    #[must_use]
    #[inline]
    pub fn normal_room(&self) -> usize {
        self.shrunk(self.limits.normal).saturating_sub(self.normal)
    }

    /// Returns whether a burst from a port may join the backlog after `others` packets that are not counted
    /// yet.
    #[must_use]
    pub fn has_room_for_burst(&self, port: PortNo, others: usize) -> bool {
        let more = others + BURST - 1;
        // Each unknown packet of the port counts for the port and for the share.
        let unknown = usize::from(self.ports[Self::port(port)]) + self.unknown + 2 * more;
        self.normal + more < self.shrunk(self.limits.normal) && unknown < self.shrunk(self.limits.unknown)
    }

    /// Counts a packet of a port that joins the backlog.
    #[inline]
    pub fn enter(&mut self, share: BacklogShare, in_port: PortNo) {
        match share {
            BacklogShare::Normal => self.normal += 1,
            BacklogShare::Unknown => {
                self.unknown += 1;
                self.ports[Self::port(in_port)] += 1;
            }
        }
    }

    /// Counts a packet of a port that leaves the backlog.
    #[inline]
    pub fn leave(&mut self, share: BacklogShare, in_port: PortNo) {
        match share {
            BacklogShare::Normal => self.normal -= 1,
            BacklogShare::Unknown => {
                self.unknown -= 1;
                self.ports[Self::port(in_port)] -= 1;
            }
        }
    }

    /// Returns the numbers of known normal and unknown packets in the backlog.
    #[must_use]
    pub fn used(&self) -> (usize, usize) {
        (self.normal, self.unknown)
    }

    /// Notes that a poll iteration begins in which an operation waits until the backlog has drained.
    pub fn close(&mut self) {
        self.closing = self.closing.saturating_add(1);
    }

    /// Notes that no operation waits any longer.
    pub fn reopen(&mut self) {
        (self.closing, self.most) = (0, usize::MAX);
    }

    /// Notes that an operation was applied and that the next one already waits. The shares stay small but
    /// above 0, so that some packets still pass between the operations.
    pub fn reopen_between(&mut self) {
        (self.closing, self.most) = (PATIENT_TURNS, BETWEEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(shares: &mut Shares, share: BacklogShare, port: PortNo) -> usize {
        let room = |shares: &mut Shares| shares.has_room(share, port).then(|| shares.enter(share, port));
        std::iter::from_fn(|| room(shares)).count()
    }

    #[test]
    fn each_kind_has_its_share_and_a_port_as_much_as_it_leaves_free() {
        let limits = LaneLimits { normal: 100, unknown: 120, hold: 0 };
        let mut shares = Shares::new(limits);
        let ([a, b], unknown, normal) = ([1, 2].map(PortNo), BacklogShare::Unknown, BacklogShare::Normal);
        assert_eq!(fill(&mut shares, unknown, a), 60);
        assert_eq!(fill(&mut shares, unknown, b), 30);
        (0..60).for_each(|_| shares.leave(unknown, a));
        assert_eq!(fill(&mut shares, unknown, b), 30, "b may use what a has freed");
        assert_eq!(fill(&mut shares, normal, a), 100);
        let mut one = Shares::new(LaneLimits { normal: 0, unknown: 1, hold: 0 });
        assert_eq!((fill(&mut one, unknown, a), fill(&mut one, normal, a)), (1, 0));
    }

    #[test]
    fn a_burst_for_which_there_is_room_is_accepted_whatever_its_packets_are() {
        let limits = LaneLimits { normal: 100, unknown: 200, hold: 0 };
        for share in [BacklogShare::Unknown, BacklogShare::Normal] {
            let mut shares = Shares::new(limits);
            let mut bursts = 0;
            while shares.has_room_for_burst(PortNo(1), 3) {
                (0..BURST + 3).for_each(|_| {
                    assert!(shares.has_room(share, PortNo(1)));
                    shares.enter(share, PortNo(1));
                });
                bursts += 1;
            }
            assert!(bursts == 2, "{share:?}: {bursts}");
            assert!(!Shares { closing: 20, ..Shares::new(limits) }.has_room_for_burst(PortNo(1), 0));
        }
    }

    #[test]
    fn shares_shrink_to_nothing_while_an_operation_waits() {
        let mut shares = Shares::new(LaneLimits { normal: 100, unknown: 40, hold: 0 });
        let free = |shares: &Shares| (shares.shrunk(100), shares.shrunk(40));
        (0..PATIENT_TURNS).for_each(|_| shares.close());
        assert_eq!(free(&shares), (100, 40));
        shares.close();
        assert_eq!(free(&shares), (68, 8));
        (0..3).for_each(|_| shares.close());
        assert_eq!(free(&shares), (0, 0));
        shares.reopen_between();
        assert_eq!((shares.shrunk(1_000), shares.shrunk(40)), (BETWEEN, 40));
        (0..BETWEEN / BURST).for_each(|_| shares.close());
        assert_eq!(free(&shares), (0, 0));
        shares.reopen();
        assert_eq!((shares.shrunk(1_000), shares.shrunk(40)), (1_000, 40));
    }
}
