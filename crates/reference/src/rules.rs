// SPDX-License-Identifier: Apache-2.0
//! Interface to the rules that the processing of a packet reads. The rules are this crate's own lists or the
//! tables of another crate.

use crate::packet::ReferencePacket;
use crate::run::Run;
use crate::{Processed, fields};
use flow::group::Group;
use flow::operation::Settings;
use flow::stateless::StatelessConfig;
use flow::{BridgeConfig, EntryId, Field, FlowEntry, GroupId, MeterId, PortNo, PortState, TableId};
use std::sync::Arc;

/// Minimum number of bytes that a copy takes from the copy budget.
pub const COPY_BYTES_MIN: usize = 1_024;

/// Tables, groups and ports at one moment.
pub trait RuleSource {
    /// Returns the budget for all copies of a packet, in bytes. If it is used up, further copies fail with
    /// `NoBuffer`. Each copy counts as at least [`COPY_BYTES_MIN`] bytes.
    fn copy_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Returns the general settings.
    fn settings(&self) -> Settings;

    /// Returns the configuration of stateless forwarding, if enabled.
    fn stateless(&self) -> Option<&StatelessConfig>;

    /// Returns the settings of the ports for NORMAL, unless all ports have the default settings.
    fn bridge(&self) -> Option<&BridgeConfig>;

    /// Returns the state of one port.
    fn port(&self, number: PortNo) -> Option<PortState>;

    /// Returns all ports in ascending order.
    fn ports(&self) -> Vec<PortState>;

    /// Returns one group.
    fn group(&self, id: GroupId) -> Option<Arc<Group>>;

    /// Returns whether a meter has bands that remark packets.
    fn remarks(&self, meter: MeterId) -> bool;

    /// Returns the entry that the packet hits in a table. If several matching entries have the highest
    /// priority, it is the entry that was added first.
    fn lookup(&self, table: TableId, packet: &ReferencePacket) -> Option<Arc<FlowEntry>>;

    /// Returns the entry at an index of a linear table.
    fn at_index(&self, table: TableId, index: u32, packet: &ReferencePacket) -> Option<Arc<FlowEntry>>;

    /// Returns the port on which a MAC address was learned under a VLAN ID, and the entry that records it.
    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)>;

    /// Returns the number of MAC addresses that are learned on a port.
    fn learned_at(&self, port: PortNo) -> usize;
}

/// Processes a frame received on `in_port` by these rules, without changing any state.
pub fn process(rules: &dyn RuleSource, in_port: PortNo, frame: &[u8]) -> Processed {
    let mut run = Run::new(rules, ReferencePacket::arriving(in_port, frame));
    run.process();
    run.finish()
}

impl ReferencePacket {
    /// Returns a field's value, right-aligned, or `None` if the packet does not have the field.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<u128> {
        fields::get(self, field)
    }
}
