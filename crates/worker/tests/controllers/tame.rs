// SPDX-License-Identifier: Apache-2.0
//! Reduces the numbers of tables, ports, groups, meters and bundles in random messages to small values, so
//! that many messages refer to existing objects.

use fastrand::Rng;
use flow::group::GroupType;
use flow::stateless::{Bank, Label, StatelessChange, StatelessSection};
use flow::{
    Action, Field, FieldMatch, GroupId, Instructions, Match, MeterId, Next, PortNo, TableId, port_no,
};
use openflow::Message;
use openflow::bundle::BundleKind;
use openflow::multipart::Query;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::port::config;
use openflow::role::Role;

/// Number of ports; they are numbered from 1.
pub const PORTS: u32 = 4;
const TABLES: u8 = 5;
const GROUPS: u32 = 6;
const METERS: u32 = 4;
const BUNDLES: u32 = 3;

fn port(rng: &mut Rng) -> PortNo {
    const RESERVED: [PortNo; 8] = [
        port_no::IN_PORT,
        port_no::TABLE,
        port_no::NORMAL,
        port_no::FLOOD,
        port_no::ALL,
        port_no::CONTROLLER,
        port_no::LOCAL,
        port_no::ANY,
    ];
    if rng.u8(..4) == 0 { RESERVED[rng.usize(..8)] } else { PortNo(rng.u32(1..=PORTS + 1)) }
}

fn group(rng: &mut Rng) -> GroupId {
    if rng.u8(..16) == 0 { openflow::group::ALL } else { GroupId(rng.u32(..GROUPS)) }
}

/// Returns the flags of a bundle message. They are usually 1, because all messages of a bundle must have the
/// same flags.
fn flags(rng: &mut Rng) -> u16 {
    if rng.u8(..8) == 0 { rng.u16(..8) } else { 1 }
}

fn seldom(rng: &mut Rng, value: Option<u32>, small: u32) -> Option<u32> {
    value.filter(|_| rng.u8(..8) == 0).map(|value| value % small)
}

/// Returns one of a few matches, so that entries are hit, overlap, and are found again.
fn matching(rng: &mut Rng) -> Match {
    let mut fields = Vec::new();
    if rng.bool() {
        fields.push(FieldMatch::exact(Field::InPort, rng.u128(1..=PORTS.into())));
    }
    if rng.bool() {
        fields.push(FieldMatch::exact(Field::EthDst, 0x0200_0000_0000 + rng.u128(..4)));
    }
    if rng.u8(..4) == 0 {
        fields.push(FieldMatch::exact(Field::EthType, 0x0800));
        if rng.bool() {
            let mask = u128::from(u32::MAX << rng.u32(..9));
            fields.push(FieldMatch {
                field: Field::Ipv4Dst,
                value: (0x0a00_0000 + rng.u128(..4)) & mask,
                mask,
            });
        }
    }
    Match::new(fields).unwrap()
}

/// Returns the number of a port that existed at the start.
fn real_port(rng: &mut Rng) -> PortNo {
    PortNo(rng.u32(1..=PORTS))
}

fn actions(rng: &mut Rng, list: &mut [Action]) {
    for action in list.iter_mut() {
        match action {
            Action::Output { port: to, .. } => *to = port(rng),
            Action::Group(id) => *id = group(rng),
            Action::SetQueue(id) => id.0 %= 8,
            // Most random actions of these kinds lack a prerequisite in the match, or need a header that the
            // packets do not have.
            Action::SetField(_)
            | Action::PushKey(_)
            | Action::PushPolka(_)
            | Action::PushTf(_)
            | Action::PushTfWide(_)
                if rng.u8(..8) != 0 =>
            {
                *action = Action::set(Field::EthSrc, 0x0200_0000_0000 + rng.u128(..4));
            }
            Action::PushVlan(kind) if rng.u8(..8) != 0 => *kind = 0x8100,
            Action::PushMpls(kind) if rng.u8(..8) != 0 => *kind = 0x8847,
            Action::PopMpls(kind) if rng.u8(..8) != 0 => *kind = 0x0800,
            _ => {}
        }
    }
}

fn instructions(rng: &mut Rng, table: Option<TableId>, i: &mut Instructions) {
    actions(rng, &mut i.apply);
    actions(rng, &mut i.write);
    i.meter = i.meter.filter(|_| rng.bool()).map(|id| MeterId(id.0 % METERS));
    if rng.u8(..8) != 0 {
        i.next =
            rng.bool().then(|| Next::Table(TableId(table.map_or(0, u8::from).saturating_add(rng.u8(1..3)))));
    }
}

fn flow_mod(rng: &mut Rng, m: &mut flow::FlowMod) {
    m.table = m.table.map(|table| TableId(table.0 % TABLES));
    m.priority %= 4;
    if rng.u8(..4) != 0 {
        m.matching = matching(rng);
    }
    instructions(rng, m.table, &mut m.instructions);
    if rng.bool() {
        m.instructions = Instructions::apply(vec![Action::output(real_port(rng))]);
    }
    m.cookie %= 4;
    m.cookie_mask = if rng.u8(..4) == 0 { m.cookie_mask } else { 0 };
    m.out_port = seldom(rng, m.out_port.map(u32::from), PORTS).map(PortNo);
    m.out_group = seldom(rng, m.out_group.map(u32::from), GROUPS).map(GroupId);
    if rng.bool() {
        (m.idle_timeout_s, m.hard_timeout_s) = (m.idle_timeout_s % 20, m.hard_timeout_s % 20);
    }
}

