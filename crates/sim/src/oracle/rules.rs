// SPDX-License-Identifier: Apache-2.0
//! Random rules, made from the packets in use so that they match some of them.

use super::templates::{Template, ipv4, ipv6, mac};
use fastrand::Rng;
use flow::action::{KeyHeader, PolkaHeader, SetField, TfHeader};
use flow::group::{Bucket, Group, GroupType};
use flow::stateless::{Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, Stateless};
use flow::{
    Action, EntryFlags, Field, FieldMatch, FlowMod, Instructions, Match, Next, Slice, SliceBase, port_no,
};
use wire::layers::header;

/// What the rules of a case look like.
#[derive(Clone, Debug)]
pub(super) struct Style {
    /// Ports that exist: 1 to this.
    pub ports: u32,
    /// Tables in use: 0 to this, without the linear one.
    pub tables: u8,
    /// What the rules of each table have in common.
    pub kinds: Vec<Kind>,
    /// Slices that rules use beside named fields.
    pub slices: Vec<Field>,
    /// Packets of a flow differ in their TTL. No rule examines it then: there are no slices.
    pub ttl_varies: bool,
    /// Groups: 1 to this.
    pub groups: u32,
    /// Of ten entries, how many are low-latency.
    pub low_latency: u8,
}

/// What the rules of a table have in common.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// These fields, whole.
    Exact(Vec<Field>),
    /// A prefix of this field.
    Routes(Field),
    /// Prefixes of the addresses, beside protocol and ports.
    AccessList,
    /// Nothing.
    Any,
    /// They match everything, at any priority.
    CatchAll,
}

impl Kind {
    /// A table of so many rules is large: served by an engine that small ones of its kind do without.
    pub fn large(&self) -> usize {
        if matches!(self, Self::Routes(_)) { 120 } else { 400 }
    }
}

/// The linear table's number, and its places.
pub(super) const LINEAR: u8 = 9;
const PLACES: u32 = 4;

const PRIORITIES: [u16; 8] = [1, 5, 10, 10, 10, 20, 30, 100];

impl Style {
    pub fn random(rng: &mut Rng) -> Self {
        let tables = rng.u8(1..5);
        let few: [&[Field]; 6] = [
            &[Field::InPort, Field::EthDst],
            &[Field::EthSrc],
            &[Field::EthType, Field::Ipv4Src, Field::Ipv4Dst],
            &[Field::VlanVid, Field::EthDst],
            &[Field::Metadata],
            &[Field::EthType, Field::Ipv6Dst],
        ];
        let ttl_varies = rng.bool();
        let kind = |rng: &mut Rng| match rng.u8(0..10) {
            0..2 => Kind::Exact(few[rng.usize(0..few.len())].to_vec()),
            2 if !ttl_varies => Kind::Routes(slice(rng)),
            2..5 => {
                Kind::Routes([Field::Ipv4Dst, Field::Ipv4Src, Field::Ipv6Dst, Field::EthDst][rng.usize(0..4)])
            }
            5 | 6 => Kind::AccessList,
            9 => Kind::CatchAll,
            _ => Kind::Any,
        };
        let kinds = (0..tables).map(|_| kind(rng)).collect();
        let slices = (0..if ttl_varies { 0 } else { rng.usize(0..4) }).map(|_| slice(rng)).collect();
        let groups = if rng.bool() { rng.u32(1..5) } else { 0 };
        let low_latency = [7, 10, 10, 10][rng.usize(0..4)];
        Self { ports: rng.u32(2..6), tables, kinds, slices, ttl_varies, groups, low_latency }
    }

