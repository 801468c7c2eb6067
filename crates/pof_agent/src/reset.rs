// SPDX-License-Identifier: Apache-2.0
//! HELLO of a controller: drops all tables, entries, groups, meters and counters.

use crate::counters::PofCounters;
use crate::shared::Shared;
use flow::group::{Group, GroupType};
use flow::meter::Meter;
use flow::{FlowMod, FlowModCommand, GroupId, MeterId};
use model::{Change, GroupCommand, MeterCommand};

/// Returns the changes that empty the model. They become one transaction.
pub fn changes() -> Vec<Change> {
    let entries = FlowMod { command: FlowModCommand::Delete, table: None, ..FlowMod::default() };
    let group = Group { id: GroupId(0), kind: GroupType::All, buckets: Vec::new() };
    let meter = Meter { id: MeterId(0), packets: false, stats: false, burst: false, bands: Vec::new() };
    vec![
        Change::Flow(entries),
        Change::Group(GroupCommand::DeleteAll, group),
        Change::Meter(MeterCommand::DeleteAll, meter),
    ]
}

/// Drops the agent's tables and counters.
pub fn forget_all(shared: &mut Shared) {
    shared.tables.clear();
    shared.counters = PofCounters::default();
    shared.group_counters.clear();
}
