// SPDX-License-Identifier: Apache-2.0
//! Random messages of controllers and switches.

use super::replies::{answer, port, table_features};
use super::{
    actions, data, duration, flows, instructions, matching, maybe, some, stateless_change, stateless_reply,
};
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{EntryFlags, FlowModCommand, GroupId, MeterId, Nanos, PortNo, QueueId, TableId, port_no};
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::features::{Features, Fragments, SwitchConfig, TableMod};
use openflow::flow_mod::{FlowModMessage, FlowRemovedMessage, FlowRemovedReason};
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::{MultipartReply, MultipartRequest, Query};
use openflow::packet::{PacketInCode, PacketInMessage, PacketOutMessage};
use openflow::port::{PortModMessage, PortStatus, PortStatusReason};
use openflow::queue::{QueueConfig, QueueDescription};
use openflow::role::{AsyncConfig, Role, RoleMessage};
use openflow::{ErrorCode, ErrorMessage, Hello, Message};

type Rng = fastrand::Rng;

/// Number of message kinds that [`message`] generates.
const KINDS: u8 = 36;

/// Returns a random message of any kind.
pub fn message(rng: &mut Rng) -> Message {
    match rng.u8(..KINDS) {
        0 => Message::Hello(Hello { version: rng.u8(..), bitmap: rng.bool().then(|| rng.u32(..)) }),
        1 => {
            let code = if rng.bool() {
                ErrorCode::new(rng.u16(..0xffff), rng.u16(..))
            } else {
                ErrorCode::of_experimenter(rng.u32(..), rng.u16(..))
            };
            Message::Error(ErrorMessage { code, data: data(rng, 70) })
        }
        2 => Message::EchoRequest(data(rng, 70)),
        3 => Message::EchoReply(data(rng, 70)),
        4 => {
            let kind = [BundleKind::OpenRequest, BundleKind::CommitReply, BundleKind::DiscardRequest]
                [rng.usize(..3)];
            Message::BundleControl(BundleControl { bundle_id: rng.u32(..), kind, flags: rng.u16(..) })
        }
        5 => {
            let inner = match rng.u8(..5) {
                0 => Message::GroupMod(group_mod(rng)),
                1 => Message::PortMod(port_mod(rng)),
                2 => Message::PacketOut(packet_out(rng)),
                3 => Message::StatelessMod(stateless_change(rng)),
                _ => Message::FlowMod(flow_mod(rng)),
            };
            let (bundle_id, flags) = (rng.u32(..), rng.u16(..));
            Message::BundleAdd(BundleAdd { bundle_id, flags, message: Box::new(inner) })
        }
        6 => Message::FeaturesRequest,
        7 => Message::FeaturesReply(Features {
            datapath_id: rng.u64(..),
            buffers: rng.u32(..),
            tables: rng.u8(..),
            auxiliary_id: rng.u8(..),
            capabilities: rng.u32(..),
        }),
        8 => Message::GetConfigRequest,
        9 => Message::GetConfigReply(switch_config(rng)),
        10 => Message::SetConfig(switch_config(rng)),
        11 => Message::PacketIn(PacketInMessage {
            buffer_id: maybe(rng),
            total_len: rng.u16(..),
            reason: [PacketInCode::NoMatch, PacketInCode::Action, PacketInCode::InvalidTtl][rng.usize(..3)],
            table: TableId(rng.u8(..)),
            cookie: rng.u64(..),
            matching: flows::unchecked(rng),
            data: data(rng, 200),
        }),
        12 => Message::FlowRemoved(FlowRemovedMessage {
            cookie: rng.u64(..),
            priority: rng.u16(..),
            reason: [
                FlowRemovedReason::IdleTimeout,
                FlowRemovedReason::Delete,
                FlowRemovedReason::GroupDelete,
            ][rng.usize(..3)],
            table: TableId(rng.u8(..)),
            duration_ns: Nanos(duration(rng)),
            idle_timeout_s: rng.u16(..),
            hard_timeout_s: rng.u16(..),
            packets: rng.u64(..),
            bytes: rng.u64(..),
            matching: matching(rng),
        }),
        13 => {
            let reason =
                [PortStatusReason::Add, PortStatusReason::Delete, PortStatusReason::Modify][rng.usize(..3)];
            Message::PortStatus(PortStatus { reason, port: port(rng) })
        }
        14 => Message::PacketOut(packet_out(rng)),
        15 => Message::GroupMod(group_mod(rng)),
        16 => Message::PortMod(port_mod(rng)),
        17 => Message::TableMod(TableMod {
            table: rng.bool().then(|| TableId(rng.u8(..255))),
            config: rng.u32(..),
        }),
        18 | 19 => Message::MultipartRequest(MultipartRequest { more: rng.bool(), query: query(rng) }),
        20..=23 => Message::MultipartReply(MultipartReply { more: rng.bool(), answer: answer(rng) }),
        24 => {
            [Message::BarrierRequest, Message::BarrierReply, Message::GetAsyncRequest][rng.usize(..3)].clone()
        }
        25 => Message::QueueGetConfigRequest { port: PortNo(rng.u32(..)) },
        26 => {
            let queue = |rng: &mut Rng| QueueDescription {
                id: QueueId(rng.u32(..)),
                port: PortNo(rng.u32(..)),
                min_rate: rng.bool().then(|| rng.u16(..)),
                max_rate: rng.bool().then(|| rng.u16(..)),
            };
            Message::QueueGetConfigReply(QueueConfig { port: PortNo(rng.u32(..)), queues: some(rng, queue) })
        }
        27 => Message::RoleRequest(role(rng)),
        28 => Message::RoleReply(role(rng)),
        29 => Message::SetAsync(asynchronous(rng)),
        30 => Message::GetAsyncReply(asynchronous(rng)),
        31 => Message::StatelessMod(stateless_change(rng)),
        32 => Message::StatelessRequest,
        33 => Message::StatelessReply(stateless_reply(rng)),
        34 => Message::MeterMod(MeterMod { command: change(rng), meter: meter(rng) }),
        _ => Message::FlowMod(flow_mod(rng)),
    }
}

