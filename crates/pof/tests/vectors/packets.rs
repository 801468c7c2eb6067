// SPDX-License-Identifier: Apache-2.0
//! PACKET_IN, PACKET_OUT, groups, meters and counters.

use super::{Cell, NEW, OLD, Vector, assemble, insert, vector};
use flow::{GroupId, MeterId, TableId};
use pof::PofMessage;
use pof::action::{CounterAction, DropAction, PofAction};
use pof::message::packet::{PofPacketIn, PofPacketInReason, PofPacketOut};
use pof::message::resource::{
    CounterCommand, PofBucket, PofBucketGroupMod, PofCounter, PofGroupCommand, PofGroupMod, PofGroupType,
    PofMeterCommand, PofMeterMod,
};
use pof::value::PofCounterId;

pub fn vectors() -> Vec<Vector> {
    let single = vec![packet_out(), bucket_group()];
    [packet_ins(), groups(), meters(), counters(), single].into_iter().flatten().collect()
}

/// Two action slots of 48 bytes: a counter, then a drop.
fn two_actions() -> Vec<u8> {
    assemble(
        96,
        &[(0, 2, 10), (2, 2, 12), (4, 4, 0x0a0b_0c0d), (48, 2, 8), (50, 2, 12), (52, 4, 0x1a1b_1c1d)],
    )
}

fn the_actions() -> Vec<PofAction> {
    vec![
        PofAction::Counter(CounterAction { counter: PofCounterId(0x0a0b_0c0d) }),
        PofAction::Drop(DropAction { reason: 0x1a1b_1c1d }),
    ]
}

fn packet_ins() -> Vec<Vector> {
    let message = |slot, port| {
        PofMessage::PacketIn(PofPacketIn {
            buffer_id: 0xffff_ffff,
            total_length_bytes: 9_000,
            reason: PofPacketInReason::InvalidTtl,
            table: TableId(25),
            cookie: 0x0807_0605_0403_0201,
            device_id: 0x1112_1314,
            slot,
            port,
            data: vec![7; 2048],
        })
    };
    let common: &[Cell] = &[
        (0, 4, 0xffff_ffff),
        (4, 2, 9_000),
        (6, 1, 2),
        (7, 1, 25),
        (8, 8, 0x0807_0605_0403_0201),
        (16, 4, 0x1112_1314),
    ];
    let new = [common, &[(20, 2, 0x2122), (22, 2, 0x3132)]].concat();
    // The longest packet, so that any longer message is refused.
    let body = |cells: &[Cell]| {
        let mut body = assemble(24, cells);
        body.resize(24 + 2048, 7);
        body
    };
    vec![vector(OLD, 10, body(common), message(0, 0)), vector(NEW, 10, body(&new), message(0x2122, 0x3132))]
}

fn packet_out() -> Vector {
    let mut body = assemble(304 + 5, &[(0, 4, 0xffff_ffff), (4, 4, 0x0102_0304), (8, 1, 2), (12, 4, 5)]);
    insert(&mut body, 16, &two_actions());
    insert(&mut body, 304, &[1, 2, 3, 4, 5]);
    let message = PofMessage::PacketOut(PofPacketOut {
        buffer_id: 0xffff_ffff,
        in_port: 0x0102_0304,
        packet_length_bytes: 5,
        actions: the_actions(),
        data: vec![1, 2, 3, 4, 5],
    });
    Vector { padded: true, ..vector(NEW, 14, body, message) }
}

fn groups() -> Vec<Vector> {
    let message = |slot| {
        PofMessage::GroupMod(PofGroupMod {
            command: PofGroupCommand::Modify,
            group_type: PofGroupType::Indirect,
            group: GroupId(0x0102_0304),
            counter: PofCounterId(0x0506_0708),
            slot,
            actions: the_actions(),
        })
    };
    let common: &[Cell] = &[(0, 1, 1), (1, 1, 2), (2, 1, 2), (4, 4, 0x0102_0304), (8, 4, 0x0506_0708)];
    let body = |more: &[Cell]| {
        let mut body = assemble(208, &[common, more].concat());
        insert(&mut body, 16, &two_actions());
        body
    };
    vec![vector(OLD, 16, body(&[]), message(0)), vector(NEW, 16, body(&[(12, 2, 0x1112)]), message(0x1112))]
}

fn bucket_group() -> Vector {
    let mut body =
        assemble(1840, &[(1, 1, 3), (2, 1, 2), (4, 4, 0x0102_0304), (8, 4, 0x0506_0708), (12, 2, 0x1112)]);
    let bucket = [(0, 2, 2), (2, 2, 0x2122), (4, 2, 0x3132), (6, 1, 0x41), (8, 4, 0x5152_5354)];
    insert(&mut body, 16, &assemble(304, &bucket));
    insert(&mut body, 32, &two_actions());
    insert(&mut body, 16 + 304, &assemble(304, &[(2, 2, 9)]));
    let first = PofBucket {
        weight: 0x2122,
        watch_slot: 0x3132,
        watch_port: 0x41,
        watch_group: GroupId(0x5152_5354),
        actions: the_actions(),
    };
    let message = PofMessage::BucketGroupMod(PofBucketGroupMod {
        command: PofGroupCommand::Add,
        group_type: PofGroupType::FastFailover,
        group: GroupId(0x0102_0304),
        counter: PofCounterId(0x0506_0708),
        slot: 0x1112,
        buckets: vec![first, PofBucket { weight: 9, ..PofBucket::default() }],
    });
    vector(NEW, 16, body, message)
}

fn meters() -> Vec<Vector> {
    let message = |slot, rate_kbps| {
        PofMessage::MeterMod(PofMeterMod {
            command: PofMeterCommand::Delete,
            slot,
            rate_kbps,
            meter: MeterId(0x0102_0304),
        })
    };
    let old = assemble(8, &[(0, 1, 2), (2, 2, 0x0506), (4, 4, 0x0102_0304)]);
    let new = assemble(16, &[(0, 1, 2), (2, 2, 0x1112), (4, 4, 0x0102_0304), (8, 4, 0x0506_0708)]);
    vec![vector(OLD, 30, old, message(0, 0x0506)), vector(NEW, 30, new, message(0x1112, 0x0506_0708))]
}

fn counters() -> Vec<Vector> {
    let mut made = Vec::new();
    type Make = fn(PofCounter) -> PofMessage;
    let kinds: [(u8, u8, CounterCommand, Make); 5] = [
        (31, 0, CounterCommand::Add, PofMessage::CounterMod),
        (31, 1, CounterCommand::Delete, PofMessage::CounterMod),
        (31, 2, CounterCommand::Clear, PofMessage::CounterMod),
        (32, 3, CounterCommand::Request, PofMessage::CounterRequest),
        (33, 4, CounterCommand::Reply, PofMessage::CounterReply),
    ];
    for (kind, number, command, make) in kinds {
        let old = PofCounter {
            command,
            slot: 0,
            counter: PofCounterId(0x0102_0304),
            packets: 0x1112_1314_1516_1718,
            bytes: 0,
        };
        let new = PofCounter { slot: 0x0506, bytes: 0x2122_2324_2526_2728, ..old.clone() };
        let cells: &[Cell] = &[(0, 1, number.into()), (4, 4, 0x0102_0304), (8, 8, 0x1112_1314_1516_1718)];
        let more: &[Cell] = &[(2, 2, 0x0506), (16, 8, 0x2122_2324_2526_2728)];
        made.push(vector(OLD, kind, assemble(16, cells), make(old)));
        made.push(vector(NEW, kind, assemble(24, &[cells, more].concat()), make(new)));
    }
    made
}
