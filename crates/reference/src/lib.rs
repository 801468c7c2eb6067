// SPDX-License-Identifier: Apache-2.0
#![doc = include_str!("semantics.md")]

mod action_set;
mod arrivals;
mod bits;
mod checksums;
mod choice;
mod edit;
mod examined;
mod fields;
mod groups;
mod headers;
mod meters;
mod mirror;
mod normal;
mod output;
mod packet;
mod residue;
mod rules;
mod run;
mod set_field;
mod stateless;
mod storms;
mod tables;
mod unfinished;
mod walk;

#[cfg(test)]
mod tests;

use flow::bridge::FloodKind;
use flow::group::Group;
use flow::meter::{Band, Meter};
use flow::operation::PacketOut;
use flow::stateless::StatelessConfig;
use flow::{
    BridgeConfig, DropReason, EntryChange, EntryId, FlowEntry, GroupId, MeterId, Operation, Outcome,
    PacketInReason, PortNo, PortState, QueueId, Settings, TableId, port_no,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use arrivals::{ArrivingBits, Shifts};
pub use examined::{ExaminedBits, FlowValues};
pub use meters::MeterDebts;
pub use mirror::is_mirrored;
pub use packet::ReferencePacket;
pub use residue::{output_gate, residue};
pub use rules::{COPY_BYTES_MIN, RuleSource, process};
pub use stateless::{StatelessOutcome, Worked, stateless, worked};
pub use storms::StormDebt;
pub use unfinished::{Cut, CutKind, OpenChecksum, Unfinished, finished};

/// Data plane that executes the reference semantics.
#[derive(Debug, Default)]
pub struct Reference {
    settings: Settings,
    stateless: Option<Arc<StatelessConfig>>,
    bridge: Option<Arc<BridgeConfig>>,
    ports: BTreeMap<PortNo, PortState>,
    tables: tables::Tables,
    groups: BTreeMap<GroupId, Arc<Group>>,
    group_counters: BTreeMap<GroupId, GroupTotals>,
    meters: BTreeMap<MeterId, Arc<Meter>>,
    /// Numbers of packets and bytes of each entry.
    entry_counters: BTreeMap<EntryId, (u64, u64)>,
    /// Meter bands that the next packet exceeds, by the table of the entry that has the meter.
    bands: BTreeMap<TableId, Band>,
    /// The floods of the next packet that have a storm limit, in order: whether each one exceeds the limit.
    exceeded_floods: Vec<bool>,
    /// Lookups and matches of each table.
    table_counters: BTreeMap<TableId, (u64, u64)>,
    drops: BTreeMap<DropReason, u64>,
    copy_drops: BTreeMap<DropReason, u64>,
}

/// Numbers of packets and bytes that a group and its buckets have processed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTotals {
    /// Packets and bytes of the group.
    pub total: (u64, u64),
    /// Packets and bytes of each bucket.
    pub buckets: Vec<(u64, u64)>,
}

/// A lookup: table, ID of the entry hit, and the frame's length in bytes at the lookup.
type Hit = (TableId, Option<EntryId>, usize);

/// A use of a group: its number, the buckets used, and the frame's length in bytes when it reached the group.
type GroupHit = (GroupId, Vec<usize>, usize);

/// A copy sent to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Output port.
    pub port: PortNo,
    /// Bytes of the frame.
    pub bytes: Vec<u8>,
    /// Egress queue, or 0 if no action selected a queue.
    pub queue: QueueId,
    /// Work that is left to the port's device.
    pub unfinished: Unfinished,
}

/// A copy sent to the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerCopy {
    /// Table of `entry`.
    pub table: TableId,
    /// Entry whose action sent the copy. If the action set sent it, this is the entry hit last.
    pub entry: EntryId,
    /// Reason for the packet-in.
    pub reason: PacketInReason,
    /// Number of bytes that the controller requested.
    pub max_len: u16,
    /// Ingress port of the packet.
    pub in_port: PortNo,
    /// Metadata register when the copy was sent.
    pub metadata: u64,
    /// Tunnel ID when the copy was sent.
    pub tunnel_id: u64,
    /// Complete packet when the copy was sent.
    pub bytes: Vec<u8>,
}

