// SPDX-License-Identifier: Apache-2.0
//! Whole packets that did not fit their slot. The kernel puts them into the socket's queue (PACKET_COPY_THRESH), one for
//! each slot with TP_STATUS_COPY and in the order of the slots; nothing else ties the two together. If a copy is not
//! fetched for its slot, every later slot would get its predecessor's packet.

use crate::sys::{self, Slot, VnetBytes};
use std::os::fd::BorrowedFd;

/// Bytes that are compared between slot and copy: the headers, also in a tunnel. Payload behind them may be memory that
/// its sender still writes.
const COMPARED_BYTES: usize = 128;
/// Pending errors of the interface that are passed over on the way to a copy.
const ERRORS_MAX: usize = 4;
/// Copies taken off at once while slots and copies do not match.
const DRAIN_MAX: usize = 64;

/// Whether slots and copies match.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// They do not: slots are skipped and copies thrown away until there are none of either.
    lost: bool,
    /// There were none of either once; a slot that was about to be filled then has been since.
    was_empty: bool,
}

impl Copies {
    /// Moves the whole packet of `slot` to `bytes`, which has its length, and answers its offload header. None if it can
    /// not be had: the slot is to be dropped.
    pub(super) fn take(
        &mut self,
        socket: BorrowedFd<'_>,
        slot: &Slot<'_>,
        bytes: &mut [u8],
    ) -> Option<VnetBytes> {
        if self.lost {
            return None;
        }
        let head = slot.bytes.len().min(COMPARED_BYTES);
        match fetch(socket, bytes) {
            Some((header, len))
                if len == slot.len
                    && len == bytes.len()
                    && header == slot.vnet
                    && bytes.get(..head) == slot.bytes.get(..head) =>
            {
                Some(header)
            }
            _ => {
                self.lose(socket);
                None
            }
        }
    }

    /// Throws the whole packet of `slot` away.
    pub(super) fn skip(&mut self, socket: BorrowedFd<'_>, slot: &Slot<'_>) {
        if !self.lost && fetch(socket, &mut []).is_none_or(|(_, len)| len != slot.len) {
            self.lose(socket);
        }
    }

    /// To be called when the ring is empty: slots and copies match again if the queue is empty too, and was the last
    /// time. A slot is filled after its copy has been queued, so that one look would not be enough.
    #[inline]
    pub(super) fn ring_is_empty(&mut self, socket: BorrowedFd<'_>) {
        if self.lost {
            let is_empty = drain(socket);
            self.lost = !(is_empty && self.was_empty);
            self.was_empty = is_empty;
        }
    }

    fn lose(&mut self, socket: BorrowedFd<'_>) {
        *self = Self { lost: true, was_empty: false };
        drain(socket);
    }
}

/// The next packet of the socket's queue: its offload header and length. Pending errors are reported first, each once.
fn fetch(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Option<(VnetBytes, usize)> {
    (0..ERRORS_MAX).find_map(|_| sys::receive_copy(socket, bytes).ok())
}

/// Throws packets away; true if there was none.
fn drain(socket: BorrowedFd<'_>) -> bool {
    (0..DRAIN_MAX).take_while(|_| fetch(socket, &mut []).is_some()).count() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::VNET_BYTES;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    /// A socket's queue stood in for by a pair of datagram sockets.
    struct Lab {
        kernel: UnixDatagram,
        socket: UnixDatagram,
        copies: Copies,
    }

    impl Lab {
        fn new() -> Self {
            let (kernel, socket) = UnixDatagram::pair().unwrap();
            Self { kernel, socket, copies: Copies::default() }
        }

        fn queue(&self, packet: &[u8]) {
            self.kernel.send(&[&[0; VNET_BYTES], packet].concat()).unwrap();
        }

        /// What is handed out for the slot of this packet.
        fn take(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
            let mut bytes = vec![0; packet.len()];
            self.copies.take(self.socket.as_fd(), &slot(packet), &mut bytes).map(|_| bytes)
        }

        fn ring_is_empty(&mut self) {
            self.copies.ring_is_empty(self.socket.as_fd());
        }
    }

    fn slot(packet: &[u8]) -> Slot<'_> {
        Slot {
            status: libc::TP_STATUS_COPY,
            len: packet.len(),
            vlan_tci: 0,
            vlan_tpid: 0,
            vnet: [0; VNET_BYTES],
            bytes: &packet[..packet.len().min(2000)],
        }
    }

    #[test]
    fn after_a_lost_copy_no_slot_gets_anothers_packet() {
        let packets: Vec<Vec<u8>> = (1..=6).map(|fill| vec![fill; 9000]).collect();
        let mut lab = Lab::new();
        lab.queue(&packets[0]);
        lab.queue(&packets[1]);
        assert_eq!(lab.take(&packets[0]).as_ref(), Some(&packets[0]));
        // The copy of packet 1 stays behind: the slot of packet 2, as long, would get it.
        lab.queue(&packets[2]);
        assert_eq!(lab.take(&packets[2]), None);
        lab.queue(&packets[3]);
        assert_eq!(lab.take(&packets[3]), None, "slots are skipped until both sides are empty");
        lab.ring_is_empty();
        // A copy in the queue whose slot was not filled yet.
        lab.queue(&packets[4]);
        lab.ring_is_empty();
        assert_eq!(lab.take(&packets[4]), None);
        lab.ring_is_empty();
        lab.ring_is_empty();
        lab.queue(&packets[5]);
        assert_eq!(lab.take(&packets[5]).as_ref(), Some(&packets[5]));
    }

    #[test]
    fn a_missing_copy_is_a_mismatch_also_when_it_was_to_be_thrown_away() {
        let packet = vec![7; 5000];
        for skipped in [false, true] {
            let mut lab = Lab::new();
            lab.socket.set_nonblocking(true).unwrap();
            if skipped {
                lab.copies.skip(lab.socket.as_fd(), &slot(&packet));
            } else {
                assert_eq!(lab.take(&packet), None);
            }
            lab.queue(&packet);
            assert_eq!(lab.take(&packet), None);
            (0..3).for_each(|_| lab.ring_is_empty());
            lab.queue(&packet);
            lab.copies.skip(lab.socket.as_fd(), &slot(&packet));
            lab.queue(&packet);
            assert_eq!(lab.take(&packet).as_ref(), Some(&packet));
        }
    }

    #[test]
    fn length_and_offload_header_must_match_too() {
        let packet = vec![7; 5000];
        for wrong in [&packet[..4999], &[&packet[..], &[7]].concat()] {
            let mut lab = Lab::new();
            lab.queue(wrong);
            assert_eq!(lab.take(&packet), None);
        }
        let mut lab = Lab::new();
        lab.kernel.send(&[&[1; VNET_BYTES], &packet[..]].concat()).unwrap();
        assert_eq!(lab.take(&packet), None);
    }
}
