// SPDX-License-Identifier: Apache-2.0
//! Metrics of the port caches.

use super::catalogue::{Catalogue, MetricField, with};
use crate::control::{CacheCounts, CacheReport};
use metrics::{Kind, Labels, Value};

const LIMITS: &[MetricField<CacheReport>] = &[
    MetricField::gauge("shunt_port_cache_pending_limit", "Maximum number of pending flows per port", |all| {
        all.entries
    }),
    MetricField::gauge("shunt_port_cache_queue_limit", "Maximum number of waiting packets per port", |all| {
        all.queue
    }),
    MetricField::gauge(
        "shunt_port_cache_records_limit",
        "Maximum number of path records and pending flows per port",
        |all| all.records,
    ),
    MetricField::<CacheReport>::gauge(
        "shunt_port_cache_limit",
        "Maximum size of all waiting packets per port",
        |all| all.bytes,
    )
    .of("bytes"),
];

const COUNTS: &[MetricField<CacheCounts>] = &[
    MetricField::gauge("shunt_port_cache_pending", "Flows whose search is in progress", |c| c.pending),
    MetricField::gauge("shunt_port_cache_negative", "Flows that cannot have a path record", |c| c.negative),
    MetricField::gauge(
        "shunt_port_cache_waiting",
        "Waiting packets, apart from the first of each flow",
        |c| c.waiting,
    ),
    MetricField::<CacheCounts>::gauge("shunt_port_cache_waiting_size", "Size of all waiting packets", |c| {
        c.waiting_bytes
    })
    .of("bytes"),
    MetricField::counter("shunt_port_cache_packets", "Packets that reached the port cache", |c| c.packets),
    MetricField::counter("shunt_port_cache_hits", "Packets with a path record", |c| c.hits),
    MetricField::counter("shunt_port_cache_new", "Packets that started a search", |c| c.new),
    MetricField::counter("shunt_port_cache_merged", "Packets that joined the queue of their flow", |c| {
        c.merged
    }),
    MetricField::counter("shunt_port_cache_passed", "Packets of flows that cannot have a path record", |c| {
        c.passed
    }),
    MetricField::counter(
        "shunt_port_cache_uncached",
        "Packets not queued for lack of pending flows or memory",
        |c| c.uncached,
    ),
    MetricField::counter("shunt_port_cache_dropped", "Packets dropped for lack of space", |c| c.dropped),
    MetricField::counter(
        "shunt_port_cache_forced",
        "Flows released without an answer for lack of space",
        |c| c.forced,
    ),
    MetricField::counter(
        "shunt_port_cache_retried",
        "Searches repeated because no answer came in time",
        |c| c.retried,
    ),
    MetricField::counter(
        "shunt_port_cache_timed_out",
        "Packets dropped because no answer came in time",
        |c| c.timed_out,
    ),
    MetricField::counter("shunt_port_cache_stale", "Answers that came too late", |c| c.stale),
    MetricField::counter("shunt_port_cache_sent", "Searches sent to the search worker", |c| c.sent),
    MetricField::counter(
        "shunt_port_cache_answered",
        "Searches that the search worker answered in time",
        |c| c.answered,
    ),
    MetricField::counter("shunt_port_cache_outdated", "Answers found under other rules", |c| c.outdated),
    MetricField::counter(
        "shunt_port_cache_fallen_back",
        "Searches that ended without the search worker",
        |c| c.fallen_back,
    ),
    MetricField::counter("shunt_port_cache_released", "Packets that left after they had waited", |c| {
        c.released
    }),
    MetricField::counter(
        "shunt_port_cache_evicted",
        "Path records removed because their port had too many",
        |c| c.evicted,
    ),
    MetricField::counter("shunt_port_cache_asked", "Flows about which the controller was asked", |c| c.asked),
    MetricField::counter(
        "shunt_port_cache_returned",
        "Packets that returned to the queue of their flow",
        |c| c.returned,
    ),
    MetricField::counter(
        "shunt_port_cache_unquenched",
        "Packets about which the controller was asked without a queue",
        |c| c.unquenched,
    ),
    MetricField::counter(
        "shunt_port_cache_unanswered",
        "Questions that the controller did not answer in time",
        |c| c.unanswered,
    ),
];

pub fn describe(report: &CacheReport, labels: &Labels, catalogue: &mut Catalogue) {
    catalogue.add_fields(LIMITS, report, labels);
    let info = with(&with(labels, "mode", &report.mode), "searcher", &report.searcher);
    let help = "Mode of the port cache, and what answers its searches";
    catalogue.add("shunt_port_cache", None, Kind::Info, help, info, Value::Info);
    for port in &report.ports {
        let labels = with(&with(labels, "worker", port.worker), "port", port.port);
        catalogue.add_fields(COUNTS, &port.counts, &labels);
    }
}
