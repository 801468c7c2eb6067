// SPDX-License-Identifier: Apache-2.0
//! The type [`Model`]: its state, its constructor and the helpers that all its parts share.

use crate::async_messages::{AsyncMessage, AsyncMessageDrops, AsyncQueue, RemovedReason};
use crate::config::{ModelConfig, SECOND_NS};
use crate::groups::Groups;
use crate::macs::Macs;
use crate::marking::Looks;
use crate::meters::Meters;
use crate::pipeline_tables::TableSet;
use crate::ports::Port;
use crate::sharing::Sharing;
use crate::store::{Life, Store};
use crate::timers::{Timer, Timers};
use crate::trace::TraceCounts;
use dataplane::{DataPlane, EntryCounters};
use flow::operation::MAC_TABLE;
use flow::stateless::StatelessConfig;
use flow::{Action, EntryId, FlowEntry, FlowMod, Instructions, Nanos, Operation, PortNo, Settings, port_no};
use frame::Frame;
use hashbrown::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Counts of a replaced entry, which are added to the counters of the entry that replaced it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    pub packets: u64,
    pub bytes: u64,
    /// The replaced entry, as long as the data plane may still count packets for it.
    pub from: Option<EntryId>,
}

/// An entry that left its table and waits until the data plane has released it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dying {
    /// Version of the operation that removes the entry.
    pub version: u64,
    pub removed_ns: Nanos,
    pub id: EntryId,
    /// Reason to report in a flow-removed message; `None`: no message.
    pub reason: Option<RemovedReason>,
    /// The entry that replaced this one and continues its counts.
    pub heir: Option<EntryId>,
}

/// One datapath as controllers see it, on top of a data plane. Lives on the control thread.
#[derive(Debug)]
pub struct Model<D: DataPlane> {
    pub(crate) config: ModelConfig,
    pub(crate) plane: D,
    pub(crate) store: Store,
    pub(crate) sharing: Sharing,
    pub(crate) carried: HashMap<EntryId, Carried>,
    pub(crate) dying: VecDeque<Dying>,
    /// Timers of flow entries (index 0) and of learned MACs (index 1); see [`timers_of`].
    pub(crate) timers: [Timers; 2],
    pub(crate) macs: Macs,
    pub(crate) looks: Looks,
    pub(crate) ports: BTreeMap<PortNo, Port>,
    pub(crate) groups: Groups,
    pub(crate) meters: Meters,
    pub(crate) async_messages: AsyncQueue,
    settings: Settings,
    pub(crate) stateless: Option<Arc<StatelessConfig>>,
    pub(crate) pipeline_tables: TableSet,
    /// Version of the last operation submitted to the data plane.
    pub(crate) version: u64,
    /// A version that was active before the workers reported the current backlog of events.
    pub(crate) settle_next: u64,
    /// Version up to which removed entries may be released: no unread event refers to them.
    pub(crate) settled: u64,
    /// Results of comparing traces of real packets with the rules.
    pub(crate) trace_counts: TraceCounts,
    /// Events taken since the event queue was last empty.
    pub(crate) backlog_events: usize,
}

/// Returns the index into `Model::timers` for entries of this table.
pub(crate) fn timers_of(table: u8) -> usize {
    usize::from(table == MAC_TABLE)
}

impl<D: DataPlane> Model<D> {
    /// Creates a datapath without ports. If it is standalone, it starts with the entry that forwards by
    /// NORMAL.
    #[must_use]
    pub fn new(config: ModelConfig, plane: D, now: Nanos) -> Self {
        let mut model = Self {
            plane,
            store: Store::new(),
            sharing: Sharing::default(),
            carried: HashMap::new(),
            dying: VecDeque::new(),
            timers: [Timers::default(), Timers::default()],
            macs: Macs::default(),
            looks: Looks::from(config.learning, now),
            ports: BTreeMap::new(),
            groups: Groups::default(),
            meters: Meters::new(),
            async_messages: AsyncQueue::new(config.limits.async_messages),
            settings: Settings::default(),
            stateless: None,
            pipeline_tables: TableSet::ALL,
            config,
            version: 0,
            settle_next: 0,
            settled: 0,
            trace_counts: TraceCounts::default(),
            backlog_events: 0,
        };
        // Refused only if the limit of entries is 0; then the table correctly stays empty.
        let _ = model.bundle(now, model.default_entries());
        model
    }

    /// Returns the flow-mods that a fresh datapath starts with.
    pub(crate) fn default_entries(&self) -> Vec<FlowMod> {
        let normal = FlowMod {
            priority: 0,
            instructions: Instructions::apply(vec![Action::output(port_no::NORMAL)]),
            ..FlowMod::default()
        };
        if self.config.standalone { vec![normal] } else { Vec::new() }
    }

