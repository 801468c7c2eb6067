// SPDX-License-Identifier: Apache-2.0
//! Requests of controllers and of the model's owner, by kind. Most requests are a [`Change`], which the
//! module `changes` checks and applies.

use crate::changes::{self, Change, Changed, GroupCommand, MeterCommand};
use crate::error::ModelError;
use crate::kept::KeptChange;
use crate::model::Model;
use dataplane::DataPlane;
use flow::group::Group;
use flow::meter::Meter;
use flow::operation::PacketOut;
use flow::stateless::StatelessConfig;
use flow::validate::{ValidateError, validate_actions};
use flow::{Action, FlowMod, FlowModCommand, HeldFlow, Instructions, Nanos, Operation, TableId, port_no};
use std::sync::Arc;
use wire::ethernet::ETHERNET_BYTES;

/// Number of operations waiting for workers at which no further request is started.
const PARKED_MAX: usize = 256;

/// Maximum number of flows whose packets one operation releases.
const ENDS_PER_OPERATION: usize = 256;

impl<D: DataPlane> Model<D> {
    /// Applies one flow-mod. The flow-mod is active once the version returned by [`Model::barrier`] is
    /// applied.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the flow-mod. In that case nothing is changed.
    pub fn flow_mod(&mut self, now: Nanos, m: FlowMod) -> Result<Changed, ModelError> {
        self.change(now, Change::Flow(m))
    }

    /// Deletes all entries of the controller's tables and restores the standalone default entry, in one
    /// operation.
    pub fn clear(&mut self, now: Nanos) -> Changed {
        let all = FlowMod { command: FlowModCommand::Delete, table: None, ..FlowMod::default() };
        let mods = std::iter::once(all).chain(self.default_entries());
        self.bundle(now, mods).unwrap_or_default()
    }

    /// Switches to fail-standalone mode when all controllers are lost, or to fail-secure mode. Standalone
    /// mode deletes all entries of controllers and forwards by learned MACs. Secure mode deletes the
    /// standalone default entry if it is unchanged.
    pub fn set_standalone(&mut self, now: Nanos, standalone: bool) -> Changed {
        let default = self.default_entries().pop();
        self.config.standalone = standalone;
        self.note_setting(KeptChange::Standalone(standalone));
        if standalone {
            return self.clear(now);
        }
        let Some(mut default) = default else { return Changed::default() };
        let store = &self.rules.store;
        let there = store.find(TableId(0), default.priority, &default.matching);
        if !there.and_then(|id| store.entry(id)).is_some_and(|e| *e.instructions == default.instructions) {
            return Changed::default();
        }
        default.command = FlowModCommand::DeleteStrict;
        self.flow_mod(now, default).unwrap_or_default()
    }

    /// Applies one group-mod. A delete uses only the number of `group`.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the group-mod (OFPET_GROUP_MOD_FAILED). In that case
    /// nothing is changed.
    pub fn group_mod(&mut self, now: Nanos, command: GroupCommand, group: Group) -> Result<(), ModelError> {
        self.change(now, Change::Group(command, group)).map(|_| ())
    }

    /// Applies one meter-mod. A delete uses only the number of `meter`.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the meter-mod (OFPET_METER_MOD_FAILED). In that case
    /// nothing is changed.
    pub fn meter_mod(&mut self, now: Nanos, command: MeterCommand, meter: Meter) -> Result<(), ModelError> {
        self.change(now, Change::Meter(command, meter)).map(|_| ())
    }

    /// Replaces the whole configuration of the stateless forwarder, or removes it.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid. In that case nothing is changed.
    pub fn set_stateless(
        &mut self,
        now: Nanos,
        stateless_config: Option<Arc<StatelessConfig>>,
    ) -> Result<(), ModelError> {
        self.transact(now, |transaction| changes::stateless::replace(transaction, stateless_config))?;
        Ok(())
    }

    /// Estimates the number of entries that the changes examine or modify. Counting stops once the changes
    /// are known to be long.
    pub(crate) fn cost_of(&self, changes: &[Change]) -> usize {
        changes::cost_of(&self.rules, changes)
    }

    /// Returns whether applying the changes takes so long that it should not delay the answers to others.
    #[must_use]
    pub fn is_long(&self, changes: &[Change]) -> bool {
        self.cost_of(changes) > changes::LONG_ENTRIES
    }

    /// Returns whether too many operations wait for the workers to start another request.
    pub fn is_congested(&mut self) -> bool {
        self.plane.get_mut().parked() >= PARKED_MAX
    }

    /// Releases packets that wait for the answer to a packet-in, because no controller has got it. They are
    /// released when the asynchronous messages that wait now have been taken, together with other packets.
    pub fn end_wait(&mut self, flow: HeldFlow) {
        self.async_messages.lose(flow);
    }

    /// Releases packets for which [`Model::end_wait`] was called, unless many operations wait for the
    /// workers.
    pub(crate) fn end_waits(&mut self) {
        while self.async_messages.has_unasked() && self.plane.get_mut().parked() < PARKED_MAX {
            let flows = self.async_messages.take_unasked(ENDS_PER_OPERATION);
            self.plane.submit(Operation::EndWaits(flows));
        }
    }

    /// Sends a packet of a controller. The packet is forwarded by the rules requested before it.
    ///
    /// # Errors
    /// Returns an error if the ingress port does not exist, the packet is too short, or an action is invalid.
    pub fn packet_out(&mut self, packet: PacketOut) -> Result<(), ModelError> {
        let from = packet.in_port;
        if !port_no::is_none(from) && !self.rules.ports.contains_key(&from) {
            return Err(ModelError::BadInPort(from));
        }
        if packet.bytes.len() < ETHERNET_BYTES {
            return Err(ModelError::BadPacket(packet.bytes.len()));
        }
        let to_table = |action: &Action| matches!(action, Action::Output { port: port_no::TABLE, .. });
        let actions = match packet.actions.split_last() {
            Some((last, before)) if to_table(last) => before,
            _ => &packet.actions,
        };
        if actions.iter().any(to_table) {
            return Err(ValidateError::OutPort(port_no::TABLE).into());
        }
        validate_actions(actions)?;
        self.rules.check_references(&Instructions::apply(actions.to_vec()))?;
        self.plane.submit(Operation::PacketOut(Arc::new(packet)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    #[test]
    fn errors_have_openflows_numbers() {
        assert_eq!(ModelError::BadInPort(PortNo(9)).openflow(), (1, 11));
        assert_eq!(ModelError::BadPacket(3).openflow(), (1, 12));
    }
}
