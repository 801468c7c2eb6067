// SPDX-License-Identifier: Apache-2.0
//! Translation of POF into the flow model, without any state. Begin with [`entry`].
//!
//! An entry's instructions run in order, so they become one list of apply-actions. Every refusal has POF's
//! error code and a sentence.

mod action;
pub mod field;
mod instruction;
mod list;
mod matching;
mod output;
#[cfg(test)]
mod tests;

pub use output::port;

use crate::layout::TableLayout;
use crate::refusal::PofRefusal;
use flow::{Action, FlowMod, GroupId, Instructions, Match, TableId};
use list::ActionList;
use pof::PofDialect;
use pof::action::PofAction;
use pof::error;
use pof::message::packet::PofPacketInReason;
use pof::message::table::{LowLatencyFlag, PofFlowMod, PofTableType};
use pof::value::{PofCounterId, PofField};

/// First group number that stands for a counter. Controllers cannot use groups from here on.
pub const COUNTER_GROUPS: u32 = 0xff00_0000;
/// Highest number of a counter that the action COUNTER can have.
pub const ACTION_COUNTER_MAX: u32 = flow::validate::GROUP_MAX.0 - COUNTER_GROUPS;

/// Table to which an entry belongs, as its TABLE_MOD defined it.
#[derive(Clone, Copy, Debug)]
pub struct TableKey<'a> {
    /// Global number of the table.
    pub table: TableId,
    /// Type of the table.
    pub kind: PofTableType,
    /// Fields of the table.
    pub fields: &'a [PofField],
}

/// Result of the translation of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    /// Flow-mod that adds the entry.
    pub flow: FlowMod,
    /// Counters that actions of the entry count under.
    pub counters: Vec<PofCounterId>,
    /// Reason of the packet-ins of the entry.
    pub packet_in_reason: PofPacketInReason,
}

/// Translates the entry of a FLOW_MOD.
///
/// # Errors
/// Returns the first fault.
pub fn entry(
    m: &PofFlowMod,
    key: TableKey<'_>,
    layout: &TableLayout,
    dialect: PofDialect,
) -> Result<Translated, PofRefusal> {
    let matching = matching::matching(m, key)?;
    let mut list = ActionList::default();
    instruction::run(&m.instructions, &mut list, key.table, layout, dialect)?;
    let ActionList { actions, meter, next, counters, packet_in_reason, .. } = list;
    let flow = FlowMod {
        table: Some(key.table),
        priority: priority(m, key.kind, &matching, dialect),
        matching,
        instructions: Instructions { meter, apply: actions, next, ..Instructions::default() },
        idle_timeout_s: m.idle_timeout_s,
        hard_timeout_s: m.hard_timeout_s,
        cookie: m.cookie,
        low_latency: match m.low_latency {
            LowLatencyFlag::Unstated => None,
            LowLatencyFlag::LowLatency => Some(true),
            LowLatencyFlag::Normal => Some(false),
        },
        ..FlowMod::default()
    };
    let packet_in_reason = packet_in_reason.unwrap_or(PofPacketInReason::Action);
    Ok(Translated { flow, counters, packet_in_reason })
}

/// Returns the priority of an entry in the flow model.
fn priority(m: &PofFlowMod, kind: PofTableType, matching: &Match, dialect: PofDialect) -> u16 {
    match (kind, dialect) {
        // Entries of a linear table are found by their index, so they need no order.
        (PofTableType::Linear, _) => 0,
        // Public switches of this dialect take the entry with the most mask bits. A key has at most 1,024.
        (PofTableType::LongestPrefix, PofDialect::V1_4) => {
            matching.fields().map(|condition| condition.mask.count_ones() as u16).sum()
        }
        _ => m.priority,
    }
}

/// Translates the actions of a PACKET_OUT or of a bucket. Also returns the counters that they count under.
///
/// # Errors
/// Returns the first fault.
pub fn actions(
    actions: &[PofAction],
    dialect: PofDialect,
) -> Result<(Vec<Action>, Vec<PofCounterId>), PofRefusal> {
    let mut list = ActionList::default();
    action::run(actions, &mut list, dialect)?;
    Ok((list.actions, list.counters))
}

/// Returns the group that counts for the action COUNTER.
///
/// # Errors
/// Returns a refusal if the number is too large.
pub fn counter_group(counter: PofCounterId) -> Result<GroupId, PofRefusal> {
    if counter.0 > ACTION_COUNTER_MAX {
        let problem =
            format!("action COUNTER has counter {}; the maximum is {ACTION_COUNTER_MAX}", counter.0);
        return Err(PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem));
    }
    Ok(GroupId(COUNTER_GROUPS + counter.0))
}
