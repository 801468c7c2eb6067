// SPDX-License-Identifier: Apache-2.0
//! The agent's answers to requests of a controller, and the packet-outs that it accepts.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::validate::ValidateError;
use flow::{Action, FlowMod, GroupId, Instructions, Nanos, Operation, PortNo, RuleVersion, TableId, port_no};
use model::agent::{Agent, ChannelId, Context};
use model::{Learning, ModelError, ModelLimits};
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::table_features_property::{Entries, TableProperty};
use openflow::multipart::{Answer, MultipartRequest, Query};
use openflow::role::{Role, RoleMessage};
use openflow::{ErrorCode, HEADER_BYTES, Message, SessionConfig, decode, encode, error};

struct Bench {
    agent: Agent,
    model: Fake,
    refreshed: usize,
}

impl Bench {
    fn new() -> Self {
        Self { agent: Agent::default(), model: plain(), refreshed: 0 }
    }

    fn connect(&mut self) -> ChannelId {
        let id = self.agent.open(Nanos(0), SessionConfig::default());
        self.ask(id, &Message::Hello(openflow::Hello::supported()));
        id
    }

    /// Returns the answers to a message.
    fn ask(&mut self, id: ChannelId, message: &Message) -> Vec<Message> {
        let mut bytes = Vec::new();
        encode(message, 1, &mut bytes).unwrap();
        self.agent.channel(id).unwrap().receive(&bytes, Nanos(0));
        let Self { agent, model, refreshed } = self;
        let mut refresh = || *refreshed += 1;
        let mut rest = Vec::new();
        // A long answer continues only after its beginning has been read.
        loop {
            let more = agent.step(id, &mut Context { model, now: 5 * SECOND, refresh: &mut refresh }).more;
            let channel = agent.channel(id).unwrap();
            rest.extend_from_slice(channel.output());
            channel.consume(channel.output().len());
            if !more && !channel.is_busy() {
                break;
            }
        }
        let mut answers = Vec::new();
        while rest.len() >= HEADER_BYTES {
            let after = rest.split_off(usize::from(u16::from_be_bytes([rest[2], rest[3]])));
            answers.push(decode(&rest).unwrap());
            rest = after;
        }
        answers
    }

    fn query(&mut self, query: Query) -> Result<Vec<Answer>, ErrorCode> {
        let id = self.connect();
        let answers = self.ask(id, &Message::MultipartRequest(MultipartRequest { query, more: false }));
        let last = answers.len().wrapping_sub(1);
        let answer = |(at, message)| match message {
            Message::MultipartReply(reply) => {
                assert_eq!(reply.more, at != last, "every part except the last has the flag `more`");
                Ok(reply.answer)
            }
            Message::Error(error) => Err(error.code),
            other => panic!("{other:?}"),
        };
        answers.into_iter().enumerate().map(answer).collect()
    }
}

/// Adds entries of priorities 1 to 4 that differ in table, cookie, output and group.
fn four_entries(bench: &mut Bench) {
    bench.model.group_mod(Nanos(0), model::GroupCommand::Add, group(GroupId(7))).unwrap();
    let to_group = Instructions::apply(vec![Action::Group(GroupId(7))]);
    for flow in [
        FlowMod { cookie: 0x10, ..add(1, mac(1), PortNo(5)) },
        FlowMod { cookie: 0x11, table: Some(TableId(3)), ..add(2, mac(2), PortNo(6)) },
        FlowMod { instructions: to_group, table: Some(TableId(3)), ..add(3, mac(1), PortNo(0)) },
        FlowMod { table: Some(TableId(254)), ..add(4, flow::Match::any(), PortNo(5)) },
    ] {
        bench.model.flow_mod(Nanos(0), flow).unwrap();
    }
    let ids: Vec<_> = dump(&mut bench.model, Nanos(0)).iter().map(|flow| flow.entry.id).collect();
    for (id, packets) in ids.into_iter().zip([1, 10, 100, 1_000]) {
        bench.model.plane_mut().hit(id, packets, Nanos(0));
    }
}

