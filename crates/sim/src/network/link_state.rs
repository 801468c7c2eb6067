// SPDX-License-Identifier: Apache-2.0
//! State of links: frames in flight, queued frames, and losses caused by interruptions.

use crate::network::spec::NetworkLink;
use flow::Nanos;
use std::collections::VecDeque;

/// Total length of preamble, FCS and inter-frame gap, in bytes.
const AROUND_BYTES: u64 = 24;
/// Minimum length of a frame without its FCS on the wire, in bytes.
const LEAST_BYTES: u64 = 60;

/// Loss reason: the link is down.
pub(super) const LINK_DOWN: &str = "link_down";
/// Loss reason: the queue of the link is full.
pub(super) const QUEUE_FULL: &str = "link_queue_full";

/// One direction of a link.
#[derive(Debug, Default)]
struct Direction {
    /// Time at which the transmission of all accepted frames ends.
    free_ns: Nanos,
    /// Times at which the transmission of the queued frames starts.
    waiting: VecDeque<Nanos>,
}

/// A link during the simulation.
#[derive(Debug)]
pub(super) struct LinkState {
    pub link: NetworkLink,
    /// Whether the link itself works. The switches at its ends may have failed.
    pub works: bool,
    /// Whether there is a carrier, which requires that the link and both ends work.
    pub up: bool,
    /// Times of interruptions. Frames that are in flight at an interruption are lost.
    pub cuts: Vec<Nanos>,
    directions: [Direction; 2],
}

impl LinkState {
    pub fn new(link: NetworkLink) -> Self {
        Self { link, works: true, up: true, cuts: Vec::new(), directions: Default::default() }
    }

    /// Accepts a frame from one end. Returns the arrival time at the other end, or the reason of the loss.
    pub fn send(&mut self, now: Nanos, from: usize, bytes: usize) -> Result<Nanos, &'static str> {
        if !self.up {
            return Err(LINK_DOWN);
        }
        let Some(rate_bps) = self.link.rate_bps else { return Ok(now + self.link.delay_ns) };
        let direction = &mut self.directions[from];
        while direction.waiting.front().is_some_and(|start| *start <= now) {
            direction.waiting.pop_front();
        }
        let start_ns = direction.free_ns.max(now);
        if start_ns > now {
            if direction.waiting.len() >= self.link.queue_frames {
                return Err(QUEUE_FULL);
            }
            direction.waiting.push_back(start_ns);
        }
        let bits = 8 * ((bytes as u64).max(LEAST_BYTES) + AROUND_BYTES);
        direction.free_ns = start_ns + Nanos((bits * 1_000_000_000).div_ceil(rate_bps.max(1)));
        Ok(direction.free_ns + self.link.delay_ns)
    }

    /// Sets the carrier state. Returns true if it changed.
    pub fn set_up(&mut self, now: Nanos, up: bool) -> bool {
        if self.up == up {
            return false;
        }
        self.up = up;
        if !up {
            self.cuts.push(now);
            self.directions = Default::default();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::spec::End;
    use flow::PortNo;

    fn link_state(rate_bps: Option<u64>) -> LinkState {
        let ends = [End { node: 0, port: PortNo(1) }, End { node: 1, port: PortNo(1) }];
        LinkState::new(NetworkLink { ends, delay_ns: Nanos(100), rate_bps, queue_frames: 2 })
    }

    #[test]
    fn frames_wait_for_earlier_frames_of_their_direction() {
        // 100 bytes and 24 bytes of overhead are 992 bits.
        let mut link_state = link_state(Some(1_000_000_000));
        assert_eq!(link_state.send(Nanos(0), 0, 100), Ok(Nanos(992 + 100)));
        assert_eq!(link_state.send(Nanos(0), 0, 100), Ok(Nanos(2 * 992 + 100)));
        assert_eq!(link_state.send(Nanos(0), 1, 100), Ok(Nanos(992 + 100)));
        assert_eq!(link_state.send(Nanos(0), 0, 10), Ok(Nanos(2 * 992 + 672 + 100)));
        assert_eq!(link_state.send(Nanos(991), 0, 100), Err(QUEUE_FULL));
        assert_eq!(link_state.send(Nanos(992), 0, 100), Ok(Nanos(3 * 992 + 672 + 100)));
        assert_eq!(link_state.send(Nanos(1_000_000), 0, 100), Ok(Nanos(1_000_000 + 992 + 100)));
    }

    #[test]
    fn without_a_rate_frames_do_not_wait() {
        let mut link_state = link_state(None);
        assert_eq!(
            [link_state.send(Nanos(5), 0, 100), link_state.send(Nanos(5), 0, 9_000)],
            [Ok(Nanos(105)), Ok(Nanos(105))]
        );
    }

    #[test]
    fn an_interruption_empties_the_link() {
        let mut link_state = link_state(Some(1_000_000));
        assert!((0..3).all(|_| link_state.send(Nanos(0), 0, 100).is_ok()));
        assert!(link_state.set_up(Nanos(7), false) && !link_state.set_up(Nanos(8), false));
        assert_eq!(
            (link_state.send(Nanos(9), 0, 100), &link_state.cuts[..]),
            (Err(LINK_DOWN), &[Nanos(7)][..])
        );
        assert!(link_state.set_up(Nanos(10), true));
        assert_eq!(link_state.send(Nanos(10), 0, 100), Ok(Nanos(10 + 992_000 + 100)));
    }
}
