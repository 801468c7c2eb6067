// SPDX-License-Identifier: Apache-2.0
//! Interface to the tables and state that processing a packet reads. The same interpreter runs on the
//! oracle's own lists and on tables that other crates keep.

use crate::packet::ReferencePacket;
use crate::run::Run;
use crate::{Processed, fields};
use flow::group::Group;
use flow::operation::Settings;
use flow::stateless::StatelessConfig;
use flow::{EntryId, Field, FlowEntry, PortNo, PortState};
use std::sync::Arc;

/// Minimum size of a copy for the copy budget, in bytes.
pub const COPY_BYTES_MIN: usize = 1_024;

/// Tables, groups and ports at one moment.
pub trait RuleSource {
    /// Returns the byte budget for all copies of a packet. Beyond it, copies fail for lack of a buffer. A
    /// short copy counts as [`COPY_BYTES_MIN`].
    fn copy_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Returns the general settings.
    fn settings(&self) -> Settings;

    /// Returns the configuration of stateless forwarding, if enabled.
    fn stateless(&self) -> Option<&StatelessConfig>;

    /// Returns the state of one port.
    fn port(&self, number: PortNo) -> Option<PortState>;

    /// Returns all ports in ascending order.
    fn ports(&self) -> Vec<PortState>;

    /// Returns one group.
    fn group(&self, id: u32) -> Option<Arc<Group>>;

    /// Whether a meter has bands that remark packets.
    fn remarks(&self, meter: u32) -> bool;

    /// Returns the entry that the packet hits in a table: the matching entry of highest priority, and among
    /// these the first added.
    fn lookup(&self, table: u8, packet: &ReferencePacket) -> Option<Arc<FlowEntry>>;

    /// Returns the entry at this index of a linear table, which the packet was sent to.
    fn at_index(&self, table: u8, index: u32, packet: &ReferencePacket) -> Option<Arc<FlowEntry>>;

    /// Returns the port on which a MAC address was learned under a VLAN ID, and the entry that records it.
    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)>;
}

/// Processes a frame received on `in_port` by these rules, without counting and without changing any state.
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