    /// Returns the configuration of the datapath.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns the settings that apply to every packet, independent of the entries hit.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Changes the settings that apply to every packet. Submits an operation if they differ from the current
    /// ones.
    pub fn set_settings(&mut self, settings: Settings) {
        if settings != self.settings {
            self.settings = settings;
            self.version = self.plane.submit(Operation::Settings(settings));
        }
    }

    /// Returns the data plane.
    pub fn plane_mut(&mut self) -> &mut D {
        &mut self.plane
    }

    /// Returns the version of the last change. Once [`Model::is_applied`] returns true for it, all changes so
    /// far are active.
    #[must_use]
    pub fn barrier(&self) -> u64 {
        self.version
    }

    /// Returns whether a version is active on all workers.
    pub fn is_applied(&mut self, version: u64) -> bool {
        version == 0 || self.plane.applied() >= version
    }

    /// Takes the next notice for controllers from the queue.
    pub fn next_notice(&mut self) -> Option<AsyncMessage> {
        self.async_messages.pop()
    }

    /// Returns the numbers of notices dropped because the queue was full.
    #[must_use]
    pub fn notice_drops(&self) -> AsyncMessageDrops {
        self.async_messages.drops()
    }

    /// Returns the frame of a packet-in to the data plane.
    pub fn recycle(&mut self, frame: Frame) {
        self.plane.recycle(frame);
    }

    /// Returns the time at which the next timer or the next learning step is due. Events and completed
    /// removals also need [`Model::poll`], at any time, so call it when the data plane has reported something
    /// as well.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let looks = self.config.learning.map(|_| self.looks.due());
        self.timers.iter().filter_map(Timers::next).chain(looks).min()
    }

    /// Returns an entry's counters as a controller sees them, including those of entries that it replaced.
    pub(crate) fn counters_of(&mut self, id: EntryId) -> EntryCounters {
        let mut sum = self.plane.entry_counters(id);
        let mut at = id;
        while let Some(carried) = self.carried.get(&at) {
            sum.packets = sum.packets.wrapping_add(carried.packets);
            sum.bytes = sum.bytes.wrapping_add(carried.bytes);
            let Some(from) = carried.from else { break };
            let earlier = self.plane.entry_counters(from);
            sum.packets = sum.packets.wrapping_add(earlier.packets);
            sum.bytes = sum.bytes.wrapping_add(earlier.bytes);
            at = from;
        }
        sum
    }

    /// Returns when an entry times out if it is not hit again, and the reason.
    pub(crate) fn deadline(
        &self,
        entry: &FlowEntry,
        created: Nanos,
        used: Nanos,
    ) -> Option<(Nanos, RemovedReason)> {
        let last = used.max(created);
        if entry.table == MAC_TABLE {
            let ageing = if self.config.mac_ageing == 0 { Nanos::MAX / 2 } else { self.config.mac_ageing };
            return Some((last.saturating_add(ageing), RemovedReason::IdleTimeout));
        }
        let after = |from: Nanos, s: u16| (s != 0).then(|| from.saturating_add(Nanos::from(s) * SECOND_NS));
        let idle = after(last, entry.idle_timeout_s).map(|at| (at, RemovedReason::IdleTimeout));
        let hard = after(created, entry.hard_timeout_s).map(|at| (at, RemovedReason::HardTimeout));
        match (idle, hard) {
            (Some(idle), Some(hard)) => Some(if hard.0 <= idle.0 { hard } else { idle }),
            (one, other) => one.or(other),
        }
    }

    /// Arms the timer of an entry that was last hit at `used`.
    pub(crate) fn arm(&mut self, id: EntryId, used: Nanos) {
        let Some(slot) = self.store.slot(id) else { return };
        let Some(entry) = &slot.entry else { return };
        if let Some((at, _)) = self.deadline(entry, slot.created_ns, used) {
            let timer = Timer { at, serial: slot.serial, id };
            let timers = &mut self.timers[timers_of(entry.table)];
            timers.arm(timer);
            timers.compact(|t| self.store.is_listed(t.id, t.serial));
        }
    }

    /// Returns when the data plane last hit an entry; 0 if it does not know the entry yet.
    pub(crate) fn used_ns(&mut self, id: EntryId) -> Nanos {
        match self.store.slot(id) {
            Some(slot) if slot.life != Life::Fresh => self.plane.entry_counters(id).used_ns,
            _ => 0,
        }
    }
}
