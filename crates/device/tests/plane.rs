// SPDX-License-Identifier: Apache-2.0
//! The model over the device's data plane, with the software device behind a link.
#![allow(clippy::unwrap_used, clippy::panic)]

use dataplane::{DataPlane, Event};
use device::compile::PpuLayout;
use device::emulator::{DeviceAgent, Emulator};
use device::plane::{DeviceLink, DevicePlane, DeviceState};
use device::session::{DeviceSession, DeviceTimes};
use flow::operation::{PacketOut, Releases};
use flow::syntax::{ParseOptions, parse_actions, parse_flow};
use flow::{Action, DropReason, FlowModCommand, Match, Nanos, PacketInReason, PortNo, TableId, port_no};
use model::{AsyncMessage, Model, ModelConfig, ModelError, PortConfig, PortDesc};

/// A link without delay, which loses every n-th datagram to the device.
struct Link {
    agent: DeviceAgent,
    lose: u32,
    sent: u32,
    open: bool,
    /// Number of datagrams of the device that may arrive, if it is limited.
    credit: Option<u32>,
}

impl DeviceLink for Link {
    fn send(&mut self, datagram: &[u8]) {
        self.sent += 1;
        if self.open && (self.lose == 0 || !self.sent.is_multiple_of(self.lose)) {
            self.agent.receive(true, datagram);
        }
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        if self.credit == Some(0) {
            return None;
        }
        let datagram = self.agent.next_datagram().filter(|_| self.open)?;
        self.credit = self.credit.map(|credit| credit - 1);
        Some(datagram)
    }
}

const TABLES: [u8; 3] = [1, 1, 2];
const ENTRIES: u16 = 32;

struct Switch {
    model: Model<DevicePlane<Link>>,
    now: Nanos,
}

fn agent() -> DeviceAgent {
    DeviceAgent::new(Emulator::new(4, ENTRIES))
}

impl Switch {
    fn new(agent: DeviceAgent, lose: u32, last_id: u32) -> Self {
        let mut made = Self::apart(agent, lose, last_id);
        made.link().open = true;
        made
    }

    /// A switch that is not connected with its device yet.
    fn apart(agent: DeviceAgent, lose: u32, last_id: u32) -> Self {
        let layout = PpuLayout::new(4, ENTRIES, &TABLES).unwrap();
        let times = DeviceTimes { timeout: Nanos(5_000_000), ..DeviceTimes::default() };
        let session = DeviceSession::new(times, last_id);
        let plane =
            DevicePlane::new(Link { agent, lose, sent: 0, open: false, credit: None }, session, layout);
        let mut made = Self { model: Model::new(ModelConfig::default(), plane, Nanos(1)), now: Nanos(1) };
        for number in 1..=4 {
            let desc = PortDesc { number: PortNo(number), ..PortDesc::default() };
            made.model.add_port(made.now, desc, true).unwrap();
        }
        made
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now.0 += 1_000_000;
            self.model.plane_mut().tick(self.now);
            self.model.poll(self.now);
        }
    }

    fn change(&mut self, text: &str) -> Result<(), ModelError> {
        let change = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.model.flow_mod(self.now, change).map(|_| ())
    }

    fn link(&mut self) -> &mut Link {
        self.model.plane_mut().link_mut()
    }

    /// Forwards a frame, and returns what leaves.
    fn forward(&mut self, port: u8, frame: &[u8]) -> Option<(u8, Vec<u8>)> {
        self.link().agent.receive_frame(port, frame);
        self.link().agent.next_frame()
    }

    fn packets(&mut self, text: &str) -> u64 {
        let wanted = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        let found = self.model.find(wanted.table.unwrap(), wanted.priority, &wanted.matching).unwrap();
        self.model.entry_stats(self.now, found).unwrap().packets
    }
}

fn frame(last: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, last, 2, 0, 0, 0, 0, 9, 0x88, 0xb9];
    frame.resize(60, 7);
    frame
}

