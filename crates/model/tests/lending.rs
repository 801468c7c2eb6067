// SPDX-License-Identifier: Apache-2.0
//! Long changes, which another thread applies. Meanwhile, echo requests are answered and all other requests
//! wait in order.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::group::{Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{Action, FlowMod, FlowModCommand, GroupId, Instructions, MeterId, Nanos, PortNo, TableId};
use model::agent::{Agent, ChannelId, Context};
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::{HEADER_BYTES, Message, SessionConfig, bundle, decode, encode, error};

const MANY: u64 = 6_000;

/// An agent over a model with so many entries that deleting all of them is a long change.
struct Bench {
    agent: Agent,
    model: Fake,
}

impl Bench {
    fn new() -> Self {
        let mut model = plain();
        model.bundle(Nanos(0), (0..MANY).map(|n| add(1, mac(n.into()), PortNo(1)))).unwrap();
        let mut agent = Agent::default();
        agent.offload_long_work();
        Self { agent, model }
    }

    fn connect(&mut self) -> ChannelId {
        let id = self.agent.open(Nanos(0), SessionConfig::default());
        self.send(id, 0, &Message::Hello(openflow::Hello::supported()));
        self.step(id);
        self.replies(id);
        id
    }

    fn send(&mut self, id: ChannelId, xid: u32, message: &Message) {
        let mut bytes = Vec::new();
        encode(message, xid, &mut bytes).unwrap();
        assert_eq!(self.agent.channel(id).unwrap().receive(&bytes, Nanos(0)), bytes.len());
    }

    /// Runs a step. Returns whether there is more work to do immediately.
    fn step(&mut self, id: ChannelId) -> bool {
        let Self { agent, model } = self;
        agent.step(id, &mut Context { model, now: Nanos(0), refresh: &mut || {} }).more
    }

    /// Applies the changes that the agent has left to its caller. Meanwhile, each channel takes a step
    /// without the model.
    fn make(&mut self, channels: &[ChannelId]) {
        let work = self.agent.take_work().unwrap();
        for id in channels {
            self.agent.step_alone(*id, Nanos(0));
        }
        let done = work.run(&mut self.model);
        let Self { agent, model } = self;
        agent.finish(done, &mut Context { model, now: Nanos(0), refresh: &mut || {} });
    }

    fn replies(&mut self, id: ChannelId) -> Vec<(u32, Message)> {
        let channel = self.agent.channel(id).unwrap();
        let mut rest = channel.output().to_vec();
        channel.consume(rest.len());
        let mut replies = Vec::new();
        while rest.len() >= HEADER_BYTES {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let xid = u32::from_be_bytes(rest[4..8].try_into().unwrap());
            replies.push((xid, decode(&rest[..length]).unwrap()));
            rest.drain(..length);
        }
        replies
    }
}

fn flow_mod(m: FlowMod) -> Message {
    Message::FlowMod(openflow::flow_mod::FlowModMessage { flow: m, buffer_id: None })
}

fn echo() -> Message {
    Message::EchoRequest(vec![7])
}

#[test]
fn echoes_are_answered_and_other_requests_wait_in_order() {
    let mut bench = Bench::new();
    let (one, two) = (bench.connect(), bench.connect());
    bench.send(one, 1, &flow_mod(delete_all()));
    bench.send(one, 2, &flow_mod(add(1, mac(1), PortNo(2))));
    bench.send(one, 3, &Message::BarrierRequest);
    bench.send(one, 4, &echo());
    bench.step(one);
    assert_eq!(bench.model.flow_count() as u64, MANY, "no entry is deleted or added yet");
    // The other channel already waits before the long change begins.
    bench.send(two, 5, &flow_mod(command(FlowModCommand::DeleteStrict, add(1, mac(1), PortNo(0)))));
    bench.send(two, 6, &Message::BarrierRequest);
    bench.step(two);
    bench.send(two, 7, &echo());
    assert!(bench.replies(two).is_empty());
    bench.make(&[one, two]);
    assert_eq!(bench.replies(one), [(4, Message::EchoReply(vec![7]))]);
    assert_eq!(bench.replies(two), [(7, Message::EchoReply(vec![7]))]);
    assert_eq!(bench.model.flow_count(), 0, "the first request deletes all entries");
    bench.step(one);
    assert_eq!(bench.replies(one), [(3, Message::BarrierReply)]);
    assert_eq!(bench.model.flow_count(), 1);
    bench.step(two);
    assert_eq!(bench.replies(two), [(6, Message::BarrierReply)]);
    assert_eq!(bench.model.flow_count(), 0);
}

