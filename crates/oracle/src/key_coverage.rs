// SPDX-License-Identifier: Apache-2.0
//! Coverage of cases that check keys: how the compared pairs of packets differ.

use std::ops::AddAssign;

/// Coverage of one or several cases that check keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCoverage {
    /// Plans whose keys were compared.
    pub plans: usize,
    /// Plans whose keys need a record of two cache lines.
    pub two_lines: usize,
    /// Plans whose keys are too long for a record, so that no pairs are compared.
    pub too_long: usize,
    /// Compared pairs of packets.
    pub pairs: usize,
    /// Pairs that are equal in all examined bits.
    pub equal: usize,
    /// Pairs that are equal in all examined bits, but differ in their headers or in header offsets.
    pub unlike: usize,
    /// Pairs that differ in nothing but the ingress port.
    pub by_port: usize,
    /// Pairs that differ in the presence of an examined field.
    pub by_presence: usize,
    /// Pairs of one port that differ in exactly one examined bit.
    pub by_one_bit: usize,
    /// Packets that were compared with a rule.
    pub rules: usize,
    /// Packets that matched the rule.
    pub rules_matched: usize,
    /// Packets that did not match the rule, although their keys do not rule out a match.
    pub rules_unclear: usize,
}

impl AddAssign for KeyCoverage {
    fn add_assign(&mut self, other: Self) {
        self.plans += other.plans;
        self.two_lines += other.two_lines;
        self.too_long += other.too_long;
        self.pairs += other.pairs;
        self.equal += other.equal;
        self.unlike += other.unlike;
        self.by_port += other.by_port;
        self.by_presence += other.by_presence;
        self.by_one_bit += other.by_one_bit;
        self.rules += other.rules;
        self.rules_matched += other.rules_matched;
        self.rules_unclear += other.rules_unclear;
    }
}
