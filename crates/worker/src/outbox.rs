// SPDX-License-Identifier: Apache-2.0
//! Frames that wait for one device, low-latency ones before the others.

use frame::Frame;
use port::Queue;
use std::collections::VecDeque;

/// Frames that wait for a port's device at most, normal ones; low-latency ones may be so many, too. Beyond it they are
/// dropped as `transmit_full`.
pub(crate) const OUTBOX_FRAMES: usize = 512;

/// Frames in one outbox at most.
pub(crate) const OUTBOX_ALL: usize = 2 * OUTBOX_FRAMES;

/// Frames that wait for one device.
#[derive(Debug)]
pub(crate) struct Outbox {
    normal: VecDeque<Frame>,
    low_latency: VecDeque<Frame>,
    /// So many of `normal` go before all low-latency ones: among them may be earlier packets of a flow that has become
    /// low-latency.
    sealed: usize,
    /// The device did not take all when it was last asked.
    pub stuck: bool,
}

impl Default for Outbox {
    fn default() -> Self {
        let [normal, low_latency] = [(); 2].map(|()| VecDeque::with_capacity(OUTBOX_ALL));
        Self { normal, low_latency, sealed: 0, stuck: false }
    }
}

impl Outbox {
    #[inline]
    pub fn len(&self) -> usize {
        self.normal.len() + self.low_latency.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a frame. Given back without room.
    #[inline]
    pub fn push(&mut self, frame: Frame, low_latency: bool) -> Result<(), Frame> {
        let room = if low_latency { OUTBOX_ALL } else { OUTBOX_FRAMES };
        if self.normal.len() >= room || self.len() == OUTBOX_ALL {
            return Err(frame);
        }
        if low_latency {
            self.low_latency.push_back(frame);
        } else {
            self.normal.push_back(frame);
        }
        Ok(())
    }

    /// What waits now goes before whatever comes, in the order in which it would go if nothing came.
    pub fn seal(&mut self) {
        self.merge();
        self.sealed = self.normal.len();
    }

    /// Puts the low-latency frames that wait between what goes before them and the other normal ones.
    fn merge(&mut self) {
        let count = self.low_latency.len();
        if count > 0 {
            self.normal.extend(self.low_latency.drain(..));
            if let Some(later) = self.normal.make_contiguous().get_mut(self.sealed..) {
                later.rotate_right(count);
            }
            self.sealed += count;
        }
    }

    /// Gives the device as many as it takes, returns how many, and leaves them in `done`. After each doorbell `rung` gets
    /// those that it took.
    pub fn send(
        &mut self,
        queue: &mut dyn Queue,
        done: &mut Vec<Frame>,
        mut rung: impl FnMut(&[Frame]),
    ) -> usize {
        if self.sealed > 0 {
            self.merge();
        }
        let mut sent = 0;
        if !self.low_latency.is_empty() {
            sent = queue.transmit(&mut self.low_latency, done);
            rung(done);
        }
        if self.low_latency.is_empty() && !self.normal.is_empty() {
            let taken = queue.transmit(&mut self.normal, done);
            self.sealed = self.sealed.saturating_sub(taken);
            rung(&done[sent..]);
            sent += taken;
        }
        self.stuck = !self.is_empty();
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::mem;

    struct Lab {
        outbox: Outbox,
        queue: mem::MemQueue,
        device: mem::MemHandle,
    }

    impl Lab {
        /// A device that takes `frames` at once.
        fn new(frames: usize) -> Self {
            let (mut queues, device) = mem::pair(1, 1, frames);
            Self { outbox: Outbox::default(), queue: queues.remove(0), device }
        }

        fn push(&mut self, name: u8, low_latency: bool) {
            assert!(self.outbox.push(Frame::from_bytes(&[name; 60]), low_latency).is_ok());
        }

        fn send(&mut self) -> String {
            let mut done = Vec::new();
            self.outbox.send(&mut self.queue, &mut done, |_| ());
            let name = |lab: &mut Self| lab.device.pop(0).map(|bytes| char::from(bytes[0]));
            std::iter::from_fn(|| name(self)).collect()
        }
    }

    #[test]
    fn low_latency_frames_go_first() {
        let mut lab = Lab::new(2);
        b"ab".iter().for_each(|name| lab.push(*name, false));
        b"XYZ".iter().for_each(|name| lab.push(*name, true));
        assert_eq!((lab.send(), lab.outbox.stuck), ("XY".into(), true));
        lab.push(b'c', false);
        assert_eq!([lab.send(), lab.send()], ["Za", "bc"]);
        assert!(!lab.outbox.stuck);
    }

    #[test]
    fn what_was_there_before_a_seal_goes_first_and_keeps_its_order() {
        let mut lab = Lab::new(1);
        b"ab".iter().for_each(|name| lab.push(*name, false));
        lab.push(b'X', true);
        lab.outbox.seal();
        // Now "a" is low-latency, and "X" is not.
        lab.push(b'x', false);
        lab.push(b'A', true);
        assert_eq!([lab.send(), lab.send()], ["X", "a"]);
        lab.outbox.seal();
        lab.push(b'B', true);
        lab.push(b'c', false);
        let rest: Vec<String> = (0..6).map(|_| lab.send()).collect();
        assert_eq!(rest.concat(), "bAxBc");
    }

    #[test]
    fn normal_frames_leave_room_for_low_latency_ones() {
        let mut outbox = Outbox::default();
        let mut fill = |low_latency| {
            let frame = || Frame::from_bytes(&[0; 60]);
            std::iter::from_fn(|| outbox.push(frame(), low_latency).ok()).count()
        };
        assert_eq!([fill(false), fill(true), fill(false)], [OUTBOX_FRAMES, OUTBOX_FRAMES, 0]);
        let room = outbox.normal.capacity();
        outbox.seal();
        assert_eq!((outbox.normal.capacity(), outbox.sealed), (room, OUTBOX_ALL));
        assert!(outbox.push(Frame::from_bytes(&[0; 60]), true).is_err());
    }
}