fn bank(rng: &mut Rng, bank: &mut Bank) {
    let residues = bank.id.residues();
    let labels = std::mem::take(&mut bank.labels).into_iter().map(|(label, target)| match target {
        Label::Tables => (label % residues, target),
        Label::Port(_) => (label % residues, Label::Port(real_port(rng))),
    });
    bank.labels = labels.collect();
    let backups = std::mem::take(&mut bank.backups).into_keys();
    bank.backups = backups.map(|_| (real_port(rng), real_port(rng))).collect();
}

fn section(rng: &mut Rng, section: &mut StatelessSection) {
    match section {
        StatelessSection::Types(types) => {
            *types = flow::stateless::TagTypes { tf: 0x7000 + rng.u16(..4), ..*types }
        }
        StatelessSection::Trusted(ports) => {
            *ports = (1..=PORTS).filter(|_| rng.u8(..8) != 0).map(PortNo).collect()
        }
        StatelessSection::MtuBytes(ports) => {
            let bytes = std::mem::take(ports).into_values();
            *ports = bytes.map(|bytes| (real_port(rng), 68 + bytes % 100)).collect();
        }
        StatelessSection::Bank(_, some) | StatelessSection::Polka(some) => {
            some.iter_mut().for_each(|one| bank(rng, one))
        }
        StatelessSection::Gates(None) => {}
        StatelessSection::Gates(Some(gates)) => {
            (gates.down_d, gates.up_d) = (gates.down_d % 4, gates.up_d % 4);
            let ports = std::mem::take(&mut gates.ports).into_values();
            gates.ports = ports.map(|gate| (real_port(rng), gate)).collect();
        }
    }
}

fn query(rng: &mut Rng, q: &mut Query) {
    match q {
        Query::Flow(query) | Query::Aggregate(query) => {
            if rng.bool() {
                *query = FlowQuery::default();
            }
            query.table = query.table.map(|table| TableId(table.0 % TABLES));
            query.out_port = seldom(rng, query.out_port.map(u32::from), PORTS).map(PortNo);
            query.out_group = seldom(rng, query.out_group.map(u32::from), GROUPS).map(GroupId);
        }
        Query::PortStats { port: number } | Query::Queue { port: number, .. } => *number = port(rng),
        Query::Group { group: id } => *id = group(rng),
        Query::Meter { meter } | Query::MeterConfig { meter } => {
            *meter = if rng.bool() { openflow::meter::ALL } else { MeterId(meter.0 % METERS) };
        }
        _ => {}
    }
}

/// Returns whether the message changes the switch or sends a packet. Other messages are queries.
pub fn does(message: &Message) -> bool {
    use Message as M;
    matches!(
        message,
        M::FlowMod(_)
            | M::GroupMod(_)
            | M::MeterMod(_)
            | M::PacketOut(_)
            | M::BundleControl(_)
            | M::BundleAdd(_)
            | M::StatelessMod(_)
    )
}

pub fn tame(rng: &mut Rng, message: &mut Message) {
    match message {
        Message::FlowMod(m) => {
            flow_mod(rng, &mut m.flow);
            m.buffer_id = seldom(rng, m.buffer_id, 16);
        }
        Message::GroupMod(m) => {
            m.group.id = group(rng);
            if m.group.kind == GroupType::Indirect {
                m.group.buckets.truncate(1);
            }
            for bucket in &mut m.group.buckets {
                actions(rng, &mut bucket.actions);
                bucket.watch_port = bucket.watch_port.map(|_| port(rng));
                bucket.watch_group = seldom(rng, bucket.watch_group.map(u32::from), GROUPS).map(GroupId);
                if m.group.kind != GroupType::Select {
                    bucket.weight = 0;
                }
            }
        }
        Message::MeterMod(m) => {
            m.meter.id = if rng.u8(..16) == 0 { openflow::meter::ALL } else { MeterId(rng.u32(1..METERS)) };
        }
        Message::PortMod(m) => {
            m.port = port(rng);
            if rng.u8(..8) != 0 {
                (m.mac, m.advertise) = ([0; 6], 0);
                m.mask = [config::NO_RECV, config::NO_FWD, config::NO_PACKET_IN, config::PORT_DOWN]
                    [rng.usize(..4)];
                // Most messages clear the chosen flag, so that packets flow.
                m.config = if rng.u8(..4) == 0 { m.mask } else { 0 };
            }
        }
        Message::PacketOut(m) => {
            m.in_port = if rng.bool() { port_no::CONTROLLER } else { port(rng) };
            m.buffer_id = seldom(rng, m.buffer_id, 16);
            actions(rng, &mut m.actions);
        }
        Message::StatelessMod(StatelessChange::Set(sections)) => {
            sections.iter_mut().for_each(|one| section(rng, one));
        }
        Message::TableMod(m) => m.config &= 3,
        Message::RoleRequest(m) => {
            m.generation_id %= 4;
            if rng.bool() {
                m.role = Role::Equal;
            }
        }
        Message::QueueGetConfigRequest { port: number } => *number = port(rng),
        Message::MultipartRequest(m) => {
            m.more &= rng.u8(..16) == 0;
            query(rng, &mut m.query);
        }
        Message::BundleControl(m) => {
            use BundleKind as K;
            m.bundle_id %= BUNDLES;
            m.flags = flags(rng);
            m.kind = [K::OpenRequest, K::CloseRequest, K::CommitRequest, K::DiscardRequest][rng.usize(..4)];
        }
        Message::BundleAdd(m) => {
            m.bundle_id %= BUNDLES;
            m.flags = flags(rng);
            tame(rng, &mut m.message);
        }
        _ => {}
    }
}
