// SPDX-License-Identifier: Apache-2.0
//! Tests each rule of the crate's documentation on frames, byte by byte.

mod choice;
mod edits;
mod fields;
mod frames;
mod headers;
mod meters;
mod outputs;
mod set_field;
mod tables;
mod tags;
mod walk;

use crate::{Processed, Reference};
use flow::action::SetField;
use flow::{
    Action, DropReason, EntryChange, EntryFlags, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match,
    Operation, Outcome, PortNo, PortState, TableId,
};
use std::sync::Arc;

pub(super) const PRIORITY: u16 = 10;

/// Returns an entry with these instructions.
pub(super) fn entry(id: u32, table: TableId, matching: Match, instructions: Instructions) -> FlowEntry {
    FlowEntry {
        id: EntryId(id),
        table,
        priority: PRIORITY,
        matching,
        instructions: Arc::new(instructions),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: EntryFlags::default(),
        low_latency: false,
    }
}

pub(super) fn on(field: Field, value: u128) -> Match {
    Match::unchecked_prerequisites([FieldMatch::exact(field, value)]).unwrap()
}

pub(super) fn add(reference: &mut Reference, entry: FlowEntry) {
    reference.apply(&Operation::Entries(vec![EntryChange::Add(Arc::new(entry))])).unwrap();
}

/// Returns a data plane with ports 1 to 4 and no entries.
pub(super) fn four_ports() -> Reference {
    let mut reference = Reference::new();
    for number in 1..=4 {
        reference.apply(&Operation::Port(PortState::up(PortNo(number)))).unwrap();
    }
    reference
}

/// Returns a data plane with four ports and one entry that matches every packet.
pub(super) fn with_instructions(instructions: Instructions) -> Reference {
    let mut reference = four_ports();
    add(&mut reference, entry(7, TableId(0), Match::any(), instructions));
    reference
}

/// Processes a frame from port 1 with a single entry that matches every packet.
pub(super) fn run(instructions: Instructions, frame: &[u8]) -> Processed {
    with_instructions(instructions).process(PortNo(1), frame)
}

/// Returns the frame after these actions, applied in order.
pub(super) fn after(actions: &[Action], frame: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut applied = actions.to_vec();
    applied.push(Action::output(PortNo(2)));
    let mut done = run(Instructions::apply(applied), frame);
    match done.outcome {
        Outcome::Dropped(reason) => Err(reason),
        _ => {
            assert!(done.copy_drops.is_empty(), "{:?}", done.copy_drops);
            Ok(done.sent.remove(0).bytes)
        }
    }
}

/// Returns a masked set-field action.
pub(super) fn set_masked(field: Field, value: u128, mask: u128) -> Action {
    Action::SetField(SetField { field, value, mask })
}
