// SPDX-License-Identifier: Apache-2.0
//! A queue pair of a DPDK device.

use super::device::{Attached, Device};
use super::shim::{self, Chain, Drops};
use crate::queue::take_first;
use crate::{Capabilities, Link, MIN_FRAME_BYTES, Pools, PortDrop, Queue, Statistics, offload};
use frame::{FillLevel, Frame, Meta, Stamp};
use std::sync::{Arc, PoisonError};

/// Length in bytes of an Ethernet header with two VLAN tags, which the MTU does not include.
const HEADER_BYTES: usize = 22;

/// Size of the segment buffer in bytes; holds the longest segment of a super-frame.
const SEGMENT_BYTES: usize = 65_600;

pub(super) struct DpdkQueue {
    /// Metadata of the next frame. Copying the whole takes fewer stores than writing each field.
    meta: Meta,
    number: u16,
    device: Arc<Device>,
    /// The device; `None` while it is gone.
    attached: Option<Arc<Attached>>,
    /// Number of times that the device has come back.
    generation: u64,
    /// Whether the receiving thread has been registered with DPDK, which gives it mbuf caches.
    has_thread: bool,
    link: Link,
    /// Drops that the device reported at the last query. `earlier_drops` counts the drops of removed devices.
    device_drops: Drops,
    earlier_drops: Drops,
    segment: Box<[u8]>,
    statistics: Statistics,
}

impl DpdkQueue {
    pub(super) fn new(port: u32, number: u16, device: Arc<Device>, attached: Arc<Attached>) -> Self {
        let mut queue = Self {
            meta: Meta { in_port: port, ..Meta::NONE },
            number,
            device,
            attached: Some(attached),
            generation: 0,
            has_thread: false,
            link: Link::default(),
            device_drops: Drops::default(),
            earlier_drops: Drops::default(),
            segment: vec![0; SEGMENT_BYTES].into_boxed_slice(),
            statistics: Statistics::default(),
        };
        queue.poll_link();
        queue
    }

    /// Releases a removed device, which can be reattached once all queues have released it.
    fn lose(&mut self) {
        self.attached = None;
        let Drops { missed, no_buffer, errors, unsent } = std::mem::take(&mut self.device_drops);
        self.earlier_drops.unsent += unsent;
        self.earlier_drops.missed += missed;
        self.earlier_drops.no_buffer += no_buffer;
        self.earlier_drops.errors += errors;
    }

    /// Completes a frame's offloads. Returns `Some(false)` if the frame can now be sent, `Some(true)` if it
    /// was sent in segments, and `None` if the device had no space for the first segment. If the device is
    /// full after some segments, the rest is dropped, because a frame sent in part cannot be retried.
    fn finish(&mut self, frame: &mut Frame) -> Result<Option<bool>, PortDrop> {
        let Some(gso) = frame.meta.gso else {
            return if offload::complete_checksum(frame) {
                Ok(Some(false))
            } else {
                Err(PortDrop::TxUnfinished)
            };
        };
        if usize::from(gso.header_len) + usize::from(gso.size) > self.most_bytes() {
            return Err(PortDrop::TxOversized);
        }
        let Some(port) = self.attached.as_ref().and_then(|attached| attached.port()) else {
            return Err(PortDrop::TxLinkDown);
        };
        let mut segments = offload::segments(frame).ok_or(PortDrop::TxUnfinished)?;
        let mut sent = false;
        while segments.remaining() > 0 {
            let len = segments.write_next(&mut self.segment).ok_or(PortDrop::TxUnfinished)?;
            if !shim::transmit_bytes(port, self.number, self.device.pool, &self.segment[..len]) {
                return if sent { Err(PortDrop::TxNoBuffer) } else { Ok(None) };
            }
            sent = true;
        }
        Ok(Some(true))
    }

    /// Returns the maximum length in bytes of a frame that the device accepts.
    fn most_bytes(&self) -> usize {
        self.link.mtu.map_or(usize::MAX, |mtu| mtu as usize + HEADER_BYTES)
    }

