// SPDX-License-Identifier: Apache-2.0
//! Random changes. Many are refused, as those of real controllers may be.

use super::{Fake, START};
use dataplane::{Event, MacSeen};
use fastrand::Rng;
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessChange, StatelessSection};
use flow::{
    Action, EntryFlags, Field, FieldMatch, FlowMod, FlowModCommand, GroupId, Instructions, Match, MeterId,
    Nanos, Next, PortNo, Settings, TableId,
};
use model::{Change, GroupCommand, MeterCommand, PortConfig, PortMod, TableSet};

/// Ports of the datapath.
pub const PORTS: [PortNo; 4] = [PortNo(1), PortNo(2), PortNo(3), PortNo(4)];

/// A program of changes that a seed determines.
pub struct Program {
    random: Rng,
    now: Nanos,
}

impl Program {
    pub fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed), now: START }
    }

    /// Makes one random change, which may be refused or change nothing.
    pub fn step(&mut self, model: &mut Fake) {
        self.now += Nanos(self.random.u64(0..300_000_000));
        let now = self.now;
        let r = &mut self.random;
        match r.u8(0..20) {
            0 => {
                let seen = MacSeen { vid: r.u16(0..2), mac: [2, 0, 0, 0, 0, r.u8(0..6)], port: port(r) };
                model.plane_mut().events.push_back(Event::Learn(seen));
            }
            1 => {
                let drop_fragments = r.bool();
                model.set_settings(Settings { drop_fragments, ..model.settings() });
            }
            2 => drop(model.change(now, Change::Port(port_mod(r)))),
            3 => drop(model.change(now, Change::Stateless(stateless(r)))),
            4 if r.u8(0..4) == 0 => {
                let tables = TableSet::first(r.u8(3..5));
                drop(model.change(now, Change::Tables(tables)));
            }
            5 => {
                let mods: Vec<FlowMod> = (0..r.usize(1..30)).map(|_| flow_mod(r)).collect();
                let _ = model.bundle(now, mods);
            }
            6 | 7 => {
                let (command, meter) = meter_mod(r);
                let _ = model.meter_mod(now, command, meter);
            }
            8 | 9 => {
                let (command, group) = group_mod(r);
                let _ = model.group_mod(now, command, group);
            }
            10 if r.u8(0..8) == 0 => drop(model.clear(now)),
            _ => drop(model.flow_mod(now, flow_mod(r))),
        }
        // Entries and MACs time out, and MACs are learned.
        model.poll(now);
        while model.next_async_message().is_some() {}
    }
}

fn port(r: &mut Rng) -> PortNo {
    PORTS[r.usize(0..PORTS.len())]
}

fn table(r: &mut Rng) -> TableId {
    TableId(r.u8(0..4))
}

fn matching(r: &mut Rng) -> Match {
    let mac = u128::from(r.u64(0..40));
    let fields = match r.u8(0..6) {
        0 => vec![],
        1 => vec![FieldMatch::exact(Field::InPort, port(r).0.into())],
        2 => vec![FieldMatch { field: Field::EthDst, value: mac & 0xf0, mask: 0xf0 }],
        3 => vec![
            FieldMatch::exact(Field::EthType, 0x800),
            FieldMatch { field: Field::Ipv4Dst, value: 0x0a00_0000, mask: 0xff00_0000 },
        ],
        _ => vec![FieldMatch::exact(Field::EthDst, mac)],
    };
    Match::new(fields).unwrap()
}

fn instructions(r: &mut Rng, table: TableId) -> Instructions {
    let mut apply = vec![Action::output(port(r))];
    if r.u8(0..4) == 0 {
        apply.push(Action::Group(GroupId(r.u32(0..6))));
    }
    let mut instructions = Instructions::apply(apply);
    if r.u8(0..6) == 0 {
        instructions.meter = Some(MeterId(r.u32(1..5)));
    }
    if r.u8(0..6) == 0 {
        instructions.next = Some(Next::Table(TableId(table.0 + 1)));
    }
    if r.u8(0..8) == 0 {
        instructions.write = vec![Action::output(port(r))];
    }
    instructions
}