#[test]
fn long_changes_are_answered_like_short_ones() {
    let mut bench = Bench::new();
    let one = bench.connect();
    let control = |kind| Message::BundleControl(BundleControl { bundle_id: 1, kind, flags: 1 });
    let part = |message| Message::BundleAdd(BundleAdd { bundle_id: 1, flags: 1, message: Box::new(message) });
    let group = Group { id: GroupId(5), kind: GroupType::All, buckets: Vec::new() };
    let unknown = Message::GroupMod(GroupMod { command: GroupChange::Modify, group });
    let mut commit = |last: Message| {
        bench.model.bundle(Nanos(0), (0..MANY).map(|n| add(2, mac(n.into()), PortNo(1)))).unwrap();
        bench.send(one, 1, &control(BundleKind::OpenRequest));
        bench.send(one, 2, &part(flow_mod(delete_all())));
        bench.send(one, 3, &part(last));
        bench.send(one, 4, &control(BundleKind::CommitRequest));
        bench.step(one);
        assert_eq!(bench.replies(one), [(1, control(BundleKind::OpenReply))]);
        bench.make(&[one]);
        (bench.replies(one), bench.model.flow_count())
    };
    let reply = (4, control(BundleKind::CommitReply));
    assert_eq!(commit(flow_mod(add(1, mac(1), PortNo(2)))), (vec![reply], 1));
    let (replies, left) = commit(unknown);
    let code = |(xid, message): &(u32, Message)| match message {
        Message::Error(error) => (*xid, error.code),
        other => panic!("{other:?}"),
    };
    let codes: Vec<_> = replies.iter().map(code).collect();
    assert_eq!(codes, [(3, error::GROUP_UNKNOWN), (4, bundle::code::MSG_FAILED)]);
    assert_eq!(left as u64, MANY + 1, "nothing was deleted");
}

#[test]
fn a_channel_that_closes_meanwhile_is_not_answered() {
    let mut bench = Bench::new();
    let (one, two) = (bench.connect(), bench.connect());
    bench.send(one, 1, &flow_mod(delete_all()));
    bench.step(one);
    let work = bench.agent.take_work().unwrap();
    bench.agent.close(one);
    let done = work.run(&mut bench.model);
    let Bench { agent, model } = &mut bench;
    assert_eq!(agent.finish(done, &mut Context { model, now: Nanos(0), refresh: &mut || {} }), None);
    assert_eq!(bench.model.flow_count(), 0);
    bench.send(two, 1, &Message::BarrierRequest);
    bench.step(two);
    assert_eq!(bench.replies(two), [(1, Message::BarrierReply)]);
}

#[test]
fn short_changes_are_applied_immediately() {
    let mut bench = Bench::new();
    let one = bench.connect();
    bench.send(one, 1, &flow_mod(command(FlowModCommand::Delete, add(0, mac(3), PortNo(0)))));
    bench.send(one, 2, &flow_mod(FlowMod { table: Some(TableId(9)), ..delete_all() }));
    bench.step(one);
    assert!(!bench.agent.has_work());
    assert_eq!(bench.model.flow_count() as u64, MANY - 1);
}

