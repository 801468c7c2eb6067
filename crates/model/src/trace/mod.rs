// SPDX-License-Identifier: Apache-2.0
//! What would become of a packet: the plain interpreter (`reference`) walks the model's own tables, groups and ports, as
//! they are after the last request, and notes what it met. Nothing is counted, learned or refreshed by it.

mod change;
mod judge;
mod near;

pub use change::Change;
pub use judge::{TraceCounts, Verdict};
pub use near::{Excluded, Near};
pub use reference::{Learned, PacketIn, Processed, Sent, Worked};

use crate::data_plane::DataPlane;
use crate::model::Model;
use flow::group::Group;
use flow::stateless::Stateless;
use flow::{DropReason, EntryId, Field, FlowEntry, Outcome, PortNo, PortState, Settings};
use reference::{Packet, Rules};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a packet's copies: a packet may be flooded by thousands of buckets, and the control thread has other things
/// to do and to keep.
const COPY_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// A packet's way by the rules of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The version.
    pub version: u64,
    /// The port it came in by.
    pub in_port: PortNo,
    /// The frame as it came in.
    pub frame: Vec<u8>,
    /// Its lookups, in order.
    pub steps: Vec<Step>,
    /// What became of it.
    pub processed: Processed,
}

/// One lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The table.
    pub table: u8,
    /// The index that it was sent to, in a linear table.
    pub index: Option<u32>,
    /// Entries in the table.
    pub entries: usize,
    /// Metadata register at that moment.
    pub metadata: u64,
    /// Tunnel ID at that moment.
    pub tunnel_id: u64,
    /// The frame at that moment.
    pub frame: Vec<u8>,
    /// The entry hit.
    pub entry: Option<Arc<FlowEntry>>,
    /// The packet's values of the fields that the entry matches.
    pub values: Vec<(Field, u128)>,
    /// Entries that are tried before the one that was hit, and failed by the least.
    pub near: Vec<Near>,
    /// How many entries were looked at for these.
    pub looked_at: usize,
}

impl Trace {
    /// The first table in which the packet ceased to be low-latency.
    #[must_use]
    pub fn normal_from(&self) -> Option<u8> {
        let is_normal = |step: &&Step| !step.entry.as_ref().is_some_and(|entry| entry.low_latency);
        self.steps.iter().find(is_normal).map(|step| step.table)
    }

    /// What changed in the frame between two of the moments that the trace tells of.
    #[must_use]
    pub fn changes(&self, before: &[u8], after: &[u8]) -> Vec<Change> {
        change::changes(self.in_port, before, after)
    }
}

impl<D: DataPlane> Model<D> {
    /// An entry, also one on its way out.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<&FlowEntry> {
        Some(&**self.store.entry(id)?)
    }

    /// A group as it is defined.
    #[must_use]
    pub fn group_numbered(&self, id: u32) -> Option<&Group> {
        Some(&*self.groups.get(id)?.what)
    }

    /// What becomes of a frame that comes in by `in_port`. Takes time with the number of different priorities and shapes of
    /// matches in the tables that it meets, but for a bounded look at entries nearly hit, not with that of entries.
    #[must_use]
    pub fn trace(&self, in_port: PortNo, frame: &[u8]) -> Trace {
        let view = View { model: self, steps: RefCell::default() };
        let processed = reference::process(&view, in_port, frame);
        let steps = view.steps.into_inner();
        Trace { version: self.barrier(), in_port, frame: frame.to_vec(), steps, processed }
    }
}

impl<D: DataPlane> Model<D> {
    /// What the stateless lane works out of the packet of a trace, if it does.
    #[must_use]
    pub fn worked(&self, trace: &Trace) -> Option<Worked> {
        let at_the_door = trace.processed.outcome == Outcome::Dropped(DropReason::PortNotReceiving);
        let lane = self.stateless.as_deref().filter(|_| !at_the_door)?;
        reference::worked(lane, trace.in_port, &trace.frame)
    }
}

/// The model's rules, and what was met in them.
struct View<'a, D: DataPlane> {
    model: &'a Model<D>,
    steps: RefCell<Vec<Step>>,
}

impl<D: DataPlane> View<'_, D> {
    /// Notes a lookup.
    fn note(
        &self,
        table: u8,
        index: Option<u32>,
        id: Option<EntryId>,
        packet: &Packet,
    ) -> Option<Arc<FlowEntry>> {
        let store = &self.model.store;
        let entry = id.and_then(|id| store.entry(id).cloned());
        let mut step = Step {
            table,
            index,
            entries: store.table(table).len(),
            metadata: packet.metadata,
            tunnel_id: packet.tunnel_id,
            frame: packet.bytes.clone(),
            entry: entry.clone(),
            values: Vec::new(),
            near: Vec::new(),
            looked_at: 0,
        };
        if let Some(entry) = &entry {
            let value = |field| Some((field, packet.value(field)?));
            step.values = entry.matching.fields().filter_map(|c| value(c.field)).collect();
        }
        if index.is_none() {
            let tried = store.table(table).tried_before(store.slots(), id, near::LOOKED_AT);
            (step.near, step.looked_at) = near::nearest(tried, packet);
        }
        self.steps.borrow_mut().push(step);
        entry
    }
}

impl<D: DataPlane> Rules for View<'_, D> {
    fn copy_bytes_max(&self) -> usize {
        COPY_BYTES_MAX
    }

    fn settings(&self) -> Settings {
        self.model.settings()
    }

    fn stateless(&self) -> Option<&Stateless> {
        self.model.stateless().map(|lane| &**lane)
    }

    fn port(&self, number: PortNo) -> Option<PortState> {
        Some(self.model.port(number)?.state())
    }

    fn ports(&self) -> Vec<PortState> {
        self.model.ports().map(crate::Port::state).collect()
    }

    fn group(&self, id: u32) -> Option<Arc<Group>> {
        Some(Arc::clone(&self.model.groups.get(id)?.what))
    }

    fn remarks(&self, meter: u32) -> bool {
        self.model.meters.get(&meter).is_some_and(|record| record.what.remarks())
    }

    fn lookup(&self, table: u8, packet: &Packet) -> Option<Arc<FlowEntry>> {
        let store = &self.model.store;
        let mut known: BTreeMap<Field, Option<u128>> = BTreeMap::new();
        let mut value = |field| *known.entry(field).or_insert_with(|| packet.value(field));
        let id = store.table(table).lookup(store.slots(), &mut value);
        self.note(table, None, id, packet)
    }

    fn at_index(&self, table: u8, index: u32, packet: &Packet) -> Option<Arc<FlowEntry>> {
        let store = &self.model.store;
        let id = store.table(table).at_index(store.slots(), index);
        self.note(table, Some(index), id, packet)
    }

    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)> {
        let [_, _, mac @ ..] = mac.to_be_bytes();
        self.model.learned(vid, mac)
    }
}

/// A frame's fields as they are when it comes in by `in_port`; one that is too short for Ethernet has none.
pub fn value_of(in_port: PortNo, frame: &[u8]) -> impl Fn(Field) -> Option<u128> {
    let packet = (frame.len() >= 14).then(|| Packet::arriving(in_port, frame));
    move |field| packet.as_ref()?.value(field)
}
