// SPDX-License-Identifier: Apache-2.0
//! Admission to the backlog. Known normal and unknown packets have one share each.
//!
//! A port may use as many places of the unknown packets' share as are still free (dynamic thresholds, after
//! Choudhury and Hahne). A port that floods thus leaves capacity to other ports.

use super::limits::LaneLimits;
use crate::packet::{Packet, Path};
use crate::slab::BURST;
use flow::{DropReason, PortNo};

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
    /// Returns the share in which a packet is counted.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> Self {
        if packet.path == Path::Missed { Self::Unknown } else { Self::Normal }
    }

    /// Returns the drop reason of a packet that arrives when this share is full.
    pub(crate) fn refused(self) -> DropReason {
        match self {
            Self::Normal => DropReason::BacklogNormal,
            Self::Unknown => DropReason::BacklogUnknown,
        }
    }
}

/// Number of packets in the backlog, by share and port.
#[derive(Debug)]
pub(super) struct Shares {
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

    fn port(packet: &Packet) -> usize {
        packet.data.ext.in_port().0 as usize % PORTS
    }

    /// Returns whether the packet may join the backlog.
    pub fn has_room(&self, packet: &Packet) -> bool {
        match BacklogShare::of(packet) {
            BacklogShare::Normal => self.normal_room() > 0,
            BacklogShare::Unknown => {
                let free = self.shrunk(self.limits.unknown).saturating_sub(self.unknown);
                usize::from(self.ports[Self::port(packet)]) < free
            }
        }
    }

    /// Returns the number of known normal packets that may join the backlog.
    #[inline]
    pub fn normal_room(&self) -> usize {
        self.shrunk(self.limits.normal).saturating_sub(self.normal)
    }

    /// Returns whether a burst from a port may join the backlog after `others` packets that are not counted
    /// yet.
    pub fn has_room_for_burst(&self, port: PortNo, others: usize) -> bool {
        let more = others + BURST - 1;
        // Each unknown packet of the port counts for the port and for the share.
        let unknown = usize::from(self.ports[port.0 as usize % PORTS]) + self.unknown + 2 * more;
        self.normal + more < self.shrunk(self.limits.normal) && unknown < self.shrunk(self.limits.unknown)
    }

    /// Counts a packet that joins the backlog.
    pub fn enter(&mut self, packet: &Packet) {
        match BacklogShare::of(packet) {
            BacklogShare::Normal => self.normal += 1,
            BacklogShare::Unknown => {
                self.unknown += 1;
                self.ports[Self::port(packet)] += 1;
            }
        }
    }

    /// Counts a packet that leaves the backlog.
    pub fn leave(&mut self, packet: &Packet) {
        match BacklogShare::of(packet) {
            BacklogShare::Normal => self.normal -= 1,
            BacklogShare::Unknown => {
                self.unknown -= 1;
                self.ports[Self::port(packet)] -= 1;
            }
        }
    }

    /// Returns the numbers of known normal and unknown packets in the backlog.
    pub fn used(&self) -> (usize, usize) {
        (self.normal, self.unknown)
    }

    pub fn close(&mut self) {
        self.closing = self.closing.saturating_add(1);
    }

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
    use frame::Frame;

    fn packet(in_port: u32, path: Path) -> Packet {
        let mut frame = Frame::from_bytes(&[0; 14]);
        frame.meta.in_port = in_port;
        let mut packet = Packet::empty();
        packet.admit(frame, PortNo(in_port));
        packet.path = path;
        packet
    }

    fn fill(shares: &mut Shares, packet: &Packet) -> usize {
        let room = |shares: &mut Shares| shares.has_room(packet).then(|| shares.enter(packet));
        std::iter::from_fn(|| room(shares)).count()
    }

    #[test]
    fn each_kind_has_its_share_and_a_port_as_much_as_it_leaves_free() {
        let limits = LaneLimits { normal: 100, unknown: 120, hold: 0 };
        let mut shares = Shares::new(limits);
        let [a, b] = [1, 2].map(|port| packet(port, Path::Missed));
        assert_eq!(fill(&mut shares, &a), 60);
        assert_eq!(fill(&mut shares, &b), 30);
        (0..60).for_each(|_| shares.leave(&a));
        assert_eq!(fill(&mut shares, &b), 30, "b may use what a has freed");
        assert_eq!(fill(&mut shares, &packet(1, Path::Tables)), 100);
        let mut one = Shares::new(LaneLimits { normal: 0, unknown: 1, hold: 0 });
        assert_eq!((fill(&mut one, &a), fill(&mut one, &packet(1, Path::Tables))), (1, 0));
    }

    #[test]
    fn a_burst_for_which_there_is_room_is_accepted_whatever_its_packets_are() {
        let limits = LaneLimits { normal: 100, unknown: 200, hold: 0 };
        for path in [Path::Missed, Path::Tables] {
            let mut shares = Shares::new(limits);
            let packet = packet(1, path);
            let mut bursts = 0;
            while shares.has_room_for_burst(PortNo(1), 3) {
                (0..BURST + 3).for_each(|_| {
                    assert!(shares.has_room(&packet));
                    shares.enter(&packet);
                });
                bursts += 1;
            }
            assert!(bursts == 2, "{path:?}: {bursts}");
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