    /// An entry that the packet matches in this table.
    pub fn entry(&self, rng: &mut Rng, table: u8, template: &Template, in_port: u32) -> FlowMod {
        if table == LINEAR {
            return FlowMod {
                table: Some(LINEAR),
                matching: Match::at_index(rng.u32(0..PLACES)),
                low_latency: (rng.u8(0..10) < self.low_latency).then_some(true),
                instructions: self.instructions(rng, table),
                ..FlowMod::default()
            };
        }
        let kind = self.kinds.get(usize::from(table)).unwrap_or(&Kind::Any);
        let miss = rng.u8(0..8) == 0;
        let mut fields: Vec<Field> = match kind {
            Kind::Exact(fields) => fields.clone(),
            Kind::Routes(field) => vec![*field],
            Kind::AccessList => {
                let ports = [Field::TcpSrc, Field::TcpDst, Field::UdpSrc, Field::UdpDst];
                let of = [Field::Ipv4Src, Field::Ipv4Dst, Field::IpProto, ports[rng.usize(0..4)]];
                of.into_iter().filter(|_| rng.u8(0..3) != 0).collect()
            }
            Kind::CatchAll => vec![],
            Kind::Any => (0..rng.usize(0..4)).map(|_| self.field(rng)).collect(),
        };
        if miss {
            fields.clear();
        }
        let timed = rng.u8(0..6) == 0;
        let seconds = |rng: &mut Rng| if timed && rng.bool() { rng.u16(1..5) } else { 0 };
        let (idle_timeout_s, hard_timeout_s) = (seconds(rng), seconds(rng));
        FlowMod {
            table: Some(table),
            priority: match kind {
                _ if miss => 0,
                Kind::CatchAll => rng.u16(1..1_000),
                _ => PRIORITIES[rng.usize(0..PRIORITIES.len())],
            },
            matching: matching(rng, &fields, template, in_port, kind),
            instructions: self.instructions(rng, table),
            idle_timeout_s,
            hard_timeout_s,
            flags: EntryFlags { send_flow_removed: timed, ..EntryFlags::default() },
            cookie: rng.u64(0..4),
            low_latency: (rng.u8(0..10) < self.low_latency).then_some(true),
            ..FlowMod::default()
        }
    }

    /// An entry that any packet matches and every other entry beats.
    pub fn last_resort(&self, rng: &mut Rng, table: u8) -> FlowMod {
        FlowMod {
            table: Some(table),
            priority: 0,
            instructions: self.instructions(rng, table),
            low_latency: (rng.u8(0..10) < self.low_latency).then_some(true),
            ..FlowMod::default()
        }
    }

    fn field(&self, rng: &mut Rng) -> Field {
        if !self.slices.is_empty() && rng.u8(0..4) == 0 {
            return self.slices[rng.usize(0..self.slices.len())];
        }
        match rng.u8(0..3) {
            0 => [Field::InPort, Field::EthDst, Field::EthSrc, Field::EthType][rng.usize(0..4)],
            1 => [Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst, Field::VlanVid]
                [rng.usize(0..5)],
            _ => loop {
                let field = Field::NAMED[rng.usize(0..Field::NAMED.len())];
                // The physical port equals the port here; its prerequisite would only narrow the rules.
                if field != Field::InPhyPort {
                    break field;
                }
            },
        }
    }

    /// Random instructions for an entry of this table.
    pub fn instructions(&self, rng: &mut Rng, table: u8) -> Instructions {
        let list = |rng: &mut Rng, most: usize| -> Vec<Action> {
            (0..rng.usize(0..=most)).map(|_| self.action(rng)).collect()
        };
        let mut made = Instructions { apply: list(rng, 3), ..Instructions::default() };
        if rng.u8(0..3) == 0 {
            made.write = list(rng, 3);
            made.clear = rng.u8(0..4) == 0;
        }
        if rng.u8(0..4) == 0 {
            made.metadata = Some((rng.u64(0..4), 3));
        }
        if table + 1 < self.tables && rng.u8(0..5) < 3 {
            made.next = Some(Next::Table(rng.u8(table + 1..self.tables)));
        } else if table < LINEAR && rng.u8(0..10) == 0 {
            made.next = Some(Next::Direct { table: LINEAR, index: rng.u32(0..PLACES + 1) });
        }
        if rng.u8(0..5) < 4 {
            let output = self.output(rng);
            if rng.u8(0..4) == 0 { made.write.push(output) } else { made.apply.push(output) }
        }
        // Packets are normal by entries that send and go on: those are few.
        if !made.may_be_low_latency() && rng.u8(0..10) > 0 {
            let sends = |action: &Action| matches!(action, Action::Output { .. } | Action::Group(_));
            let (sent, done): (Vec<_>, Vec<_>) = made.apply.into_iter().partition(sends);
            (made.apply, made.write) = (done, [made.write, sent].concat());
        }
        made
    }

    fn output(&self, rng: &mut Rng) -> Action {
        Action::output(match rng.u8(0..24) {
            0 => port_no::IN_PORT,
            1 => port_no::ALL,
            2 => port_no::FLOOD,
            3..6 => port_no::NORMAL,
            6 | 7 => port_no::CONTROLLER,
            // A port that does not exist.
            8 => self.ports + 1,
            _ => rng.u32(1..=self.ports),
        })
    }

