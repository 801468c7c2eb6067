// SPDX-License-Identifier: Apache-2.0
//! Packets longer than their ring slot. The kernel queues a whole copy of each in the socket's receive queue
//! (PACKET_COPY_THRESH), in the order of the slots with TP_STATUS_COPY. Only this order relates slots and
//! copies, so a copy that is not fetched would be returned for the next slot.

use crate::sys::{self, Slot, VnetBytes};
use std::os::fd::BorrowedFd;

/// Number of bytes compared between slot and copy: the headers, including those inside a tunnel. The sender
/// may still write to the payload.
const COMPARED_BYTES: usize = 128;
/// Maximum number of pending interface errors skipped before a copy.
const ERRORS_MAX: usize = 4;
/// Maximum number of copies discarded per call while slots and copies do not match.
const DRAIN_MAX: usize = 64;

/// Tracks whether slots and copies match.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Whether slots and copies do not match, and are discarded until ring and queue are empty.
    lost: bool,
    /// Whether ring and queue were both empty at the last check.
    was_empty: bool,
}

impl Copies {
    /// Copies the whole packet of `slot` to `bytes`, which must have the packet's length, and returns the
    /// offload header. If there is no matching copy, returns `None`, and the caller must drop the slot.
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

    /// Discards the whole packet of `slot`.
    pub(super) fn skip(&mut self, socket: BorrowedFd<'_>, slot: &Slot<'_>) {
        if !self.lost && fetch(socket, &mut []).is_none_or(|(_, len)| len != slot.len) {
            self.lose(socket);
        }
    }

    /// Called when the ring is empty. Slots and copies match again if the socket's queue was empty at this
    /// and the previous call. One check is not enough, because the kernel fills a slot after it has queued
    /// the copy.
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

/// Takes the next packet from the socket's queue. Returns its offload header and length. The kernel first
/// reports pending errors, each once.
fn fetch(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Option<(VnetBytes, usize)> {
    (0..ERRORS_MAX).find_map(|_| sys::receive_copy(socket, bytes).ok())
}

/// Discards packets from the socket's queue. Returns true if there were none.
fn drain(socket: BorrowedFd<'_>) -> bool {
    (0..DRAIN_MAX).take_while(|_| fetch(socket, &mut []).is_some()).count() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::VNET_BYTES;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    /// Test fixture: a pair of datagram sockets stands in for the queue of a packet socket.
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

        /// Returns the copy delivered for the ring slot that holds `packet`, if there is one.
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
    fn after_a_lost_copy_no_slot_gets_the_packet_of_another() {
        let packets: Vec<Vec<u8>> = (1..=6).map(|fill| vec![fill; 9000]).collect();
        let mut lab = Lab::new();
        lab.queue(&packets[0]);
        lab.queue(&packets[1]);
        assert_eq!(lab.take(&packets[0]).as_ref(), Some(&packets[0]));
        // The copy of packet 1 is not fetched. The slot of packet 2 has the same length and would be given
        // that copy.
        lab.queue(&packets[2]);
        assert_eq!(lab.take(&packets[2]), None);
        lab.queue(&packets[3]);
        assert_eq!(lab.take(&packets[3]), None, "slots are skipped until both sides are empty");
        lab.ring_is_empty();
        // The copy is queued, but its slot is not filled yet.
        lab.queue(&packets[4]);
        lab.ring_is_empty();
        assert_eq!(lab.take(&packets[4]), None);
        lab.ring_is_empty();
        lab.ring_is_empty();
        lab.queue(&packets[5]);
        assert_eq!(lab.take(&packets[5]).as_ref(), Some(&packets[5]));
    }

    #[test]
    fn a_missing_copy_is_a_mismatch_even_if_the_packet_is_skipped() {
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
