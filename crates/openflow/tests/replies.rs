// SPDX-License-Identifier: Apache-2.0
//! Messages of the switch, which os-ken and ovs-ofctl can decode (`make.py check`). The encoder must write
//! the bytes in golden/ours.hex. To rewrite the file, set SHUNT_OPENFLOW_OURS to its path.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::hex;
use flow::action::SetField;
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{
    Action, EntryFlags, Field, FieldMatch, GroupId, Instructions, Match, MeterId, Nanos, Next, PortNo,
    QueueId, TableId, port_no,
};
use openflow::bundle::{BundleControl, BundleKind};
use openflow::features::{Features, SwitchConfig, capability};
use openflow::flow_mod::{FlowRemovedMessage, FlowRemovedReason};
use openflow::multipart::description::Description;
use openflow::multipart::flow_stats::{AggregateStats, FlowStatsEntry, TableStatsEntry};
use openflow::multipart::group_stats::{Counts, GroupDescription, GroupFeatures, GroupStatsEntry};
use openflow::multipart::meter_stats::{MeterFeatures, MeterStatsEntry};
use openflow::multipart::port_stats::{PortStats, QueueStats};
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::table_features_property::{Entries, OxmId, TableProperty, TypeId};
use openflow::multipart::{Answer, MultipartReply};
use openflow::packet::{PacketInCode, PacketInMessage};
use openflow::port::{PortDescription, PortStatus, PortStatusReason, state};
use openflow::queue::{QueueConfig, QueueDescription};
use openflow::role::{AsyncConfig, Role, RoleMessage};
use openflow::{ErrorMessage, Hello, Message, encode, error};

const OURS: &str = include_str!("golden/ours.hex");

fn matching() -> Match {
    Match::new([
        FieldMatch::exact(Field::InPort, 1),
        FieldMatch::exact(Field::VlanVid, 0x1064),
        FieldMatch::exact(Field::EthType, 0x0800),
        FieldMatch::exact(Field::IpProto, 6),
        FieldMatch { field: Field::Ipv4Dst, value: 0x0a00_0000, mask: 0xff00_0000 },
        FieldMatch::exact(Field::TcpDst, 80),
    ])
    .unwrap()
}

fn instructions() -> Instructions {
    let masked = SetField { field: Field::EthSrc, value: 5, mask: 0xff };
    Instructions {
        meter: Some(MeterId(3)),
        apply: vec![
            Action::PopVlan,
            Action::DecNwTtl,
            Action::set(Field::Ipv4Src, 0x0102_0304),
            Action::SetField(masked),
            Action::output(PortNo(2)),
            Action::Output { port: port_no::CONTROLLER, max_len: 96 },
        ],
        clear: true,
        write: vec![Action::Group(GroupId(7)), Action::SetQueue(QueueId(1))],
        metadata: Some((5, 0xff)),
        next: Some(Next::Table(TableId(9))),
    }
}

fn port() -> PortDescription {
    PortDescription {
        number: PortNo(1),
        mac: [2, 0, 0, 0, 0, 1],
        name: "p1".into(),
        config: openflow::port::config::NO_FWD,
        state: state::LIVE,
        current: 0x2820,
        advertised: 0x20,
        supported: 0x40,
        peer: 0x20,
        speed_kbps: 1_000_000,
        max_speed_kbps: 10_000_000,
    }
}