fn group(id: GroupId) -> flow::group::Group {
    flow::group::Group { id, kind: flow::group::GroupType::All, buckets: Vec::new() }
}

#[test]
fn each_filter_of_a_flow_query_selects_entries() {
    let all = FlowQuery::default;
    for (query, expected) in [
        (all(), &[1, 2, 3, 4][..]),
        (FlowQuery { table: Some(TableId(3)), ..all() }, &[2, 3]),
        (FlowQuery { table: Some(TableId(254)), ..all() }, &[4]),
        (FlowQuery { table: Some(TableId(4)), ..all() }, &[]),
        (FlowQuery { out_port: Some(PortNo(5)), ..all() }, &[1, 4]),
        (FlowQuery { out_group: Some(GroupId(7)), ..all() }, &[3]),
        (FlowQuery { out_group: Some(GroupId(8)), ..all() }, &[]),
        (FlowQuery { cookie: 0x10, cookie_mask: 0x10, ..all() }, &[1, 2]),
        (FlowQuery { cookie: 0x11, cookie_mask: 0xff, ..all() }, &[2]),
        (FlowQuery { cookie: 0x11, ..all() }, &[1, 2, 3, 4]),
        (FlowQuery { matching: mac(1), ..all() }, &[1, 3]),
        (FlowQuery { matching: mac(1), table: Some(TableId(3)), out_group: Some(GroupId(7)), ..all() }, &[3]),
    ] {
        let mut bench = Bench::new();
        four_entries(&mut bench);
        let answers = bench.query(Query::Flow(query.clone())).unwrap();
        let [Answer::Flow(flows)] = &answers[..] else { panic!("{answers:?}") };
        let priorities: Vec<_> = flows.iter().map(|flow| flow.priority).collect();
        assert_eq!(priorities, expected, "{query:?}");
        assert!(flows.iter().all(|flow| flow.duration_ns == 5 * SECOND));
        let packets = expected.iter().map(|priority| 10_u64.pow(u32::from(*priority) - 1)).sum();
        let answers = bench.query(Query::Aggregate(query)).unwrap();
        let [Answer::Aggregate(sum)] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((sum.flows as usize, sum.packets, sum.bytes), (expected.len(), packets, 100 * packets));
    }
}

#[test]
fn a_long_answer_holds_each_entry_once() {
    for entries in [255_u64, 256, 257, 5_000] {
        let mut bench = Bench::new();
        bench.model.bundle(Nanos(0), (0..entries).map(|n| add(1, mac(n.into()), PortNo(1)))).unwrap();
        let answers = bench.query(Query::Flow(FlowQuery::default())).unwrap();
        let flows = answers.iter().flat_map(|answer| match answer {
            Answer::Flow(flows) => flows.iter().map(|flow| flow.matching.clone()),
            other => panic!("{other:?}"),
        });
        assert!(flows.eq((0..entries).map(|n| mac(n.into()))), "{entries} entries");
    }
}

#[test]
fn every_table_of_the_pipeline_is_reported() {
    let mut bench = Bench::new();
    four_entries(&mut bench);
    let answers = bench.query(Query::Table).unwrap();
    let tables = answers.iter().flat_map(|answer| match answer {
        Answer::Table(tables) => tables.clone(),
        other => panic!("{other:?}"),
    });
    let tables: Vec<_> = tables.collect();
    assert!(tables.iter().map(|row| row.table).eq(TableId::of_controllers()));
    for row in &tables {
        let active = match row.table.0 {
            0 | 254 => 1,
            3 => 2,
            _ => 0,
        };
        assert_eq!((row.active, row.lookups), (active, u64::from(row.table.0)), "table {}", row.table);
    }
}

