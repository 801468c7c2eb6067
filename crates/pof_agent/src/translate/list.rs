// SPDX-License-Identifier: Apache-2.0
//! The list of actions that a translation builds.

use super::output::SentPart;
use crate::refusal::PofRefusal;
use flow::action::SetField;
use flow::{Action, Edit, Field, MeterId, Next, Slice, port_no};
use pof::PofErrorCode;
use pof::error;
use pof::message::packet::PofPacketInReason;
use pof::value::PofCounterId;

/// Actions translated so far, in order.
#[derive(Debug, Default)]
pub struct ActionList {
    pub actions: Vec<Action>,
    pub meter: Option<MeterId>,
    pub next: Option<Next>,
    /// Counters of the action COUNTER.
    pub counters: Vec<PofCounterId>,
    /// Reason of the actions PACKET_IN, or `None` if there are none.
    pub packet_in_reason: Option<PofPacketInReason>,
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

    /// Adds the action PACKET_IN. All those of an entry have one reason, which is kept with the entry.
    pub fn packet_in(&mut self, reason: u32) -> Result<(), PofRefusal> {
        let wrong = |problem: String| PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem);
        let Some(found) = reason_numbered(reason) else {
            let values = "0 (no match), 1 (action) or 2 (invalid TTL)";
            return Err(wrong(format!("PACKET_IN has reason {reason}; use {values}")));
        };
        if self.packet_in_reason.replace(found).is_some_and(|before| before != found) {
            return Err(wrong("the actions PACKET_IN of an entry have different reasons; use one".into()));
        }
        self.sends = true;
        self.actions.push(Action::output(port_no::CONTROLLER));
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

/// Returns the reason with this number.
fn reason_numbered(number: u32) -> Option<PofPacketInReason> {
    use PofPacketInReason::{Action, InvalidTtl, NoMatch};
    [NoMatch, Action, InvalidTtl].into_iter().find(|reason| *reason as u32 == number)
}
