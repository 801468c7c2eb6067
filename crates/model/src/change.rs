// SPDX-License-Identifier: Apache-2.0
//! Requests that change the switch, applied one at a time or several as one transaction.

use crate::error::ModelError;
use crate::flow_mod::Changed;
use crate::groups::GroupCommand;
use crate::meters::MeterCommand;
use crate::model::Model;
use crate::pipeline_tables::TableSet;
use crate::ports::PortMod;
use crate::stage::Staged;
use dataplane::DataPlane;
use flow::group::Group;
use flow::meter::Meter;
use flow::stateless::StatelessChange;
use flow::syntax::{FileLine, RecordCommand};
use flow::{FlowMod, FlowModCommand, Nanos};

/// Number of examined or changed entries above which a request takes some milliseconds.
pub(crate) const LONG_ENTRIES: usize = 4_096;

/// A request that changes the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A flow-mod.
    Flow(FlowMod),
    /// A group-mod; a delete uses only the group's number.
    Group(GroupCommand, Group),
    /// A meter-mod; a delete uses only the meter's number.
    Meter(MeterCommand, Meter),
    /// A port-mod.
    Port(PortMod),
    /// A change of the stateless forwarder.
    Stateless(StatelessChange),
    /// The set of tables in the pipeline.
    Tables(TableSet),
}

impl From<FlowMod> for Change {
    fn from(m: FlowMod) -> Self {
        Self::Flow(m)
    }
}

/// Converts a line of a flow file.
impl From<FileLine> for Change {
    fn from(line: FileLine) -> Self {
        match line {
            FileLine::Flow(m) => Self::Flow(m),
            FileLine::Group(command, group) => Self::Group(
                match command {
                    RecordCommand::Add => GroupCommand::Add,
                    RecordCommand::AddOrModify => GroupCommand::AddOrModify,
                    RecordCommand::Modify => GroupCommand::Modify,
                    RecordCommand::Delete => GroupCommand::Delete,
                    RecordCommand::DeleteAll => GroupCommand::DeleteAll,
                },
                group,
            ),
            FileLine::Meter(command, meter) => Self::Meter(
                match command {
                    RecordCommand::Add => MeterCommand::Add,
                    RecordCommand::AddOrModify => MeterCommand::AddOrModify,
                    RecordCommand::Modify => MeterCommand::Modify,
                    RecordCommand::Delete => MeterCommand::Delete,
                    RecordCommand::DeleteAll => MeterCommand::DeleteAll,
                },
                meter,
            ),
        }
    }
}

impl<D: DataPlane> Model<D> {
    /// Applies one request. It is active once the version that [`Model::barrier`] returns afterwards is
    /// applied.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the request. Nothing is changed then.
    pub fn change(&mut self, now: Nanos, change: Change) -> Result<Changed, ModelError> {
        let mut staged = Staged::default();
        match self.stage(now, change, &mut staged) {
            Ok(()) => Ok(self.commit(now, staged)),
            Err(error) => {
                self.roll_back(staged);
                Err(error)
            }
        }
    }

    /// Applies all of these requests in order, or none. Every packet is forwarded with all of them in effect,
    /// or with none.
    ///
    /// # Errors
    /// Returns the index of the first refused request and the reason. Nothing is changed then.
    pub fn bundle<C: Into<Change>>(
        &mut self,
        now: Nanos,
        changes: impl IntoIterator<Item = C>,
    ) -> Result<Changed, (usize, ModelError)> {
        let changes = changes.into_iter();
        // Large bundles consist mostly of adds.
        let expected = changes.size_hint().0.min(self.config.limits.entries);
        let mut staged = Staged::default();
        staged.changes.reserve(expected);
        staged.log.reserve(expected);
        self.store.reserve(expected);
        for (at, change) in changes.enumerate() {
            if let Err(error) = self.stage(now, change.into(), &mut staged) {
                self.roll_back(staged);
                return Err((at, error));
            }
        }
        Ok(self.commit(now, staged))
    }

    /// Estimates the number of entries that the changes examine or modify. Counting stops above
    /// [`LONG_ENTRIES`], because other connections would wait too long for such a request in any case.
    pub(crate) fn cost_of(&self, changes: &[Change]) -> usize {
        let mut cost = changes.len();
        for change in changes {
            if cost > LONG_ENTRIES {
                break;
            }
            cost = cost.saturating_add(self.cost(change));
            if let Change::Flow(m) = change
                && m.flags.check_overlap
            {
                // Entries added earlier in the same bundle may be examined as well.
                cost = cost.saturating_add(changes.len() - 1);
            }
        }
        cost
    }

    fn cost(&self, change: &Change) -> usize {
        let all = self.store.slots().len();
        let users_of_meters = || self.meters.values().any(|record| record.users > 0);
        let users_of_groups = || self.groups.records().values().any(|record| record.users > 0);
        // The users of a group or meter are found by a scan of all entries.
        let has_users = match change {
            Change::Flow(m) => return self.flow_cost(m),
            Change::Port(_) => false,
            // Entries that lead to a removed table are found by a scan of all entries.
            Change::Tables(_) => true,
            // The whole configuration of the stateless forwarder is copied, compared and compiled.
            Change::Stateless(change) => {
                return change.size()
                    + self.stateless.as_ref().map_or(0, |stateless_config| stateless_config.size());
            }
            Change::Group(GroupCommand::Delete, group) => {
                self.groups.get(group.id).is_some_and(|record| record.users > 0)
            }
            Change::Meter(MeterCommand::Delete, meter) => {
                self.meters.get(&meter.id).is_some_and(|record| record.users > 0)
            }
            Change::Group(GroupCommand::DeleteAll, _) => {
                return self.groups.records().len() + if users_of_groups() { all } else { 0 };
            }
            Change::Meter(MeterCommand::DeleteAll, _) => {
                return self.meters.len() + if users_of_meters() { all } else { 0 };
            }
            Change::Group(..) | Change::Meter(..) => false,
        };
        if has_users { all } else { 0 }
    }

    fn flow_cost(&self, m: &FlowMod) -> usize {
        let table = m.table.map(|table| self.store.table(table));
        match (m.command, table) {
            (FlowModCommand::Modify | FlowModCommand::Delete, _) => self.covered_cost(m.table, &m.matching),
            // Each index of a linear table has one entry, whatever its priority.
            (FlowModCommand::Add, Some(table)) if m.matching.index().is_some() => {
                table.covered_cost(&m.matching)
            }
            (FlowModCommand::Add, Some(table)) if m.flags.check_overlap => {
                table.overlap_cost(m.priority, &m.matching)
            }
            _ => 0,
        }
    }

    fn stage(&mut self, now: Nanos, change: Change, staged: &mut Staged) -> Result<(), ModelError> {
        match change {
            Change::Flow(m) => self.stage_flow_mod(now, m, staged),
            Change::Group(command, group) => self.stage_group_mod(now, command, group, staged),
            Change::Meter(command, meter) => self.stage_meter_mod(now, command, meter, staged),
            Change::Port(m) => self.stage_port_mod(&m, staged),
            Change::Stateless(change) => self.stage_stateless(change, staged),
            Change::Tables(tables) => {
                self.stage_tables(tables, staged);
                Ok(())
            }
        }
    }
}
