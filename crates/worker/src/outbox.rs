// SPDX-License-Identifier: Apache-2.0
//! The transmit queue of one device, with low-latency frames before normal frames. Frames that the device has
//! accepted cannot be overtaken. So the device gets normal frames only up to its watermark ([`Outstanding`]),
//! and the rest waits here.

mod queues;

use crate::latency::StampRuns;
use crate::shaper::Shaper;
use arrayvec::ArrayVec;
use dataplane::Usage;
use flow::EgressQueue;
use frame::{Frame, Lane, PerLane, move_all};
use pipeline::BURST;
use port::{Outstanding, Queue};

/// Default maximum number of normal frames in an outbox; low-latency frames have the same limit. Further
/// frames are dropped as `transmit_full`.
pub(crate) const OUTBOX_FRAMES: usize = 512;

/// An outbox with this many frames is sent before the next burst is received, so that bursts from other ports
/// do not overflow it.
pub(crate) const LONG_FRAMES: usize = 128;

/// Maximum number of normal frames moved from the egress queues to the outbox at once. While the device does
/// not accept all frames, only one frame is moved at once.
const CHUNK_FRAMES: usize = 32;

/// Minimum number of bytes by which a frame raises the estimate of outstanding bytes. It covers the overhead
/// of a buffer.
const CHARGE_BYTES: usize = 2_304;

/// Usage of an outbox and of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxUsage {
    /// Low-latency frames that wait.
    pub low_latency: Usage,
    /// Normal frames that wait.
    pub normal: Usage,
    /// Bytes that the device has accepted and not sent, with its watermark as the limit.
    pub outstanding_bytes: Usage,
}

/// The transmit queue of one device.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Maximum number of normal frames; normal and low-latency frames together have twice this limit.
    limit: usize,
    normal: Vec<Frame>,
    low_latency: Vec<Frame>,
    /// Number of frames in `normal` that go before all low-latency frames (transmit barrier). They may
    /// include earlier packets of a flow that has become low-latency.
    frozen: usize,
    /// Number of frames at the front of `normal` that are sent regardless of the watermark, because the last
    /// of them is low-latency.
    promoted: usize,
    /// Estimate of the data that the device has not sent yet: its last report, plus the frames that it has
    /// accepted since.
    outstanding: Outstanding,
    /// The part of a lane's frames that is being passed to the device; empty otherwise.
    part: Vec<Frame>,
    /// Stamps of the frames that were last passed to the device.
    runs: StampRuns,
    /// Whether a frame of the lane would have to wait, as of the last time that the device was served.
    left: PerLane<bool>,
    /// Number of frames of a lane that can be added without any check. It is 0 while a frame may have to be
    /// refused or queued elsewhere.
    spare: PerLane<usize>,
    /// Value of `spare` when no frame waits.
    empty_spare: PerLane<usize>,
    /// The port's egress queues, if it has any. Frames move from them to the outbox.
    shaper: Option<Box<Shaper>>,
    /// Current maximum number of frames to move from the egress queues at once.
    chunk: usize,
}

impl Outbox {
    /// Creates an outbox for `limit` normal frames and as many low-latency frames. `frames` is the number of
    /// frames of all workers, which bounds the memory.
    pub fn new(limit: usize, frames: usize) -> Self {
        let room = (2 * limit).min(frames);
        let [normal, low_latency, part] = [(); 3].map(|()| Vec::with_capacity(room));
        // A watermark of 0 makes the first send query the device.
        let outstanding = Outstanding { bytes: 0, most_bytes: 0 };
        Self {
            limit,
            normal,
            low_latency,
            frozen: 0,
            promoted: 0,
            outstanding,
            part,
            runs: StampRuns::default(),
            left: PerLane::default(),
            spare: PerLane::default(),
            empty_spare: spare_of(limit, 0, 0),
            shaper: None,
            chunk: CHUNK_FRAMES,
        }
    }

