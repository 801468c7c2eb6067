// SPDX-License-Identifier: Apache-2.0
//! The model: what it owns, and the little that all its parts use.

use crate::config::{Config, SECOND_NS};
use crate::data_plane::{DataPlane, EntryCounters};
use crate::groups::Groups;
use crate::macs::Macs;
use crate::marking::Looks;
use crate::meters::Meters;
use crate::notices::{Notice, NoticeDrops, Notices, RemovedReason};
use crate::pipeline_tables::TableSet;
use crate::ports::Port;
use crate::sharing::Sharing;
use crate::store::{Life, Store};
use crate::timers::{Timer, Timers};
use crate::trace::TraceCounts;
use flow::operation::MAC_TABLE;
use flow::stateless::Stateless;
use flow::{Action, EntryId, FlowEntry, FlowMod, Instructions, Nanos, Operation, PortNo, Settings, port_no};
use frame::Frame;
use hashbrown::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Counts that an entry shows on top of the data plane's: those of the entry it replaced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    pub packets: u64,
    pub bytes: u64,
    /// The replaced entry, as long as the data plane may still count packets for it.
    pub from: Option<EntryId>,
}

/// An entry that left its table and waits until the data plane has forgotten it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dying {
    /// The operation that removes it.
    pub version: u64,
    pub removed_ns: Nanos,
    pub id: EntryId,
    /// What to report, if the entry asks for it.
    pub reason: Option<RemovedReason>,
    /// The entry that replaced it and carries its counts on.
    pub heir: Option<EntryId>,
}

/// One datapath as controllers see it, over a data plane.
#[derive(Debug)]
pub struct Model<D: DataPlane> {
    pub(crate) config: Config,
    pub(crate) plane: D,
    pub(crate) store: Store,
    pub(crate) sharing: Sharing,
    pub(crate) carried: HashMap<EntryId, Carried>,
    pub(crate) dying: VecDeque<Dying>,
    /// Timers of flow entries, and of learned MACs.
    pub(crate) timers: [Timers; 2],
    pub(crate) macs: Macs,
    pub(crate) looks: Looks,
    pub(crate) ports: BTreeMap<PortNo, Port>,
    pub(crate) groups: Groups,
    pub(crate) meters: Meters,
    pub(crate) notices: Notices,
    settings: Settings,
    pub(crate) stateless: Option<Arc<Stateless>>,
    pub(crate) pipeline_tables: TableSet,
    /// The version submitted last.
    pub(crate) version: u64,
    /// A version that was in force before the events taken since then arose.
    pub(crate) settle_next: u64,
    /// The version up to which removed entries may be forgotten: no event about them is under way.
    pub(crate) settled: u64,
    /// How traces of real packets came out.
    pub(crate) trace_counts: TraceCounts,
    /// Events taken since none was left.
    pub(crate) backlog_events: usize,
}

/// Index of an entry's timers.
pub(crate) fn timers_of(table: u8) -> usize {
    usize::from(table == MAC_TABLE)
}

impl<D: DataPlane> Model<D> {
    /// A datapath without ports; standalone, with the entry that makes it a learning bridge.
    #[must_use]
    pub fn new(config: Config, plane: D, now: Nanos) -> Self {
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
            notices: Notices::new(config.limits.notices),
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
        // Only a limit of no entries at all refuses it, and then an empty table is what was asked for.
        let _ = model.bundle(now, model.default_entries());
        model
    }

    /// The flow-mods that make a fresh datapath.
    pub(crate) fn default_entries(&self) -> Vec<FlowMod> {
        let normal = FlowMod {
            priority: 0,
            instructions: Instructions::apply(vec![Action::output(port_no::NORMAL)]),
            ..FlowMod::default()
        };
        if self.config.standalone { vec![normal] } else { Vec::new() }
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How packets are treated whatever they hit.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Sets it.
    pub fn set_settings(&mut self, settings: Settings) {
        if settings != self.settings {
            self.settings = settings;
            self.version = self.plane.submit(Operation::Settings(settings));
        }
    }

    /// The data plane.
    pub fn plane_mut(&mut self) -> &mut D {
        &mut self.plane
    }

    /// Version of the last change: when [`Model::is_applied`] says yes to it, all changes so far are in force.
    #[must_use]
    pub fn barrier(&self) -> u64 {
        self.version
    }

    /// Whether a version is in force everywhere.
    pub fn is_applied(&mut self, version: u64) -> bool {
        version == 0 || self.plane.applied() >= version
    }

    /// The next thing a controller is to be told.
    pub fn next_notice(&mut self) -> Option<Notice> {
        self.notices.pop()
    }

    /// Notices that found no room so far.
    #[must_use]
    pub fn notice_drops(&self) -> NoticeDrops {
        self.notices.drops()
    }

    /// Gives the frame of a packet-in back.
    pub fn recycle(&mut self, frame: Frame) {
        self.plane.recycle(frame);
    }

    /// When the clock next makes something to do. Events and removals that come into force do so too, at any time: poll
    /// also when the data plane has reported something.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let looks = self.config.learning.map(|_| self.looks.due());
        self.timers.iter().filter_map(Timers::next).chain(looks).min()
    }

    /// An entry's counters as a controller sees them.
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

    /// When an entry goes for lack of packets or age, and why.
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

    /// Sets the timer of an entry that was last hit at `used`.
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

    /// When the data plane last hit an entry; 0 if it does not know it yet.
    pub(crate) fn used_ns(&mut self, id: EntryId) -> Nanos {
        match self.store.slot(id) {
            Some(slot) if slot.life != Life::Fresh => self.plane.entry_counters(id).used_ns,
            _ => 0,
        }
    }
}