fn multiparts() -> Vec<(&'static str, Answer)> {
    let all = |name: &str| name.to_owned();
    let counts = Counts { packets: 11, bytes: 1_111 };
    let bucket = |port| Bucket { weight: 5, actions: vec![Action::output(port)], ..Bucket::default() };
    let meter_bands = vec![
        MeterBand { band: Band::Drop, rate: 1_000, burst: 100 },
        MeterBand { band: Band::DscpRemark { precedence_level: 1 }, rate: 500, burst: 50 },
    ];
    let stats = FlowStatsEntry {
        table: TableId(3),
        duration_ns: Nanos(5_000_000_007),
        priority: 100,
        idle_timeout_s: 10,
        hard_timeout_s: 20,
        flags: EntryFlags { send_flow_removed: true, ..EntryFlags::default() },
        cookie: 0x77,
        packets: 12,
        bytes: 1_200,
        matching: matching(),
        instructions: instructions(),
        low_latency: None,
    };
    let types = |numbers: &[u16]| numbers.iter().map(|n| TypeId::standard(*n)).collect::<Vec<_>>();
    let fields = Field::NAMED.iter().map(|f| OxmId::of(*f, f.maskable())).collect::<Vec<_>>();
    let whole: Vec<_> = Field::NAMED.iter().map(|f| OxmId::of(*f, false)).collect();
    let settable: Vec<_> =
        Field::NAMED.iter().filter(|f| f.settable()).map(|f| OxmId::of(*f, false)).collect();
    let actions = types(&[0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27]);
    let table = |table: TableId| TableFeatures {
        table,
        name: format!("table{table}"),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries: 1_000_000,
        properties: vec![
            TableProperty::Instructions(Entries::Ordinary, types(&[1, 2, 3, 4, 5, 6])),
            TableProperty::NextTables(Entries::Ordinary, (table.0 + 1..4).collect()),
            TableProperty::WriteActions(Entries::Ordinary, actions.clone()),
            TableProperty::ApplyActions(Entries::Ordinary, actions.clone()),
            TableProperty::Match(fields.clone()),
            TableProperty::Wildcards(whole.clone()),
            TableProperty::WriteSetField(Entries::Ordinary, settable.clone()),
            TableProperty::ApplySetField(Entries::Ordinary, settable.clone()),
        ],
    };
    vec![
        (
            "desc",
            Answer::Desc(Box::new(Description {
                manufacturer: all("Shunt"),
                hardware: all("software"),
                software: all("0.1.0"),
                serial_number: all("none"),
                datapath: all("s1"),
            })),
        ),
        ("flow", Answer::Flow(vec![stats.clone(), FlowStatsEntry::default(), stats])),
        ("aggregate", Answer::Aggregate(AggregateStats { packets: 1, bytes: 2, flows: 3 })),
        (
            "table",
            Answer::Table(vec![TableStatsEntry { table: TableId(1), active: 2, lookups: 3, matches: 4 }]),
        ),
        (
            "port_stats",
            Answer::PortStats(vec![PortStats {
                port: PortNo(1),
                rx_packets: 1,
                tx_packets: 2,
                rx_bytes: 3,
                tx_bytes: 4,
                rx_dropped: 5,
                tx_dropped: 6,
                rx_errors: 7,
                tx_errors: 8,
                rx_frame_errors: 9,
                rx_over_errors: 10,
                rx_crc_errors: 11,
                collisions: u64::MAX,
                duration_ns: Nanos(1_500_000_000),
            }]),
        ),
        (
            "queue",
            Answer::Queue(vec![QueueStats {
                port: PortNo(1),
                queue: QueueId(2),
                tx_bytes: 3,
                tx_packets: 4,
                tx_errors: 5,
                duration_ns: Nanos(6_000_000_007),
            }]),
        ),
        (
            "group",
            Answer::Group(vec![GroupStatsEntry {
                group: GroupId(7),
                references: 2,
                total: counts,
                duration_ns: Nanos(1_000_000_002),
                buckets: vec![counts; 2],
            }]),
        ),
        (
            "group_desc",
            Answer::GroupDesc(vec![
                GroupDescription(Group {
                    id: GroupId(7),
                    kind: GroupType::Select,
                    buckets: vec![bucket(PortNo(1)), bucket(PortNo(2))],
                }),
                GroupDescription(Group { id: GroupId(8), kind: GroupType::All, buckets: Vec::new() }),
            ]),
        ),
        (
            "group_features",
            Answer::GroupFeatures(GroupFeatures {
                types: 15,
                capabilities: 15,
                max_groups: [1, 2, 3, 4],
                actions: [0x0fff_9801; 4],
            }),
        ),
        (
            "meter",
            Answer::Meter(vec![MeterStatsEntry {
                meter: MeterId(3),
                flows: 2,
                input: counts,
                duration_ns: Nanos(1_000_000_002),
                bands: vec![counts; 2],
            }]),
        ),
        (
            "meter_config",
            Answer::MeterConfig(vec![Meter {
                id: MeterId(3),
                packets: true,
                stats: true,
                burst: true,
                bands: meter_bands,
            }]),
        ),
        (
            "meter_features",
            Answer::MeterFeatures(MeterFeatures {
                max_meters: 1_000,
                band_types: 6,
                capabilities: 15,
                max_bands: 8,
                max_color: 3,
            }),
        ),
        ("table_features", Answer::TableFeatures(vec![table(TableId(0)), table(TableId(1))])),
        ("port_desc", Answer::PortDesc(vec![port(), PortDescription { number: port_no::LOCAL, ..port() }])),
    ]
}

