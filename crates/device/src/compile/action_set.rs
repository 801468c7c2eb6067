// SPDX-License-Identifier: Apache-2.0
//! Order of an action set (OpenFlow 1.3.5, section 5.10).

use std::mem::discriminant;

use flow::{Action, Field};

/// Returns the actions of a write-actions instruction as the action set executes them: one of each kind, one
/// set-field for each field.
#[must_use]
pub fn in_order(written: &[Action]) -> Vec<Action> {
    let mut set: Vec<Action> = Vec::new();
    for new in written {
        set.retain(|old| match (old, new) {
            (Action::SetField(old), Action::SetField(new)) => old.field != new.field,
            _ => discriminant(old) != discriminant(new),
        });
        set.push(new.clone());
    }
    set.sort_by_key(place);
    set
}

/// Position of an action. The device refuses the kinds that are not listed.
fn place(action: &Action) -> (u8, Option<Field>) {
    match action {
        Action::PopVlan => (1, None),
        Action::PushVlan(_) => (2, None),
        Action::DecNwTtl => (3, None),
        Action::SetNwTtl(_) => (4, None),
        Action::SetField(set) => (5, Some(set.field)),
        Action::SetQueue(_) => (6, None),
        Action::Output { .. } => (7, None),
        _ => (0, None),
    }
}
