// SPDX-License-Identifier: Apache-2.0
//! Random matches, actions and instructions that cover the flow model.

use super::some;
use flow::action::{KeyHeader, PolkaHeader, SetField, TfHeader};
use flow::{
    Action, BitRange, CutOrigin, Edit, Field, FieldMatch, GroupId, Instructions, Match, MeterId, Next,
    PortNo, QueueId, Slice, SliceBase, TableId, port_no,
};

type Rng = fastrand::Rng;

fn slice(rng: &mut Rng) -> Field {
    let base = SliceBase::ALL[rng.usize(..SliceBase::ALL.len())];
    let length = rng.u32(1..=128);
    Field::Slice(Slice::new(base, rng.u32(..=256 - length), length).unwrap())
}

fn field(rng: &mut Rng) -> Field {
    if rng.u8(..5) == 0 { slice(rng) } else { Field::NAMED[rng.usize(..Field::NAMED.len())] }
}

fn bits(rng: &mut Rng, field: Field) -> u128 {
    rng.u128(..) & field.full_mask()
}

fn condition(rng: &mut Rng) -> FieldMatch {
    let field = field(rng);
    let mask = if field.maskable() && rng.bool() { bits(rng, field) } else { field.full_mask() };
    FieldMatch { field, value: bits(rng, field) & mask, mask }
}

/// Returns a random match whose prerequisites may be missing.
pub fn unchecked(rng: &mut Rng) -> Match {
    let mut list = some(rng, condition);
    list.sort_unstable_by_key(|c| c.field);
    list.dedup_by_key(|c| c.field);
    Match::unchecked_prerequisites(list).unwrap()
}

/// Returns a random match with its prerequisites.
pub fn matching(rng: &mut Rng) -> Match {
    if rng.u8(..30) == 0 {
        return Match::at_index(rng.u32(..));
    }
    let mut fields = vec![];
    let exact = |field, value| FieldMatch::exact(field, value);
    let protocols: &[(u128, &[Field])] = &[
        (6, &[Field::TcpSrc, Field::TcpDst]),
        (17, &[Field::UdpSrc, Field::UdpDst]),
        (132, &[Field::SctpSrc, Field::SctpDst]),
    ];
    let network: &[(u128, &[Field])] = &[
        (0x0800, &[Field::Ipv4Src, Field::Ipv4Dst, Field::IpDscp, Field::IpEcn]),
        (0x86dd, &[Field::Ipv6Src, Field::Ipv6Dst, Field::Ipv6Flabel, Field::Ipv6Exthdr]),
        (0x0806, &[Field::ArpOp, Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha]),
        (0x8847, &[Field::MplsLabel, Field::MplsTc, Field::MplsBos]),
        (0x88e7, &[Field::PbbIsid]),
    ];
    let free = [Field::InPort, Field::Metadata, Field::EthDst, Field::EthSrc, Field::TunnelId];
    let of = |rng: &mut Rng, list: &[Field], fields: &mut Vec<FieldMatch>| {
        for field in list.iter().copied() {
            if rng.bool() {
                continue;
            }
            let mask = if field.maskable() && rng.bool() { bits(rng, field) } else { field.full_mask() };
            fields.push(FieldMatch { field, value: bits(rng, field) & mask, mask });
        }
    };
    of(rng, &free, &mut fields);
    if rng.bool() {
        fields.push(exact(Field::VlanVid, 0x1000 | u128::from(rng.u16(..0x1000))));
        of(rng, &[Field::VlanPcp], &mut fields);
    }
    if rng.bool() {
        let (ethertype, list) = network[rng.usize(..network.len())];
        fields.push(exact(Field::EthType, ethertype));
        of(rng, list, &mut fields);
        if matches!(ethertype, 0x0800 | 0x86dd) && rng.bool() {
            let (protocol, list) = protocols[rng.usize(..protocols.len())];
            fields.push(exact(Field::IpProto, protocol));
            of(rng, list, &mut fields);
        }
    }
    if rng.u8(..4) == 0 {
        let field = slice(rng);
        of(rng, &[field], &mut fields);
    }
    Match::new(fields).unwrap()
}

