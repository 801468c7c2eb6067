// SPDX-License-Identifier: Apache-2.0
//! Metrics of all packets, of lanes, of limited resources, and of a device.

use super::catalogue::{Catalogue, MetricField, with};
use super::snapshot::Snapshot;
use crate::control::{Buckets, CountersReport, DeviceReport, LatencyBuckets, Limit};
use metrics::{Histogram, Kind, Labels, Value};

const TOTALS: &[MetricField<CountersReport>] = &[
    MetricField::counter("shunt_packets_received", "Packets received from ports", |c| c.received),
    MetricField::counter("shunt_packets_forwarded", "Packets with at least one copy sent to a port", |c| {
        c.forwarded
    }),
    MetricField::counter("shunt_packets_consumed", "Packets that went to the controller only", |c| {
        c.consumed
    }),
    MetricField::counter(
        "shunt_packets_stateless",
        "Packets that the stateless forwarder sent or dropped",
        |c| c.stateless,
    ),
    MetricField::gauge("shunt_packets_held", "Packets that wait in the switch", |c| c.held),
    MetricField::counter(
        "shunt_packets_held_back",
        "Times that a low-latency packet waited for its flow",
        |c| c.held_back,
    ),
    MetricField::counter("shunt_copies", "Copies sent to ports", |c| c.copies),
    MetricField::counter("shunt_worker_preemptions", "Times that a worker was preempted", |c| c.gaps),
];

const LIMIT: &[MetricField<Limit>] = &[
    MetricField::gauge("shunt_resource_used", "Use of a limited resource", |limit| limit.used),
    MetricField::optional("shunt_resource_limit", "Limit of a resource", |limit| limit.limit),
];

const DEVICE: &[MetricField<DeviceReport>] = &[
    MetricField::counter("shunt_device_rewrites", "Times that the device was rewritten", |device| {
        device.rewrites
    }),
    MetricField::gauge("shunt_device_pending", "Requests that wait for an answer of the device", |device| {
        device.pending as u64
    }),
];

/// Powers of two, in ns, that bound the buckets of latencies: 2^10 (about 1 us) to 2^30 (about 1 s).
const BOUNDS: std::ops::RangeInclusive<u32> = 10..=30;

pub fn describe(snapshot: &Snapshot, labels: &Labels, catalogue: &mut Catalogue) {
    let counters = &snapshot.counters;
    catalogue.add_fields(TOTALS, counters, labels);
    let help = "Time for which workers were preempted";
    let stolen = Value::Number(seconds(counters.stolen_ns));
    catalogue.add("shunt_worker_preempted", Some("seconds"), Kind::Counter, help, labels.clone(), stolen);
    let named = [
        ("shunt_drops", "Packets without any delivered copy, by reason", "reason", &counters.dropped),
        (
            "shunt_copies_dropped",
            "Copies dropped beside a delivered copy, by reason",
            "reason",
            &counters.copies_dropped,
        ),
        ("shunt_traces", "Traces of real packets, by result", "result", &counters.traced),
        (
            "shunt_controller_messages_lost",
            "Messages lost because a controller did not read in time, by kind",
            "kind",
            &counters.controllers_lost,
        ),
    ];
    for (name, help, label, counts) in named {
        catalogue.add_by_name(name, help, labels, label, counts);
    }
    for limit in &counters.limits {
        catalogue.add_fields(LIMIT, limit, &with(&with(labels, "of", &limit.of), "name", &limit.name));
    }
    if let Some(latencies) = &snapshot.latencies {
        lanes(latencies, labels, catalogue);
    }
}

fn lanes(latencies: &LatencyBuckets, labels: &Labels, catalogue: &mut Catalogue) {
    for (lane, of) in &latencies.lanes {
        for (preempted, buckets) in [("no", &of.whole), ("yes", &of.in_gaps)] {
            let labels = with(&with(labels, "lane", lane), "preempted", preempted);
            let help =
                "Time from receive poll to transmit doorbell, by lane and whether the worker was preempted";
            let value = Value::Histogram(histogram(buckets));
            catalogue.add("shunt_latency", Some("seconds"), Kind::Histogram, help, labels.clone(), value);
            let help = "Longest time from receive poll to transmit doorbell since the start";
            let value = Value::Number(seconds(buckets.max_ns.0));
            catalogue.add("shunt_latency_max", Some("seconds"), Kind::Gauge, help, labels, value);
        }
    }
}

/// Returns the frames of a latency distribution by powers of two. The sum may be 1/32 too high, because the
/// distribution has only the upper bounds of its buckets.
fn histogram(of: &Buckets) -> Histogram {
    let bounds = BOUNDS.map(|power| seconds(1 << power)).chain([f64::INFINITY]);
    let mut buckets: Vec<(f64, u64)> = bounds.map(|bound| (bound, 0)).collect();
    let mut sum_ns = 0.0;
    for (ns, frames) in &of.buckets {
        let at = buckets.partition_point(|(bound, _)| *bound < seconds(ns.0));
        if let Some((_, count)) = buckets.get_mut(at) {
            *count += frames;
        }
        sum_ns += ns.0.min(of.max_ns.0) as f64 * *frames as f64;
    }
    Histogram { buckets, sum: sum_ns / 1e9 }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

pub fn describe_device(device: &DeviceReport, labels: &Labels, catalogue: &mut Catalogue) {
    catalogue.add_fields(DEVICE, device, labels);
    let info = with(labels, "state", &device.state);
    catalogue.add("shunt_device", None, Kind::Info, "State of the device", info, Value::Info);
    let help = "Events of the session with the device, by kind";
    catalogue.add_by_name("shunt_device_session", help, labels, "event", &device.session);
    let help = "Counters of the device, by name";
    catalogue.add_by_name("shunt_device_counts", help, labels, "name", &device.counters);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Nanos;

    #[test]
    fn frames_are_counted_in_the_bucket_that_contains_them() {
        let buckets = vec![(Nanos(900), 1), (Nanos(1_023), 2), (Nanos(1_055), 4), (Nanos(2_000_000_000), 8)];
        let made = histogram(&Buckets { buckets, max_ns: Nanos(1_999_000_000) });
        assert_eq!(made.count(), 15);
        let filled: Vec<(f64, u64)> = made.buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(filled, [(1.024e-6, 3), (2.048e-6, 4), (f64::INFINITY, 8)]);
        assert_eq!(made.buckets.len(), 22);
        let exact = (900.0 + 2.0 * 1_023.0 + 4.0 * 1_055.0) / 1e9 + 8.0 * 1.999;
        assert!((made.sum - exact).abs() < 1e-12, "{}", made.sum);
    }
}