#[test]
fn every_table_reports_its_capabilities() {
    let answers = Bench::new().query(Query::TableFeatures(Vec::new())).unwrap();
    let features = answers.iter().flat_map(|answer| match answer {
        Answer::TableFeatures(features) => features.clone(),
        other => panic!("{other:?}"),
    });
    let features: Vec<_> = features.collect();
    assert!(features.iter().map(|table| table.table).eq(TableId::of_controllers()));
    for table in &features {
        let next = table.properties.iter().find_map(|property| match property {
            TableProperty::NextTables(Entries::Ordinary, next) => Some(next.clone()),
            _ => None,
        });
        assert_eq!(next, Some((table.table.0 + 1..=254).collect()), "table {}", table.table);
        let instructions = table.properties.iter().find_map(|property| match property {
            TableProperty::Instructions(Entries::Ordinary, ids) => {
                Some(ids.iter().map(|id| id.number).collect::<Vec<_>>())
            }
            _ => None,
        });
        // The last table has no instruction GOTO_TABLE, because no table follows it.
        let all = [1, 2, 3, 4, 5, 6];
        assert_eq!(instructions.unwrap(), if table.table == TableId(254) { &all[1..] } else { &all[..] });
        assert_eq!(table.max_entries as usize, ModelLimits::default().entries);
    }
}

#[test]
fn ports_are_reported_one_by_one_or_all_together_and_unknown_ones_refused() {
    let mut bench = Bench::new();
    for number in [2, 9] {
        bench.model.add_port(SECOND, port(PortNo(number)), true).unwrap();
    }
    for (asked, expected) in [(port_no::ANY, &[2, 9][..]), (PortNo(2), &[2]), (PortNo(9), &[9])] {
        let refreshed = bench.refreshed;
        let answers = bench.query(Query::PortStats { port: asked }).unwrap();
        let [Answer::PortStats(ports)] = &answers[..] else { panic!("{answers:?}") };
        assert!(ports.iter().map(|port| port.port.0).eq(expected.iter().copied()));
        assert!(ports.iter().all(|port| port.rx_packets == u64::from(port.port.0)));
        assert!(ports.iter().all(|port| port.duration_ns == 4 * SECOND));
        assert_eq!(bench.refreshed, refreshed + 1);
    }
    assert_eq!(bench.query(Query::PortStats { port: PortNo(3) }), Err(error::BAD_PORT));
    let none = Bench::new().query(Query::PortStats { port: port_no::ANY });
    assert_eq!(none, Ok(vec![Answer::PortStats(Vec::new())]));
}

#[test]
fn the_last_requester_is_master_and_slaves_change_nothing() {
    let mut bench = Bench::new();
    let [one, two] = [(); 2].map(|()| bench.connect());
    let ask_role = |bench: &mut Bench, id, role, generation_id| match &bench
        .ask(id, &Message::RoleRequest(RoleMessage { role, generation_id }))[..]
    {
        [Message::RoleReply(reply)] => Ok(reply.role),
        [Message::Error(error)] => Err(error.code),
        other => panic!("{other:?}"),
    };
    let mut priority = 0;
    let mut may_change = |bench: &mut Bench, id| {
        priority += 1;
        let flow = add(priority, mac(1), PortNo(1));
        let answers =
            bench.ask(id, &Message::FlowMod(openflow::flow_mod::FlowModMessage { flow, buffer_id: None }));
        match &answers[..] {
            [] => true,
            [Message::Error(refused)] => {
                assert_eq!(refused.code, error::IS_SLAVE);
                false
            }
            other => panic!("{other:?}"),
        }
    };
    let role = |bench: &mut Bench, id| ask_role(bench, id, Role::NoChange, 0);
    assert_eq!((role(&mut bench, one), role(&mut bench, two)), (Ok(Role::Equal), Ok(Role::Equal)));
    assert!(may_change(&mut bench, one) && may_change(&mut bench, two));
    assert_eq!(ask_role(&mut bench, one, Role::Master, 1), Ok(Role::Master));
    assert!(
        may_change(&mut bench, one) && may_change(&mut bench, two),
        "the other channel has the role equal"
    );
    assert_eq!(ask_role(&mut bench, two, Role::Master, 2), Ok(Role::Master));
    assert_eq!((role(&mut bench, one), role(&mut bench, two)), (Ok(Role::Slave), Ok(Role::Master)));
    assert!(!may_change(&mut bench, one) && may_change(&mut bench, two));
    // A request with an older generation ID is refused and changes no role.
    assert!(ask_role(&mut bench, one, Role::Master, 1).is_err());
    assert_eq!(role(&mut bench, two), Ok(Role::Master));
    // The master becomes equal or disconnects. Its predecessor stays a slave until it requests the role
    // again.
    assert_eq!(ask_role(&mut bench, two, Role::Equal, 3), Ok(Role::Equal));
    assert_eq!((role(&mut bench, one), role(&mut bench, two)), (Ok(Role::Slave), Ok(Role::Equal)));
    assert_eq!(ask_role(&mut bench, two, Role::Master, 4), Ok(Role::Master));
    bench.agent.close(two);
    assert_eq!(role(&mut bench, one), Ok(Role::Slave));
    assert_eq!(ask_role(&mut bench, one, Role::Master, 5), Ok(Role::Master));
    assert!(may_change(&mut bench, one));
    assert_eq!(ask_role(&mut bench, one, Role::Slave, 6), Ok(Role::Slave));
    assert!(!may_change(&mut bench, one));
}

