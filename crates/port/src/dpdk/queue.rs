// SPDX-License-Identifier: Apache-2.0
//! A queue pair of a device of DPDK.

use super::device::{Attached, Device};
use super::shim::{self, Burst, Drops, Packet};
use crate::{Capabilities, Drop, Link, MIN_FRAME_BYTES, Pools, Queue, Statistics, offload};
use frame::Frame;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Ethernet header and two VLAN tags, which no MTU counts.
const HEADER_BYTES: usize = 22;

/// Room for the longest segment of a super-frame.
const SEGMENT_BYTES: usize = 65_600;

pub(super) struct DpdkQueue {
    port: u32,
    number: u16,
    device: Arc<Device>,
    /// None while it is gone.
    attached: Option<Arc<Attached>>,
    /// How often it has come back.
    generation: u64,
    burst: Burst,
    /// The thread that receives has caches of mbufs.
    has_thread: bool,
    sequence: u64,
    link: Link,
    /// What the device had dropped when it was last asked, and those before it that are gone.
    device_drops: Drops,
    earlier_drops: Drops,
    segment: Box<[u8]>,
    statistics: Statistics,
}

impl DpdkQueue {
    pub(super) fn new(port: u32, number: u16, device: Arc<Device>, attached: Arc<Attached>) -> Self {
        let mut queue = Self {
            port,
            number,
            device,
            attached: Some(attached),
            generation: 0,
            burst: Burst::new(),
            has_thread: false,
            sequence: 0,
            link: Link::default(),
            device_drops: Drops::default(),
            earlier_drops: Drops::default(),
            segment: vec![0; SEGMENT_BYTES].into_boxed_slice(),
            statistics: Statistics::default(),
        };
        queue.poll_link();
        queue
    }

    /// Lets go of a device that is gone: it can come back when all queues have.
    fn lose(&mut self) {
        self.attached = None;
        let Drops { missed, no_buffer, errors } = std::mem::take(&mut self.device_drops);
        self.earlier_drops.missed += missed;
        self.earlier_drops.no_buffer += no_buffer;
        self.earlier_drops.errors += errors;
    }

    /// The packet as a frame, or why it is dropped.
    #[inline]
    fn frame(&self, packet: Packet, pools: &mut Pools) -> Result<Frame, Drop> {
        match packet {
            Packet::Whole(loan, offset, len) => {
                if (len as usize) < MIN_FRAME_BYTES {
                    return Err(Drop::RxRunt);
                }
                let mut frame = pools.shells.get().ok_or(Drop::RxKernel)?;
                let lent = frame.lend(loan, offset, len);
                debug_assert!(lent, "the shim lends what fits");
                Ok(frame)
            }
            Packet::Parts(chain) => {
                let len = chain.len();
                if len < MIN_FRAME_BYTES {
                    return Err(Drop::RxRunt);
                }
                if !pools.fits(len) {
                    return Err(Drop::RxOversized);
                }
                // It has been received: it can not wait in the device.
                let mut frame = pools.get(len).ok_or(Drop::RxNoLargeFrame)?;
                let read = chain.read(&mut frame);
                debug_assert!(read, "the pool was chosen by length");
                Ok(frame)
            }
        }
    }

    /// Whether the device can be given the frame as it is, or why it never can.
    fn judge(&self, frame: &Frame) -> Result<bool, Drop> {
        if frame.len() < MIN_FRAME_BYTES {
            return Err(Drop::TxRunt);
        }
        if frame.meta.gso.is_some() {
            return Ok(false);
        }
        let most = self.link.mtu.map_or(usize::MAX, |mtu| mtu as usize + HEADER_BYTES);
        if frame.len() > most { Err(Drop::TxOversized) } else { Ok(frame.meta.checksum.is_none()) }
    }

