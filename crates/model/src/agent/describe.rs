// SPDX-License-Identifier: Apache-2.0
//! Descriptions of the switch and its ports as OpenFlow messages.

use super::buffers::BUFFERS;
use crate::config::ModelConfig;
use crate::port::Port;
use dataplane::{PortCounters, TableCapabilities};
use flow::Nanos;
use openflow::features::{Features, capability};
use openflow::multipart::description::Description;
use openflow::multipart::port_stats::PortStats;
use openflow::port::{self as of, config, state};

/// Value of a counter that the switch does not keep.
const UNKNOWN: u64 = u64::MAX;

pub fn features(config: &ModelConfig, able: &TableCapabilities) -> Features {
    Features {
        datapath_id: config.datapath_id,
        buffers: BUFFERS as u32,
        tables: able.tables,
        auxiliary_id: 0,
        capabilities: capability::FLOW_STATS
            | capability::TABLE_STATS
            | capability::PORT_STATS
            | if able.groups_meters_queues { capability::GROUP_STATS | capability::QUEUE_STATS } else { 0 },
    }
}

pub fn description(config: &ModelConfig, able: &TableCapabilities) -> Description {
    Description {
        manufacturer: "Shunt".into(),
        hardware: able.hardware.into(),
        software: env!("CARGO_PKG_VERSION").into(),
        serial_number: "none".into(),
        datapath: format!("datapath {}", config.datapath_id),
    }
}

fn state_of(port: &Port) -> u32 {
    let bits =
        [(!port.link_up, state::LINK_DOWN), (port.is_blocked, state::BLOCKED), (port.is_up(), state::LIVE)];
    bits.into_iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

/// Returns the description of a port.
#[must_use]
pub fn port(port: &Port) -> of::PortDescription {
    let (desc, set) = (&port.desc, &port.config);
    let bits = [
        (set.down, config::PORT_DOWN),
        (set.no_recv, config::NO_RECV),
        (set.no_fwd, config::NO_FWD),
        (set.no_packet_in, config::NO_PACKET_IN),
    ];
    of::PortDescription {
        number: desc.number,
        mac: desc.mac,
        name: desc.name.clone(),
        config: bits.into_iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum(),
        state: state_of(port),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{PortConfig, PortDesc};
    use flow::PortNo;

    fn a_port() -> Port {
        let desc = PortDesc {
            number: PortNo(3),
            name: "p3".into(),
            mac: [1; 6],
            current: 4,
            advertised: 5,
            supported: 6,
            peer: 7,
            speed_kbps: 8,
            max_speed_kbps: 9,
        };
        let config = PortConfig::default();
        Port { desc, config, reserved: false, link_up: true, is_blocked: false, added_ns: Nanos(100) }
    }

    #[test]
    fn a_port_has_the_bits_of_its_configuration_and_state() {
        let described = port(&a_port());
        let expected = of::PortDescription {
            number: PortNo(3),
            mac: [1; 6],
            name: "p3".into(),
            config: 0,
            state: state::LIVE,
            current: 4,
            advertised: 5,
            supported: 6,
            peer: 7,
            speed_kbps: 8,
            max_speed_kbps: 9,
        };
        assert_eq!(described, expected);
        let none = PortConfig::default();
        for (config, bits) in [
            (PortConfig { down: true, ..none }, 1),
            (PortConfig { no_recv: true, ..none }, 1 << 2),
            (PortConfig { no_fwd: true, ..none }, 1 << 5),
            (PortConfig { no_packet_in: true, ..none }, 1 << 6),
            // OpenFlow 1.3 has no bit for `no_flood`.
            (PortConfig { no_flood: true, ..none }, 0),
            (PortConfig { down: true, no_fwd: true, ..none }, 1 | 1 << 5),
        ] {
            assert_eq!(port(&Port { config, ..a_port() }).config, bits, "{config:?}");
        }
        for (link_up, down, expected) in [
            (true, false, state::LIVE),
            (true, true, 0),
            (false, false, state::LINK_DOWN),
            (false, true, state::LINK_DOWN),
        ] {
            let config = PortConfig { down, ..none };
            assert_eq!(port(&Port { link_up, config, ..a_port() }).state, expected, "{link_up}, {down}");
        }
    }

    #[test]
    fn a_port_s_counters_are_reported_with_its_age() {
        let counters = PortCounters {
            rx_packets: 1,
            rx_bytes: 2,
            tx_packets: 3,
            tx_bytes: 4,
            rx_dropped: 5,
            tx_dropped: 6,
            by_name: Vec::new(),
        };
        let reported = port_stats(&a_port(), &counters, Nanos(150));
        assert_eq!((reported.port, reported.duration_ns), (PortNo(3), Nanos(50)));
        assert_eq!((reported.rx_packets, reported.rx_bytes, reported.rx_dropped), (1, 2, 5));
        assert_eq!((reported.tx_packets, reported.tx_bytes, reported.tx_dropped), (3, 4, 6));
        let unknown =
            [reported.rx_errors, reported.tx_errors, reported.rx_frame_errors, reported.rx_over_errors];
        assert_eq!(unknown, [u64::MAX; 4]);
        assert_eq!([reported.rx_crc_errors, reported.collisions], [u64::MAX; 2]);
    }

    #[test]
    fn features_have_the_numbers_of_the_specification() {
        let features =
            features(&ModelConfig { datapath_id: 77, ..ModelConfig::default() }, &TableCapabilities::all());
        assert_eq!((features.datapath_id, features.buffers, features.tables), (77, 256, 255));
        // OFPC_FLOW_STATS, TABLE_STATS, PORT_STATS, GROUP_STATS and QUEUE_STATS are bits 0 to 3 and 6.
        assert_eq!((features.capabilities, features.auxiliary_id), (0b100_1111, 0));
    }
}
