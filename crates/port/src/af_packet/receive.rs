// SPDX-License-Identifier: Apache-2.0
//! Receive: converts ring slots to frames.

use super::copies::Copies;
use super::socket::Socket;
use super::{PacketQueue, vnet};
use crate::sys::{Slot, VNET_BYTES};
use crate::{MIN_FRAME_BYTES, Pools, PortDrop};
use frame::{Frame, Stamp};
use std::os::fd::{AsFd, BorrowedFd};

const TAG_AT: usize = 12;
const TAG_BYTES: usize = 4;
/// EtherType of a VLAN tag if the kernel does not report it.
const DEFAULT_TPID: u16 = 0x8100;

/// Result of handling a slot.
enum Arrival {
    Frame(Frame),
    Dropped(PortDrop),
    /// No buffer is free: the packet stays in the ring.
    Waits,
}

impl PacketQueue {
    pub(super) fn receive_burst(
        &mut self,
        pools: &mut Pools,
        burst: &mut Vec<Frame>,
        max: usize,
        stamp: Stamp,
    ) -> usize {
        let mut count = 0;
        // Drops count towards `max`, so that a flood of dropped packets does not block the worker.
        for _ in 0..max {
            let Socket { ring, copies, fd } = &mut self.socket;
            let Some(slot) = ring.peek() else {
                copies.ring_is_empty(fd.as_fd());
                break;
            };
            match arrival(&slot, copies, fd.as_fd(), pools) {
                Arrival::Frame(mut frame) => {
                    frame.meta.arrive(self.number, self.sequence, stamp);
                    self.sequence += 1;
                    self.statistics.received(frame.len());
                    burst.push(frame);
                    count += 1;
                }
                Arrival::Dropped(reason) => self.statistics.dropped(reason),
                Arrival::Waits => break,
            }
            self.socket.ring.release();
        }
        count
    }
}

/// Receives the packet of a ring slot. A packet longer than the slot is fetched from the socket's queue.
fn arrival(slot: &Slot<'_>, copies: &mut Copies, socket: BorrowedFd<'_>, pools: &mut Pools) -> Arrival {
    let whole_in_queue = slot.status & libc::TP_STATUS_COPY != 0;
    let tag = slot.status & libc::TP_STATUS_VLAN_VALID != 0;
    let len = slot.len + if tag { TAG_BYTES } else { 0 };
    let refused = if slot.len < MIN_FRAME_BYTES {
        Some(PortDrop::RxRunt)
    } else if !pools.fits(len) {
        Some(PortDrop::RxOversized)
    } else if slot.bytes.len() < slot.len && !whole_in_queue {
        Some(PortDrop::RxTruncated)
    } else if pools.lacks_only_large(len) {
        Some(PortDrop::RxNoLargeFrame)
    } else {
        None
    };
    if let Some(reason) = refused {
        if whole_in_queue {
            copies.skip(socket, slot);
        }
        return Arrival::Dropped(reason);
    }
    let Some(mut frame) = pools.get(len) else { return Arrival::Waits };
    let header = if whole_in_queue {
        let sized = frame.set_len(slot.len);
        debug_assert!(sized, "the pool was chosen by length");
        let Some(header) = copies.take(socket, slot, frame.bytes_mut()) else {
            return give_back(frame, pools, PortDrop::RxTruncated);
        };
        header
    } else {
        let filled = frame.fill(slot.bytes);
        debug_assert!(filled, "the pool was chosen by length");
        slot.vnet
    };
    if header != [0; VNET_BYTES] && !vnet::import(&header, &mut frame) {
        return give_back(frame, pools, PortDrop::RxTruncated);
    }
    if tag {
        put_tag_back(slot, &mut frame);
    }
    Arrival::Frame(frame)
}

fn give_back(frame: Frame, pools: &mut Pools, reason: PortDrop) -> Arrival {
    // The frame came from these pools, so they accept it.
    let _ = pools.put(frame);
    Arrival::Dropped(reason)
}

/// Inserts a packet's outermost VLAN tag, which the kernel has removed and reports separately.
fn put_tag_back(slot: &Slot<'_>, frame: &mut Frame) {
    let tpid = if slot.status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { slot.vlan_tpid } else { DEFAULT_TPID };
    let opened = frame.insert(TAG_AT, TAG_BYTES);
    debug_assert!(opened, "a fresh frame has headroom");
    let [type_high, type_low] = tpid.to_be_bytes();
    let [tci_high, tci_low] = slot.vlan_tci.to_be_bytes();
    frame.bytes_mut()[TAG_AT..TAG_AT + TAG_BYTES].copy_from_slice(&[type_high, type_low, tci_high, tci_low]);
}