#[test]
fn a_packet_out_is_checked_before_it_is_submitted() {
    let mut m = plain();
    m.add_port(Nanos(0), port(PortNo(4)), true).unwrap();
    let packet = |in_port, bytes: usize, actions: &[Action]| flow::operation::PacketOut {
        in_port,
        actions: actions.to_vec(),
        bytes: vec![0; bytes],
        releases: flow::operation::Releases::SameFlow,
    };
    let output = Action::output(PortNo(4));
    let to_table = Action::output(port_no::TABLE);
    let lists =
        [vec![], vec![output.clone()], vec![output.clone(), to_table.clone()], vec![to_table.clone()]];
    for in_port in [4, 0, port_no::CONTROLLER.0, port_no::LOCAL.0, port_no::ANY.0] {
        for actions in &lists {
            let before = m.barrier();
            assert_eq!(m.packet_out(packet(PortNo(in_port), 14, actions)), Ok(()), "{in_port}, {actions:?}");
            assert_eq!(m.barrier(), RuleVersion(before.0 + 1));
            assert!(matches!(m.plane_mut().operations.last(), Some(Operation::PacketOut(_))));
        }
    }
    let before = m.barrier();
    let to_tables = ModelError::from(ValidateError::OutPort(port_no::TABLE));
    for (packet, expected) in [
        (packet(PortNo(5), 14, &[]), ModelError::BadInPort(PortNo(5))),
        (packet(port_no::IN_PORT, 14, &[]), ModelError::BadInPort(port_no::IN_PORT)),
        (packet(PortNo(4), 13, &[]), ModelError::BadPacket(13)),
        (packet(PortNo(4), 14, &[to_table.clone(), output.clone()]), to_tables.clone()),
        (packet(PortNo(4), 14, &[to_table.clone(), to_table]), to_tables),
        (packet(PortNo(4), 14, &[Action::Group(GroupId(9))]), ModelError::NoSuchGroup(GroupId(9))),
        (packet(PortNo(4), 14, &[Action::output(PortNo(0))]), ValidateError::OutPort(PortNo(0)).into()),
    ] {
        assert_eq!(m.packet_out(packet), Err(expected));
    }
    assert_eq!(m.barrier(), before);
}

#[test]
fn work_is_due_at_the_first_deadline() {
    let learning = Learning { min_pps: 1, window: 10 * SECOND, min_timeout: Nanos(0) };
    let mut m = with(model::ModelConfig { learning: Some(learning), ..model::ModelConfig::default() });
    assert_eq!(m.next_deadline(), Some(10 * SECOND));
    m.flow_mod(Nanos(0), FlowMod { idle_timeout_s: 11, ..add(1, mac(1), PortNo(1)) }).unwrap();
    assert_eq!(m.next_deadline(), Some(10 * SECOND));
    m.flow_mod(Nanos(0), FlowMod { hard_timeout_s: 9, ..add(2, mac(1), PortNo(1)) }).unwrap();
    assert_eq!(m.next_deadline(), Some(9 * SECOND));
}