fn replies() -> Vec<(&'static str, Message)> {
    let removed = FlowRemovedMessage {
        cookie: 0x77,
        priority: 100,
        reason: FlowRemovedReason::IdleTimeout,
        table: TableId(3),
        duration_ns: Nanos(5_000_000_007),
        idle_timeout_s: 10,
        hard_timeout_s: 20,
        packets: 12,
        bytes: 1_200,
        matching: matching(),
    };
    let in_port = [FieldMatch::exact(Field::InPort, 6), FieldMatch::exact(Field::Metadata, 5)];
    let mut made = vec![
        ("hello", Message::Hello(Hello::supported())),
        (
            "error",
            Message::Error(ErrorMessage {
                code: error::MATCH_BAD_PREREQ,
                data: vec![4, 5, 0, 8, 0, 0, 0, 1],
            }),
        ),
        ("echo_reply", Message::EchoReply(b"ping".to_vec())),
        (
            "features_reply",
            Message::FeaturesReply(Features {
                datapath_id: 0x1122_3344_5566_7788,
                buffers: 256,
                tables: 254,
                auxiliary_id: 0,
                capabilities: capability::FLOW_STATS | capability::PORT_STATS | capability::GROUP_STATS,
            }),
        ),
        ("get_config_reply", Message::GetConfigReply(SwitchConfig::default())),
        ("barrier_reply", Message::BarrierReply),
        (
            "packet_in",
            Message::PacketIn(PacketInMessage {
                buffer_id: Some(9),
                total_len: 1_500,
                reason: PacketInCode::Action,
                table: TableId(3),
                cookie: 0x77,
                matching: Match::unchecked_prerequisites(in_port).unwrap(),
                data: (0..64).collect(),
            }),
        ),
        ("flow_removed", Message::FlowRemoved(removed)),
        ("port_status", Message::PortStatus(PortStatus { reason: PortStatusReason::Modify, port: port() })),
        (
            "queue_get_config_reply",
            Message::QueueGetConfigReply(QueueConfig {
                port: PortNo(1),
                queues: vec![QueueDescription {
                    id: QueueId(2),
                    port: PortNo(1),
                    min_rate: Some(100),
                    max_rate: Some(500),
                }],
            }),
        ),
        ("role_reply", Message::RoleReply(RoleMessage { role: Role::Master, generation_id: 5 })),
        ("get_async_reply", Message::GetAsyncReply(AsyncConfig::default())),
        (
            "bundle_reply",
            Message::BundleControl(BundleControl { bundle_id: 5, kind: BundleKind::OpenReply, flags: 1 }),
        ),
        (
            "bundle_error",
            Message::Error(ErrorMessage {
                code: openflow::bundle::code::MSG_FAILED,
                data: vec![4, 5, 0, 8, 0, 0, 0, 1],
            }),
        ),
    ];
    made.extend(
        multiparts().into_iter().map(|(name, a)| (name, Message::MultipartReply(MultipartReply::from(a)))),
    );
    made
}

#[test]
fn replies_equal_the_bytes_that_other_decoders_accepted() {
    let mut lines = String::new();
    for (name, message) in replies() {
        let mut bytes = Vec::new();
        encode(&message, 0x1234, &mut bytes).unwrap();
        assert_eq!(openflow::decode(&bytes).unwrap(), message, "{name}");
        lines.push_str(&format!("{name} {}\n", hex(&bytes)));
    }
    if let Ok(path) = std::env::var("SHUNT_OPENFLOW_OURS") {
        std::fs::write(path, &lines).unwrap();
        return;
    }
    for (ours, golden) in lines.lines().zip(OURS.lines()) {
        assert_eq!(ours, golden);
    }
    assert_eq!(lines.len(), OURS.len());
}
