// SPDX-License-Identifier: Apache-2.0
//! Queries about ports, groups, meters, learned MACs and the stateless forwarder. Statistics of entries and
//! tables are in `stats`.

use crate::macs::Mac;
use crate::model::Model;
use crate::port::Port;
use crate::rules::TableSet;
use crate::rules::records::first;
use dataplane::{DataPlane, GroupCounters, MeterCounters, PortCounters, PortQueue, TableCapabilities};
use flow::group::Group;
use flow::meter::Meter;
use flow::stateless::StatelessConfig;
use flow::{BridgeConfig, EntryId, FlowEntry, GroupId, MeterId, Nanos, PortNo};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A group with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// Definition of the group.
    pub group: Arc<Group>,
    /// Time since the group was added, in nanoseconds.
    pub duration_ns: Nanos,
    /// Number of entries that send to the group, and of groups that send to it or watch it.
    pub references: usize,
    /// Counters of the group.
    pub counters: GroupCounters,
}

/// A meter with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterStats {
    /// Definition of the meter, as requested.
    pub meter: Arc<Meter>,
    /// Time since the meter was added, in nanoseconds.
    pub duration_ns: Nanos,
    /// Number of entries that use the meter.
    pub references: usize,
    /// Counters of the meter.
    pub counters: MeterCounters,
}

impl<D: DataPlane> Model<D> {
    /// Returns a group with its counters.
    pub fn group(&mut self, now: Nanos, id: GroupId) -> Option<GroupStats> {
        let record = self.rules.groups.get(id)?;
        Some(GroupStats {
            references: record.users + self.rules.groups.senders(id).count(),
            duration_ns: now.saturating_sub(record.since),
            counters: self.plane.get_mut().group_counters(id).unwrap_or_default(),
            group: Arc::clone(&record.what),
        })
    }

    /// Returns the numbers of all groups.
    #[must_use]
    pub fn group_ids(&self) -> Vec<GroupId> {
        self.rules.groups.records().keys().copied().collect()
    }

    /// Returns the numbers of all groups in an order in which the groups can be added: each group follows the
    /// groups that it sends to or watches.
    #[must_use]
    pub fn groups_in_order(&self) -> Vec<GroupId> {
        let mut ids = self.rules.groups.senders_first();
        ids.reverse();
        ids
    }

    /// Returns a group's definition.
    #[must_use]
    pub fn group_numbered(&self, id: GroupId) -> Option<&Group> {
        Some(&*self.rules.groups.get(id)?.what)
    }

    /// Returns the lowest group number in use within a range.
    pub(crate) fn first_group(&self, range: &RangeInclusive<u32>) -> Option<GroupId> {
        first(self.rules.groups.records(), GroupId(*range.start())..=GroupId(*range.end()))
    }

    /// Returns a meter with its counters.
    pub fn meter(&mut self, now: Nanos, id: MeterId) -> Option<MeterStats> {
        let record = self.rules.meters.get(&id)?;
        Some(MeterStats {
            references: record.users,
            duration_ns: now.saturating_sub(record.since),
            counters: self.plane.get_mut().meter_counters(id).unwrap_or_default(),
            meter: Arc::clone(&record.what),
        })
    }

    /// Returns the numbers of all meters.
    #[must_use]
    pub fn meter_ids(&self) -> Vec<MeterId> {
        self.rules.meters.keys().copied().collect()
    }

    /// Returns a meter's definition, as requested.
    pub(crate) fn meter_numbered(&self, id: MeterId) -> Option<&Meter> {
        Some(&*self.rules.meters.get(&id)?.what)
    }

    /// Returns the lowest meter number in use within a range.
    pub(crate) fn first_meter(&self, range: &RangeInclusive<u32>) -> Option<MeterId> {
        first(&self.rules.meters, MeterId(*range.start())..=MeterId(*range.end()))
    }

    /// Returns the ports in order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.rules.ports.values()
    }

    /// Returns the port with this number.
    #[must_use]
    pub fn port(&self, number: PortNo) -> Option<&Port> {
        self.rules.ports.get(&number)
    }

    /// Returns a port's counters, or `None` if the port does not exist.
    pub fn port_counters(&mut self, number: PortNo) -> Option<PortCounters> {
        self.rules
            .ports
            .contains_key(&number)
            .then(|| self.plane.get_mut().port_counters(number).unwrap_or_default())
    }

    /// Returns a port's egress queues in order of their numbers.
    pub fn queues(&mut self, number: PortNo) -> Vec<PortQueue> {
        self.plane.get_mut().queues(number)
    }

    /// Returns the number of learned MACs.
    #[must_use]
    pub fn mac_count(&self) -> usize {
        self.macs.len()
    }

    /// Returns the learned MACs, ordered by VLAN ID and address.
    pub fn macs(&mut self, now: Nanos) -> Vec<Mac> {
        self.macs.list(now, &self.rules.store, self.plane.get_mut())
    }

    /// Returns the number of MACs that are learned at a port, and the number of reports of packets
    /// whose source was not learned because of the port's limit.
    #[must_use]
    pub fn mac_counts(&self, port: PortNo) -> (u32, u64) {
        self.macs.counts_of(port)
    }

    /// Returns the configuration of the stateless forwarder, if it is configured.
    #[must_use]
    pub fn stateless(&self) -> Option<&Arc<StatelessConfig>> {
        self.rules.stateless.as_ref()
    }

    /// Returns the settings of the ports for NORMAL, unless all ports have the default settings.
    #[must_use]
    pub fn bridge(&self) -> Option<&Arc<BridgeConfig>> {
        self.rules.bridge.as_ref()
    }

    /// Returns what the tables of the data plane can do.
    #[must_use]
    pub fn table_capabilities(&self) -> TableCapabilities {
        self.plane.get().table_capabilities()
    }

    /// Returns the tables of the pipeline.
    #[must_use]
    pub fn pipeline_tables(&self) -> &TableSet {
        &self.rules.pipeline_tables
    }

    /// Returns the entry with this ID, even if it waits for its release.
    #[must_use]
    pub fn entry(&self, id: EntryId) -> Option<&FlowEntry> {
        Some(&**self.rules.store.entry(id)?)
    }
}
