// SPDX-License-Identifier: Apache-2.0
//! Limits of a controller's channel. Each limit is tested at its exact value and one step beyond it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use dataplane::{Event, PacketInEvent};
use flow::{Action, EntryId, FlowMod, Instructions, Nanos, PacketInReason, PortNo, TableId};
use frame::{Frame, Gso, GsoKind};
use model::agent::{Agent, ChannelEvent, ChannelId, Context, LostMessages};
use openflow::multipart::{MultipartRequest, Query, flow_stats::FlowQuery};
use openflow::{HEADER_BYTES, Message, SessionConfig, decode, encode};

const KIB: usize = 1_024;

/// An agent over a model whose data plane applies operations only on request.
struct Bench {
    agent: Agent,
    model: Fake,
}

impl Bench {
    fn new() -> Self {
        let mut model = plain();
        model.plane_mut().held = true;
        model.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
        Self { agent: Agent::default(), model }
    }

    fn connect(&mut self, config: SessionConfig) -> ChannelId {
        let id = self.agent.open(Nanos(0), config);
        self.send(id, &Message::Hello(openflow::Hello::supported()));
        self.step(id);
        self.read_all(id);
        id
    }

    /// Returns a channel on which further requests wait for a barrier.
    fn waiting(&mut self) -> ChannelId {
        let id = self.connect(SessionConfig::default());
        self.send(id, &Message::BarrierRequest);
        self.step(id);
        assert!(self.agent.channel(id).unwrap().waits_for_barrier());
        id
    }

    fn send(&mut self, id: ChannelId, message: &Message) {
        let bytes = bytes_of(message);
        assert_eq!(self.agent.channel(id).unwrap().receive(&bytes, Nanos(0)), bytes.len());
    }

    /// Reports a packet-in of the first `max_len` bytes of a frame.
    fn packet_in(&mut self, frame: Frame, max_len: u16) {
        self.model.plane_mut().events.push_back(Event::PacketIn(PacketInEvent {
            frame,
            table: TableId(0),
            entry: EntryId(0),
            reason: PacketInReason::Action,
            max_len,
            metadata: 0,
            tunnel_id: 0,
            question: None,
        }));
        self.report();
    }

    /// Runs a step. Returns whether the channel has more work to do immediately.
    fn step(&mut self, id: ChannelId) -> bool {
        self.step_at(id, Nanos(0)).0
    }

    fn step_at(&mut self, id: ChannelId, now: Nanos) -> (bool, Vec<ChannelEvent>) {
        let Self { agent, model } = self;
        let progress = agent.step(id, &mut Context { model, now, refresh: &mut || {} });
        (progress.more, progress.events)
    }

    fn wants_read(&mut self, id: ChannelId) -> bool {
        self.agent.channel(id).unwrap().wants_read()
    }

    /// Sends flow-mods of exactly `bytes` bytes in total.
    fn fill(&mut self, id: ChannelId, mut bytes: usize) {
        while bytes > 0 {
            let part = if bytes >= 64 * KIB { 32 * KIB } else { bytes };
            self.send(id, &flow_mod_of(part));
            self.step(id);
            bytes -= part;
        }
    }

    fn output(&mut self, id: ChannelId) -> usize {
        self.agent.channel(id).unwrap().output().len()
    }

    /// Reads the whole output as the controller, and returns the number of messages.
    fn read_all(&mut self, id: ChannelId) -> usize {
        let channel = self.agent.channel(id).unwrap();
        let mut rest = channel.output();
        let (all, mut messages) = (rest.len(), 0);
        while rest.len() >= HEADER_BYTES {
            rest = &rest[usize::from(u16::from_be_bytes([rest[2], rest[3]]))..];
            messages += 1;
        }
        channel.consume(all);
        messages
    }

    /// Leaves exactly `bytes` bytes of output for the controller to read.
    fn fill_output(&mut self, id: ChannelId, bytes: usize) {
        self.read_all(id);
        while self.output(id) < bytes {
            let rest = bytes - self.output(id);
            let part = if rest >= 64 * KIB { 32 * KIB } else { rest };
            self.send(id, &Message::EchoRequest(vec![0; part - HEADER_BYTES]));
            self.step(id);
        }
        assert_eq!(self.output(id), bytes);
    }

    /// Passes all waiting asynchronous messages to the agent.
    fn report(&mut self) {
        for async_message in poll_all(&mut self.model, Nanos(0)) {
            self.agent.report(&mut self.model, Nanos(0), async_message);
        }
    }
}

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, 7, &mut bytes).unwrap();
    bytes
}