    fn action(&self, rng: &mut Rng) -> Action {
        match rng.u8(0..30) {
            0 => Action::PushVlan(if rng.bool() { 0x8100 } else { 0x88a8 }),
            1 | 2 => Action::PopVlan,
            3 => Action::PushMpls(if rng.bool() { 0x8847 } else { 0x8848 }),
            4 => Action::PopMpls(if rng.bool() { 0x0800 } else { 0x86dd }),
            5 => Action::SetMplsTtl(rng.u8(..)),
            6 => Action::DecMplsTtl,
            7 => Action::SetNwTtl(rng.u8(..)),
            8 | 9 => Action::DecNwTtl,
            10 => Action::CopyTtlOut,
            11 => Action::CopyTtlIn,
            12 => Action::SetQueue(rng.u32(0..3)),
            22 => Action::PushPbb(0x88e7),
            23 => Action::PopPbb,
            24 => Action::PushKey(KeyHeader {
                key: (0..8 * rng.usize(1..=4)).map(|_| rng.u8(..)).collect(),
                hops: rng.u8(0..4),
                epoch: rng.u8(0..2),
            }),
            25 => Action::PopKey,
            28 => Action::PushPolka(PolkaHeader { key: rng.u128(..), ttl: rng.u8(0..4) }),
            26 => Action::PopTf,
            27 => {
                let tag = TfHeader { qid: rng.u8(0..3), up: rng.u32(0..9), down: rng.u16(0..9) };
                if rng.bool() { Action::PushTf(tag) } else { Action::PushTfWide(tag) }
            }
            20 | 21 if self.groups > 0 => Action::Group(rng.u32(1..=self.groups)),
            13..20 => self.set_field(rng),
            _ => self.output(rng),
        }
    }

    /// A stateless lane, or none.
    pub fn lane(&self, rng: &mut Rng) -> Option<Stateless> {
        if rng.bool() {
            return None;
        }
        let port = |rng: &mut Rng| rng.u32(1..=self.ports);
        let bank = |rng: &mut Rng| {
            let arithmetic = if rng.bool() { Arithmetic::Integer } else { Arithmetic::Polynomial };
            let id = NodeId::new(arithmetic, rng.u32(2..8)).filter(|_| rng.u8(0..4) != 0)?;
            let label = |rng: &mut Rng| match rng.u8(0..8) {
                0 | 1 => Some(Label::Tables),
                2 => None,
                _ => Some(Label::Port(port(rng))),
            };
            let labels = (0..id.residues()).filter_map(|number| Some((number, label(rng)?))).collect();
            let backups = (0..rng.usize(0..3)).map(|_| (port(rng), port(rng))).collect();
            Some(Bank { id, labels, backups })
        };
        let (banks, polka) = ([bank(rng), bank(rng)], bank(rng));
        let flags = [GateFlag::None, GateFlag::Server, GateFlag::External, GateFlag::Assists];
        let gates = (1..=self.ports).zip((1..).filter_map(std::num::NonZeroU32::new));
        let ports =
            gates.map(|(port, number)| (port, Gate { number, flag: flags[rng.usize(0..4)] })).collect();
        let [down_d, up_d, external_d, server_gate_max] = std::array::from_fn(|_| rng.u32(0..4));
        let gates = Gates { down_d, up_d, external_d, server_gate_max, ports };
        Some(Stateless {
            trusted: (1..=self.ports).filter(|_| rng.u8(0..4) != 0).collect(),
            mtu_bytes: (0..rng.usize(0..2)).map(|_| (port(rng), rng.usize(68..160))).collect(),
            banks,
            polka,
            gates: (rng.u8(0..4) != 0).then_some(gates),
            ..Stateless::default()
        })
    }

    /// A group of this number. It may send to groups of lower numbers.
    pub fn group(&self, rng: &mut Rng, id: u32) -> Group {
        let kind = [GroupType::All, GroupType::Select, GroupType::Indirect, GroupType::FastFailover]
            [rng.usize(0..4)];
        let buckets = if kind == GroupType::Indirect { 1 } else { rng.usize(0..4) };
        let bucket = |rng: &mut Rng| {
            let mut actions: Vec<Action> = (0..rng.usize(0..4))
                .map(|_| self.action(rng))
                .filter(|action| !matches!(action, Action::Group(_)))
                .collect();
            if id > 1 && rng.u8(0..4) == 0 {
                actions.push(Action::Group(rng.u32(1..id)));
            }
            let watches = kind == GroupType::FastFailover || rng.u8(0..6) == 0;
            Bucket {
                weight: if kind == GroupType::Select { rng.u16(1..4) } else { 0 },
                watch_port: (watches && rng.bool()).then(|| rng.u32(1..=self.ports)),
                watch_group: (watches && id > 1 && rng.u8(0..3) == 0).then(|| rng.u32(1..id)),
                actions,
            }
        };
        Group { id, kind, buckets: (0..buckets).map(|_| bucket(rng)).collect() }
    }

