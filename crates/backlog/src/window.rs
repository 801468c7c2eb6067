// SPDX-License-Identifier: Apache-2.0
//! Positions of packets in the backlog, and fences at these positions.

use flow::Limits;

/// Range of the positions of waiting packets. The position of a packet is the number of packets that joined
/// the backlog before it, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    head: u32,
    len: u32,
}

impl Window {
    /// Returns the range of `len` positions from `head` on.
    #[must_use]
    #[inline]
    pub fn new(head: u32, len: u32) -> Self {
        Self { head, len }
    }

    /// Returns whether a packet before the fence still waits. After the positions wrap around, an old fence
    /// may be mistaken for a recent one. Packets are then held needlessly, for at most one full backlog.
    #[must_use]
    #[inline]
    pub fn waits(self, fence: u32) -> bool {
        fence.wrapping_sub(self.head).wrapping_sub(1) < self.len
    }

    /// Returns the number of packets that leave before the fence passes.
    #[must_use]
    #[inline]
    pub fn distance(self, fence: u32) -> u32 {
        fence.wrapping_sub(self.head)
    }

    /// Returns the fence for a record made now, or 0 if the backlog is empty. Returns `None` if the positions
    /// have wrapped around to 0; no record may be made then.
    #[must_use]
    #[inline]
    pub fn fence(self) -> Option<u32> {
        match self.end() {
            _ if self.len == 0 => Some(0),
            0 => None,
            fence => Some(fence),
        }
    }

    /// Returns the position of the next packet that joins the backlog.
    #[must_use]
    #[inline]
    pub fn end(self) -> u32 {
        self.head.wrapping_add(self.len)
    }

    /// Returns whether a packet of a burst that found the end of the backlog at `end` may still wait.
    #[must_use]
    #[inline]
    pub fn may_have_burst(self, end: u32) -> bool {
        self.len > 0 && self.head.wrapping_sub(end).cast_signed() < Limits::BURST_PACKETS as i32
    }

    /// Returns whether the backlog is empty.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_may_wait_until_a_burst_has_left() {
        let end = Window::new(u32::MAX - 4, 3).end();
        let may_wait = |head: u32, len| Window::new(head, len).may_have_burst(end);
        assert!(may_wait(u32::MAX - 4, 10) && may_wait(end, 1) && may_wait(29, 1));
        assert!(!may_wait(30, 1) && !may_wait(u32::MAX - 4, 0));
    }

    #[test]
    fn fences_hold_while_what_stood_before_them_waits() {
        let window = Window::new(10, 3);
        let waits: Vec<u32> = (8..16).filter(|fence| window.waits(*fence)).collect();
        assert_eq!(waits, [11, 12, 13], "a fence beyond the end is an old one");
        assert_eq!(window.fence(), Some(13));
        assert_eq!(Window::new(10, 0).fence(), Some(0));
        assert!((0..99).all(|fence| !Window::new(10, 0).waits(fence)));
        let round = Window::new(u32::MAX - 1, 4);
        assert!(round.waits(u32::MAX) && round.waits(1) && round.waits(2) && !round.waits(3));
        assert_eq!(Window::new(u32::MAX - 1, 2).fence(), None);
    }
}
