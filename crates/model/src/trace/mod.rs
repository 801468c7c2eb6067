// SPDX-License-Identifier: Apache-2.0
//! Traces of packets: the processing of a frame by the current rules, step by step.
//!
//! The interpreter of the crate `reference` walks the model's own tables, groups and ports in their state
//! after the last request. A trace does not change counters, learned MACs or timeouts.

mod change;
mod compare;
pub(crate) mod counts;
mod near_misses;

pub use change::FrameChange;
pub use compare::TraceComparison;
pub use counts::TraceCounts;
pub use near_misses::{Excluded, NearMiss};
pub use reference::{ControllerCopy, LearnedMac, Processed, Sent, Worked};

use crate::macs::Macs;
use crate::model::Model;
use crate::port::Port;
use crate::rules::Rules;
use dataplane::DataPlane;
use flow::group::Group;
use flow::stateless::StatelessConfig;
use flow::{
    BridgeConfig, DropReason, EntryId, Field, FlowEntry, GroupId, MeterId, Outcome, PortNo, PortState,
    RuleVersion, Settings, TableId,
};
use reference::{ReferencePacket, RuleSource};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum size in bytes of all copies of a traced packet. Groups may copy a packet thousands of times.
const COPY_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// A packet's path through the rules of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Version of the rules.
    pub version: RuleVersion,
    /// Ingress port of the packet.
    pub in_port: PortNo,
    /// The frame as received.
    pub frame: Vec<u8>,
    /// Lookups in tables, in order.
    pub steps: Vec<TraceStep>,
    /// Result: outcome, copies, packet-ins and drops.
    pub processed: Processed,
}

/// One lookup in a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// The table looked up.
    pub table: TableId,
    /// Index looked up, if the packet was sent to an entry of a linear table.
    pub index: Option<u32>,
    /// Number of entries in the table.
    pub entries: usize,
    /// Metadata register at the time of the lookup.
    pub metadata: u64,
    /// Tunnel ID at the time of the lookup.
    pub tunnel_id: u64,
    /// The frame at the time of the lookup.
    pub frame: Vec<u8>,
    /// The entry hit, or `None` if there is none, not even a table-miss entry.
    pub entry: Option<Arc<FlowEntry>>,
    /// The packet's values of the fields that the entry matches.
    pub values: Vec<(Field, u128)>,
    /// Near misses: entries tried before the hit that differ from the packet in few fields.
    pub near_misses: Vec<NearMiss>,
    /// Number of entries examined to find the near misses.
    pub looked_at: usize,
}

impl Trace {
    /// Returns the first table in which the packet did not hit a low-latency entry.
    #[must_use]
    pub fn normal_from(&self) -> Option<TableId> {
        let is_normal = |step: &&TraceStep| !step.entry.as_ref().is_some_and(|entry| entry.low_latency);
        self.steps.iter().find(is_normal).map(|step| step.table)
    }

    /// Returns the differences between two states of the frame in this trace.
    #[must_use]
    pub fn changes(&self, before: &[u8], after: &[u8]) -> Vec<FrameChange> {
        change::changes(self.in_port, before, after)
    }
}

impl<D: DataPlane> Model<D> {
    /// Returns a trace of a frame received on `in_port`. The cost grows with the numbers of priorities and
    /// match shapes in the tables visited, not with the number of entries.
    #[must_use]
    pub fn trace(&self, in_port: PortNo, frame: &[u8]) -> Trace {
        let view = View {
            rules: &self.rules,
            macs: &self.macs,
            settings: self.settings(),
            steps: RefCell::default(),
        };
        let processed = reference::process(&view, in_port, frame);
        let steps = view.steps.into_inner();
        Trace { version: self.barrier(), in_port, frame: frame.to_vec(), steps, processed }
    }