    /// Creates an outbox for a port with egress queues.
    pub fn behind(queues: &[EgressQueue], outstanding: Outstanding, limit: usize, frames: usize) -> Self {
        let shaper = Some(Box::new(Shaper::new(queues)));
        Self { shaper, outstanding, empty_spare: PerLane::default(), ..Self::new(limit, frames) }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.normal.len() + self.low_latency.len()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether no frame waits, here or in the port's egress queues.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.is_empty() && self.shaper.as_ref().is_none_or(|shaper| shaper.is_empty())
    }

    /// Returns whether a frame of this lane would wait for a stuck device. Low-latency frames do not wait for
    /// normal ones.
    #[inline]
    pub fn is_stuck(&self, lane: Lane) -> bool {
        self.left[lane]
    }

    /// Returns whether a frame of this lane can be added by [`push_taken`](Self::push_taken).
    #[inline]
    pub fn takes(&self, lane: Lane) -> bool {
        self.spare[lane] > 0
    }

    /// Adds a frame without a check, after `takes` has returned true for its lane.
    #[inline]
    pub fn push_taken(&mut self, frame: Frame, lane: Lane) {
        self.spare[lane] -= 1;
        self.append(frame, lane);
    }

    /// Adds all of these frames if they can be added without a check. Otherwise takes none of them and
    /// returns false.
    #[inline]
    pub fn push_all(&mut self, frames: &mut ArrayVec<Frame, BURST>, lane: Lane) -> bool {
        let takes = self.spare[lane] >= frames.len();
        if takes {
            self.spare[lane] -= frames.len();
            match lane {
                Lane::LowLatency => move_all(frames, &mut self.low_latency),
                Lane::Normal => move_all(frames, &mut self.normal),
            }
        }
        takes
    }

    #[inline(always)]
    fn append(&mut self, frame: Frame, lane: Lane) {
        match lane {
            Lane::LowLatency => self.low_latency.push(frame),
            Lane::Normal => self.normal.push(frame),
        }
    }

    /// Updates `left` and `spare`: which lanes would have to wait, and how many frames can be added without
    /// any check. Called after the device was served.
    #[inline]
    fn settle_lanes(&mut self) {
        (self.left, self.spare) = (PerLane::default(), self.empty_spare);
        if !self.is_empty() {
            self.settle_waiting();
        }
    }

    #[inline(never)]
    fn settle_waiting(&mut self) {
        let goes_first = self.promoted > 0 || !self.low_latency.is_empty();
        self.left = PerLane::new(goes_first, true);
        let spare = spare_of(self.limit, self.normal.len(), self.low_latency.len());
        let low_latency = if goes_first || self.shaper.is_some() { 0 } else { spare[Lane::LowLatency] };
        self.spare = PerLane::new(low_latency, 0);
    }

    /// Adds a frame. Returns the frame if there is no space.
    pub fn push(&mut self, frame: Frame, lane: Lane) -> Result<(), Frame> {
        let all = 2 * self.limit;
        let room = match lane {
            Lane::LowLatency => all,
            Lane::Normal => self.limit,
        };
        if self.normal.len() >= room || self.len() >= all {
            return Err(frame);
        }
        self.append(frame, lane);
        Ok(())
    }

    /// Returns the usage of the outbox, and of the device's watermark.
    pub fn usage(&self, queue: &dyn Queue) -> OutboxUsage {
        let Outstanding { bytes, most_bytes } = queue.outstanding();
        let most_bytes = (most_bytes != usize::MAX).then_some(most_bytes);
        OutboxUsage {
            low_latency: Usage::of("outbox_low_latency", self.low_latency.len(), 2 * self.limit),
            normal: Usage::of("outbox_normal", self.normal.len(), self.limit),
            outstanding_bytes: Usage::of("outstanding_bytes", bytes, most_bytes),
        }
    }

