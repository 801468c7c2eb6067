// SPDX-License-Identifier: Apache-2.0
//! Bypass of the express path: while hardly any packet has a record, keys cost more than they save. The path
//! then looks up a sample of the bursts only, until records are hit again.

/// Number of packets after which the share of hits is judged.
const WINDOW_PACKETS: u32 = 16_384;

/// Number of packets after which the share of hits is judged while the path is bypassed. These are packets of
/// the sample.
const SAMPLE_PACKETS: u32 = 1_024;

/// The path is bypassed below one hit in this many packets.
const PACKETS_PER_HIT: u32 = 8;

/// One burst in this many is looked up while the path is bypassed.
const SAMPLED_BURSTS: u32 = 32;

/// Share of hits, and whether the path is bypassed.
#[derive(Debug, Default)]
pub(super) struct Bypass {
    is_on: bool,
    packets: u32,
    hits: u32,
    bursts: u32,
}

impl Bypass {
    /// Returns whether the next burst is looked up.
    #[inline]
    pub fn asks(&mut self) -> bool {
        if !self.is_on {
            return true;
        }
        self.bursts = (self.bursts + 1) % SAMPLED_BURSTS;
        self.bursts == 0
    }

    /// Notes the result of a burst that was looked up.
    #[inline]
    pub fn saw(&mut self, packets: usize, hits: usize) {
        self.packets += packets as u32;
        self.hits += hits as u32;
        let window = if self.is_on { SAMPLE_PACKETS } else { WINDOW_PACKETS };
        if self.packets >= window {
            self.is_on = self.hits < self.packets / PACKETS_PER_HIT;
            (self.packets, self.hits) = (0, 0);
        }
    }

    /// Returns whether the path is bypassed.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers 10,000 bursts of 32 packets with these hits. Returns the number of bursts that were asked.
    fn asked(bypass: &mut Bypass, hits: usize) -> usize {
        (0..10_000)
            .filter(|_| {
                let asks = bypass.asks();
                if asks {
                    bypass.saw(32, hits);
                }
                asks
            })
            .count()
    }

    #[test]
    fn a_path_without_hits_is_sampled_until_it_has_hits() {
        let mut bypass = Bypass::default();
        assert_eq!((asked(&mut bypass, 5), bypass.is_on()), (10_000, false));
        let few = asked(&mut bypass, 3);
        assert!(bypass.is_on() && few < 1_100, "{few}");
        assert!((310..=315).contains(&asked(&mut bypass, 0)));
        let many = asked(&mut bypass, 32);
        assert!(!bypass.is_on() && many > 8_500, "{many}");
    }
}
