// SPDX-License-Identifier: Apache-2.0
//! The list of actions that a translation builds.

use super::output::SentPart;
use crate::refusal::PofRefusal;
use flow::action::SetField;
use flow::{Action, Edit, Field, MeterId, Next, Slice};
use pof::PofErrorCode;
use pof::error;
use pof::value::PofCounterId;

/// Actions translated so far, in order.
#[derive(Debug, Default)]
pub struct ActionList {
    pub actions: Vec<Action>,
    pub meter: Option<MeterId>,
    pub next: Option<Next>,
    /// Counters of the action COUNTER.
    pub counters: Vec<PofCounterId>,
    /// Whether a copy of the packet may have left already.
    pub sends: bool,
    /// What the last OUTPUT sends, or `None` if it sends the whole packet.
    pub part: Option<SentPart>,
    /// Whether the packet ends here or continues in another table, so what follows is unreachable.
    pub ended: bool,
}

impl ActionList {
    /// Adds an edit after checking its bounds.
    pub fn edit(&mut self, edit: Edit, code: PofErrorCode) -> Result<(), PofRefusal> {
        edit.check().map_err(|problem| PofRefusal::new(code, problem.to_string()))?;
        self.actions.push(edit.into());
        Ok(())
    }

    /// Adds a write of some bits of a slice. An empty mask writes nothing.
    pub fn set(
        &mut self,
        slice: Slice,
        value: u128,
        mask: u128,
        code: PofErrorCode,
    ) -> Result<(), PofRefusal> {
        let field = Field::Slice(slice);
        if !field.settable() {
            let problem = format!("{field} cannot be written; the ingress port is read-only");
            return Err(PofRefusal::new(code, problem));
        }
        if mask != 0 {
            self.actions.push(Action::SetField(SetField { field, value, mask }));
        }
        Ok(())
    }

    /// Adds the instruction METER, which limits the packet before all actions.
    pub fn meter(&mut self, meter: MeterId) -> Result<(), PofRefusal> {
        let problem = if self.meter.is_some() {
            "an entry has at most one METER; remove the second"
        } else if self.sends || !self.counters.is_empty() {
            "METER follows an OUTPUT, GROUP, PACKET_IN or COUNTER, but it limits the packet before all \
             actions; place METER first"
        } else {
            self.meter = Some(meter);
            return Ok(());
        };
        Err(PofRefusal::new(error::INSTRUCTION_UNSUPPORTED, problem))
    }
}