    /// Removes any waiting frame, ignoring the order.
    pub fn pop(&mut self) -> Option<Frame> {
        (self.frozen, self.promoted) = (0, 0);
        let frame = self.low_latency.pop().or_else(|| self.normal.pop());
        frame.or_else(|| self.shaper.as_mut()?.pop())
    }

    /// Asks the device for its watermark before the next normal frame is passed to it.
    pub fn ask_again(&mut self) {
        self.outstanding = Outstanding { bytes: 0, most_bytes: 0 };
    }

    /// Sets a transmit barrier: frames queued now are sent before all later frames, in their current order.
    pub fn freeze(&mut self) {
        self.spare = PerLane::default();
        self.merge();
        self.frozen = self.normal.len();
        if let Some(shaper) = &mut self.shaper {
            shaper.change(true);
        }
    }

    /// Sets a transmit barrier in the port's egress queues for normal frames, because flows may have moved to
    /// another queue.
    pub fn requeue(&mut self) {
        if let Some(shaper) = &mut self.shaper {
            shaper.change(false);
        }
    }

    /// Moves the waiting low-latency frames into `normal`, after the frozen frames.
    fn merge(&mut self) {
        let count = self.low_latency.len();
        if count > 0 {
            self.normal.append(&mut self.low_latency);
            if let Some(later) = self.normal.get_mut(self.frozen..) {
                later.rotate_right(count);
            }
            self.frozen += count;
            self.promoted = self.frozen;
        }
    }

    /// Passes frames to the device and returns how many it accepted. Accepted frames that the device does not
    /// keep are moved to `done`. After each doorbell, `rung` is called with the stamps of the frames offered
    /// and the number of accepted ones.
    pub fn send(
        &mut self,
        queue: &mut dyn Queue,
        done: &mut Vec<Frame>,
        mut rung: impl FnMut(&StampRuns, usize),
    ) -> usize {
        if self.frozen > 0 {
            self.merge();
        }
        let mut sent = 0;
        while !self.is_empty() {
            let lane = if self.low_latency.is_empty() { Lane::Normal } else { Lane::LowLatency };
            let most = match lane {
                Lane::LowLatency => self.low_latency.len(),
                Lane::Normal => self.allowed(queue),
            };
            if most == 0 {
                break;
            }
            let (taken, is_done) = self.ring(lane, most, queue, done);
            if lane == Lane::Normal && self.frozen > 0 {
                self.frozen = self.frozen.saturating_sub(taken);
                self.promoted = self.promoted.saturating_sub(taken);
            }
            rung(&self.runs, taken);
            sent += taken;
            if !is_done {
                break;
            }
        }
        self.settle_lanes();
        sent
    }

    /// Passes the first `most` frames of a lane to the device, or fewer if their stamps change often, and
    /// reads their stamps. Returns the number of accepted frames, and whether the device accepted all frames
    /// that were passed.
    #[inline]
    fn ring(
        &mut self,
        lane: Lane,
        most: usize,
        queue: &mut dyn Queue,
        done: &mut Vec<Frame>,
    ) -> (usize, bool) {
        let frames = match lane {
            Lane::LowLatency => &mut self.low_latency,
            Lane::Normal => &mut self.normal,
        };
        let count = self.runs.read(&frames[..most]);
        let is_unlimited = self.outstanding.most_bytes == usize::MAX;
        let charge = if is_unlimited { 0 } else { charge_of(&frames[..count]) };
        let taken = if count == frames.len() {
            queue.transmit(frames, done)
        } else {
            transmit_part(frames, count, &mut self.part, queue, done)
        };
        let left = if is_unlimited { 0 } else { charge_of(&frames[..count - taken]) };
        self.outstanding.bytes += charge - left;
        (taken, taken == count)
    }