#[test]
fn flows_forward_count_and_are_deleted() {
    for lose in [0, 3, 7] {
        let mut switch = Switch::new(agent(), lose, 5);
        switch.run(100);
        assert!(switch.model.plane_mut().is_ready() || lose > 0);
        switch.change("dl_dst=02:00:00:00:00:01,actions=output:2").unwrap();
        switch.change("priority=7,dl_dst=02:00:00:00:00:02,actions=goto_table:2").unwrap();
        switch.change("table=2,in_port=3,actions=set_field:02:00:00:00:00:05->eth_dst,output:4").unwrap();
        let barrier = switch.model.barrier();
        switch.run(400);
        assert!(switch.model.is_applied(barrier));
        for _ in 0..10 {
            assert_eq!(switch.forward(1, &frame(1)), Some((2, frame(1))));
        }
        assert_eq!(switch.forward(3, &frame(2)), Some((4, frame(5))));
        assert_eq!(switch.forward(2, &frame(2)), None);
        assert_eq!(switch.forward(2, &frame(1)), None, "not to the ingress port");
        assert_eq!(switch.forward(1, &frame(8)), None);
        switch.run(2_000);
        assert_eq!(switch.packets("dl_dst=02:00:00:00:00:01,actions="), 11);
        assert_eq!(switch.packets("priority=7,dl_dst=02:00:00:00:00:02,actions="), 2);
        let table = switch.model.plane_mut().table_counters(TableId(0));
        assert_eq!((table.lookups, table.matches), (14, 13));
        let totals = switch.model.totals();
        assert_eq!((totals.received, totals.forwarded), (14, 11));
        // A new entry moves or overwrites rows; hits that were not read stay counted.
        assert_eq!(switch.forward(1, &frame(1)), Some((2, frame(1))));
        switch.change("dl_dst=02:00:00:00:00:01,actions=output:3").unwrap();
        switch.run(1_500);
        assert_eq!(switch.forward(1, &frame(1)), Some((3, frame(1))));
        assert_eq!(switch.packets("dl_dst=02:00:00:00:00:01,actions="), 12);
        switch.change("delete table=0").unwrap();
        switch.run(200);
        assert_eq!(switch.forward(1, &frame(1)), None);
        assert_eq!(switch.model.flow_count(), 1);
    }
}

#[test]
fn what_the_device_cannot_do_is_refused_and_changes_nothing() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.run(50);
    let error = |switch: &mut Switch, text: &str| switch.change(text).unwrap_err().openflow();
    assert_eq!(error(&mut switch, "table=3,actions=output:1"), (5, 2));
    assert_eq!(error(&mut switch, "table=1,actions=goto_table:9"), (3, 2));
    assert_eq!(error(&mut switch, "actions=output:1,output:2"), (2, 7));
    assert_eq!(error(&mut switch, "actions=output:300"), (2, 4));
    assert_eq!(error(&mut switch, "actions=FLOOD"), (2, 4));
    assert_eq!(error(&mut switch, "ipv6,ipv6_exthdr=1,actions=drop"), (4, 6));
    assert_eq!(
        error(&mut switch, "ip,nw_src=1.1.1.1,nw_dst=2.2.2.2,dl_src=02:00:00:00:00:01,actions=drop"),
        (5, 1)
    );
    assert_eq!(error(&mut switch, "actions=push_mpls:0x8847,output:1"), (2, 0));
    assert_eq!(error(&mut switch, "actions=write_metadata:0x100,goto_table:1"), (3, 3));
    assert_eq!(error(&mut switch, "sctp,actions=set_field:1->sctp_src,output:1"), (2, 13));
    assert_eq!(error(&mut switch, "actions=set_queue:3,output:1"), (2, 8));
    for at in 0..31 {
        switch.change(&format!("table=1,dl_dst=02:00:00:00:01:{at:02x},actions=drop")).unwrap();
    }
    assert_eq!(error(&mut switch, "table=1,dl_dst=02:00:00:00:02:01,actions=drop"), (5, 1));
    assert_eq!(switch.model.flow_count(), 31);
    // A modification that the device cannot execute leaves the entry as it was.
    assert_eq!(error(&mut switch, "modify table=1,dl_dst=02:00:00:00:01:03,actions=ALL"), (2, 4));
    switch.change("actions=goto_table:1").unwrap();
    switch.run(200);
    let mut hit = frame(3);
    hit[4] = 1;
    assert_eq!(switch.forward(1, &hit), None);
}

