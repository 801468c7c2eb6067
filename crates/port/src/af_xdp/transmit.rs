// SPDX-License-Identifier: Apache-2.0
//! Transmit: copies frames to UMEM chunks. Completes checksums and segmentation, because the kernel does not.

use super::XdpQueue;
use super::handover::RingUse;
use crate::queue::take_first;
use crate::sys::{Refused, XSK_FRAME_BYTES};
use crate::{MIN_FRAME_BYTES, PortDrop, offload};
use frame::Frame;
use wire::segment::Segments;

const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;

/// How a frame is transmitted.
enum TransmitForm {
    /// Sent as one packet.
    Whole,
    /// Sent in segments.
    Segments,
    /// Dropped, for this reason.
    Dropped(PortDrop),
}

/// Selects how to transmit a frame, and completes its checksum. `mtu` is the device's MTU in bytes, if known.
fn way(frame: &mut Frame, mtu: Option<u32>) -> TransmitForm {
    if frame.len() < MIN_FRAME_BYTES {
        return TransmitForm::Dropped(PortDrop::TxRunt);
    }
    // One VLAN tag is allowed on top of the MTU, as in other drivers.
    let tag = if matches!(frame.bytes()[12..14], [0x81, 0] | [0x88, 0xa8]) { TAG_BYTES } else { 0 };
    let most = mtu.map_or(XSK_FRAME_BYTES, |mtu| (mtu as usize + ETHERNET_BYTES + tag).min(XSK_FRAME_BYTES));
    let gso = frame.meta.gso;
    match gso {
        Some(gso) if usize::from(gso.header_len) + usize::from(gso.size) > most => {
            TransmitForm::Dropped(PortDrop::TxOversized)
        }
        Some(_) => TransmitForm::Segments,
        None if frame.len() > most => TransmitForm::Dropped(PortDrop::TxOversized),
        None if !offload::complete_checksum(frame) => TransmitForm::Dropped(PortDrop::TxUnfinished),
        None => TransmitForm::Whole,
    }
}

impl XdpQueue {
    pub(super) fn transmit_burst(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let before = frames.len();
        match self.ring_use() {
            RingUse::Full | RingUse::SendOnly => {}
            RingUse::Paused => return 0,
            RingUse::Abandoned => {
                self.statistics.dropped_many(PortDrop::TxLinkDown, before as u64);
                done.append(frames);
                return before;
            }
        }
        self.socket.xsk.reap();
        if self.is_down && before > 0 || self.socket.xsk.has_unsent() {
            self.send(0, frames, done);
        }
        let mtu = self.watch.link.mtu;
        while !frames.is_empty() && !self.is_down && !self.socket.xsk.has_unsent() {
            let count = self.put_up(frames, mtu);
            if count > 0 {
                self.send(count, frames, done);
                continue;
            }
            // The first frame cannot be sent whole, or there is no space.
            match frames.first_mut().map(|front| way(front, mtu)) {
                Some(TransmitForm::Dropped(reason)) => self.drop_front(reason, frames, done),
                Some(TransmitForm::Segments) => self.send_segments(frames, done),
                Some(TransmitForm::Whole) | None => break,
            }
        }
        if self.is_down {
            self.statistics.dropped_many(PortDrop::TxLinkDown, frames.len() as u64);
            done.append(frames);
        }
        before - frames.len()
    }

    /// Queues frames that can be sent whole, from the front. Returns their number.
    fn put_up(&mut self, frames: &mut [Frame], mtu: Option<u32>) -> usize {
        let xsk = &mut self.socket.xsk;
        let mut count = 0;
        for frame in frames.iter_mut() {
            let is_up = xsk.has_room()
                && matches!(way(frame, mtu), TransmitForm::Whole)
                && xsk.put(|chunk| {
                    chunk.get_mut(..frame.len())?.copy_from_slice(frame.bytes());
                    Some(frame.len())
                });
            if !is_up {
                break;
            }
            count += 1;
        }
        count
    }

    /// Sends the first `count` of `frames`, which must have been queued in the socket.
    fn send(&mut self, count: usize, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) {
        let sent = self.socket.xsk.send();
        self.is_down = sent.refused == Refused::Link;
        if sent.withdrawn {
            return;
        }
        for (at, frame) in frames.drain(..count).enumerate() {
            if sent.is_lost(at) {
                self.statistics.dropped(PortDrop::TxNoBuffer);
            } else {
                self.statistics.sent(frame.len());
            }
            done.push(frame);
        }
    }

    /// Sends the front frame in segments. If the device is full after some segments, the rest is dropped,
    /// because a partly sent frame cannot be retried.
    fn send_segments(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) {
        let Some(frame) = frames.first() else { return };
        let result = match offload::segments(frame) {
            Some(segments) => self.cut(segments),
            None => Err(PortDrop::TxUnfinished),
        };
        match result {
            Ok(()) => {
                self.statistics.sent(frame.len());
                done.extend(take_first(frames));
            }
            Err(reason) => self.drop_front(reason, frames, done),
        }
    }

    fn cut(&mut self, mut segments: Segments<'_>) -> Result<(), PortDrop> {
        while segments.remaining() > 0 {
            let xsk = &mut self.socket.xsk;
            let (mut count, mut is_whole) = (0, true);
            while segments.remaining() > 0 && xsk.has_room() && is_whole {
                is_whole = xsk.put(|chunk| segments.write_next(chunk));
                count += usize::from(is_whole);
            }
            let sent = xsk.send();
            xsk.reap();
            self.is_down = sent.refused == Refused::Link;
            if self.is_down {
                return Err(PortDrop::TxLinkDown);
            } else if !is_whole {
                return Err(PortDrop::TxUnfinished);
            } else if sent.refused == Refused::Full || count == 0 || (0..count).any(|at| sent.is_lost(at)) {
                return Err(PortDrop::TxNoBuffer);
            }
        }
        Ok(())
    }

    fn drop_front(&mut self, reason: PortDrop, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) {
        self.statistics.dropped(reason);
        done.extend(take_first(frames));
    }
}