    /// Returns the number of normal frames that the device may get now. The device is queried only if the
    /// estimate has reached the watermark.
    fn allowed(&mut self, queue: &dyn Queue) -> usize {
        if self.outstanding.bytes >= self.outstanding.most_bytes {
            self.outstanding = queue.outstanding();
        }
        let Outstanding { mut bytes, most_bytes } = self.outstanding;
        if most_bytes == usize::MAX {
            return self.normal.len();
        }
        let goes = |frame: &&Frame| {
            let goes = bytes < most_bytes.max(1);
            bytes += charge_bytes(frame);
            goes
        };
        self.normal.iter().take_while(goes).count().max(self.promoted)
    }
}

/// Returns how many frames of each lane can be added to an outbox with these numbers of frames, so that both
/// lanes stay within the limits.
fn spare_of(limit: usize, normal: usize, low_latency: usize) -> PerLane<usize> {
    let half = LONG_FRAMES.min(2 * limit).saturating_sub(normal + low_latency + 1) / 2;
    PerLane::new(half, half.min(limit.saturating_sub(normal)))
}

/// Passes the first `count` of `frames` to the device and returns how many it accepted. `part` is a temporary
/// buffer, empty before and after the call.
#[inline(never)]
fn transmit_part(
    frames: &mut Vec<Frame>,
    count: usize,
    part: &mut Vec<Frame>,
    queue: &mut dyn Queue,
    done: &mut Vec<Frame>,
) -> usize {
    part.extend(frames.drain(..count));
    let taken = queue.transmit(part, done);
    frames.splice(..0, part.drain(..));
    taken
}

/// Returns the number of bytes that these frames add to the estimate of outstanding bytes.
fn charge_of(frames: &[Frame]) -> usize {
    frames.iter().map(charge_bytes).sum()
}