#[test]
fn packets_reach_the_controller_and_come_back() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("priority=0,actions=CONTROLLER:128").unwrap();
    switch.change("priority=5,dl_dst=02:00:00:00:00:01,actions=goto_table:1").unwrap();
    switch
        .change("table=1,cookie=0x77,in_port=1,actions=set_field:02:00:00:00:00:06->eth_dst,CONTROLLER")
        .unwrap();
    switch.run(50);
    assert_eq!(switch.forward(2, &frame(3)), None);
    assert_eq!(switch.forward(1, &frame(1)), None);
    switch.run(5);
    let mut seen = Vec::new();
    while let Some(message) = switch.model.next_async_message() {
        if let AsyncMessage::PacketIn(packet) = message {
            seen.push((
                packet.frame.meta.in_port,
                packet.table,
                packet.cookie,
                packet.frame.bytes().to_vec(),
            ));
            switch.model.recycle(packet.frame);
        }
    }
    assert_eq!(seen, [(2, TableId(0), 0, frame(3)), (1, TableId(1), 0x77, frame(6))]);

    let mut out = |actions: &str, in_port: PortNo| {
        let actions = match actions {
            "TABLE" => vec![Action::output(port_no::TABLE)],
            text => parse_actions(text, &Match::any(), ParseOptions::default()).unwrap().apply,
        };
        let packet = PacketOut { in_port, actions, bytes: frame(1), releases: Releases::Nothing };
        switch.model.packet_out(packet).unwrap();
        std::iter::from_fn(|| switch.link().agent.next_frame()).collect::<Vec<_>>()
    };
    assert_eq!(out("output:2", port_no::CONTROLLER), [(2, frame(1))]);
    assert_eq!(out("output:1", PortNo(1)), [], "not to the ingress port");
    assert_eq!(out("FLOOD", PortNo(3)), [(1, frame(1)), (2, frame(1)), (4, frame(1))]);
    assert_eq!(
        out("output:4,set_field:02:00:00:00:00:08->eth_dst,push_vlan:0x8100,IN_PORT", PortNo(2)),
        [(4, frame(1)), (2, [&frame(8)[..12], &[0x81, 0, 0, 0], &frame(8)[12..]].concat())]
    );
    assert_eq!(out("TABLE", PortNo(1)), [], "the tables send it to the controller");
    switch.run(5);
    let event = switch.model.next_async_message();
    assert!(matches!(event, Some(AsyncMessage::PacketIn(packet)) if packet.cookie == 0x77));
    assert!(!matches!(switch.model.plane_mut().next_event(), Some(Event::Learn(_))));
}

/// The device needs not to answer, because it takes no part.
#[test]
fn a_packet_out_to_the_controller_comes_back_as_a_packet_in() {
    for is_connected in [false, true] {
        let mut switch = Switch::apart(agent(), 0, 5);
        switch.link().open = is_connected;
        switch.run(50);
        // Messages about the ports.
        while switch.model.next_async_message().is_some() {}
        let actions = "set_field:02:00:00:00:00:08->eth_dst,CONTROLLER:20";
        let actions = parse_actions(actions, &Match::any(), ParseOptions::default()).unwrap().apply;
        for in_port in [PortNo(3), port_no::CONTROLLER] {
            let packet =
                PacketOut { in_port, actions: actions.clone(), bytes: frame(1), releases: Releases::Nothing };
            switch.model.packet_out(packet).unwrap();
            switch.run(1);
            let Some(AsyncMessage::PacketIn(packet)) = switch.model.next_async_message() else {
                panic!("no packet-in");
            };
            assert_eq!(packet.frame.bytes(), frame(8));
            assert_eq!((packet.frame.meta.in_port, packet.max_len), (in_port.0, 20));
            assert_eq!(
                (packet.cookie, packet.table, packet.reason),
                (u64::MAX, TableId(0), PacketInReason::Action)
            );
            switch.model.recycle(packet.frame);
            assert!(switch.model.next_async_message().is_none(), "one packet-in");
        }
        assert!(
            switch.model.plane_mut().link_mut().agent.next_frame().is_none(),
            "nothing leaves the device"
        );
    }
}

#[test]
fn a_port_without_packet_ins_sends_none_for_packet_outs() {
    let mut switch = Switch::new(agent(), 0, 5);
    let config = PortConfig { no_packet_in: true, ..PortConfig::default() };
    switch.model.set_port_config(switch.now, PortNo(3), config).unwrap();
    while switch.model.next_async_message().is_some() {}
    let actions = vec![Action::output(port_no::CONTROLLER)];
    let packet = PacketOut { in_port: PortNo(3), actions, bytes: frame(1), releases: Releases::Nothing };
    switch.model.packet_out(packet).unwrap();
    switch.run(1);
    assert!(switch.model.next_async_message().is_none());
    assert_eq!(switch.model.totals().copies_dropped.of(DropReason::NoPacketIn), 1);
}

