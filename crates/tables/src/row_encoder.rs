// SPDX-License-Identifier: Apache-2.0
//! Control side: encodes the matches of many rules into rows of values and masks.

use engines::KeyPlan;
use flow::Match;

/// Encodes matches into rows of a plan, faster than [`KeyPlan::encode`] if most matches examine the same bits
/// as the match before them.
#[derive(Debug)]
pub(crate) struct RowEncoder<'p, 'm> {
    plan: &'p KeyPlan,
    /// A match with the mask and the steps below.
    last: Option<&'m Match>,
    /// Row of the masks.
    mask: Vec<u64>,
    steps: Vec<Step>,
}

/// Bits of a field's value that are copied to a word of the key.
#[derive(Debug)]
struct Step {
    /// Index of the field among those of the match.
    nth: usize,
    down: u16,
    keep: u64,
    word: usize,
    shift: u8,
}

impl<'p, 'm> RowEncoder<'p, 'm> {
    /// Creates an encoder for rows of this plan.
    pub fn new(plan: &'p KeyPlan) -> Self {
        Self { plan, last: None, mask: Vec::new(), steps: Vec::new() }
    }

    /// Appends the row of `matching` to `values` and `masks`. The plan must cover its fields.
    pub fn encode(&mut self, matching: &'m Match, values: &mut Vec<u64>, masks: &mut Vec<u64>) {
        let Self { plan, last, mask, steps } = self;
        if !last.is_some_and(|last| matching.has_shape_of(last)) {
            *last = Some(matching);
            mask.clear();
            plan.encode(matching, &mut Vec::new(), mask);
            steps.clear();
            for (nth, c) in matching.fields().enumerate() {
                let length = c.field.location().length_bits;
                steps.extend(plan.parts().iter().filter(|part| part.field == c.field).map(|part| Step {
                    nth,
                    down: length - part.from_bit - u16::from(part.bits),
                    keep: u64::MAX >> (64 - part.bits),
                    word: usize::from(part.word),
                    shift: part.shift,
                }));
            }
        }
        let from = values.len();
        values.resize(from + plan.words(), 0);
        masks.extend_from_slice(mask);
        let row = &mut values[from..];
        if plan.has_presence() {
            // The value of a presence bit is 1.
            row[0] = mask[0];
        }
        let mut steps = steps.iter().peekable();
        for (nth, c) in matching.fields().enumerate() {
            while let Some(step) = steps.next_if(|step| step.nth == nth) {
                row[step.word] |= ((c.value >> step.down) as u64 & step.keep) << step.shift;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{Field, FieldMatch, Slice, SliceBase};

    #[test]
    fn rows_are_equal_whatever_was_encoded_before() {
        let mut rng = fastrand::Rng::with_seed(1);
        let slice = |from| Field::Slice(Slice::new(SliceBase::L3, from, 70).unwrap());
        let fields = [Field::InPort, Field::EthDst, Field::Ipv6Dst, Field::EthType, slice(3), slice(90)];
        let plan = KeyPlan::new(&fields).unwrap();
        let plain = KeyPlan::new(&[Field::InPort, Field::EthDst, Field::EthSrc]).unwrap();
        for plan in [&plan, &plain] {
            let condition = |rng: &mut fastrand::Rng, field: Field| {
                let mask = if rng.bool() || !field.maskable() { u128::MAX } else { u128::MAX << 9 };
                let mask = mask & field.full_mask();
                let value = if field == Field::EthType { 0x86dd } else { rng.u128(..) & mask };
                FieldMatch { field, value, mask }
            };
            let matches: Vec<Match> = std::iter::repeat_with(|| {
                let mut chosen: Vec<Field> = plan.fields().to_vec();
                chosen.retain(|_| rng.u8(..4) > 0);
                let conditions: Vec<FieldMatch> =
                    chosen.into_iter().map(|f| condition(&mut rng, f)).collect();
                Match::new(conditions).ok()
            })
            .flatten()
            .take(2_000)
            .collect();
            let (mut ours, mut right) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
            let mut encoder = RowEncoder::new(plan);
            for matching in &matches {
                encoder.encode(matching, &mut ours.0, &mut ours.1);
                plan.encode(matching, &mut right.0, &mut right.1);
            }
            assert_eq!(ours, right);
        }
    }
}
