// SPDX-License-Identifier: Apache-2.0
//! Bits that the rules examine. They determine which packets belong to one flow.

use crate::run::Run;
use crate::{Reference, ReferencePacket, RuleSource, Unfinished};
use flow::group::Group;
use flow::operation::Settings;
use flow::stateless::StatelessConfig;
use flow::{
    Action, BridgeConfig, Edit, EntryId, Field, FlowEntry, GroupId, MeterId, Next, PortNo, PortState,
    TableId, port_no,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Examined bits of each field, right-aligned.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExaminedBits(pub BTreeMap<Field, u128>);

impl ExaminedBits {
    /// Adds bits of a field.
    pub fn add(&mut self, field: Field, mask: u128) {
        *self.0.entry(field).or_default() |= mask;
    }

    /// Adds all bits of another set.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(field, mask)| self.add(*field, *mask));
    }

    /// Returns whether this set has all bits of the other set.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        other.0.iter().all(|(field, mask)| self.0.get(field).is_some_and(|own| mask & !own == 0))
    }

    /// Returns the examined bits of each field, in the order of the fields, or `None` for a field that the
    /// packet does not have.
    #[must_use]
    pub fn values_of(&self, packet: &ReferencePacket) -> Vec<Option<u128>> {
        self.0.iter().map(|(field, mask)| Some(packet.value(*field)? & mask)).collect()
    }
}

/// Values of a packet that determine its flow.
pub type FlowValues = Vec<Option<u128>>;

/// Rules that record values of a packet while it is processed. After bits have moved or headers have changed,
/// each lookup records the examined values if they differ from those on arrival.
struct Watched<'a> {
    rules: &'a Reference,
    bits: &'a ExaminedBits,
    arrived: &'a ReferencePacket,
    /// Whether an entry that the packet hit moves or copies bits of the packet.
    has_moved: Cell<bool>,
    seen: RefCell<FlowValues>,
}

impl Watched<'_> {
    fn note_moves(&self, entry: Option<&FlowEntry>) {
        let moves = entry.is_some_and(|entry| entry.instructions.apply.iter().any(moves_bits));
        self.has_moved.set(self.has_moved.get() || moves);
    }
}

/// Returns whether an action inserts, removes or copies bits of a packet.
fn moves_bits(action: &Action) -> bool {
    match action {
        Action::CopyTtlOut | Action::CopyTtlIn | Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => {
            true
        }
        Action::PushVlan(_) | Action::PushMpls(_) | Action::PushPbb(_) | Action::PushKey(_) => true,
        Action::PushPolka(_) | Action::PushTf(_) | Action::PushTfWide(_) | Action::PopKey | Action::PopTf => {
            true
        }
        Action::Edit(Edit::ModifyField { .. }) => false,
        Action::Edit(_) => true,
        Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) | Action::SetField(_) => false,
        Action::SetMplsTtl(_) | Action::DecMplsTtl | Action::SetNwTtl(_) | Action::DecNwTtl => false,
    }
}

impl RuleSource for Watched<'_> {
    fn settings(&self) -> Settings {
        self.rules.settings()
    }

    fn stateless(&self) -> Option<&StatelessConfig> {
        self.rules.stateless()
    }

    fn bridge(&self) -> Option<&BridgeConfig> {
        self.rules.bridge()
    }

    fn port(&self, number: PortNo) -> Option<PortState> {
        self.rules.port(number)
    }

    fn ports(&self) -> Vec<PortState> {
        RuleSource::ports(self.rules)
    }

    fn group(&self, id: GroupId) -> Option<Arc<Group>> {
        self.rules.group(id)
    }

    fn remarks(&self, meter: MeterId) -> bool {
        self.rules.remarks(meter)
    }

    fn lookup(&self, table: TableId, packet: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        if self.has_moved.get() || packet.headers != self.arrived.headers {
            let values = self.bits.values_of(packet);
            if values != self.bits.values_of(self.arrived) {
                let mut seen = self.seen.borrow_mut();
                seen.push(Some(table.0.into()));
                seen.extend(values);
            }
        }
        let found = self.rules.lookup(table, packet);
        self.note_moves(found.as_deref());
        found
    }

    fn at_index(&self, table: TableId, index: u32, packet: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        let found = self.rules.at_index(table, index, packet);
        self.note_moves(found.as_deref());
        found
    }

    fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)> {
        RuleSource::learned(self.rules, vid, mac)
    }

    fn learned_at(&self, port: PortNo) -> usize {
        RuleSource::learned_at(self.rules, port)
    }
}

/// Tables and groups that packets can reach.
#[derive(Default)]
struct Reached {
    tables: BTreeSet<TableId>,
    groups: BTreeSet<GroupId>,
    normal: bool,
}

impl Reference {
    /// Returns the bits that are examined by the tables and groups that received packets can reach. NORMAL
    /// examines both MAC addresses and the VLAN ID. If ports have settings for NORMAL, it also examines
    /// whether there is a tag.
    #[must_use]
    pub fn examined(&self) -> ExaminedBits {
        let mut reached = Reached::default();
        self.reach_table(TableId(0), &mut reached);
        let mut bits = ExaminedBits::default();
        for table in &reached.tables {
            let conditions = self.entries(*table).iter().flat_map(|entry| entry.matching.fields());
            conditions.for_each(|condition| bits.add(condition.field, condition.mask));
        }
        bits.merge(&self.by_normal(&reached));
        bits
    }

    /// Returns the bits that NORMAL examines, if received packets can reach it.
    pub(crate) fn examined_by_normal(&self) -> ExaminedBits {
        let mut reached = Reached::default();
        self.reach_table(TableId(0), &mut reached);
        self.by_normal(&reached)
    }