/// Returns a flow-mod of exactly `bytes` bytes.
fn flow_mod_of(bytes: usize) -> Message {
    const ACTION_BYTES: usize = 8;
    let of = |actions| {
        let instructions = Instructions::apply(vec![Action::PopVlan; actions]);
        let flow = FlowMod { instructions, ..add(1, mac(2), PortNo(1)) };
        Message::FlowMod(openflow::flow_mod::FlowModMessage { flow, buffer_id: None })
    };
    let message = of(1 + (bytes - bytes_of(&of(1)).len()) / ACTION_BYTES);
    assert_eq!(bytes_of(&message).len(), bytes);
    message
}

#[test]
fn a_channel_holds_1024_requests_or_256_kib() {
    let mut bench = Bench::new();
    let by_bytes = bench.waiting();
    bench.fill(by_bytes, 256 * KIB - HEADER_BYTES);
    assert!(bench.wants_read(by_bytes));
    bench.send(by_bytes, &Message::BarrierRequest);
    bench.step(by_bytes);
    assert!(!bench.wants_read(by_bytes));

    let by_number = bench.waiting();
    for number in 0..1_024 {
        assert!(bench.wants_read(by_number), "{number} requests wait");
        bench.send(by_number, &Message::BarrierRequest);
        bench.step(by_number);
    }
    assert!(!bench.wants_read(by_number));
}

#[test]
fn beyond_16_mib_in_all_channels_each_holds_16_requests_or_16_kib() {
    let mut bench = Bench::new();
    for _ in 0..63 {
        let id = bench.waiting();
        bench.fill(id, 256 * KIB);
    }
    let last = bench.waiting();
    bench.fill(last, 256 * KIB - HEADER_BYTES);

    // One more request raises the total of all channels to 16 MiB. Up to that total, only the limits of a
    // single channel apply.
    let late = bench.waiting();
    (0..17).for_each(|_| bench.send(late, &Message::BarrierRequest));
    bench.step(late);
    assert!(bench.wants_read(late));
    bench.step(late);
    assert!(!bench.wants_read(late), "the requests of all channels have 16 MiB");

    let by_number = bench.waiting();
    for number in 0..16 {
        assert!(bench.wants_read(by_number), "{number} requests wait");
        bench.send(by_number, &Message::BarrierRequest);
        bench.step(by_number);
    }
    assert!(!bench.wants_read(by_number));

    let by_bytes = bench.waiting();
    bench.fill(by_bytes, 16 * KIB - HEADER_BYTES);
    assert!(bench.wants_read(by_bytes));
    bench.send(by_bytes, &Message::BarrierRequest);
    bench.step(by_bytes);
    assert!(!bench.wants_read(by_bytes));
}

#[test]
fn a_step_starts_at_most_64_requests() {
    let mut bench = Bench::new();
    let one = bench.connect(SessionConfig::default());
    for (requests, answered, more) in [(63, 63, false), (64, 64, true), (65, 64, true)] {
        (0..requests).for_each(|_| bench.send(one, &Message::GetConfigRequest));
        assert_eq!((bench.step(one), bench.read_all(one)), (more, answered), "{requests} requests");
        assert_eq!((bench.step(one), bench.read_all(one)), (false, requests - answered));
    }
}

#[test]
fn no_request_begins_while_256_operations_are_parked() {
    let mut bench = Bench::new();
    let one = bench.connect(SessionConfig::default());
    for (parked, answers) in [(255, 1), (256, 0)] {
        bench.model.plane_mut().parked = parked;
        bench.send(one, &Message::GetConfigRequest);
        bench.step(one);
        assert_eq!(bench.read_all(one), answers, "{parked} parked operations");
    }
    bench.model.plane_mut().parked = 0;
    bench.step(one);
    assert_eq!(bench.read_all(one), 1);
}

#[test]
fn a_long_answer_waits_while_64_kib_are_not_read() {
    let flows = MultipartRequest { query: Query::Flow(FlowQuery::default()), more: false };
    for (unread, goes_on) in [(64 * KIB - 1, true), (64 * KIB, false)] {
        let mut bench = Bench::new();
        let one = bench.connect(SessionConfig::default());
        bench.fill_output(one, unread);
        bench.send(one, &Message::MultipartRequest(flows.clone()));
        bench.step(one);
        assert_eq!(bench.output(one) > unread, goes_on, "{unread} unread bytes");
        bench.read_all(one);
        while bench.step(one) {}
        assert!(goes_on || bench.output(one) > 0, "the answer continues after they are read");
    }
}

/// Returns the configuration of a session that answers echo requests until its output is far beyond the
/// agent's limits.
fn patient() -> SessionConfig {
    SessionConfig { output_limit: 4 * KIB * KIB, ..SessionConfig::default() }
}