fn flow_mod(r: &mut Rng) -> FlowMod {
    let commands = [
        FlowModCommand::Add,
        FlowModCommand::Add,
        FlowModCommand::Add,
        FlowModCommand::Add,
        FlowModCommand::Modify,
        FlowModCommand::ModifyStrict,
        FlowModCommand::Delete,
        FlowModCommand::DeleteStrict,
    ];
    let command = commands[r.usize(0..commands.len())];
    let table = table(r);
    let timeout = |r: &mut Rng| if r.u8(0..5) == 0 { r.u16(1..40) } else { 0 };
    FlowMod {
        command,
        table: Some(table),
        priority: r.u16(0..4),
        matching: matching(r),
        instructions: instructions(r, table),
        idle_timeout_s: timeout(r),
        hard_timeout_s: timeout(r),
        cookie: r.u64(0..4),
        cookie_mask: if r.bool() { 3 } else { 0 },
        flags: EntryFlags {
            send_flow_removed: r.bool(),
            check_overlap: r.u8(0..8) == 0,
            reset_counts: r.bool(),
            no_packet_counts: r.u8(0..8) == 0,
            no_byte_counts: r.u8(0..8) == 0,
        },
        low_latency: [None, None, Some(true), Some(false)][r.usize(0..4)],
        ..FlowMod::default()
    }
}

fn meter_mod(r: &mut Rng) -> (MeterCommand, Meter) {
    let band = |r: &mut Rng| MeterBand {
        band: if r.bool() { Band::Drop } else { Band::DscpRemark { precedence_level: 1 } },
        rate: r.u32(1..1_000),
        burst: r.u32(0..100),
    };
    let meter = Meter {
        id: MeterId(r.u32(1..5)),
        packets: r.bool(),
        stats: r.bool(),
        burst: r.bool(),
        bands: (0..r.usize(0..3)).map(|_| band(r)).collect(),
    };
    let commands = [MeterCommand::Add, MeterCommand::AddOrModify, MeterCommand::Modify, MeterCommand::Delete];
    (commands[r.usize(0..commands.len())], meter)
}

fn group_mod(r: &mut Rng) -> (GroupCommand, Group) {
    let bucket = |r: &mut Rng| {
        let mut actions = vec![Action::output(port(r))];
        if r.u8(0..3) == 0 {
            actions = vec![Action::Group(GroupId(r.u32(0..6)))];
        }
        Bucket { weight: 1, watch_port: r.bool().then(|| port(r)), watch_group: None, actions }
    };
    let group = Group {
        id: GroupId(r.u32(0..6)),
        kind: GroupType::Select,
        buckets: (0..r.usize(0..4)).map(|_| bucket(r)).collect(),
    };
    let commands =
        [GroupCommand::Add, GroupCommand::AddOrModify, GroupCommand::AddOrModify, GroupCommand::Delete];
    (commands[r.usize(0..commands.len())], group)
}

fn port_mod(r: &mut Rng) -> PortMod {
    let config = |r: &mut Rng| PortConfig {
        down: r.u8(0..4) == 0,
        no_recv: r.bool(),
        no_fwd: r.bool(),
        no_flood: r.bool(),
        no_packet_in: r.bool(),
    };
    PortMod { number: port(r), mac: [0; 6], config: config(r), mask: config(r), advertise: 0 }
}

fn stateless(r: &mut Rng) -> StatelessChange {
    if r.u8(0..4) == 0 {
        return StatelessChange::Off;
    }
    let modulus = r.u32(5..50);
    let bank = NodeId::new(Arithmetic::Integer, modulus).map(|id| Bank {
        id,
        labels: (0..modulus.min(5)).map(|label| (label, Label::Port(port(r)))).collect(),
        backups: Default::default(),
    });
    StatelessChange::Set(vec![match r.u8(0..3) {
        0 => StatelessSection::Bank(r.u8(0..2), bank),
        1 => StatelessSection::Polka(bank),
        _ => StatelessSection::Trusted(PORTS[..r.usize(0..4)].iter().copied().collect()),
    }])
}