    /// Passes frames from the front of `frames` to the device, up to the first frame whose offloads must be
    /// completed. Returns false if the device did not accept all of them.
    #[inline]
    fn send_ready(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> bool {
        let most_bytes = self.most_bytes();
        loop {
            let (mut ready, mut ready_bytes) = (0, 0);
            for frame in frames.iter().take(shim::BURST) {
                if sends_unchanged(frame, most_bytes) != Ok(true) {
                    break;
                }
                ready += 1;
                ready_bytes += frame.len();
            }
            if ready == 0 {
                return true;
            }
            let Some(port) = self.attached.as_ref().and_then(|attached| attached.port()) else {
                return false;
            };
            let sent = shim::transmit(port, self.number, self.device.pool, frames, ready, done);
            let unsent_bytes: usize = frames[..ready - sent].iter().map(Frame::len).sum();
            self.statistics.sent_many(sent, ready_bytes - unsent_bytes);
            if sent < ready {
                return false;
            }
        }
    }
}

/// Returns whether a device that accepts frames of up to `most_bytes` bytes can send the frame unchanged, or
/// the reason why it can never send it.
#[inline]
fn sends_unchanged(frame: &Frame, most_bytes: usize) -> Result<bool, PortDrop> {
    if frame.len() < MIN_FRAME_BYTES {
        return Err(PortDrop::TxRunt);
    }
    if frame.meta.gso.is_some() {
        return Ok(false);
    }
    if frame.len() > most_bytes { Err(PortDrop::TxOversized) } else { Ok(frame.meta.checksum.is_none()) }
}

/// Copies a packet that is not in a single mbuf of the port's pool into a frame. Returns the drop reason on
/// failure.
fn copied(chain: Chain, pools: &mut Pools) -> Result<Frame, PortDrop> {
    let len = chain.len();
    if len < MIN_FRAME_BYTES {
        return Err(PortDrop::RxRunt);
    }
    if !pools.fits(len) {
        return Err(PortDrop::RxOversized);
    }
    // The packet has already left the device, so it cannot wait there for a free buffer.
    let mut frame = pools.get(len).ok_or(PortDrop::RxNoLargeFrame)?;
    if !chain.read(&mut frame) {
        drop(pools.put(frame));
        return Err(PortDrop::RxOversized);
    }
    Ok(frame)
}

impl Queue for DpdkQueue {
    #[inline]
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        if !self.has_thread {
            shim::use_thread();
            self.has_thread = true;
        }
        let Some(port) = self.attached.as_ref().and_then(|attached| attached.port()) else { return 0 };
        let (before, statistics) = (burst.len(), &mut self.statistics);
        let copy = |chain: Chain| {
            let frame = copied(chain, pools);
            frame
                .inspect(|frame| statistics.received_many(0, frame.len()))
                .map_err(|reason| statistics.dropped(reason))
                .ok()
        };
        let bytes = shim::receive(port, self.number, self.device.pool, burst, max, copy);
        let fresh = &mut burst[before..];
        self.meta.arrive(self.meta.in_port, self.meta.sequence, stamp);
        for (frame, sequence) in fresh.iter_mut().zip(self.meta.sequence..) {
            let meta = &mut frame.meta;
            *meta = self.meta;
            meta.sequence = sequence;
        }
        self.meta.sequence += fresh.len() as u64;
        self.statistics.received_many(fresh.len(), bytes);
        fresh.len()
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let before = frames.len();
        while self.send_ready(frames, done) {
            let Some(first) = frames.first_mut() else { break };
            match sends_unchanged(first, self.most_bytes()).and_then(|_| self.finish(first)) {
                Ok(Some(true)) => self.statistics.sent(first.len()),
                Ok(Some(false)) => continue,
                Ok(None) => break,
                Err(reason) => self.statistics.dropped(reason),
            }
            done.extend(take_first(frames));
        }
        if !frames.is_empty() && !self.link.up {
            self.statistics.dropped_many(PortDrop::TxLinkDown, frames.len() as u64);
            done.append(frames);
        }
        before - frames.len()
    }

    fn buffers(&self) -> FillLevel {
        self.device.pool.level()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    /// Returns the queue's counters. Drops of the device as a whole are counted at its first queue.
    fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        for Drops { missed, no_buffer, errors, unsent } in [self.device_drops, self.earlier_drops] {
            statistics.dropped_many(PortDrop::RxKernel, missed + no_buffer);
            statistics.dropped_many(PortDrop::RxError, errors);
            // The driver first accepted these packets and later reported them as not sent.
            statistics.dropped_many(PortDrop::TxError, unsent);
            statistics.tx_packets = statistics.tx_packets.saturating_sub(unsent);
        }
        statistics
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn poll_link(&mut self) -> Link {
        if self.attached.is_none() {
            self.attached = self.device.find();
            self.generation += u64::from(self.attached.is_some());
        }
        if self.attached.as_ref().is_none_or(|attached| attached.is_gone()) {
            self.lose();
            (self.link.up, self.link.index) = (false, None);
            return self.link;
        }
        // The first queue queries the link for all queues, because DPDK's control calls are not thread-safe.
        if self.number == 0
            && let Some(port) = self.attached.as_ref().and_then(|attached| attached.port())
        {
            // A reattached device counts from 0 again; `earlier_drops` holds the previous counts.
            self.device_drops = port.drops().unwrap_or(self.device_drops);
            let mut known = self.device.link.lock().unwrap_or_else(PoisonError::into_inner);
            *known = port.link().map_or(Link { up: false, ..*known }, |link| Link {
                up: link.up != 0,
                speed_mbps: (link.speed_mbps > 0).then_some(link.speed_mbps),
                mac: Some(link.mac),
                mtu: Some(link.mtu.into()),
                index: None,
            });
        }
        let index = self.attached.as_ref().and_then(|attached| attached.interface_index());
        self.link = Link { index, ..*self.device.link.lock().unwrap_or_else(PoisonError::into_inner) };
        self.link
    }
}