    fn set_field(&self, rng: &mut Rng) -> Action {
        let field = loop {
            let field = if rng.u8(0..5) == 0 { slice(rng) } else { Field::NAMED[rng.usize(3..39)] };
            if field.settable() {
                break field;
            }
        };
        let full = field.full_mask();
        let value = match field {
            Field::EthDst | Field::EthSrc => mac(rng).iter().fold(0, |v, b| v << 8 | u128::from(*b)),
            Field::Ipv4Src | Field::Ipv4Dst => u32::from_be_bytes(ipv4(rng)).into(),
            Field::Ipv6Src | Field::Ipv6Dst => u128::from_be_bytes(ipv6(rng)),
            Field::EthType => [0x0800, 0x86dd, 0x8847, 0x88e7, 0x9999][rng.usize(0..5)],
            Field::IpProto if rng.bool() => [1, 6, 17, 58, 132][rng.usize(0..5)],
            Field::VlanVid => 0x1000 | rng.u128(0..4),
            _ => rng.u128(..) & full,
        };
        let mask = if rng.u8(0..4) == 0 { rng.u128(..) & full } else { full };
        if mask == 0 || field == Field::VlanVid {
            return Action::set(field, value);
        }
        Action::SetField(SetField { field, value: value & mask, mask })
    }
}

/// A slice of what no tag reaches into.
fn slice(rng: &mut Rng) -> Field {
    let (base, bits) = match rng.u8(0..6) {
        0 => (SliceBase::Metadata, 256),
        1 => (SliceBase::L3, 160),
        2 => (SliceBase::L4, 64),
        _ => (SliceBase::Packet, 304),
    };
    let length = [1, 3, 8, 8, 12, 16, 16, 32, 48, 64, 100, 128][rng.usize(0..12)].min(bits);
    let offset = if rng.bool() { rng.u32(0..=(bits - length) / 8) * 8 } else { rng.u32(0..=bits - length) };
    // Within the limits by construction; the first byte if not.
    Slice::new(base, offset, length).map_or(Field::EthType, Field::Slice)
}

/// A match on these fields, with what they need, that holds for the packet; on fewer if the packet lacks some.
fn matching(rng: &mut Rng, fields: &[Field], template: &Template, in_port: u32, kind: &Kind) -> Match {
    let mut conditions: Vec<FieldMatch> = Vec::new();
    let mut put = |field: Field, mask: u128| {
        if let Some(value) = template.value(field, in_port)
            && conditions.iter().all(|c| c.field != field)
        {
            conditions.push(FieldMatch { field, value: value & mask, mask });
        }
    };
    for &field in fields {
        for needed in prerequisites(field) {
            put(*needed, needed.full_mask());
        }
        let full = field.full_mask();
        let length = u32::from(field.location().length_bits);
        let prefix = |length: u32| full & !full.checked_shr(length).unwrap_or(0);
        let mask = match rng.u8(0..6) {
            _ if !field.maskable() => full,
            _ if matches!(kind, Kind::Exact(_)) => full,
            _ if matches!(kind, Kind::Routes(_) | Kind::AccessList) => prefix(rng.u32(0..=length)),
            0 | 1 => prefix(rng.u32(1..=length)),
            2 => rng.u128(..) & full,
            _ => full,
        };
        put(field, mask);
    }
    // A packet of another kind cannot have all that the fields need: then the widest match is right.
    Match::new(conditions).unwrap_or_default()
}

fn prerequisites(field: Field) -> &'static [Field] {
    let needs = field.location().needs;
    let l4 = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;
    match field {
        Field::VlanPcp => &[Field::VlanVid],
        Field::NdTarget | Field::NdSll | Field::NdTll => {
            &[Field::EthType, Field::IpProto, Field::Icmpv6Type, Field::Icmpv6Code]
        }
        _ if needs & l4 != 0 => &[Field::EthType, Field::IpProto],
        _ if needs != 0 => &[Field::EthType],
        _ => &[],
    }
}