#[test]
fn port_status_is_queued_up_to_1_mib() {
    for (unread, is_reported) in [(KIB * KIB, true), (KIB * KIB + 1, false)] {
        let mut bench = Bench::new();
        let one = bench.connect(patient());
        bench.fill_output(one, unread);
        bench.model.add_port(Nanos(0), port(PortNo(1)), true).unwrap();
        bench.report();
        assert_eq!(bench.output(one) > unread, is_reported, "{unread} unread bytes");
        let port_status = u64::from(!is_reported);
        assert_eq!(bench.agent.lost(), LostMessages { port_status, ..LostMessages::default() });
    }
}

#[test]
fn packet_ins_are_queued_up_to_the_limit_of_the_session() {
    let limit = SessionConfig::default().output_limit;
    for (unread, is_reported) in [(limit, true), (limit + 1, false)] {
        let mut bench = Bench::new();
        let one = bench.connect(SessionConfig::default());
        bench.fill_output(one, unread);
        bench.packet_in(Frame::from_bytes(&[1; 60]), 128);
        assert_eq!(bench.output(one) > unread, is_reported, "{unread} unread bytes");
        let packet_in = u64::from(!is_reported);
        assert_eq!(bench.agent.lost(), LostMessages { packet_in, ..LostMessages::default() });
        assert_eq!(bench.model.plane_mut().recycled, 1);
    }
}

#[test]
fn a_lost_packet_in_keeps_no_buffer() {
    let mut bench = Bench::new();
    let one = bench.connect(SessionConfig::default());
    bench.fill_output(one, SessionConfig::default().output_limit + 1);
    (0..300).for_each(|_| bench.packet_in(Frame::from_bytes(&[1; 60]), 10));
    assert_eq!(bench.agent.lost(), LostMessages { packet_in: 300, ..LostMessages::default() });
    bench.read_all(one);
    bench.packet_in(Frame::from_bytes(&[1; 60]), 10);
    let output = bench.agent.channel(one).unwrap().output().to_vec();
    let Message::PacketIn(packet_in) = decode(&output).unwrap() else { panic!("{output:?}") };
    assert_eq!((packet_in.buffer_id.is_some(), packet_in.data.len()), (true, 10));
}

/// A buffer stays if one of two channels has taken the packet-in.
#[test]
fn a_packet_in_that_one_channel_has_lost_keeps_its_buffer() {
    let mut bench = Bench::new();
    let full = bench.connect(SessionConfig::default());
    let one = bench.connect(SessionConfig::default());
    bench.fill_output(full, SessionConfig::default().output_limit + 1);
    (0..257).for_each(|_| bench.packet_in(Frame::from_bytes(&[1; 60]), 10));
    assert_eq!(bench.agent.lost(), LostMessages { packet_in: 257, ..LostMessages::default() });
    let output = bench.agent.channel(one).unwrap().output().to_vec();
    let (mut rest, mut buffered) = (&output[..], 0);
    while !rest.is_empty() {
        let (message, later) = rest.split_at(usize::from(u16::from_be_bytes([rest[2], rest[3]])));
        let Message::PacketIn(packet_in) = decode(message).unwrap() else { panic!("{message:?}") };
        buffered += usize::from(packet_in.buffer_id.is_some());
        rest = later;
    }
    assert_eq!(buffered, 256);
}

#[test]
fn a_packet_in_of_a_super_frame_that_cannot_be_segmented_is_lost() {
    let mut bench = Bench::new();
    let one = bench.connect(SessionConfig::default());
    let mut frame = Frame::from_bytes(&[1; 60]);
    frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, ecn: false, size: 0, header_len: 54 });
    bench.packet_in(frame, 10);
    assert_eq!(bench.output(one), 0);
    assert_eq!(bench.agent.lost(), LostMessages { packet_in: 1, ..LostMessages::default() });
}

#[test]
fn losses_are_reported_at_most_once_per_second() {
    let mut bench = Bench::new();
    let one = bench.connect(patient());
    bench.fill_output(one, KIB * KIB + 1);
    let lose_one = |bench: &mut Bench, now: Nanos| {
        bench.model.set_link(Nanos(0), PortNo(1), now.0.is_multiple_of(2)).unwrap();
        bench.report();
        bench.step_at(one, now).1
    };
    bench.model.add_port(Nanos(0), port(PortNo(1)), false).unwrap();
    let lost =
        |port_status| vec![ChannelEvent::Lost(LostMessages { port_status, ..LostMessages::default() })];
    assert_eq!(lose_one(&mut bench, Nanos(10)), lost(2));
    assert_eq!(lose_one(&mut bench, Nanos(9) + SECOND), []);
    assert_eq!(lose_one(&mut bench, Nanos(10) + SECOND), lost(2));
}
