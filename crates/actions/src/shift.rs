// SPDX-License-Identifier: Apache-2.0
//! What an entry shifts before the next table: the base of slices, or the bytes of the frame.

use crate::header_change::HeaderChange;
use flow::{Action, Edit, Instructions};

/// What an entry shifts, in ascending order. Each level includes those before it. The distance and the
/// position of a shift are constants of the entry, apart from the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shift {
    /// Nothing.
    #[default]
    Nothing,
    /// The base.
    Moves,
    /// Bytes of the frame, which are inserted or deleted.
    Resizes,
}

impl Shift {
    /// All levels, the highest first.
    pub const DESCENDING: [Self; 3] = [Self::Resizes, Self::Moves, Self::Nothing];

    /// Returns what an entry shifts before the next table. Returns [`Self::Nothing`] also if the entry
    /// changes more than MAC addresses besides.
    #[must_use]
    pub fn of(instructions: &Instructions) -> Self {
        let besides = instructions.apply.iter().filter(|action| shift_by(action) == Self::Nothing);
        if instructions.meter.is_some()
            || besides.map(HeaderChange::by_action).max() > Some(HeaderChange::Macs)
        {
            return Self::Nothing;
        }
        instructions.apply.iter().map(shift_by).max().unwrap_or_default()
    }
}

fn shift_by(action: &Action) -> Shift {
    match action {
        Action::Edit(Edit::MoveBase(_)) => Shift::Moves,
        Action::Edit(Edit::AddField { .. } | Edit::DeleteField(_) | Edit::CutFront { .. }) => Shift::Resizes,
        _ => Shift::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{BitRange, CutOrigin, Field, MeterId, PortNo};

    #[test]
    fn entries_that_change_other_headers_shift_nothing() {
        let of = |apply: Vec<Action>| Shift::of(&Instructions::apply(apply));
        let base: Action = Edit::MoveBase(4).into();
        let delete: Action = Edit::DeleteField(BitRange { offset_bits: 0, length_bits: 8 }).into();
        assert_eq!((of(vec![]), of(vec![base.clone()])), (Shift::Nothing, Shift::Moves));
        assert_eq!(of(vec![base.clone(), delete.clone()]), Shift::Resizes);
        let cut = Edit::CutFront { origin: CutOrigin::Base, bytes: 0 };
        assert_eq!(of(vec![cut.into()]), Shift::Resizes);
        let mac = Action::set(Field::EthSrc, 1);
        assert_eq!(of(vec![mac, base.clone(), Action::output(PortNo(2))]), Shift::Moves);
        for other in [Action::DecNwTtl, Action::PopVlan, Action::set(Field::UdpDst, 1)] {
            assert_eq!(of(vec![base.clone(), other.clone(), delete.clone()]), Shift::Nothing, "{other:?}");
        }
        let metered = Instructions { meter: Some(MeterId(1)), ..Instructions::apply(vec![base]) };
        assert_eq!(Shift::of(&metered), Shift::Nothing);
    }
}