/// A MAC address that NORMAL would learn on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedMac {
    /// VLAN ID, or 0 for an untagged packet.
    pub vid: u16,
    /// MAC address in the low 48 bits.
    pub mac: u64,
    /// Port on which the address was seen.
    pub port: PortNo,
}

/// A packet that reached a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metered {
    /// Table of the entry that refers to the meter.
    pub table: TableId,
    /// Meter number.
    pub meter: MeterId,
    /// Length of the packet in bytes when it reached the meter.
    pub bytes: usize,
}

/// A flood by NORMAL from a port with a storm limit for such packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flood {
    /// Ingress port.
    pub port: PortNo,
    /// Kind of packet.
    pub kind: FloodKind,
    /// Table of the entry whose applied actions contain NORMAL. `None` for an action set, or for the actions
    /// of a packet-out.
    pub table: Option<TableId>,
}

/// Result of processing one packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processed {
    /// Copies sent to ports, in order.
    pub sent: Vec<Sent>,
    /// Copies sent to the controller, in order.
    pub packet_ins: Vec<ControllerCopy>,
    /// Outcome of the packet as a whole.
    pub outcome: Outcome,
    /// Drop reasons in order, except the reason for which the whole packet was dropped.
    pub copy_drops: Vec<DropReason>,
    /// Each lookup in order: the table and the entry hit.
    pub hits: Vec<(TableId, Option<EntryId>)>,
    /// Each use of a group in order: its number and the indices of the buckets used.
    pub groups: Vec<(GroupId, Vec<usize>)>,
    /// Meters that the packet reached, in order.
    pub metered: Vec<Metered>,
    /// MAC addresses that NORMAL would learn from the packet, at most one for each execution of NORMAL.
    pub learn: Vec<LearnedMac>,
    /// Entries of learned addresses in which NORMAL found the packet's source. Their idle timeouts restart.
    pub refreshed: Vec<EntryId>,
    /// Floods that have a storm limit, in order, whether they exceed it or not.
    pub floods: Vec<Flood>,
    /// Number of copies whose VLAN tag NORMAL changed.
    pub retagged: usize,
    /// Whether every lookup hit a low-latency entry, and no meter could remark the packet before the last
    /// lookup.
    pub low_latency: bool,
}

impl RuleSource for Reference {
    fn settings(&self) -> Settings {
        self.settings
    }

    fn stateless(&self) -> Option<&StatelessConfig> {
        self.stateless.as_deref()
    }

    fn bridge(&self) -> Option<&BridgeConfig> {
        self.bridge.as_deref()
    }

    fn port(&self, number: PortNo) -> Option<PortState> {
        self.ports.get(&number).copied()
    }

    fn ports(&self) -> Vec<PortState> {
        self.ports.values().copied().collect()
    }

    fn group(&self, id: GroupId) -> Option<Arc<Group>> {
        self.groups.get(&id).cloned()
    }

    fn remarks(&self, meter: MeterId) -> bool {
        let bands = self.meters.get(&meter).map(|meter| &meter.bands);
        bands.is_some_and(|bands| bands.iter().any(|band| matches!(band.band, Band::DscpRemark { .. })))
    }

    fn lookup(&self, table: TableId, packet: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        self.tables.lookup(table, packet)
    }

    fn at_index(&self, table: TableId, index: u32, _: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        self.tables.at_index(table, index)
    }

    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)> {
        self.tables.learned(vid, mac)
    }

    fn learned_at(&self, port: PortNo) -> usize {
        self.tables.learned_at(port)
    }
}

