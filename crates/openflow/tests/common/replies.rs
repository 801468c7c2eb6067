// SPDX-License-Identifier: Apache-2.0
//! Random multipart replies.

use super::messages::{flags, group, meter};
use super::{data, duration, instructions, matching, some, text};
use flow::{Field, GroupId, MeterId, Nanos, PortNo, QueueId, TableId};
use openflow::multipart::Answer;
use openflow::multipart::description::Description;
use openflow::multipart::flow_stats::{AggregateStats, FlowStatsEntry, TableStatsEntry};
use openflow::multipart::group_stats::{Counts, GroupDescription, GroupFeatures, GroupStatsEntry};
use openflow::multipart::meter_stats::{MeterFeatures, MeterStatsEntry};
use openflow::multipart::port_stats::{PortStats, QueueStats};
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::table_features_property::{Entries, OxmId, TableProperty, TypeId};
use openflow::port::PortDescription;

type Rng = fastrand::Rng;

pub fn answer(rng: &mut Rng) -> Answer {
    match rng.u8(..14) {
        0 => Answer::Desc(Box::new(Description {
            manufacturer: text(rng, 255),
            hardware: text(rng, 20),
            software: text(rng, 20),
            serial_number: text(rng, 31),
            datapath: text(rng, 20),
        })),
        1 => Answer::Flow(some(rng, flow_stats)),
        2 => {
            Answer::Aggregate(AggregateStats { packets: rng.u64(..), bytes: rng.u64(..), flows: rng.u32(..) })
        }
        3 => Answer::Table(some(rng, |rng| TableStatsEntry {
            table: TableId(rng.u8(..)),
            active: rng.u32(..),
            lookups: rng.u64(..),
            matches: rng.u64(..),
        })),
        4 => Answer::PortStats(some(rng, port_stats)),
        5 => Answer::Queue(some(rng, |rng| QueueStats {
            port: PortNo(rng.u32(..)),
            queue: QueueId(rng.u32(..)),
            tx_bytes: rng.u64(..),
            tx_packets: rng.u64(..),
            tx_errors: rng.u64(..),
            duration_ns: Nanos(duration(rng)),
        })),
        6 => Answer::Group(some(rng, |rng| GroupStatsEntry {
            group: GroupId(rng.u32(..)),
            references: rng.u32(..),
            total: counts(rng),
            duration_ns: Nanos(duration(rng)),
            buckets: some(rng, counts),
        })),
        7 => Answer::GroupDesc(some(rng, |rng| GroupDescription(group(rng)))),
        8 => {
            let mut four = || std::array::from_fn(|_| rng.u32(..));
            let (max_groups, actions) = (four(), four());
            Answer::GroupFeatures(GroupFeatures {
                types: rng.u32(..),
                capabilities: rng.u32(..),
                max_groups,
                actions,
            })
        }
        9 => Answer::Meter(some(rng, |rng| MeterStatsEntry {
            meter: MeterId(rng.u32(..)),
            flows: rng.u32(..),
            input: counts(rng),
            duration_ns: Nanos(duration(rng)),
            bands: some(rng, counts),
        })),
        10 => Answer::MeterConfig(some(rng, meter)),
        11 => Answer::MeterFeatures(MeterFeatures {
            max_meters: rng.u32(..),
            band_types: rng.u32(..),
            capabilities: rng.u32(..),
            max_bands: rng.u8(..),
            max_color: rng.u8(..),
        }),
        12 => Answer::TableFeatures(some(rng, table_features)),
        _ => Answer::PortDesc(some(rng, port)),
    }
}

fn counts(rng: &mut Rng) -> Counts {
    Counts { packets: rng.u64(..), bytes: rng.u64(..) }
}

pub fn flow_stats(rng: &mut Rng) -> FlowStatsEntry {
    FlowStatsEntry {
        table: TableId(rng.u8(..)),
        duration_ns: Nanos(duration(rng)),
        priority: rng.u16(..),
        idle_timeout_s: rng.u16(..),
        hard_timeout_s: rng.u16(..),
        flags: flags(rng),
        cookie: rng.u64(..),
        packets: rng.u64(..),
        bytes: rng.u64(..),
        matching: matching(rng),
        instructions: instructions(rng),
        low_latency: rng.bool().then(|| rng.bool()),
    }
}

fn port_stats(rng: &mut Rng) -> PortStats {
    PortStats {
        port: PortNo(rng.u32(..)),
        rx_packets: rng.u64(..),
        tx_packets: rng.u64(..),
        rx_bytes: rng.u64(..),
        tx_bytes: rng.u64(..),
        rx_dropped: rng.u64(..),
        tx_dropped: rng.u64(..),
        rx_errors: rng.u64(..),
        tx_errors: rng.u64(..),
        rx_frame_errors: rng.u64(..),
        rx_over_errors: rng.u64(..),
        rx_crc_errors: rng.u64(..),
        collisions: rng.u64(..),
        duration_ns: Nanos(duration(rng)),
    }
}

pub fn port(rng: &mut Rng) -> PortDescription {
    PortDescription {
        number: PortNo(rng.u32(..)),
        mac: std::array::from_fn(|_| rng.u8(..)),
        name: text(rng, 15),
        config: rng.u32(..),
        state: rng.u32(..),
        current: rng.u32(..),
        advertised: rng.u32(..),
        supported: rng.u32(..),
        peer: rng.u32(..),
        speed_kbps: rng.u32(..),
        max_speed_kbps: rng.u32(..),
    }
}

pub fn table_features(rng: &mut Rng) -> TableFeatures {
    TableFeatures {
        table: TableId(rng.u8(..)),
        name: text(rng, 31),
        metadata_match: rng.u64(..),
        metadata_write: rng.u64(..),
        config: rng.u32(..),
        max_entries: rng.u32(..),
        properties: some(rng, property),
    }
}

fn property(rng: &mut Rng) -> TableProperty {
    use TableProperty as P;
    let entries = if rng.bool() { Entries::Ordinary } else { Entries::Miss };
    let types = |rng: &mut Rng| {
        some(rng, |rng| match rng.bool() {
            true => TypeId::standard(rng.u16(..0xffff)),
            false => TypeId { number: 0xffff, experimenter: Some(rng.u32(..)) },
        })
    };
    let fields = |rng: &mut Rng| {
        some(rng, |rng| match rng.u8(..3) {
            0 => OxmId::of(Field::NAMED[rng.usize(..40)], rng.bool()),
            1 => OxmId {
                class: 0x8000,
                number: rng.u8(..128),
                masked: rng.bool(),
                length: 0,
                experimenter: None,
            },
            _ => OxmId {
                class: 0xffff,
                number: rng.u8(..128),
                masked: rng.bool(),
                length: rng.u8(..),
                experimenter: Some(rng.u32(..)),
            },
        })
    };
    match rng.u8(..9) {
        0 => P::Instructions(entries, types(rng)),
        1 => P::NextTables(entries, data(rng, 20)),
        2 => P::WriteActions(entries, types(rng)),
        3 => P::ApplyActions(entries, types(rng)),
        4 => P::Match(fields(rng)),
        5 => P::Wildcards(fields(rng)),
        6 => P::WriteSetField(entries, fields(rng)),
        7 => P::ApplySetField(entries, fields(rng)),
        _ => P::Experimenter(entries, data(rng, 20)),
    }
}
