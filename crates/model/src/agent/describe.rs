// SPDX-License-Identifier: Apache-2.0
//! The switch and its ports in OpenFlow's words.

use super::buffers::BUFFERS;
use crate::config::Config;
use crate::data_plane::PortCounters;
use crate::ports::Port;
use flow::{Limits, Nanos};
use openflow::features::{Features, capability};
use openflow::multipart::description::Description;
use openflow::multipart::port_stats::PortStats;
use openflow::port::{self as of, config, state};

/// A counter that is not kept.
const UNKNOWN: u64 = u64::MAX;

pub fn features(config: &Config) -> Features {
    Features {
        datapath_id: config.datapath_id,
        buffers: BUFFERS as u32,
        tables: Limits::TABLES as u8,
        auxiliary_id: 0,
        capabilities: capability::FLOW_STATS
            | capability::TABLE_STATS
            | capability::PORT_STATS
            | capability::GROUP_STATS
            | capability::QUEUE_STATS,
    }
}

pub fn description(config: &Config) -> Description {
    Description {
        manufacturer: "Shunt".into(),
        hardware: "software switch".into(),
        software: env!("CARGO_PKG_VERSION").into(),
        serial_number: "none".into(),
        datapath: format!("datapath {}", config.datapath_id),
    }
}

pub fn port(port: &Port) -> of::Port {
    let (desc, set) = (&port.desc, &port.config);
    let bits = [
        (set.down, config::PORT_DOWN),
        (set.no_recv, config::NO_RECV),
        (set.no_fwd, config::NO_FWD),
        (set.no_packet_in, config::NO_PACKET_IN),
    ];
    of::Port {
        number: desc.number,
        mac: desc.mac,
        name: desc.name.clone(),
        config: bits.into_iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum(),
        state: if port.link_up { 0 } else { state::LINK_DOWN } | if port.is_up() { state::LIVE } else { 0 },
        current: desc.current,
        advertised: desc.advertised,
        supported: desc.supported,
        peer: desc.peer,
        speed_kbps: desc.speed_kbps,
        max_speed_kbps: desc.max_speed_kbps,
    }
}

pub fn port_stats(port: &Port, c: &PortCounters, now: Nanos) -> PortStats {
    PortStats {
        port: port.desc.number,
        rx_packets: c.rx_packets,
        tx_packets: c.tx_packets,
        rx_bytes: c.rx_bytes,
        tx_bytes: c.tx_bytes,
        rx_dropped: c.rx_dropped,
        tx_dropped: c.tx_dropped,
        rx_errors: UNKNOWN,
        tx_errors: UNKNOWN,
        rx_frame_errors: UNKNOWN,
        rx_over_errors: UNKNOWN,
        rx_crc_errors: UNKNOWN,
        collisions: UNKNOWN,
        duration_ns: now.saturating_sub(port.added_ns),
    }
}