    fn by_normal(&self, reached: &Reached) -> ExaminedBits {
        let mut bits = ExaminedBits::default();
        if reached.normal {
            bits.add(Field::EthDst, Field::EthDst.full_mask());
            bits.add(Field::EthSrc, Field::EthSrc.full_mask());
            bits.add(Field::VlanVid, if self.bridge.is_some() { 0x1fff } else { 0xfff });
        }
        bits
    }

    /// Processes a received frame. Returns the values that lookups examine after bits have moved or headers
    /// have changed, if the values differ from those on arrival. Returns `None` if no table handles the
    /// frame.
    #[must_use]
    pub fn exposed_values(
        &self,
        in_port: PortNo,
        frame: (&[u8], Unfinished),
        bits: &ExaminedBits,
    ) -> Option<FlowValues> {
        let packet = ReferencePacket::unfinished(in_port, frame.0, frame.1);
        let arrived = packet.clone();
        let watched = Watched {
            rules: self,
            bits,
            arrived: &arrived,
            has_moved: Cell::default(),
            seen: RefCell::default(),
        };
        let mut run = Run::new(&watched, packet);
        run.process();
        let is_looked_up = !run.hits.is_empty();
        is_looked_up.then(|| watched.seen.take())
    }

    fn reach_table(&self, table: TableId, reached: &mut Reached) {
        if !reached.tables.insert(table) {
            return;
        }
        for entry in self.entries(table) {
            self.reach_by(&entry.instructions.apply, reached);
            self.reach_by(&entry.instructions.write, reached);
            if let Some(next) = entry.instructions.next.map(Next::table) {
                self.reach_table(next, reached);
            }
        }
    }

    fn reach_by(&self, actions: &[Action], reached: &mut Reached) {
        for action in actions {
            match action {
                Action::Output { port: port_no::NORMAL, .. } => reached.normal = true,
                Action::Group(id) if reached.groups.insert(*id) => {
                    let group = self.group(*id);
                    let buckets = group.iter().flat_map(|group| &group.buckets);
                    buckets.for_each(|bucket| self.reach_by(&bucket.actions, reached));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{EntryChange, FieldMatch, Instructions, Match, Operation, Slice, SliceBase};

    fn rules(entries: Vec<(u8, Field, Instructions)>) -> Reference {
        let mut rules = Reference::new();
        rules.apply(&Operation::Port(PortState::up(PortNo(1)))).unwrap();
        let change = |(id, (table, field, instructions)): (usize, (u8, Field, Instructions))| {
            let matching = Match::new([FieldMatch { field, value: 0, mask: 1 }]).unwrap();
            let entry = FlowEntry {
                id: EntryId(id as u32),
                table: TableId(table),
                priority: 1,
                matching,
                instructions: Arc::new(instructions),
                idle_timeout_s: 0,
                hard_timeout_s: 0,
                cookie: 0,
                flags: flow::EntryFlags::default(),
                low_latency: false,
            };
            EntryChange::Add(Arc::new(entry))
        };
        rules.apply(&Operation::Entries(entries.into_iter().enumerate().map(change).collect())).unwrap();
        rules
    }

    fn goto(table: u8, apply: Vec<Action>) -> Instructions {
        Instructions { apply, next: Some(Next::Table(TableId(table))), ..Instructions::default() }
    }

    #[test]
    fn tables_that_no_packet_reaches_examine_nothing() {
        let normal = Instructions::apply(vec![Action::output(port_no::NORMAL)]);
        let made = rules(vec![
            (0, Field::EthDst, goto(2, vec![])),
            (1, Field::TunnelId, Instructions::default()),
            (2, Field::Metadata, normal),
        ]);
        let all = 0xffff_ffff_ffff;
        let expected =
            [(Field::Metadata, 1), (Field::EthDst, all), (Field::EthSrc, all), (Field::VlanVid, 0xfff)];
        assert_eq!(made.examined().0, expected.into());
    }

    #[test]
    fn an_inner_tag_is_examined_after_a_pop() {
        let made = rules(vec![
            (0, Field::EthDst, goto(1, vec![Action::PopVlan])),
            (1, Field::VlanVid, goto(2, vec![])),
        ]);
        let frame = |inner: u8| {
            let mut frame = vec![0; 12];
            frame.extend([0x81, 0, 0, 7, 0x81, 0, 0, inner, 8, 6]);
            frame.resize(60, 0);
            frame
        };
        let exposed =
            |inner| made.exposed_values(PortNo(1), (&frame(inner), Unfinished::default()), &made.examined());
        assert!(exposed(2).is_some() && exposed(2) != exposed(3));
        assert_eq!(exposed(2), exposed(4), "only one bit is examined");
        assert_eq!(
            made.exposed_values(PortNo(2), (&frame(2), Unfinished::default()), &made.examined()),
            None
        );
    }

    #[test]
    fn bytes_that_a_push_moves_are_examined_although_the_headers_stay() {
        let slice = Slice { base: SliceBase::Packet, offset_bits: 8 * 22, length_bits: 8 };
        let made = rules(vec![
            (0, Field::EthDst, goto(1, vec![Action::PushMpls(0x8847)])),
            (1, Field::Slice(slice), goto(2, vec![])),
        ]);
        let exposed = |label: u8| {
            let mut frame = vec![0; 12];
            frame.extend([0x88, 0x47, 0, 0, 0, 64, label, 0, 1, 64]);
            frame.resize(60, 0);
            made.exposed_values(PortNo(1), (&frame, Unfinished::default()), &made.examined())
        };
        assert_ne!(exposed(0), exposed(1));
        assert_eq!(exposed(0), Some(vec![]), "nothing differs from the arriving packet");
    }
}
