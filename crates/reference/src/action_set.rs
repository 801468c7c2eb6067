// SPDX-License-Identifier: Apache-2.0
//! Action set of a packet. It has at most one action per type, and one set-field per field.

use flow::{Action, DropReason, Limits};
use std::mem::discriminant;

#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    actions: Vec<Action>,
}

impl ActionSet {
    pub fn clear(&mut self) {
        self.actions.clear();
    }

    /// Adds an action, replacing one of the same type.
    pub fn write(&mut self, new: &Action) -> Result<(), DropReason> {
        self.actions.retain(|old| match (old, new) {
            (Action::SetField(old), Action::SetField(new)) => old.field != new.field,
            _ => discriminant(old) != discriminant(new),
        });
        self.actions.push(new.clone());
        let fields = self.actions.iter().filter(|action| matches!(action, Action::SetField(_))).count();
        if fields > Limits::ACTION_SET_FIELDS { Err(DropReason::ActionSetFull) } else { Ok(()) }
    }

    /// Returns the actions in execution order. A group suppresses the output.
    pub fn in_order(&self) -> Vec<Action> {
        let mut actions = self.actions.clone();
        actions.sort_by_key(|action| (place(action), field(action)));
        if actions.iter().any(|action| matches!(action, Action::Group(_))) {
            actions.retain(|action| !matches!(action, Action::Output { .. }));
        }
        actions
    }

    /// Returns whether the set contains neither an output nor a group.
    pub fn ends_nowhere(&self) -> bool {
        !self.actions.iter().any(|action| matches!(action, Action::Output { .. } | Action::Group(_)))
    }
}

fn field(action: &Action) -> Option<flow::Field> {
    match action {
        Action::SetField(set) => Some(set.field),
        _ => None,
    }
}

/// Execution order of OpenFlow 1.3.5, section 5.10: copy inwards, pop, push, copy outwards, decrement, set,
/// queue, group or output. Stateless headers, which the standard does not list, are popped and pushed last.
fn place(action: &Action) -> usize {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan => 1,
        Action::PopPbb => 2,
        Action::PopMpls(_) => 3,
        Action::PopKey => 4,
        Action::PopTf => 5,
        // The switch refuses edits in action sets.
        Action::Edit(_) => 5,
        Action::PushMpls(_) => 6,
        Action::PushPbb(_) => 7,
        Action::PushVlan(_) => 8,
        Action::PushKey(_) => 9,
        Action::PushPolka(_) => 10,
        Action::PushTf(_) => 11,
        Action::PushTfWide(_) => 12,
        Action::CopyTtlOut => 13,
        Action::DecMplsTtl => 14,
        Action::DecNwTtl => 15,
        Action::SetMplsTtl(_) => 16,
        Action::SetNwTtl(_) => 17,
        Action::SetField(_) => 18,
        Action::SetQueue(_) => 19,
        Action::Group(_) => 20,
        Action::Output { .. } => 21,
    }
}