/// Returns an edit that may be outside its bounds.
fn edit(rng: &mut Rng) -> Edit {
    let range = |rng: &mut Rng| BitRange { offset_bits: rng.u16(..), length_bits: rng.u16(..) };
    let any = |rng: &mut Rng| Slice {
        base: SliceBase::ALL[rng.usize(..SliceBase::ALL.len())],
        offset_bits: rng.u16(..),
        length_bits: rng.u16(..),
    };
    match rng.u8(..7) {
        0 => Edit::MoveBase(rng.i16(..)),
        1 => Edit::AddField { range: range(rng), value: rng.u128(..) },
        2 => Edit::DeleteField(range(rng)),
        3 => Edit::ModifyField { slice: any(rng), increment: rng.i32(..) },
        4 => {
            let from = any(rng);
            Edit::CopyField { from, to: Slice { length_bits: from.length_bits, ..any(rng) } }
        }
        5 => {
            let origin = if rng.bool() { CutOrigin::Packet } else { CutOrigin::Base };
            Edit::CutFront { origin, bytes: rng.u16(..) }
        }
        _ => Edit::CalculateChecksum { checksum: range(rng), covered: range(rng) },
    }
}

fn action(rng: &mut Rng) -> Action {
    let tf = |rng: &mut Rng| TfHeader { qid: rng.u8(..), up: rng.u32(..), down: rng.u16(..) };
    match rng.u8(..29) {
        0 => Action::Output { port: port_no::CONTROLLER, max_len: rng.u16(..) },
        1 | 2 => Action::Output { port: PortNo(rng.u32(..port_no::CONTROLLER.0)), max_len: rng.u16(..) },
        3 => Action::Group(GroupId(rng.u32(..))),
        4 => Action::SetQueue(QueueId(rng.u32(..))),
        5 => Action::SetMplsTtl(rng.u8(..)),
        6 => Action::DecMplsTtl,
        7 => Action::SetNwTtl(rng.u8(..)),
        8 => Action::DecNwTtl,
        9 => Action::CopyTtlOut,
        10 => Action::CopyTtlIn,
        11 => Action::PushVlan(rng.u16(..)),
        12 => Action::PopVlan,
        13 => Action::PushMpls(rng.u16(..)),
        14 => Action::PopMpls(rng.u16(..)),
        15 => Action::PushPbb(rng.u16(..)),
        16 => Action::PopPbb,
        17 => {
            let hops = rng.u8(..);
            let key = (0..rng.usize(..40)).map(|_| rng.u8(..)).collect();
            Action::PushKey(KeyHeader { key, hops, epoch: rng.u8(..) })
        }
        18 => Action::PopKey,
        19 => Action::PushTf(tf(rng)),
        20 => Action::PushTfWide(tf(rng)),
        21 => Action::PopTf,
        22 => Action::PushPolka(PolkaHeader { key: rng.u128(..), ttl: rng.u8(..) }),
        23..27 => Action::Edit(edit(rng)),
        _ => {
            let field = field(rng);
            let mask = if rng.bool() { field.full_mask() } else { bits(rng, field) };
            Action::SetField(SetField { field, value: bits(rng, field) & mask, mask })
        }
    }
}

pub fn actions(rng: &mut Rng) -> Vec<Action> {
    some(rng, action)
}

pub fn instructions(rng: &mut Rng) -> Instructions {
    let next = match rng.u8(..3) {
        0 => None,
        1 => Some(Next::Table(TableId(rng.u8(..)))),
        _ => Some(Next::Direct { table: TableId(rng.u8(..)), index: rng.u32(..) }),
    };
    Instructions {
        meter: rng.bool().then(|| MeterId(rng.u32(..))),
        apply: actions(rng),
        clear: rng.bool(),
        write: actions(rng),
        metadata: rng.bool().then(|| (rng.u64(..), rng.u64(..))),
        next,
    }
}