#[test]
fn deletes_of_groups_and_meters_are_long_if_entries_use_them() {
    let group = |id| Group { id, kind: GroupType::All, buckets: Vec::new() };
    let band = MeterBand { band: Band::Drop, rate: 1, burst: 0 };
    let meter = |id| Meter { id, packets: true, stats: false, burst: false, bands: vec![band] };
    let delete_group = |id| Message::GroupMod(GroupMod { command: GroupChange::Delete, group: group(id) });
    let delete_meter = |id| Message::MeterMod(MeterMod { command: GroupChange::Delete, meter: meter(id) });
    let (every_group, every_meter) = (openflow::group::ALL, openflow::meter::ALL);
    // If `used`, entries use group 1 and meter 1. Group 2 and meter 2 have no users.
    for (delete, used, is_long) in [
        (delete_group(GroupId(1)), true, true),
        (delete_group(GroupId(2)), true, false),
        (delete_group(every_group), true, true),
        (delete_group(every_group), false, false),
        (delete_meter(MeterId(1)), true, true),
        (delete_meter(MeterId(2)), true, false),
        (delete_meter(every_meter), true, true),
        (delete_meter(every_meter), false, false),
    ] {
        let mut bench = Bench::new();
        for id in [1, 2] {
            bench.model.group_mod(Nanos(0), model::GroupCommand::Add, group(GroupId(id))).unwrap();
            bench.model.meter_mod(Nanos(0), model::MeterCommand::Add, meter(MeterId(id))).unwrap();
        }
        if used {
            let instructions = Instructions {
                meter: Some(MeterId(1)),
                ..Instructions::apply(vec![Action::Group(GroupId(1))])
            };
            bench.model.flow_mod(Nanos(0), FlowMod { instructions, ..add(2, mac(1), PortNo(1)) }).unwrap();
        }
        let one = bench.connect();
        bench.send(one, 1, &delete);
        bench.step(one);
        assert_eq!(bench.agent.has_work(), is_long, "{delete:?}, used: {used}");
        if is_long {
            bench.make(&[one]);
        }
        let left = bench.model.flow_count() as u64;
        assert_eq!(left, MANY + u64::from(used && !is_long), "{delete:?}, used: {used}");
    }
}

fn checked(priority: u16, value: u128) -> Message {
    let flags = flow::EntryFlags { check_overlap: true, ..flow::EntryFlags::default() };
    flow_mod(FlowMod { flags, ..add(priority, dst(value, 0xffff), PortNo(1)) })
}

#[test]
fn an_overlap_check_is_long_if_there_are_many_entries_of_its_priority() {
    let mut bench = Bench::new();
    let one = bench.connect();
    bench.send(one, 1, &checked(2, 1));
    bench.send(one, 2, &checked(2, 2));
    bench.step(one);
    assert!(!bench.agent.has_work(), "no entry of this priority is of another shape");
    assert_eq!(bench.model.flow_count() as u64, MANY + 2);
    bench.send(one, 3, &checked(1, 7_000));
    bench.step(one);
    assert!(bench.agent.has_work(), "all entries must be examined");
    bench.make(&[one]);
    assert_eq!(bench.model.flow_count() as u64, MANY + 3);
    bench.send(one, 4, &checked(1, 8));
    bench.step(one);
    bench.make(&[one]);
    let replies = bench.replies(one);
    let [(4, Message::Error(refused))] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(refused.code, error::FLOW_MOD_OVERLAP);
}

#[test]
fn a_step_ends_when_its_changes_have_examined_many_entries() {
    let mut bench = Bench::new();
    let one = bench.connect();
    bench.model.bundle(Nanos(0), (0..1_000).map(|n| add(3, mac(n), PortNo(1)))).unwrap();
    for n in 0..10 {
        bench.send(one, n, &checked(3, 10_000 + u128::from(n)));
    }
    let before = bench.model.flow_count();
    assert!(bench.step(one), "more requests can start immediately");
    assert_eq!(
        bench.model.flow_count() - before,
        5,
        "each request examines a little more than 1,000 entries"
    );
    bench.step(one);
    assert!(!bench.agent.has_work());
    assert_eq!(bench.model.flow_count() - before, 10, "no change is long by itself");
}

