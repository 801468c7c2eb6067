// SPDX-License-Identifier: Apache-2.0
//! Order in which the flows of a class send packets.

use fastrand::Rng;

/// Method that selects the flow of each packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Uniformly random flows.
    Uniform,
    /// Round robin. A flow repeats only after all other flows have sent a packet.
    InTurn,
    /// Order of the class's capture, repeated. A class without a capture uses round robin.
    AsCaptured,
    /// Zipf distribution with exponent s. The n-th flow sends in proportion to 1 / n^s.
    Zipf(f64),
}

/// Draws flows by their popularity.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Cumulative shares of the flows. The list is empty for round robin.
    sums: Vec<f64>,
    flows: usize,
    next: usize,
}

impl Draw {
    /// Creates a generator for `flows` flows; 0 counts as 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // The number of flows is far below 2^52.
    pub fn new(flows: usize, popularity: Popularity) -> Self {
        let flows = flows.max(1);
        let mut sum = 0.0;
        let share = |place: usize| match popularity {
            Popularity::Uniform | Popularity::InTurn | Popularity::AsCaptured => 1.0,
            Popularity::Zipf(s) => (place as f64).powf(-s),
        };
        let in_turn = matches!(popularity, Popularity::InTurn | Popularity::AsCaptured);
        let places = 1..=if in_turn { 0 } else { flows };
        let sums = places.map(|place| {
            sum += share(place);
            sum
        });
        Self { sums: sums.collect(), flows, next: 0 }
    }

    /// Returns the index of the next flow.
    pub fn flow(&mut self, rng: &mut Rng) -> usize {
        let Some(sum) = self.sums.last() else {
            let flow = self.next;
            self.next = (flow + 1) % self.flows;
            return flow;
        };
        let at = rng.f64() * sum;
        self.sums.partition_point(|sum| *sum <= at).min(self.flows - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_shares_fall_with_the_rank() {
        let mut draw = Draw::new(1_000, Popularity::Zipf(1.0));
        let mut rng = Rng::with_seed(1);
        let mut counts = vec![0_u32; 1_000];
        (0..200_000).for_each(|_| counts[draw.flow(&mut rng)] += 1);
        // The first flow has a share of 1 / 7.485. The tenth flow has a tenth of this share.
        assert!((25_500..28_000).contains(&counts[0]), "{}", counts[0]);
        assert!((2_400..2_950).contains(&counts[9]), "{}", counts[9]);
        let mut uniform = Draw::new(10, Popularity::Uniform);
        let mut counts = [0_u32; 10];
        (0..10_000).for_each(|_| counts[uniform.flow(&mut rng)] += 1);
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
        let mut turns = Draw::new(3, Popularity::InTurn);
        assert_eq!([0; 4].map(|_| turns.flow(&mut rng)), [0, 1, 2, 0]);
    }
}