fn switch_config(rng: &mut Rng) -> SwitchConfig {
    let fragments = [Fragments::Normal, Fragments::Drop, Fragments::Reassemble][rng.usize(..3)];
    SwitchConfig { fragments, miss_send_len: rng.u16(..) }
}

fn role(rng: &mut Rng) -> RoleMessage {
    let role = [Role::NoChange, Role::Equal, Role::Master, Role::Slave][rng.usize(..4)];
    RoleMessage { role, generation_id: rng.u64(..) }
}

fn asynchronous(rng: &mut Rng) -> AsyncConfig {
    let mut two = || [rng.u32(..), rng.u32(..)];
    AsyncConfig { packet_in: two(), port_status: two(), flow_removed: two() }
}

fn packet_out(rng: &mut Rng) -> PacketOutMessage {
    let in_port =
        [1, port_no::MAX.0, 0, port_no::CONTROLLER.0, port_no::LOCAL.0, port_no::ANY.0][rng.usize(..6)];
    PacketOutMessage {
        buffer_id: maybe(rng),
        in_port: PortNo(in_port),
        actions: actions(rng),
        data: data(rng, 200),
    }
}

fn port_mod(rng: &mut Rng) -> PortModMessage {
    let mac = std::array::from_fn(|_| rng.u8(..));
    PortModMessage {
        port: PortNo(rng.u32(..)),
        mac,
        config: rng.u32(..),
        mask: rng.u32(..),
        advertise: rng.u32(..),
    }
}

pub(super) fn flags(rng: &mut Rng) -> EntryFlags {
    EntryFlags {
        send_flow_removed: rng.bool(),
        check_overlap: rng.bool(),
        reset_counts: rng.bool(),
        no_packet_counts: rng.bool(),
        no_byte_counts: rng.bool(),
    }
}

fn flow_mod(rng: &mut Rng) -> FlowModMessage {
    use FlowModCommand as C;
    let flow = flow::FlowMod {
        command: [C::Add, C::Modify, C::ModifyStrict, C::Delete, C::DeleteStrict][rng.usize(..5)],
        table: rng.bool().then(|| TableId(rng.u8(..255))),
        priority: rng.u16(..),
        matching: matching(rng),
        instructions: instructions(rng),
        idle_timeout_s: rng.u16(..),
        hard_timeout_s: rng.u16(..),
        cookie: rng.u64(..),
        cookie_mask: rng.u64(..),
        flags: flags(rng),
        out_port: maybe(rng).map(PortNo),
        out_group: maybe(rng).map(GroupId),
        low_latency: rng.bool().then(|| rng.bool()),
    };
    FlowModMessage { flow, buffer_id: maybe(rng) }
}

fn change(rng: &mut Rng) -> GroupChange {
    [GroupChange::Add, GroupChange::Modify, GroupChange::Delete][rng.usize(..3)]
}

pub(super) fn group(rng: &mut Rng) -> Group {
    use GroupType as G;
    let bucket = |rng: &mut Rng| Bucket {
        weight: rng.u16(..),
        watch_port: maybe(rng).map(PortNo),
        watch_group: maybe(rng).map(GroupId),
        actions: actions(rng),
    };
    let kind = [G::All, G::Select, G::Indirect, G::FastFailover][rng.usize(..4)];
    Group { id: GroupId(rng.u32(..=flow::validate::GROUP_MAX.0)), kind, buckets: some(rng, bucket) }
}

fn group_mod(rng: &mut Rng) -> GroupMod {
    GroupMod { command: change(rng), group: group(rng) }
}

pub(super) fn meter(rng: &mut Rng) -> Meter {
    let band = |rng: &mut Rng| MeterBand {
        band: if rng.bool() { Band::Drop } else { Band::DscpRemark { precedence_level: rng.u8(..) } },
        rate: rng.u32(..),
        burst: rng.u32(..),
    };
    let id = MeterId(rng.u32(1..=flow::validate::METER_MAX.0));
    Meter { id, packets: rng.bool(), stats: rng.bool(), burst: rng.bool(), bands: some(rng, band) }
}

fn query(rng: &mut Rng) -> Query {
    let entries = |rng: &mut Rng| FlowQuery {
        table: rng.bool().then(|| TableId(rng.u8(..255))),
        out_port: maybe(rng).map(PortNo),
        out_group: maybe(rng).map(GroupId),
        cookie: rng.u64(..),
        cookie_mask: rng.u64(..),
        matching: matching(rng),
    };
    match rng.u8(..14) {
        0 => Query::Desc,
        1 => Query::Flow(entries(rng)),
        2 => Query::Aggregate(entries(rng)),
        3 => Query::Table,
        4 => Query::PortStats { port: PortNo(rng.u32(..)) },
        5 => Query::Queue { port: PortNo(rng.u32(..)), queue: QueueId(rng.u32(..)) },
        6 => Query::Group { group: GroupId(rng.u32(..)) },
        7 => Query::GroupDesc,
        8 => Query::GroupFeatures,
        9 => Query::Meter { meter: MeterId(rng.u32(..)) },
        10 => Query::MeterConfig { meter: MeterId(rng.u32(..)) },
        11 => Query::MeterFeatures,
        12 => Query::TableFeatures(some(rng, table_features)),
        _ => Query::PortDesc,
    }
}
