// SPDX-License-Identifier: Apache-2.0
//! Control side: statistics of a table's rules, from which the key layout and the engine are chosen.

use flow::{Field, Match};
use std::collections::{BTreeMap, HashMap};

/// Fields that a rule examines, with their masks.
pub type Signature = Box<[(Field, u128)]>;

/// Statistics of a table's rules.
#[derive(Debug, Default)]
pub struct Shape {
    /// Number of rules of each signature, apart from `run`.
    signatures: HashMap<Signature, usize>,
    /// A rule of those that were added last, whose signature is in `signatures`, and their number. Most rules
    /// have the signature of the rule before them.
    run: Option<(Match, usize)>,
    keyed: BTreeMap<u16, usize>,
    catch_alls: BTreeMap<u16, usize>,
    len: usize,
}

/// Returns the signature of a rule.
#[must_use]
pub fn signature(matching: &Match) -> Signature {
    matching.fields().map(|c| (c.field, c.mask)).collect()
}

fn count<K: Ord>(map: &mut BTreeMap<K, usize>, key: K) {
    *map.entry(key).or_default() += 1;
}

fn uncount<K: Ord>(map: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(n) = map.get_mut(key) {
        *n -= 1;
        if *n == 0 {
            map.remove(key);
        }
    }
}

impl Shape {
    /// Adds a rule to the statistics.
    pub fn add(&mut self, matching: &Match, priority: u16) {
        if matching.index().is_some() {
            return;
        }
        self.len += 1;
        if matching.is_any() {
            count(&mut self.catch_alls, priority);
        } else {
            count(&mut self.keyed, priority);
            self.count_signature(matching);
        }
    }

    fn count_signature(&mut self, matching: &Match) {
        if let Some((last, rules)) = &mut self.run
            && matching.has_shape_of(last)
        {
            *rules += 1;
            return;
        }
        self.end_run();
        self.signatures.entry(signature(matching)).or_default();
        self.run = Some((matching.clone(), 1));
    }

    fn end_run(&mut self) {
        if let Some((last, rules)) = self.run.take() {
            *self.signatures.entry(signature(&last)).or_default() += rules;
        }
    }

    /// Removes a rule from the statistics. Returns whether it was the last rule with its signature.
    pub fn remove(&mut self, matching: &Match, priority: u16) -> bool {
        if matching.index().is_some() {
            return false;
        }
        self.len = self.len.saturating_sub(1);
        if matching.is_any() {
            uncount(&mut self.catch_alls, &priority);
            return false;
        }
        uncount(&mut self.keyed, &priority);
        self.end_run();
        let signature = signature(matching);
        let Some(n) = self.signatures.get_mut(&signature) else { return false };
        *n -= 1;
        let is_last = *n == 0;
        if is_last {
            self.signatures.remove(&signature);
        }
        is_last
    }

    /// Returns the examined fields, each once.
    #[must_use]
    pub fn fields(&self) -> Vec<Field> {
        let mut fields: Vec<Field> =
            self.signatures.keys().flat_map(|s| s.iter().map(|(field, _)| *field)).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Returns each examined field with the bits that any rule examines.
    #[must_use]
    pub fn examined(&self) -> Vec<(Field, u128)> {
        let mut masks: BTreeMap<Field, u128> = BTreeMap::new();
        for (field, mask) in self.signatures.keys().flat_map(|s| s.iter()) {
            *masks.entry(*field).or_default() |= mask;
        }
        masks.into_iter().collect()
    }

    /// Returns whether all rules share one mask, except rules that match everything and have a lower priority
    /// than all others.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.signatures.len() == 1
            && match (self.catch_alls.last_key_value(), self.keyed.first_key_value()) {
                (Some((any, _)), Some((keyed, _))) => any < keyed,
                _ => true,
            }
    }

    /// Returns the different signatures, except that of rules that match everything.
    pub fn signatures(&self) -> impl Iterator<Item = &Signature> + Clone {
        self.signatures.keys()
    }

    /// Returns the number of rules, except rules of linear tables.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::FieldMatch;

    #[test]
    fn exact_until_a_second_mask_or_a_catch_all_above() {
        let port = |p| Match::new([FieldMatch::exact(Field::InPort, p)]).unwrap();
        let mut shape = Shape::default();
        shape.add(&port(1), 10);
        shape.add(&port(2), 20);
        shape.add(&Match::any(), 0);
        assert!(shape.is_exact());
        shape.add(&Match::any(), 10);
        assert!(!shape.is_exact(), "a catch-all may win against a rule of equal priority");
        assert!(!shape.remove(&Match::any(), 10));
        let mac = Match::new([FieldMatch::exact(Field::EthDst, 1)]).unwrap();
        shape.add(&mac, 5);
        assert!(!shape.is_exact());
        assert_eq!(shape.fields(), [Field::InPort, Field::EthDst]);
        assert!(shape.remove(&mac, 5) && !shape.remove(&port(2), 20));
        assert!(shape.is_exact());
        assert!(shape.signatures().eq([&signature(&port(7))]));
        assert_eq!((shape.fields().len(), shape.len()), (1, 2));
    }
}