    /// Sends the front frame with what its sender left open finished. A device that is full in the middle of segments loses
    /// the rest: a frame half sent can not wait.
    fn finish(&mut self, frame: &mut Frame) -> Result<bool, Drop> {
        if frame.meta.gso.is_none() {
            return if offload::complete_checksum(frame) { Ok(false) } else { Err(Drop::TxUnfinished) };
        }
        let mut segments = offload::segments(frame).ok_or(Drop::TxUnfinished)?;
        while segments.remaining() > 0 {
            let len = segments.write_next(&mut self.segment).ok_or(Drop::TxUnfinished)?;
            let Some(attached) = &self.attached else { return Err(Drop::TxLinkDown) };
            if !self.burst.transmit_copy(&attached.0, self.number, self.device.pool, &self.segment[..len]) {
                return Err(Drop::TxNoBuffer);
            }
        }
        Ok(true)
    }

    /// Gives the device what can go as it is, from the front on; false if it did not take all of that.
    fn send_ready(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> bool {
        loop {
            let ready =
                frames.iter().take(shim::BURST).take_while(|frame| self.judge(frame) == Ok(true)).count();
            if ready == 0 {
                return true;
            }
            let Some(attached) = &self.attached else { return false };
            let ready_frames = frames.iter().take(ready);
            let sent = self.burst.transmit(&attached.0, self.number, self.device.pool, ready_frames);
            for mut frame in frames.drain(..sent.min(ready)) {
                self.statistics.sent(frame.len());
                shim::taken(&mut frame);
                done.push(frame);
            }
            if sent < ready {
                return false;
            }
        }
    }
}

impl Queue for DpdkQueue {
    #[inline]
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        if !self.has_thread {
            shim::use_thread();
            self.has_thread = true;
        }
        let Some(attached) = &self.attached else { return 0 };
        self.burst.receive(&attached.0, self.number, max.min(pools.shells.available()));
        let before = burst.len();
        while let Some(packet) = self.burst.next() {
            match self.frame(packet, pools) {
                Ok(mut frame) => {
                    frame.meta.in_port = self.port;
                    frame.meta.sequence = self.sequence;
                    self.sequence += 1;
                    self.statistics.received(frame.len());
                    burst.push(frame);
                }
                Err(reason) => self.statistics.dropped(reason),
            }
        }
        burst.len() - before
    }

    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize {
        let before = frames.len();
        while self.send_ready(frames, done) {
            let Some(mut frame) = frames.pop_front() else { break };
            match self.judge(&frame).and_then(|_| self.finish(&mut frame)) {
                Ok(true) => self.statistics.sent(frame.len()),
                // Its checksum is finished: it goes as it is.
                Ok(false) => {
                    frames.push_front(frame);
                    continue;
                }
                Err(reason) => self.statistics.dropped(reason),
            }
            done.push(frame);
        }
        if !frames.is_empty() && !self.link.up {
            self.statistics.dropped_many(Drop::TxLinkDown, frames.len() as u64);
            done.extend(frames.drain(..));
        }
        before - frames.len()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// The device's own drops are counted at its first queue.
    fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        for Drops { missed, no_buffer, errors } in [self.device_drops, self.earlier_drops] {
            statistics.dropped_many(Drop::RxKernel, missed + no_buffer);
            statistics.dropped_many(Drop::RxError, errors);
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
        let told = self.attached.as_ref().filter(|attached| !attached.0.is_gone()).map(|attached| {
            // It counts from 0 when it comes back.
            if self.number == 0
                && let Ok(drops) = attached.0.drops()
            {
                self.device_drops = drops;
            }
            attached.0.link().unwrap_or_default()
        });
        self.link = match told {
            Some(link) => Link {
                up: link.up != 0,
                speed_mbps: (link.speed_mbps > 0).then_some(link.speed_mbps),
                mac: Some(link.mac),
                mtu: Some(link.mtu.into()),
            },
            None => {
                self.lose();
                Link { up: false, ..self.link }
            }
        };
        self.link
    }
}
