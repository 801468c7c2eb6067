// SPDX-License-Identifier: Apache-2.0
//! Descriptions of the switch and its ports as POF messages.

use crate::config::{AgentConfig, COUNTERS_MAX, KEY_BITS_MAX};
use crate::layout::TYPES;
use flow::Limits;
use model::Port;
use model::agent::describe_port;
use pof::PofDialect;
use pof::message::port::{PofForwarding, PofPort};
use pof::message::setup::{PofFeatures, capability};
use pof::message::table::{ResourceReport, TableResource, extension};

/// Returns the features of a switch with this number of ports.
pub fn features(config: &AgentConfig, ports: usize) -> PofFeatures {
    PofFeatures {
        device_id: config.device_id,
        slot: 0,
        ports: u16::try_from(ports).unwrap_or(u16::MAX),
        tables: config.layout.total().into(),
        capabilities: capability::FLOW_STATS
            | capability::TABLE_STATS
            | capability::PORT_STATS
            | capability::GROUP_STATS,
        vendor: "Shunt".into(),
        forwarding_engine: concat!("Shunt ", env!("CARGO_PKG_VERSION")).into(),
        lookup_engine: concat!("Shunt ", env!("CARGO_PKG_VERSION")).into(),
    }
}

/// Returns the resources of a switch that has space for this number of entries in all tables together.
///
/// The message has a number of entries for each type of table, but all types share the space. Each type that
/// has tables gets an equal share, so that a controller that fills all shares is never refused.
pub fn resources(config: &AgentConfig, entries: usize) -> ResourceReport {
    let types = TYPES.iter().filter(|kind| config.layout.count(**kind) > 0).count();
    let share = u32::try_from(entries / types.max(1)).unwrap_or(u32::MAX);
    let tables = TYPES.map(|table_type| TableResource {
        device_id: config.device_id,
        table_type,
        tables: config.layout.count(table_type),
        key_bits: KEY_BITS_MAX,
        entries: if config.layout.count(table_type) > 0 { share } else { 0 },
    });
    ResourceReport {
        resource: 0,
        extensions: extension::LOW_LATENCY,
        slot: 0,
        counters: COUNTERS_MAX as u32,
        meters: Limits::METERS as u32,
        groups: Limits::GROUPS_PER_TYPE as u32,
        tables,
    }
}

/// Returns the number of the switch in GET_CONFIG_REPLY, which only dialect 1.4.0.015 has.
pub fn device_id_of_config(config: &AgentConfig) -> u32 {
    if config.dialect == PofDialect::V1_2 { 0 } else { config.device_id }
}

/// Returns the description of a port, or `None` if the dialect cannot express its number.
pub fn port(port: &Port, agent: &AgentConfig) -> Option<PofPort> {
    let set = &port.config;
    let described = describe_port(port);
    let number = described.number.0;
    if agent.dialect == PofDialect::V1_4 && number > u16::MAX.into() {
        return None;
    }
    let forwards = !set.down && !set.no_recv && !set.no_fwd;
    Some(PofPort {
        slot: 0,
        number,
        device_id: agent.device_id,
        mac: described.mac,
        name: described.name.as_str().into(),
        config: described.config,
        state: described.state,
        current: described.current,
        advertised: described.advertised,
        supported: described.supported,
        peer: described.peer,
        speed_kbps: described.speed_kbps,
        max_speed_kbps: described.max_speed_kbps,
        forwarding: if forwards { PofForwarding::Enabled } else { PofForwarding::Disabled },
    })
}