#[test]
fn a_restarted_daemon_keeps_a_device_with_the_same_rules_and_rewrites_another() {
    let flows = ["dl_dst=02:00:00:00:00:01,actions=output:2", "priority=3,in_port=1,actions=output:3"];
    let mut first = Switch::new(agent(), 0, 5);
    flows.iter().for_each(|flow| first.change(flow).unwrap());
    first.run(100);
    let kept = first.link().agent.clone();
    assert_eq!(first.model.plane_mut().rewrites(), 1, "the device was empty");

    // The daemon has its rules before it connects.
    let mut second = Switch::apart(kept.clone(), 0, 100_000);
    flows.iter().for_each(|flow| second.change(flow).unwrap());
    second.link().open = true;
    assert_eq!(second.forward(1, &frame(1)), Some((2, frame(1))), "the device forwards meanwhile");
    second.run(700);
    assert!(second.model.plane_mut().is_ready());
    assert_eq!(second.model.plane_mut().rewrites(), 0);
    assert_eq!(second.forward(1, &frame(7)), Some((3, frame(7))));

    let mut third = Switch::new(kept, 0, 200_000);
    third.change("dl_src=02:00:00:00:00:09,actions=output:4").unwrap();
    third.run(100);
    assert_eq!(third.model.plane_mut().rewrites(), 1);
    assert_eq!(third.forward(1, &frame(1)), Some((4, frame(1))));

    // The device vanishes, and returns empty. Changes meanwhile are active when it is rewritten.
    third.link().open = false;
    third.change("priority=40000,in_port=2,actions=output:1").unwrap();
    let barrier = third.model.barrier();
    third.run(1_000);
    assert!(!third.model.is_applied(barrier));
    third.link().agent = agent();
    third.link().open = true;
    third.run(1_000);
    assert!(third.model.is_applied(barrier) && third.model.plane_mut().is_ready());
    assert_eq!(third.forward(2, &frame(1)), Some((1, frame(1))));
    assert_eq!(third.forward(1, &frame(1)), Some((4, frame(1))));
}

/// A device that was reset answers requests, but its tables are empty.
#[test]
fn a_device_that_was_reset_is_written_anew_without_a_change() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(100);
    for _ in 0..3 {
        assert_eq!(switch.forward(1, &frame(1)), Some((2, frame(1))));
    }
    switch.run(1_000);
    assert_eq!(switch.packets("in_port=1,actions="), 3);
    assert_eq!(switch.model.port_counters(PortNo(2)).unwrap().tx_packets, 3);
    switch.link().agent = agent();
    switch.run(1_500);
    assert!(switch.model.plane_mut().is_ready());
    assert_eq!(switch.forward(1, &frame(1)), Some((2, frame(1))));
    switch.run(1_000);
    assert_eq!(switch.packets("in_port=1,actions="), 4, "counts go on");
    let counters = switch.model.port_counters(PortNo(2)).unwrap();
    assert_eq!((counters.tx_packets, counters.tx_bytes), (4, 240), "counters of ports never fall");
    assert_eq!(switch.model.totals().forwarded, 4);
}

#[test]
fn an_outage_is_noticed_and_parks_one_version() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(100);
    switch.forward(1, &frame(1));
    switch.link().open = false;
    switch.run(1_200);
    assert_eq!(switch.model.plane_mut().state(), DeviceState::Silent);
    for at in 0..20 {
        switch.change(&format!("dl_dst=02:00:00:00:01:{at:02x},actions=output:3")).unwrap();
    }
    assert_eq!(switch.model.plane_mut().parked(), 1);
    let barrier = switch.model.barrier();
    // The same device returns. It has forwarded meanwhile.
    switch.link().agent.receive_frame(1, &frame(1));
    switch.link().open = true;
    switch.run(1_500);
    assert!(switch.model.is_applied(barrier));
    assert_eq!(switch.packets("in_port=1,actions="), 2, "hits during the outage are counted");
}

/// A packet of the controller meets the rules that were requested before it.
#[test]
fn a_packet_out_follows_the_flow_mods_before_it() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.run(100);
    for port in [2, 3, 4] {
        switch.change(&format!("priority=7,dl_dst=02:00:00:00:00:01,actions=output:{port}")).unwrap();
        let actions = vec![Action::output(port_no::TABLE)];
        let packet = PacketOut { in_port: PortNo(1), actions, bytes: frame(1), releases: Releases::Nothing };
        switch.model.packet_out(packet).unwrap();
        switch.run(20);
        assert_eq!(switch.link().agent.next_frame(), Some((port, frame(1))));
    }
}

