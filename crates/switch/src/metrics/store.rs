// SPDX-License-Identifier: Apache-2.0
//! Metrics of the store that keeps the rules.

use super::catalogue::{Catalogue, MetricField, with};
use crate::control::StoreReport;
use metrics::{Kind, Labels, Value};

const STORE: &[MetricField<StoreReport>] = &[
    MetricField::counter("shunt_store_recorded", "Number of the last change of the rules", |s| s.recorded),
    MetricField::counter("shunt_store_kept", "Number of the last change that a restart would restore", |s| {
        s.kept
    }),
    MetricField::gauge("shunt_store_queued", "Values that wait to be written", |s| s.queued),
    MetricField::<StoreReport>::gauge("shunt_store_log", "Size of the logs since the last snapshot", |s| {
        s.log_bytes
    })
    .of("bytes"),
    MetricField::<StoreReport>::gauge("shunt_store_snapshot", "Size of the last snapshot", |s| {
        s.snapshot_bytes
    })
    .of("bytes"),
    MetricField::counter("shunt_store_snapshots", "Snapshots completed", |s| s.snapshots),
    MetricField::gauge("shunt_store_skipped", "Changes that only a later snapshot can include", |s| {
        s.skipped
    }),
    MetricField::gauge("shunt_store_left_out", "Values that the format cannot represent", |s| s.left_out),
];

pub fn describe(store: &StoreReport, labels: &Labels, catalogue: &mut Catalogue) {
    catalogue.add_fields(STORE, store, labels);
    let help = "Whether the disk refuses changes (1) or not (0)";
    let is_failing = Value::Integer(store.trouble.is_some().into());
    catalogue.add("shunt_store_failing", None, Kind::Gauge, help, labels.clone(), is_failing);
    let info = with(labels, "state", &store.state);
    catalogue.add("shunt_store", None, Kind::Info, "State of the store of the rules", info, Value::Info);
}