impl Reference {
    /// Returns a data plane without ports and entries.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an operation.
    ///
    /// # Errors
    /// Returns a description of the problem if the operation violates a precondition that `flow::operation`
    /// states. Entry changes before the invalid one stay applied.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Entries(changes) => changes.iter().try_for_each(|change| self.change(change)),
            Operation::Port(state) if port_no::is_real(state.number) => {
                self.ports.insert(state.number, *state);
                Ok(())
            }
            Operation::Port(state) => Err(format!(
                "port {:#x} is not a port number; ports are 1 to {:#x}",
                state.number,
                port_no::MAX
            )),
            Operation::Group(group) => {
                if let Some(missing) = group.references().find(|id| !self.groups.contains_key(id)) {
                    return Err(format!(
                        "group {} sends to or watches group {missing}, which does not exist",
                        group.id
                    ));
                }
                let buckets = vec![(0, 0); group.buckets.len()];
                self.group_counters.insert(group.id, GroupTotals { total: (0, 0), buckets });
                self.groups.insert(group.id, Arc::clone(group));
                Ok(())
            }
            // The reference has no clock, so the caller states which bands a packet exceeds; see
            // `Reference::exceed`.
            Operation::Meter(meter) => {
                self.meters.insert(meter.id, Arc::clone(meter));
                Ok(())
            }
            Operation::RemoveMeter(id) => match self.meters.remove(id) {
                Some(_) => Ok(()),
                None => Err(format!("there is no meter {id} to remove")),
            },
            Operation::PacketOut(packet) => {
                self.packet_out(packet);
                Ok(())
            }
            // In the reference, no packet waits.
            Operation::EndWaits(_) => Ok(()),
            Operation::RemoveGroup(id) => match self.groups.remove(id) {
                Some(_) => Ok(()),
                None => Err(format!("there is no group {id} to remove")),
            },
            Operation::Settings(settings) => {
                self.settings = *settings;
                Ok(())
            }
            Operation::Stateless(stateless_config) => {
                self.stateless.clone_from(stateless_config);
                Ok(())
            }
            Operation::Bridge(bridge) => {
                self.bridge.clone_from(bridge);
                Ok(())
            }
            Operation::All(all) => all.iter().try_for_each(|operation| self.apply(operation)),
            Operation::RemovePort(number) => match self.ports.remove(number) {
                Some(_) => Ok(()),
                None => Err(format!("there is no port {number} to remove")),
            },
        }
    }

    fn change(&mut self, change: &EntryChange) -> Result<(), String> {
        self.tables.change(change)?;
        let from_zero = match change {
            EntryChange::Add(entry) => Some(entry.id),
            EntryChange::Modify { id, reset_counts: true, .. } => Some(*id),
            _ => None,
        };
        if let Some(id) = from_zero {
            self.entry_counters.insert(id, (0, 0));
        }
        Ok(())
    }

    /// Sets the bands that the next packet exceeds, by the table of the entry that refers to the meter.
    pub fn exceed(&mut self, bands: BTreeMap<TableId, Band>) {
        self.bands = bands;
    }

    /// Sets, for each flood of the next packet that has a storm limit, whether it exceeds the limit. Further
    /// floods do not. The reference has no clock.
    pub fn exceed_storm_limits(&mut self, floods: Vec<bool>) {
        self.exceeded_floods = floods;
    }

    /// Processes a packet-out of the controller.
    pub fn packet_out(&mut self, packet: &PacketOut) -> Processed {
        let bands = std::mem::take(&mut self.bands);
        let exceeded_floods = std::mem::take(&mut self.exceeded_floods);
        let mut run = run::Run::new(self, ReferencePacket::arriving(packet.in_port, &packet.bytes));
        run.bands = bands;
        run.exceeded_floods = exceeded_floods;
        run.packet_out(&packet.actions);
        let (hits, group_hits) = (run.hits.clone(), run.group_hits.clone());
        self.count(&hits, &group_hits, run.finish())
    }

    /// Processes a frame received on `in_port`. If stateless forwarding applies, it handles the frame;
    /// otherwise the tables do.
    pub fn process(&mut self, in_port: PortNo, frame: &[u8]) -> Processed {
        self.process_unfinished(in_port, frame, Unfinished::default())
    }

    /// Processes a frame whose checksum or segmentation the sender left to the device. Stateless forwarding
    /// treats the frame as complete.
    pub fn process_unfinished(&mut self, in_port: PortNo, frame: &[u8], unfinished: Unfinished) -> Processed {
        let bands = std::mem::take(&mut self.bands);
        let exceeded_floods = std::mem::take(&mut self.exceeded_floods);
        let packet = ReferencePacket::unfinished(in_port, frame, unfinished);
        let mut run = run::Run::new(self, packet);
        run.bands = bands;
        run.exceeded_floods = exceeded_floods;
        run.process();
        let (hits, group_hits) = (run.hits.clone(), run.group_hits.clone());
        self.count(&hits, &group_hits, run.finish())
    }

    /// Records a frame that is dropped as a whole for a reason outside the rules. It is dropped before the
    /// lookup in the given table, or after the last lookup if no table is given.
    pub fn refuse(
        &mut self,
        in_port: PortNo,
        frame: (&[u8], Unfinished),
        before: Option<TableId>,
        reason: DropReason,
    ) -> Processed {
        let bands = std::mem::take(&mut self.bands);
        let exceeded_floods = std::mem::take(&mut self.exceeded_floods);
        let packet = ReferencePacket::unfinished(in_port, frame.0, frame.1);
        let mut run = run::Run::new(self, packet);
        run.bands = bands;
        run.exceeded_floods = exceeded_floods;
        run.end = before.map(|table| (table, reason));
        run.process();
        if before.is_none() {
            run.reasons.push(reason);
        }
        run.sent.clear();
        run.packet_ins.clear();
        let (hits, group_hits) = (run.hits.clone(), run.group_hits.clone());
        self.count(&hits, &group_hits, run.finish())
    }

    /// Counts a packet's lookups, group uses and outcome.
    fn count(&mut self, hits: &[Hit], group_hits: &[GroupHit], processed: Processed) -> Processed {
        for (table, hit, frame_bytes) in hits {
            let (lookups, matches) = self.table_counters.entry(*table).or_default();
            *lookups += 1;
            if let Some(id) = hit {
                *matches += 1;
                let (packets, bytes) = self.entry_counters.entry(*id).or_default();
                *packets += 1;
                *bytes += *frame_bytes as u64;
            }
        }
        for (id, buckets, frame_bytes) in group_hits {
            let counters = self.group_counters.entry(*id).or_default();
            counters.total.0 += 1;
            counters.total.1 += *frame_bytes as u64;
            for bucket in buckets {
                counters.buckets[*bucket].0 += 1;
                counters.buckets[*bucket].1 += *frame_bytes as u64;
            }
        }
        if let Outcome::Dropped(reason) = processed.outcome {
            *self.drops.entry(reason).or_default() += 1;
        }
        for reason in &processed.copy_drops {
            *self.copy_drops.entry(*reason).or_default() += 1;
        }
        processed
    }

    /// Returns the number of entries of a table that match a frame received on `in_port`.
    #[must_use]
    pub fn matches(&self, table: TableId, in_port: PortNo, frame: &[u8]) -> usize {
        let packet = ReferencePacket::arriving(in_port, frame);
        self.entries(table).iter().filter(|entry| fields::matches(&packet, &entry.matching)).count()
    }

    /// Returns the numbers of packets and bytes that hit an entry. The counters of a removed entry are kept
    /// until its ID is reused.
    #[must_use]
    pub fn entry_counters(&self, id: EntryId) -> Option<(u64, u64)> {
        self.entry_counters.get(&id).copied()
    }

    /// Returns the counters of a group since it was added.
    #[must_use]
    pub fn group_counters(&self, id: GroupId) -> Option<&GroupTotals> {
        self.group_counters.get(&id).filter(|_| self.groups.contains_key(&id))
    }

    /// Returns a table's lookups and matches.
    #[must_use]
    pub fn table_counters(&self, table: TableId) -> (u64, u64) {
        self.table_counters.get(&table).copied().unwrap_or_default()
    }

    /// Returns the number of packets dropped as a whole, by reason.
    #[must_use]
    pub fn drops(&self) -> &BTreeMap<DropReason, u64> {
        &self.drops
    }

    /// Returns how often each drop reason was recorded in [`Processed::copy_drops`].
    #[must_use]
    pub fn copy_drops(&self) -> &BTreeMap<DropReason, u64> {
        &self.copy_drops
    }

    /// Returns all ports, by number.
    #[must_use]
    pub fn ports(&self) -> &BTreeMap<PortNo, PortState> {
        &self.ports
    }

    /// Returns a table's entries in the order in which they are tried.
    #[must_use]
    pub fn entries(&self, table: TableId) -> &[Arc<FlowEntry>] {
        self.tables.entries(table)
    }

    /// Returns the port on which a MAC address was learned under a VLAN ID, from the entries of
    /// [`flow::operation::MAC_TABLE`].
    #[must_use]
    pub fn learned(&self, vid: u16, mac: u64) -> Option<PortNo> {
        self.tables.learned(vid, mac).map(|(_, port)| port)
    }

    /// Returns the number of MAC addresses that are learned on a port.
    #[must_use]
    pub fn learned_at(&self, port: PortNo) -> usize {
        self.tables.learned_at(port)
    }
}