#[test]
fn a_modification_that_resets_counters_counts_later_hits_only() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(100);
    (0..5).for_each(|_| _ = switch.forward(1, &frame(1)));
    switch.change("modify reset_counts in_port=1,actions=output:3").unwrap();
    switch.run(100);
    assert_eq!(switch.forward(1, &frame(1)), Some((3, frame(1))));
    switch.run(1_200);
    assert_eq!(switch.packets("in_port=1,actions="), 1);
    (0..5).for_each(|_| _ = switch.forward(1, &frame(1)));
    switch.change("modify in_port=1,actions=output:4").unwrap();
    switch.run(1_200);
    assert_eq!(switch.packets("in_port=1,actions="), 6);
}

#[test]
fn ports_cannot_be_disabled_but_their_links_may_fail() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.run(50);
    let now = switch.now;
    for config in [
        PortConfig { down: true, ..PortConfig::default() },
        PortConfig { no_fwd: true, ..PortConfig::default() },
        PortConfig { no_recv: true, ..PortConfig::default() },
    ] {
        let error = switch.model.set_port_config(now, PortNo(2), config).unwrap_err();
        assert_eq!(error.openflow(), (7, 2), "{config:?}");
    }
    switch.model.set_link(now, PortNo(2), false).unwrap();
    let silent = PortConfig { no_packet_in: true, ..PortConfig::default() };
    switch.model.set_port_config(now, PortNo(2), silent).unwrap();
    assert!(switch.model.port(PortNo(2)).unwrap().config.no_packet_in);
}

/// The commands that replace an entry are under way when the link fails. Its hits do not count for the new
/// entry.
#[test]
fn hits_of_a_row_that_was_not_replaced_do_not_count_for_another_entry() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(100);
    (0..9).for_each(|_| _ = switch.forward(1, &frame(1)));
    switch.run(1_000);
    assert_eq!(switch.packets("in_port=1,actions="), 9);
    switch.link().open = false;
    switch.change("delete in_port=1").unwrap();
    switch.change("in_port=3,actions=output:2").unwrap();
    switch.run(1_200);
    switch.link().open = true;
    switch.run(1_500);
    assert!(switch.model.plane_mut().is_ready());
    assert_eq!(switch.packets("in_port=3,actions="), 0);
    assert_eq!(switch.forward(3, &frame(1)), Some((2, frame(1))));
}

/// The modification replaces the row, so that the hits before it are read twice.
#[test]
fn counters_are_reset_although_rows_are_replaced() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(100);
    (0..5).for_each(|_| _ = switch.forward(1, &frame(1)));
    switch.change("modify reset_counts in_port=1,actions=CONTROLLER").unwrap();
    switch.run(100);
    assert_eq!(switch.forward(1, &frame(1)), None);
    switch.run(1_200);
    assert_eq!(switch.packets("in_port=1,actions="), 1);
}

/// Flow-mods in every millisecond do not keep counters from being read.
#[test]
fn counters_are_read_under_a_stream_of_flow_mods() {
    let mut switch = Switch::new(agent(), 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(100);
    (0..7).for_each(|_| _ = switch.forward(1, &frame(1)));
    for round in 0..2_500_u32 {
        // A flow-mod needs several answers. The daemon takes no more while many wait.
        if switch.model.plane_mut().parked() < 32 {
            switch.change(&format!("dl_dst=02:00:00:00:01:01,actions=output:{}", 2 + round % 2)).unwrap();
        }
        switch.link().credit = Some(1);
        switch.run(1);
    }
    assert_eq!(switch.packets("in_port=1,actions="), 7);
}

#[test]
fn a_device_of_another_size_gets_no_rules_until_the_right_one_answers() {
    let other = DeviceAgent::new(Emulator::new(2, 16));
    let mut switch = Switch::new(other, 0, 5);
    switch.change("in_port=1,actions=output:2").unwrap();
    switch.run(2_000);
    let wrong = DeviceState::WrongSize { ppus: 2, entries: 16 };
    assert_eq!(switch.model.plane_mut().state(), wrong);
    assert_eq!(switch.forward(1, &frame(1)), None);
    // It vanishes.
    switch.link().open = false;
    switch.run(4_000);
    assert_eq!(switch.model.plane_mut().state(), DeviceState::Silent);
    switch.link().agent = agent();
    switch.link().open = true;
    switch.run(1_500);
    assert_eq!(switch.model.plane_mut().state(), DeviceState::Ready { rewrites: 1 });
    assert_eq!(switch.forward(1, &frame(1)), Some((2, frame(1))));
}
