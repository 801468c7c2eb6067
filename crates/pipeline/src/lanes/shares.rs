// SPDX-License-Identifier: Apache-2.0
//! Who may join the backlog. Known normal and unknown packets have a share each; of the unknown ones' a port may hold as
//! much as is still free (dynamic thresholds, after Choudhury and Hahne): a port that floods leaves room for the others, and one
//! that is alone need not leave all of it unused.

use super::LaneLimits;
use crate::burst::BURST;
use crate::packet::{Packet, Path};
use flow::DropReason;

/// Ports are counted by their last bits.
const PORTS: usize = 64;

/// Turns for which an operation waits before shares shrink.
const PATIENT_TURNS: u32 = 8;

/// Packets of each kind that may join from one operation to the next while they come without end.
const BETWEEN: usize = 4 * BURST;

/// What a packet that waits is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It hit a normal entry, or waits for a table that has no others.
    Normal,
    /// The LUT of the table it waits for does not know its value.
    Unknown,
}

impl Kind {
    #[inline]
    pub fn of(packet: &Packet) -> Self {
        if packet.path == Path::Missed { Self::Unknown } else { Self::Normal }
    }

    /// Why one that finds no room is dropped.
    pub fn refused(self) -> DropReason {
        match self {
            Self::Normal => DropReason::BacklogNormal,
            Self::Unknown => DropReason::BacklogUnknown,
        }
    }
}

/// Packets in the backlog, by kind and port.
#[derive(Debug)]
pub(super) struct Shares {
    limits: LaneLimits,
    normal: usize,
    unknown: usize,
    ports: [u16; PORTS],
    /// Turns since an operation waits.
    closing: u32,
    /// What a share is at most.
    most: usize,
}

impl Shares {
    pub fn new(limits: LaneLimits) -> Self {
        Self { limits, normal: 0, unknown: 0, ports: [0; PORTS], closing: 0, most: usize::MAX }
    }

    /// What is left of a share while an operation waits: it is in force in the end, whatever arrives.
    #[inline]
    fn shrunk(&self, share: u16) -> usize {
        let turns = self.closing.saturating_sub(PATIENT_TURNS) as usize;
        usize::from(share).min(self.most).saturating_sub(turns.saturating_mul(BURST))
    }

    fn port(packet: &Packet) -> usize {
        packet.ext.in_port() as usize % PORTS
    }

    /// Whether the packet may join.
    pub fn has_room(&self, packet: &Packet) -> bool {
        match Kind::of(packet) {
            Kind::Normal => self.normal < self.shrunk(self.limits.normal),
            Kind::Unknown => {
                let free = self.shrunk(self.limits.unknown).saturating_sub(self.unknown);
                usize::from(self.ports[Self::port(packet)]) < free
            }
        }
    }

    /// It joins.
    pub fn enter(&mut self, packet: &Packet) {
        match Kind::of(packet) {
            Kind::Normal => self.normal += 1,
            Kind::Unknown => {
                self.unknown += 1;
                self.ports[Self::port(packet)] += 1;
            }
        }
    }

    /// It is worked off.
    pub fn leave(&mut self, packet: &Packet) {
        match Kind::of(packet) {
            Kind::Normal => self.normal -= 1,
            Kind::Unknown => {
                self.unknown -= 1;
                self.ports[Self::port(packet)] -= 1;
            }
        }
    }

    /// Known normal and unknown packets that have joined.
    pub fn used(&self) -> (usize, usize) {
        (self.normal, self.unknown)
    }

    pub fn close(&mut self) {
        self.closing = self.closing.saturating_add(1);
    }

    pub fn reopen(&mut self) {
        (self.closing, self.most) = (0, usize::MAX);
    }

    /// The next operation waits already: it shall not find a full backlog again, and packets shall go on meanwhile.
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
        packet.admit(frame);
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
        assert_eq!(fill(&mut shares, &b), 30, "of what a has given back");
        assert_eq!(fill(&mut shares, &packet(1, Path::Tables)), 100);
        let mut one = Shares::new(LaneLimits { normal: 0, unknown: 1, hold: 0 });
        assert_eq!((fill(&mut one, &a), fill(&mut one, &packet(1, Path::Tables))), (1, 0));
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
