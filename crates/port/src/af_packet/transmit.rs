// SPDX-License-Identifier: Apache-2.0
//! Transmit: sends frames by system calls.
//!
//! Two alternatives were measured on veth and rejected. A mapped transmit ring is slower than sendmmsg, and
//! its slots would have to hold super-frames. PACKET_QDISC_BYPASS is no faster, and tcpdump does not see
//! packets sent with it.

use super::PacketQueue;
use super::vnet::{TransmitForm, way};
use crate::queue::take_first;
use crate::{MIN_FRAME_BYTES, PortDrop};
use frame::Frame;
use std::io;

/// Meaning of the error with which the kernel refused a packet.
enum Refusal {
    /// No space now: the packet stays queued.
    Full,
    /// Nothing can be sent until the interface changes.
    Link,
    /// This packet can never be sent.
    Packet(PortDrop),
}

fn refusal(error: &io::Error) -> Refusal {
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR) => Refusal::Full,
        Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV) => Refusal::Link,
        Some(libc::EMSGSIZE) => Refusal::Packet(PortDrop::TxOversized),
        Some(libc::ENOBUFS | libc::ENOMEM) => Refusal::Packet(PortDrop::TxNoBuffer),
        Some(libc::EINVAL) => Refusal::Packet(PortDrop::TxUnfinished),
        _ => Refusal::Packet(PortDrop::TxError),
    }
}

impl PacketQueue {
    pub(super) fn transmit_burst(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let before = frames.len();
        // A socket reports a past loss of the link once, so only a second error in a row shows that the link
        // is down now.
        let mut link_refused = false;
        while let Some(front) = frames.first() {
            if front.len() < MIN_FRAME_BYTES {
                self.drop_front(PortDrop::TxRunt, frames, done);
                continue;
            }
            match way(front, self.watch.link.mtu) {
                TransmitForm::Kernel(_) => {}
                TransmitForm::TooLong => {
                    self.drop_front(PortDrop::TxOversized, frames, done);
                    continue;
                }
                TransmitForm::Segments => {
                    self.send_segments(frames, done);
                    continue;
                }
            }
            let mtu = self.watch.link.mtu;
            let packets = frames.iter().map_while(|frame| match way(frame, mtu) {
                TransmitForm::Kernel(header) if frame.len() >= MIN_FRAME_BYTES => {
                    Some((header, frame.bytes()))
                }
                _ => None,
            });
            match self.batch.send(self.socket.borrow(), packets) {
                Ok(sent) => {
                    for frame in frames.drain(..sent) {
                        self.statistics.sent(frame.len());
                        done.push(frame);
                    }
                }
                Err(error) => match refusal(&error) {
                    Refusal::Full => break,
                    // An older kernel may not support this kind of super-frame (UDP before Linux 6.2).
                    Refusal::Packet(PortDrop::TxUnfinished) if front.meta.gso.is_some() => {
                        self.send_segments(frames, done);
                    }
                    Refusal::Packet(reason) => self.drop_front(reason, frames, done),
                    Refusal::Link if !link_refused => link_refused = true,
                    Refusal::Link => {
                        self.statistics.dropped_many(PortDrop::TxLinkDown, frames.len() as u64);
                        done.append(frames);
                    }
                },
            }
        }
        before - frames.len()
    }

    /// Sends the front frame in segments. If the device is full after some segments, the rest is dropped,
    /// because a partly sent frame cannot be retried.
    fn send_segments(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) {
        let Some(frame) = frames.first() else { return };
        match self.cutter.send(frame, &mut self.batch, self.socket.borrow()) {
            Ok(()) => {
                self.statistics.sent(frame.len());
                done.extend(take_first(frames));
            }
            Err(error) => {
                let reason = match refusal(&error) {
                    Refusal::Full => PortDrop::TxNoBuffer,
                    Refusal::Link => PortDrop::TxLinkDown,
                    Refusal::Packet(reason) => reason,
                };
                self.drop_front(reason, frames, done);
            }
        }
    }

    fn drop_front(&mut self, reason: PortDrop, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) {
        self.statistics.dropped(reason);
        done.extend(take_first(frames));
    }
}
