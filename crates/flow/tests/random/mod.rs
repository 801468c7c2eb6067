// SPDX-License-Identifier: Apache-2.0
//! Random valid flow-mods without parts that are meaningless for their command.

use flow::action::{KeyHeader, PolkaHeader, SetField, TfHeader, WHOLE_PACKET};
use flow::{
    Action, BitRange, CutOrigin, Edit, EntryFlags, Field, FieldMatch, FlowMod, FlowModCommand, GroupId,
    Instructions, Match, MeterId, Next, PortNo, QueueId, Slice, SliceBase, TableId, port_no,
};

/// Small pseudo-random generator (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.word() % end
    }

    pub fn of<'a, T: ?Sized>(&mut self, list: &'a [impl std::borrow::Borrow<T> + 'a]) -> &'a T {
        list[self.below(list.len() as u64) as usize].borrow()
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    fn wide(&mut self) -> u128 {
        // Mixes small, sparse and full-width numbers.
        let full = u128::from(self.word()) << 64 | u128::from(self.word());
        match self.below(4) {
            0 => full & 0xff,
            1 => full & u128::from(self.word()) << 32,
            2 => u128::MAX,
            _ => full,
        }
    }
}

fn slice(r: &mut Random) -> Field {
    loop {
        let base = *r.of::<SliceBase>(&SliceBase::ALL);
        let (offset, length) = (r.below(300) as u32, r.below(128) as u32 + 1);
        if let Ok(slice) = Slice::new(base, offset, length) {
            return Field::Slice(slice);
        }
    }
}

fn condition(r: &mut Random, field: Field) -> FieldMatch {
    let full = field.full_mask();
    let length = u32::from(field.location().length_bits);
    let mask = match r.below(4) {
        _ if !field.maskable() => full,
        0 => (r.wide() & full).max(1),
        1 => full & !(full.checked_shr(r.below(u64::from(length)) as u32 + 1).unwrap_or(0)),
        _ => full,
    };
    FieldMatch { field, value: r.wide() & mask, mask }
}

/// Returns the fields that a protocol implies, with their values, and the fields that it permits.
fn protocol(r: &mut Random) -> (Vec<(Field, u128)>, &'static [Field]) {
    use Field as F;
    const IP: &[Field] = &[F::IpDscp, F::IpEcn, F::Ipv4Src, F::Ipv4Dst];
    const IPV6: &[Field] = &[F::IpDscp, F::IpEcn, F::Ipv6Src, F::Ipv6Dst, F::Ipv6Flabel, F::Ipv6Exthdr];
    const ARP: &[Field] = &[F::ArpOp, F::ArpSpa, F::ArpTpa, F::ArpSha, F::ArpTha];
    const MPLS: &[Field] = &[F::MplsLabel, F::MplsTc, F::MplsBos];
    match r.below(8) {
        0 | 1 => (vec![(F::EthType, 0x0800)], IP),
        2 | 3 => (vec![(F::EthType, 0x86dd)], IPV6),
        4 => (vec![(F::EthType, 0x0806)], ARP),
        5 => (vec![(F::EthType, 0x8847 + u128::from(r.below(2)))], MPLS),
        6 => (vec![(F::EthType, 0x88e7)], &[F::PbbIsid]),
        _ => (vec![(F::EthType, *r.of::<u128>(&[0x8035, 0x88cc, 0x05ff, 0, 0xffff]))], &[]),
    }
}

fn transport(r: &mut Random, eth_type: u128) -> (Vec<(Field, u128)>, &'static [Field]) {
    use Field as F;
    match (r.below(6), eth_type) {
        (0, _) => (vec![(F::IpProto, 6)], &[F::TcpSrc, F::TcpDst]),
        (1, _) => (vec![(F::IpProto, 17)], &[F::UdpSrc, F::UdpDst]),
        (2, _) => (vec![(F::IpProto, 132)], &[F::SctpSrc, F::SctpDst]),
        (3, 0x0800) => (vec![(F::IpProto, 1)], &[F::Icmpv4Type, F::Icmpv4Code]),
        (3, _) => (vec![(F::IpProto, 58)], &[F::Icmpv6Type, F::Icmpv6Code]),
        (4, 0x86dd) => {
            (vec![(F::IpProto, 58), (F::Icmpv6Type, 135), (F::Icmpv6Code, 0)], &[F::NdTarget, F::NdSll])
        }
        (5, 0x86dd) => {
            (vec![(F::IpProto, 58), (F::Icmpv6Type, 136), (F::Icmpv6Code, 0)], &[F::NdTarget, F::NdTll])
        }
        _ => (vec![(F::IpProto, u128::from(r.below(256)))], &[]),
    }
}

#[expect(clippy::expect_used, reason = "an invalid match is a fault of the generator")]
fn matching(r: &mut Random) -> Match {
    use Field as F;
    if r.chance(12) {
        return Match::at_index(r.word() as u32);
    }
    let mut list = Vec::new();
    let some = |r: &mut Random, fields: &[Field], list: &mut Vec<FieldMatch>| {
        for &field in fields {
            if r.chance(3) {
                list.push(condition(r, field));
            }
        }
    };
    some(r, &[F::Metadata, F::TunnelId, F::EthDst, F::EthSrc], &mut list);
    if r.chance(3) {
        list.push(condition(r, F::InPort));
        some(r, &[F::InPhyPort], &mut list);
    }
    match r.below(8) {
        0 => list.push(condition(r, F::VlanVid)),
        1 => {
            let vid = condition(r, F::VlanVid);
            list.push(FieldMatch { value: vid.value | 0x1000, mask: vid.mask | 0x1000, ..vid });
            list.push(condition(r, F::VlanPcp));
        }
        2 => list.push(FieldMatch { field: F::VlanVid, value: 0x1000, mask: 0x1000 }),
        3 => list.push(FieldMatch::exact(F::VlanVid, 0)),
        _ => {}
    }
    if r.chance(2) {
        let (exact, fields) = protocol(r);
        let eth_type = exact[0].1;
        list.extend(exact.iter().map(|&(f, v)| FieldMatch::exact(f, v)));
        some(r, fields, &mut list);
        if matches!(eth_type, 0x0800 | 0x86dd) && r.chance(2) {
            let (exact, fields) = transport(r, eth_type);
            list.extend(exact.iter().map(|&(f, v)| FieldMatch::exact(f, v)));
            some(r, fields, &mut list);
        }
    }
    for _ in 0..r.below(3) {
        let field = slice(r);
        if !list.iter().any(|c| c.field == field) {
            list.push(condition(r, field));
        }
    }
    Match::new(list).expect("the generator adds the prerequisites of all fields")
}

fn action(r: &mut Random) -> Action {
    match r.below(27) {
        0..3 => {
            let port = *r.of::<u32>(&[
                1,
                65_534,
                port_no::MAX.0,
                port_no::IN_PORT.0,
                port_no::NORMAL.0,
                port_no::FLOOD.0,
                port_no::ALL.0,
            ]);
            Action::output(PortNo(port))
        }
        3 => Action::Output {
            port: port_no::CONTROLLER,
            max_len: *r.of::<u16>(&[0, 1, 128, WHOLE_PACKET - 1, WHOLE_PACKET]),
        },
        4 => Action::Group(GroupId(r.below(0xffff_ff01) as u32)),
        5 => Action::SetQueue(QueueId(r.below(0xffff_ffff) as u32)),
        6 => Action::SetMplsTtl(r.word() as u8),
        7 => Action::DecMplsTtl,
        8 => Action::SetNwTtl(r.word() as u8),
        9 => Action::DecNwTtl,
        10 => Action::CopyTtlOut,
        11 => Action::CopyTtlIn,
        12 => Action::PushVlan(*r.of::<u16>(&[0x8100, 0x88a8])),
        13 => Action::PopVlan,
        14 => Action::PushMpls(*r.of::<u16>(&[0x8847, 0x8848])),
        15 => Action::PopMpls(r.word() as u16),
        16 => Action::PushPbb(0x88e7),
        17 => Action::PopPbb,
        18 => Action::PushKey(KeyHeader {
            key: (0..8 * (r.below(4) + 1)).map(|_| r.word() as u8).collect(),
            hops: r.word() as u8,
            epoch: r.below(2) as u8,
        }),
        19 => Action::PopKey,
        20 => Action::PushTf(TfHeader {
            qid: r.below(8) as u8,
            up: r.word() as u32,
            down: r.below(1 << 13) as u16,
        }),
        21 => Action::PushTfWide(TfHeader {
            qid: r.below(8) as u8,
            up: r.below(1 << 29) as u32,
            down: r.word() as u16,
        }),
        22 => Action::PushPolka(PolkaHeader { key: r.wide(), ttl: r.word() as u8 }),
        23 => Action::PopTf,
        _ => edit(r),
    }
}

/// Returns a valid edit.
fn edit(r: &mut Random) -> Action {
    let range = |r: &mut Random, bytes: u64| BitRange {
        offset_bits: 8 * r.below(1_536 - bytes) as u16,
        length_bits: 8 * (r.below(bytes) as u16 + 1),
    };
    loop {
        let (Field::Slice(from), Field::Slice(to)) = (slice(r), slice(r)) else { continue };
        let edit = match r.below(7) {
            0 => Edit::MoveBase(r.word() as i16),
            1 => {
                let range = range(r, 16);
                Edit::AddField { range, value: r.wide() >> (128 - u32::from(range.length_bits)) }
            }
            2 => Edit::DeleteField(range(r, 1_000)),
            3 => Edit::ModifyField { slice: to, increment: r.word() as i32 },
            4 => Edit::CopyField { from, to: Slice { length_bits: from.length_bits, ..to } },
            5 => {
                let origin = *r.of(&[CutOrigin::Packet, CutOrigin::Base]);
                Edit::CutFront { origin, bytes: r.word() as u16 % 2_000 }
            }
            _ => {
                let length_bits = *r.of::<u16>(&[8, 16, 32]);
                let checksum = BitRange { length_bits, ..range(r, 4) };
                Edit::CalculateChecksum { checksum, covered: range(r, 1_000) }
            }
        };
        if edit.check().is_ok() {
            return edit.into();
        }
    }
}

fn set_field(r: &mut Random) -> Action {
    loop {
        let field = if r.chance(4) { slice(r) } else { *r.of::<Field>(Field::NAMED) };
        if field.settable() {
            let full = field.full_mask();
            let mask = if r.chance(2) { full } else { (r.wide() & full).max(1) };
            return Action::SetField(SetField { field, value: r.wide() & mask, mask });
        }
    }
}

fn actions(r: &mut Random) -> Vec<Action> {
    (0..r.below(5)).map(|_| if r.chance(3) { set_field(r) } else { action(r) }).collect()
}

/// Returns actions of an action set, which has no edits.
fn unordered(r: &mut Random) -> Vec<Action> {
    actions(r).into_iter().filter(|action| !matches!(action, Action::Edit(_))).collect()
}

fn instructions(r: &mut Random, table: TableId) -> Instructions {
    let next = r.chance(3) && table < TableId(254);
    let to = TableId(table.0 + 1 + if next { r.below(254 - u64::from(table.0)) as u8 } else { 0 });
    Instructions {
        meter: r.chance(4).then(|| MeterId(r.below(0xffff_0000) as u32 + 1)),
        apply: actions(r),
        clear: r.chance(4),
        write: if r.chance(3) { unordered(r) } else { Vec::new() },
        metadata: r.chance(4).then(|| (r.word(), if r.chance(2) { u64::MAX } else { r.wide() as u64 })),
        next: next.then(|| {
            if r.chance(3) { Next::Direct { table: to, index: r.word() as u32 } } else { Next::Table(to) }
        }),
    }
}

/// Returns a random flow-mod.
pub fn flow_mod(r: &mut Random) -> FlowMod {
    use FlowModCommand as C;
    let command =
        *r.of::<FlowModCommand>(&[C::Add, C::Add, C::Modify, C::ModifyStrict, C::Delete, C::DeleteStrict]);
    let deletes = matches!(command, C::Delete | C::DeleteStrict);
    let table = TableId(if r.chance(2) { 0 } else { r.below(255) as u8 });
    let mut flow = FlowMod {
        command,
        table: Some(table).filter(|_| !deletes || r.chance(2)),
        matching: matching(r),
        ..FlowMod::default()
    };
    if command != C::Delete && r.chance(2) {
        flow.priority = r.word() as u16;
    }
    if r.chance(3) {
        flow.cookie = r.word();
        flow.cookie_mask = match command {
            C::Add => 0,
            _ if r.chance(2) => u64::MAX,
            _ => r.word(),
        };
    }
    if deletes {
        flow.out_port = r.chance(4).then(|| PortNo(r.below(0xffff_ffff) as u32));
        flow.out_group = r.chance(4).then(|| r.below(0xffff_ffff) as u32).map(GroupId);
        return flow;
    }
    flow.instructions = instructions(r, table);
    if r.chance(3) {
        flow.idle_timeout_s = r.word() as u16;
        flow.hard_timeout_s = r.word() as u16;
    }
    flow.flags = EntryFlags {
        send_flow_removed: r.chance(4),
        check_overlap: r.chance(4),
        reset_counts: r.chance(4),
        no_packet_counts: r.chance(4),
        no_byte_counts: r.chance(4),
    };
    flow.low_latency = *r.of::<Option<bool>>(&[None, Some(true), Some(false)]);
    flow
}