    /// Returns how the stateless forwarder computes the output of a traced packet, or `None` if it does not
    /// handle the packet.
    #[must_use]
    pub fn worked(&self, trace: &Trace) -> Option<Worked> {
        let at_ingress = trace.processed.outcome == Outcome::Dropped(DropReason::PortNotReceiving);
        let stateless_config = self.rules.stateless.as_deref().filter(|_| !at_ingress)?;
        reference::worked(stateless_config, trace.in_port, &trace.frame)
    }
}

/// The model's rules, and the lookups made in them.
struct View<'a> {
    rules: &'a Rules,
    macs: &'a Macs,
    settings: Settings,
    steps: RefCell<Vec<TraceStep>>,
}

impl View<'_> {
    /// Records a lookup and returns the entry hit.
    fn note(
        &self,
        table: TableId,
        index: Option<u32>,
        id: Option<EntryId>,
        packet: &ReferencePacket,
    ) -> Option<Arc<FlowEntry>> {
        let store = &self.rules.store;
        let entry = id.and_then(|id| store.entry(id).cloned());
        let mut step = TraceStep {
            table,
            index,
            entries: store.table(table).len(),
            metadata: packet.metadata,
            tunnel_id: packet.tunnel_id,
            frame: packet.bytes.clone(),
            entry: entry.clone(),
            values: Vec::new(),
            near_misses: Vec::new(),
            looked_at: 0,
        };
        if let Some(entry) = &entry {
            let value = |field| Some((field, packet.value(field)?));
            step.values = entry.matching.fields().filter_map(|c| value(c.field)).collect();
        }
        if index.is_none() {
            let tried = store.table(table).tried_before(store.slots(), id, near_misses::LOOKED_AT);
            (step.near_misses, step.looked_at) = near_misses::nearest(tried, packet);
        }
        self.steps.borrow_mut().push(step);
        entry
    }
}

impl RuleSource for View<'_> {
    fn copy_bytes_max(&self) -> usize {
        COPY_BYTES_MAX
    }

    fn settings(&self) -> Settings {
        self.settings
    }

    fn stateless(&self) -> Option<&StatelessConfig> {
        self.rules.stateless.as_deref()
    }

    fn bridge(&self) -> Option<&BridgeConfig> {
        self.rules.bridge.as_deref()
    }

    fn port(&self, number: PortNo) -> Option<PortState> {
        Some(self.rules.ports.get(&number)?.state())
    }

    fn ports(&self) -> Vec<PortState> {
        self.rules.ports.values().map(Port::state).collect()
    }

    fn group(&self, id: GroupId) -> Option<Arc<Group>> {
        Some(Arc::clone(&self.rules.groups.get(id)?.what))
    }

    fn remarks(&self, meter: MeterId) -> bool {
        self.rules.meters.get(&meter).is_some_and(|record| record.what.remarks())
    }

    fn lookup(&self, table: TableId, packet: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        let store = &self.rules.store;
        let mut known: BTreeMap<Field, Option<u128>> = BTreeMap::new();
        let mut value = |field| *known.entry(field).or_insert_with(|| packet.value(field));
        let id = store.table(table).lookup(store.slots(), &mut value);
        self.note(table, None, id, packet)
    }

    fn at_index(&self, table: TableId, index: u32, packet: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        let store = &self.rules.store;
        let id = store.table(table).at_index(store.slots(), index);
        self.note(table, Some(index), id, packet)
    }

    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)> {
        let [_, _, mac @ ..] = mac.to_be_bytes();
        self.macs.get(vid, mac)
    }

    fn learned_at(&self, port: PortNo) -> usize {
        self.macs.counts_of(port).0 as usize
    }
}

/// Returns a function that reads the fields of a frame received on `in_port`. A frame too short for an
/// Ethernet header has no fields.
pub fn value_of(in_port: PortNo, frame: &[u8]) -> impl Fn(Field) -> Option<u128> {
    let packet = (frame.len() >= 14).then(|| ReferencePacket::arriving(in_port, frame));
    move |field| packet.as_ref()?.value(field)
}
