// SPDX-License-Identifier: Apache-2.0
//! Lists of edits by which entries shift packets, each with a number. Many entries share few lists.

use actions::Shift;
use flow::{Action, Edit, Instructions};

/// Number of a list. Number 0 is the empty list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EditListId(u16);

/// The lists in use so far. Lists are never removed.
#[derive(Debug, Default)]
pub(crate) struct EditLists {
    lists: Vec<(Shift, Vec<Edit>)>,
    /// Whether there were more lists than numbers.
    is_full: bool,
}

impl EditLists {
    /// Returns the number of the list by which an entry shifts packets before its next table.
    pub fn number(&mut self, instructions: &Instructions) -> EditListId {
        let shift = Shift::of(instructions);
        if shift == Shift::Nothing || instructions.next.is_none() {
            return EditListId::default();
        }
        let edits: Vec<Edit> = instructions.apply.iter().filter_map(shifting).collect();
        let known = self.lists.iter().position(|(_, list)| *list == edits);
        if let Some(number) = known.and_then(|at| u16::try_from(at + 1).ok()) {
            return EditListId(number);
        }
        if self.lists.len() >= LISTS_MAX {
            self.is_full = true;
            return EditListId::default();
        }
        self.lists.push((shift, edits));
        EditListId(self.lists.len() as u16)
    }

    /// Returns a list and its level.
    pub fn list(&self, number: EditListId) -> (Shift, &[Edit]) {
        let at = usize::from(number.0).checked_sub(1);
        let list = at.and_then(|at| self.lists.get(at));
        list.map_or((Shift::Nothing, &[]), |(shift, edits)| (*shift, edits))
    }

    /// Returns whether the lists of all entries have a number.
    pub fn is_complete(&self) -> bool {
        !self.is_full
    }
}

/// Maximum number of lists. With more, paths on which entries shift packets have no record.
const LISTS_MAX: usize = 1_024;

/// Returns an action's edit, if it shifts packets. The value of inserted bytes does not matter.
fn shifting(action: &Action) -> Option<Edit> {
    match action {
        Action::Edit(Edit::AddField { range, .. }) => Some(Edit::AddField { range: *range, value: 0 }),
        Action::Edit(edit @ (Edit::MoveBase(_) | Edit::DeleteField(_) | Edit::CutFront { .. })) => {
            Some(*edit)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{BitRange, Field, Next, TableId};

    fn leading(apply: Vec<Action>) -> Instructions {
        Instructions { apply, next: Some(Next::Table(TableId(1))), ..Instructions::default() }
    }

    #[test]
    fn equal_lists_have_one_number() {
        let mut lists = EditLists::default();
        let range = BitRange { offset_bits: 0, length_bits: 8 };
        let add =
            |value| leading(vec![Edit::AddField { range, value }.into(), Action::set(Field::EthDst, value)]);
        let one = lists.number(&add(1));
        assert_eq!((lists.number(&add(2)), one == EditListId::default()), (one, false));
        assert_eq!(lists.list(one), (Shift::Resizes, &[Edit::AddField { range, value: 0 }][..]));
        let base = lists.number(&leading(vec![Edit::MoveBase(3).into()]));
        assert_eq!((base == one, lists.list(base).0), (false, Shift::Moves));
        for other in [leading(vec![]), Instructions { next: None, ..add(1) }] {
            assert_eq!(lists.number(&other), EditListId::default());
        }
        for bytes in 0..LISTS_MAX as i16 - 2 {
            assert!(lists.is_complete());
            lists.number(&leading(vec![Edit::MoveBase(100 + bytes).into()]));
        }
        assert!(lists.is_complete());
        assert_eq!(lists.number(&leading(vec![Edit::MoveBase(-9).into()])), EditListId::default());
        assert!(!lists.is_complete() && lists.number(&add(3)) == one);
    }
}
