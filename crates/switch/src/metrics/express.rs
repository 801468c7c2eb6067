// SPDX-License-Identifier: Apache-2.0
//! Metrics of the express path and its path records.

use super::catalogue::{Catalogue, MetricField, with};
use crate::control::{ExpressCounts, ExpressReport, ExpressWorker};
use metrics::Labels;

const PLAN: &[MetricField<ExpressReport>] = &[
    MetricField::gauge("shunt_express_enabled", "Whether the express path is on (1) or off (0)", |all| {
        all.enabled.into()
    }),
    MetricField::gauge("shunt_express_plan_version", "Number of the plan of the keys", |all| {
        all.plan.version
    }),
    MetricField::gauge(
        "shunt_express_examined_bits",
        "Bits that the rules of the plan's tables examine",
        |all| all.plan.examined_bits.into(),
    ),
    MetricField::<ExpressReport>::gauge("shunt_express_key", "Length of a key", |all| {
        all.plan.key_bytes as u64
    })
    .of("bytes"),
];

const WORKER: &[MetricField<ExpressWorker>] = &[MetricField::gauge(
    "shunt_express_sampling",
    "Whether only a sample of the packets is looked up now, because hardly any has a record (1), or not (0)",
    |worker| worker.bypassed_now.into(),
)];

const COUNTS: &[MetricField<ExpressCounts>] = &[
    MetricField::gauge("shunt_express_records", "Path records in use, some of which may be outdated", |c| {
        c.records
    }),
    MetricField::gauge("shunt_express_capacity", "Capacity in path records", |c| c.room),
    MetricField::<ExpressCounts>::gauge("shunt_express_size", "Memory of the path records", |c| c.bytes)
        .of("bytes"),
    MetricField::counter("shunt_express_hits", "Packets forwarded by a path record", |c| c.hits),
    MetricField::counter(
        "shunt_express_misses",
        "Packets without a path record, or with an outdated one",
        |c| c.misses,
    ),
    MetricField::counter(
        "shunt_express_bypassed",
        "Packets not looked up because hardly any packet had a record",
        |c| c.bypassed,
    ),
    MetricField::counter("shunt_express_learned", "Path records created for new keys", |c| c.learned),
    MetricField::counter("shunt_express_renewed", "Outdated path records that were updated", |c| c.renewed),
    MetricField::counter(
        "shunt_express_verified",
        "Outdated path records that were compared with the rule changes",
        |c| c.verified,
    ),
    MetricField::counter("shunt_express_upheld", "Outdated path records that were still correct", |c| {
        c.upheld
    }),
    MetricField::counter("shunt_express_inherited", "Path records copied from an earlier plan", |c| {
        c.inherited
    }),
    MetricField::counter(
        "shunt_express_displaced",
        "Path records displaced by a record of another key",
        |c| c.displaced,
    ),
    MetricField::counter(
        "shunt_express_refused",
        "Keys without a path record because no place was free",
        |c| c.refused,
    ),
];

pub fn describe(report: &ExpressReport, labels: &Labels, catalogue: &mut Catalogue) {
    catalogue.add_fields(PLAN, report, labels);
    for worker in &report.workers {
        let labels = with(labels, "worker", worker.worker);
        catalogue.add_fields(WORKER, worker, &labels);
        catalogue.add_fields(COUNTS, &worker.counts, &labels);
    }
}