#[test]
fn a_channel_with_many_requests_continues_to_answer_echoes() {
    let mut bench = Bench::new();
    let (one, two) = (bench.connect(), bench.connect());
    bench.send(one, 1, &flow_mod(delete_all()));
    bench.step(one);
    let work = bench.agent.take_work().unwrap();
    let alone = |bench: &mut Bench| while bench.agent.step_alone(two, Nanos(0)).more {};
    for n in 0..1_000 {
        bench.send(two, n, &flow_mod(add(1, mac(n.into()), PortNo(1))));
        alone(&mut bench);
    }
    bench.send(two, 2_000, &echo());
    alone(&mut bench);
    assert_eq!(bench.replies(two), [(2_000, Message::EchoReply(vec![7]))]);
    // The number of waiting requests is bounded.
    for n in 0..100 {
        if !bench.agent.channel(two).unwrap().wants_read() {
            break;
        }
        bench.send(two, 3_000 + n, &Message::BarrierRequest);
        alone(&mut bench);
    }
    assert!(!bench.agent.channel(two).unwrap().wants_read(), "1,024 wait");
    let done = work.run(&mut bench.model);
    let Bench { agent, model } = &mut bench;
    agent.finish(done, &mut Context { model, now: Nanos(0), refresh: &mut || {} });
    while bench.step(two) || bench.agent.channel(two).unwrap().is_busy() {}
    let barriers: Vec<_> = bench.replies(two).into_iter().map(|(xid, _)| xid).collect();
    assert_eq!(barriers, (3_000..3_024).collect::<Vec<_>>(), "all barriers are answered in order");
    assert_eq!(bench.model.flow_count(), 1_000);
    assert!(bench.agent.channel(two).unwrap().wants_read());
}

/// Returns a flow-mod of about 60,000 bytes.
fn large(n: u64) -> Message {
    let instructions = Instructions::apply(vec![Action::PopVlan; 7_500]);
    flow_mod(FlowMod { instructions, ..add(1, mac(n.into()), PortNo(1)) })
}

#[test]
fn requests_behind_a_barrier_are_limited_in_bytes() {
    let mut bench = Bench::new();
    let one = bench.connect();
    bench.model.plane_mut().held = true;
    bench.send(one, 1, &flow_mod(add(1, mac(77_777), PortNo(1))));
    bench.send(one, 2, &Message::BarrierRequest);
    while bench.step(one) {}
    assert!(bench.agent.channel(one).unwrap().waits_for_barrier());
    let mut count = 0;
    while bench.agent.channel(one).unwrap().wants_read() {
        bench.send(one, 3, &large(count));
        while bench.step(one) {}
        count += 1;
        assert!(count < 100);
    }
    assert_eq!(count, 5, "more than 256 KiB");
    bench.model.plane_mut().apply_all();
    while bench.step(one) {}
    assert!(
        bench.agent.channel(one).unwrap().wants_read(),
        "the channel reads again after the requests are processed"
    );
    assert!(!bench.agent.channel(one).unwrap().is_busy());
}

#[test]
fn the_requests_of_all_channels_are_limited() {
    const CHANNELS: usize = 300;
    let mut bench = Bench::new();
    let one = bench.connect();
    let others: Vec<_> = (0..CHANNELS).map(|_| bench.connect()).collect();
    bench.send(one, 1, &flow_mod(delete_all()));
    bench.step(one);
    let work = bench.agent.take_work().unwrap();
    let mut held = |id| {
        let mut count = 0;
        while bench.agent.channel(id).unwrap().wants_read() {
            bench.send(id, 1, &large(count));
            bench.agent.step_alone(id, Nanos(0));
            count += 1;
        }
        count
    };
    let counts: Vec<u64> = others.iter().map(|id| held(*id)).collect();
    // Five of these requests exceed 256 KiB.
    assert_eq!(counts[0], 5);
    assert_eq!(counts[CHANNELS - 1], 1, "16 MiB wait, so the last channel holds only the minimum");
    let full = counts.iter().filter(|count| **count == 5).count();
    assert!((50..60).contains(&full), "{full} times 300,000 bytes are 16 MiB");
    // Closed channels release their share of the total.
    others.iter().for_each(|id| bench.agent.close(*id));
    let late = bench.agent.open(Nanos(0), SessionConfig::default());
    bench.send(late, 0, &Message::Hello(openflow::Hello::supported()));
    bench.agent.step_alone(late, Nanos(0));
    for n in 0..100 {
        bench.send(late, n, &Message::BarrierRequest);
        bench.agent.step_alone(late, Nanos(0));
    }
    assert!(bench.agent.channel(late).unwrap().wants_read());
    drop(work);
}
