// SPDX-License-Identifier: Apache-2.0
//! What a packet's way asks for: by this the same interpreter runs on the oracle's own lists and on tables that others
//! keep.

use crate::packet::Packet;
use crate::run::Run;
use crate::{Processed, fields};
use flow::group::Group;
use flow::operation::Settings;
use flow::stateless::Stateless;
use flow::{EntryId, Field, FlowEntry, PortNo, PortState};
use std::sync::Arc;

/// What a copy counts at least.
pub const COPY_BYTES_MIN: usize = 1_024;

/// Tables, groups and ports as they are at one moment.
pub trait Rules {
    /// Bytes of all copies of a packet together, beyond which there is no buffer for another; a short copy counts as
    /// [`COPY_BYTES_MIN`].
    fn copy_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// How packets are treated whatever they hit.
    fn settings(&self) -> Settings;

    /// The stateless lane, if there is one.
    fn stateless(&self) -> Option<&Stateless>;

    /// One port.
    fn port(&self, number: PortNo) -> Option<PortState>;

    /// All ports, by rising number.
    fn ports(&self) -> Vec<PortState>;

    /// One group.
    fn group(&self, id: u32) -> Option<Arc<Group>>;

    /// Whether a meter has bands that remark packets.
    fn remarks(&self, meter: u32) -> bool;

    /// The entry that the packet hits in a table: of those that match the one of highest priority, of these the one
    /// added first.
    fn lookup(&self, table: u8, packet: &Packet) -> Option<Arc<FlowEntry>>;

    /// The entry with this index of a linear table, which the packet was sent to.
    fn at_index(&self, table: u8, index: u32, packet: &Packet) -> Option<Arc<FlowEntry>>;

    /// The port by which a MAC was learned under a VLAN ID, and the entry that says so.
    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)>;
}

/// What becomes of a frame that comes in by `in_port`, by these rules. Nothing is counted and nothing changes.
pub fn process(rules: &dyn Rules, in_port: PortNo, frame: &[u8]) -> Processed {
    let mut run = Run::new(rules, Packet::arriving(in_port, frame));
    run.process();
    run.finish()
}

impl Packet {
    /// A field's value, right-aligned; none if the packet does not have it.
    #[must_use]
    pub fn value(&self, field: Field) -> Option<u128> {
        fields::get(self, field)
    }
}