/// Returns an estimate of the bytes that a frame occupies in a device.
fn charge_bytes(frame: &Frame) -> usize {
    CHARGE_BYTES.max(frame.len().saturating_add(CHARGE_BYTES / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Lane::{LowLatency, Normal};
    use port::mem;

    struct Lab {
        outbox: Outbox,
        queue: mem::MemQueue,
        device: mem::MemHandle,
    }

    impl Lab {
        /// Creates a device with space for `frames` frames.
        fn new(frames: usize) -> Self {
            let (mut queues, device) = mem::pair(1, 1, frames);
            Self { outbox: Outbox::new(OUTBOX_FRAMES, 2 * OUTBOX_FRAMES), queue: queues.remove(0), device }
        }

        /// Creates a device with space for 1,000 frames and this watermark in bytes.
        fn slow(most_bytes: usize) -> Self {
            let mut lab = Self::new(1_000);
            lab.queue.set_outstanding(most_bytes);
            lab
        }

        /// Passes frames to the device, then lets it send `frames` of them. Returns their names.
        fn send_some(&mut self, frames: usize) -> String {
            self.outbox.send(&mut self.queue, &mut Vec::new(), |_, _| ());
            self.popped(frames)
        }

        fn popped(&mut self, frames: usize) -> String {
            let name = |lab: &mut Self| lab.device.pop(0).map(|bytes| char::from(bytes[0]));
            std::iter::from_fn(|| name(self)).take(frames).collect()
        }

        fn push(&mut self, name: u8, lane: Lane) {
            assert!(self.outbox.push(Frame::from_bytes(&[name; 60]), lane).is_ok());
        }

        fn send(&mut self) -> String {
            self.send_some(usize::MAX)
        }
    }

    #[test]
    fn low_latency_frames_go_first() {
        let mut lab = Lab::new(2);
        b"ab".iter().for_each(|name| lab.push(*name, Normal));
        b"XYZ".iter().for_each(|name| lab.push(*name, LowLatency));
        assert_eq!((lab.send(), lab.outbox.left), ("XY".into(), PerLane::new(true, true)));
        lab.push(b'c', Normal);
        assert_eq!((lab.send(), lab.outbox.left), ("Za".into(), PerLane::new(false, true)));
        assert_eq!((lab.send(), lab.outbox.left), ("bc".into(), PerLane::new(false, false)));
    }

    #[test]
    fn frozen_frames_go_first_and_keep_their_order() {
        let mut lab = Lab::new(1);
        b"ab".iter().for_each(|name| lab.push(*name, Normal));
        lab.push(b'X', LowLatency);
        lab.outbox.freeze();
        // From now on, the flow of "a" is low-latency and the flow of "X" is normal.
        lab.push(b'x', Normal);
        lab.push(b'A', LowLatency);
        assert_eq!([lab.send(), lab.send()], ["X", "a"]);
        lab.outbox.freeze();
        lab.push(b'B', LowLatency);
        lab.push(b'c', Normal);
        let rest: Vec<String> = (0..6).map(|_| lab.send()).collect();
        assert_eq!(rest.concat(), "bAxBc");
    }

    #[test]
    fn normal_frames_leave_room_for_low_latency_ones() {
        let mut outbox = Outbox::new(OUTBOX_FRAMES, 2 * OUTBOX_FRAMES);
        let mut fill = |lane| {
            let frame = || Frame::from_bytes(&[0; 60]);
            std::iter::from_fn(|| outbox.push(frame(), lane).ok()).count()
        };
        assert_eq!([fill(Normal), fill(LowLatency), fill(Normal)], [OUTBOX_FRAMES, OUTBOX_FRAMES, 0]);
        let room = outbox.normal.capacity();
        outbox.freeze();
        assert_eq!((outbox.normal.capacity(), outbox.frozen), (room, 2 * OUTBOX_FRAMES));
        assert!(outbox.push(Frame::from_bytes(&[0; 60]), LowLatency).is_err());
    }

    #[test]
    fn a_small_outbox_takes_as_many_frames_of_each_lane_as_its_limit() {
        let mut outbox = Outbox::new(3, 100);
        let mut fill =
            |lane| std::iter::from_fn(|| outbox.push(Frame::from_bytes(&[0; 60]), lane).ok()).count();
        assert_eq!([fill(Normal), fill(LowLatency), fill(Normal)], [3, 3, 0]);
    }

    #[test]
    fn normal_frames_wait_for_a_slow_device_and_low_latency_ones_do_not() {
        // Watermarks of 0 and 1 bytes and of one frame allow one frame at a time; two frames allow two.
        for (most_bytes, first) in [(0, "a"), (1, "a"), (2_048, "a"), (4_096, "ab")] {
            let mut lab = Lab::slow(most_bytes);
            b"abcdef".iter().for_each(|name| lab.push(*name, Normal));
            assert_eq!(lab.send_some(0), "");
            assert_eq!(lab.popped(9), first, "{most_bytes}");
            lab.send_some(0);
            b"XYZ".iter().for_each(|name| lab.push(*name, LowLatency));
            lab.send_some(0);
            let given = lab.popped(9);
            assert!(given.ends_with("XYZ") && given.len() == first.len() + 3, "{given}");
            let mut rest = given.replace("XYZ", "");
            while !lab.outbox.is_empty() {
                rest += &lab.send_some(1);
            }
            rest += &lab.popped(9);
            assert_eq!(first.to_owned() + &rest, "abcdef");
            assert_eq!(lab.outbox.left, PerLane::new(false, false));
        }
    }

    #[test]
    fn frozen_frames_before_a_low_latency_frame_do_not_wait() {
        let mut lab = Lab::slow(1);
        b"abcd".iter().for_each(|name| lab.push(*name, Normal));
        lab.outbox.freeze();
        b"ef".iter().for_each(|name| lab.push(*name, Normal));
        assert_eq!(lab.send_some(1), "a", "no low-latency frame waits behind them");
        assert_eq!(lab.send_some(0), "");
        lab.push(b'X', LowLatency);
        lab.send_some(0);
        assert_eq!(lab.popped(9), "bcdX");
        lab.send_some(0);
        lab.push(b'Y', LowLatency);
        lab.send_some(0);
        assert_eq!([lab.popped(9), lab.send()], ["eY", "f"]);
    }
}
