// SPDX-License-Identifier: Apache-2.0
//! Choice of the engine that serves a table, made each time the table's rules are compiled (docs/adr/0011).
//!
//! 1. All rules have the same mask, except rules that match everything and have the lowest priority: `exact`.
//! 2. All rules match prefixes of one field and have the same masks in all other fields, except rules that
//!    match everything: `lpm`, if there are more than [`SCAN_PREFIXES_MAX`] rules. Priorities need not follow
//!    the prefix lengths.
//! 3. More than [`SCAN_MAX`] rules, of which at least one examines a field: `mask`.
//! 4. All others: `scan`. Comparing this few rules one by one costs less than a few probes. If all rules
//!    match everything, keys have no words, and only `scan` takes such keys.

use crate::shape::{Shape, Signature};
use flow::{Field, FieldMatch};

/// Maximum number of prefixes of one field that are compared one by one.
pub const SCAN_PREFIXES_MAX: usize = 16;

/// Maximum number of rules with arbitrary masks that are compared one by one.
pub const SCAN_MAX: usize = 96;

/// Engine for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Compares the rules one by one.
    Scan,
    /// Hashes the rules under their only mask.
    Exact,
    /// Searches prefixes of this field.
    Lpm(Field),
    /// Searches rules with several masks.
    Mask,
}

/// Chooses the engine for rules of this shape.
#[must_use]
pub fn choose(shape: &Shape) -> Choice {
    if shape.is_exact() {
        return Choice::Exact;
    }
    if shape.len() <= SCAN_PREFIXES_MAX || shape.signatures().next().is_none() {
        return Choice::Scan;
    }
    match prefix_field(shape.signatures()) {
        Some(field) => Choice::Lpm(field),
        None if shape.len() <= SCAN_MAX => Choice::Scan,
        None => Choice::Mask,
    }
}

/// Returns the field that all rules match by a prefix, if their signatures are equal in all other fields.
fn prefix_field<'s>(mut signatures: impl Iterator<Item = &'s Signature> + Clone) -> Option<Field> {
    let first = signatures.next()?;
    // Signatures of such rules differ only in the field of the prefixes.
    let second = signatures.clone().next()?;
    let differing = |of: &Signature, from: &Signature| of.iter().find(|c| !from.contains(c)).map(|c| c.0);
    let field = differing(first, second).or_else(|| differing(second, first))?;
    let rest = |of: &'s Signature| of.iter().filter(move |c| c.0 != field);
    let suits =
        |of: &'s Signature| rest(of).eq(rest(first)) && of.iter().all(|c| c.0 != field || is_prefix(*c));
    (suits(first) && signatures.all(suits)).then_some(field)
}

fn is_prefix((field, mask): (Field, u128)) -> bool {
    FieldMatch { field, value: 0, mask }.prefix_len().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Match;

    fn route(length: u32) -> Match {
        let mask = u128::from(u32::MAX) << (32 - length) & u128::from(u32::MAX);
        let route = FieldMatch { field: Field::Ipv4Dst, value: 0, mask };
        Match::new([FieldMatch::exact(Field::EthType, 0x800), route]).unwrap()
    }

    #[test]
    fn any_number_of_rules_that_match_everything_uses_scan() {
        let mut shape = Shape::default();
        for priority in 0..10_000 {
            shape.add(&Match::any(), priority);
            assert_eq!(choose(&shape), Choice::Scan, "{} rules", shape.len());
        }
        shape.add(&route(0), 1);
        assert_eq!(choose(&shape), Choice::Mask, "a match on a prefix of 0 bits still requires the header");
    }

    #[test]
    fn by_the_rules() {
        let mut shape = Shape::default();
        (1..=15).for_each(|length| shape.add(&route(length), 5));
        shape.add(&Match::any(), 5);
        assert_eq!(choose(&shape), Choice::Scan);
        (16..=100).for_each(|length| shape.add(&route(length % 32), 5));
        (0..20).for_each(|length| shape.add(&route(length), 7));
        assert_eq!(
            choose(&shape),
            Choice::Lpm(Field::Ipv4Dst),
            "routes with default routes and any priorities"
        );
        let vlan = Match::new([FieldMatch::exact(Field::VlanVid, 0x1001)]).unwrap();
        shape.add(&vlan, 1);
        assert_eq!(choose(&shape), Choice::Mask);
        shape.remove(&vlan, 1);
        let source = FieldMatch { field: Field::Ipv4Src, value: 0, mask: 0xff00_0000 };
        let both = Match::new(route(8).fields().chain([source])).unwrap();
        shape.add(&both, 1);
        assert_eq!(choose(&shape), Choice::Mask, "prefixes of two fields");
        shape.remove(&both, 1);
        let hole = FieldMatch { field: Field::Ipv4Dst, value: 0, mask: 0xff00_ff00 };
        let hole = Match::new([FieldMatch::exact(Field::EthType, 0x800), hole]).unwrap();
        shape.add(&hole, 1);
        assert_eq!(choose(&shape), Choice::Mask, "the mask is not a prefix");
        shape.remove(&hole, 1);
        assert_eq!(choose(&shape), Choice::Lpm(Field::Ipv4Dst));
        (1..=15).for_each(|length| {
            shape.remove(&route(length), 5);
        });
        shape.add(&vlan, 1);
        assert_eq!(choose(&shape), Choice::Mask);
        (90..=100).for_each(|length| {
            shape.remove(&route(length % 32), 5);
        });
        assert_eq!(choose(&shape), Choice::Scan, "{} rules", shape.len());
        shape.remove(&vlan, 1);
        (16..90).for_each(|length| {
            shape.remove(&route(length % 32), 5);
        });
        (0..40).for_each(|_| shape.add(&route(32), 5));
        (0..20).for_each(|length| {
            shape.remove(&route(length), 7);
        });
        shape.remove(&Match::any(), 5);
        assert_eq!(choose(&shape), Choice::Exact);
    }

    #[test]
    fn up_to_16_prefixes_and_96_rules_of_any_masks_use_scan() {
        let mut prefixes = Shape::default();
        for rules in 1..=20 {
            prefixes.add(&route(rules), 5);
            let right = match rules {
                1 => Choice::Exact,
                ..=16 => Choice::Scan,
                _ => Choice::Lpm(Field::Ipv4Dst),
            };
            assert_eq!(choose(&prefixes), right, "{rules} prefixes");
        }
        let mut any = Shape::default();
        for rules in 1..=100_u32 {
            let field = [Field::InPort, Field::EthDst, Field::Metadata][rules as usize % 3];
            any.add(&Match::new([FieldMatch::exact(field, rules.into())]).unwrap(), 5);
            let right = match rules {
                1 => Choice::Exact,
                ..=96 => Choice::Scan,
                _ => Choice::Mask,
            };
            assert_eq!(choose(&any), right, "{rules} rules");
        }
    }
}
