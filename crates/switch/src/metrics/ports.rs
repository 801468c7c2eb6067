// SPDX-License-Identifier: Apache-2.0
//! Metrics of ports and their egress queues.

use super::catalogue::{Catalogue, MetricField, with};
use crate::control::{PortRow, Ports, QueueRow};
use metrics::{Kind, Labels, Value};

const PORT: &[MetricField<PortRow>] = &[
    MetricField::gauge(
        "shunt_port_up",
        "Whether the link is up and the port is enabled (1) or not (0)",
        |row| row.up.into(),
    ),
    MetricField::<PortRow>::gauge("shunt_port_speed", "Link speed, or 0 if it is unknown", |row| {
        u64::from(row.speed_mbps) * 1_000_000
    })
    .of("bits_per_second"),
    MetricField::counter("shunt_port_rx_packets", "Packets received", |row| row.rx_packets),
    MetricField::<PortRow>::counter("shunt_port_rx", "Bytes received", |row| row.rx_bytes).of("bytes"),
    MetricField::counter("shunt_port_rx_dropped", "Packets lost on receive", |row| row.rx_dropped),
    MetricField::counter("shunt_port_tx_packets", "Packets sent", |row| row.tx_packets),
    MetricField::<PortRow>::counter("shunt_port_tx", "Bytes sent", |row| row.tx_bytes).of("bytes"),
    MetricField::counter(
        "shunt_port_tx_dropped",
        "Packets that were given to the port but not sent",
        |row| row.tx_dropped,
    ),
    MetricField::gauge(
        "shunt_port_blocked",
        "Whether a storm limit has closed the port (1) or not (0)",
        |row| row.blocked.into(),
    ),
    MetricField::gauge("shunt_port_macs", "MAC addresses learned at the port", |row| row.macs.into()),
    MetricField::counter(
        "shunt_port_macs_refused",
        "Reports of packets whose source was not learned because of the port's limit, at most one per second",
        |row| row.macs_refused,
    ),
];

const QUEUE: &[MetricField<QueueRow>] = &[
    MetricField::gauge("shunt_queue_waiting", "Packets that wait in the egress queue", |row| {
        row.waiting as u64
    }),
    MetricField::gauge("shunt_queue_limit", "Capacity of the egress queue in packets per lane", |row| {
        row.limit_frames.into()
    }),
    MetricField::gauge("shunt_queue_priority", "Priority of the egress queue", |row| row.priority.into()),
    MetricField::<QueueRow>::optional("shunt_queue_min_rate", "Guaranteed rate of the egress queue", |row| {
        row.min_rate_kbps.map(bits)
    })
    .of("bits_per_second"),
    MetricField::<QueueRow>::optional("shunt_queue_max_rate", "Maximum rate of the egress queue", |row| {
        row.max_rate_kbps.map(bits)
    })
    .of("bits_per_second"),
    MetricField::counter("shunt_queue_tx_packets", "Packets that left the egress queue", |row| {
        row.tx_packets
    }),
    MetricField::<QueueRow>::counter("shunt_queue_tx", "Bytes that left the egress queue", |row| {
        row.tx_bytes
    })
    .of("bytes"),
    MetricField::counter("shunt_queue_dropped", "Packets dropped because the egress queue was full", |row| {
        row.dropped
    }),
];

fn bits(kbps: u32) -> u64 {
    u64::from(kbps) * 1_000
}

pub fn describe(ports: &Ports, labels: &Labels, catalogue: &mut Catalogue) {
    for port in &ports.ports {
        let numbered = with(labels, "port", port.number);
        let labels = &with(&numbered, "name", &port.name);
        catalogue.add_fields(PORT, port, labels);
        let info = with(labels, "mac", &port.mac);
        catalogue.add("shunt_port", None, Kind::Info, "MAC address of the port", info, Value::Info);
        let help = "Packets lost at the port, by the driver's reason";
        catalogue.add_by_name("shunt_port_drops", help, labels, "reason", &port.dropped);
        for queue in &port.queues {
            catalogue.add_fields(QUEUE, queue, &with(labels, "queue", queue.queue));
        }
    }
}
