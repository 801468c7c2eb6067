// SPDX-License-Identifier: Apache-2.0
//! Metrics of flow tables and of the fast-forwarding path with its lookup tables (LUTs).

use super::catalogue::{Catalogue, MetricField, with};
use super::snapshot::Snapshot;
use crate::control::{FastTable, Ffp, TableRow};
use metrics::{Kind, Labels, Value};

const TABLE: &[MetricField<TableRow>] = &[
    MetricField::gauge("shunt_table_entries", "Entries of the table", |row| row.entries as u64),
    MetricField::counter("shunt_table_lookups", "Packets looked up in the table", |row| row.lookups),
    MetricField::counter("shunt_table_matches", "Packets that hit an entry of the table", |row| row.matches),
    MetricField::<TableRow>::gauge("shunt_table_compiled", "Size of the table's compiled rules", |row| {
        row.compiled_bytes as u64
    })
    .of("bytes"),
];

const CAPACITY: &[MetricField<Snapshot>] = &[
    MetricField::gauge("shunt_table_capacity", "Maximum number of entries of each table", |all| {
        all.table_capacity.into()
    }),
    MetricField::gauge("shunt_flow_capacity", "Maximum number of entries of all tables together", |all| {
        all.capacity as u64
    }),
    MetricField::gauge("shunt_workers", "Workers that forward packets of the datapath", |all| {
        all.workers as u64
    }),
    MetricField::gauge("shunt_mac_addresses", "MAC addresses that NORMAL has learned", |all| all.macs as u64),
];

const FFP: &[MetricField<Ffp>] = &[
    MetricField::counter("shunt_ffp_packets", "Packets that left by the fast-forwarding path alone", |ffp| {
        ffp.fast
    }),
    MetricField::gauge(
        "shunt_lut_capacity",
        "Capacity of each LUT in records; 0 if the fast-forwarding path is off",
        |ffp| ffp.lut_entries as u64,
    ),
];

const LUT: &[MetricField<FastTable>] = &[
    MetricField::gauge("shunt_lut_key_bits", "Key bits that a record of the LUT holds", |row| {
        row.key_bits.into()
    }),
    MetricField::<FastTable>::gauge("shunt_lut_size", "Size of the LUTs of the table", |row| {
        row.bytes as u64
    })
    .of("bytes"),
    MetricField::gauge("shunt_lut_records", "Records in the LUTs of the table", |row| row.records),
    MetricField::counter("shunt_lut_hits", "Packets that hit a record of a low-latency entry", |row| {
        row.hits
    }),
    MetricField::counter("shunt_lut_normal_hits", "Packets that hit a record of a normal entry", |row| {
        row.normal_hits
    }),
    MetricField::counter("shunt_lut_misses", "Packets whose key had no record", |row| row.misses),
    MetricField::counter(
        "shunt_lut_verified",
        "Records that were compared with the table before use",
        |row| row.verified,
    ),
    MetricField::counter(
        "shunt_lut_walked",
        "Records that were verified with the list of recent changes",
        |row| row.walked,
    ),
    MetricField::counter("shunt_lut_learned", "Records added", |row| row.learned),
    MetricField::counter("shunt_lut_evicted", "Low-latency records replaced by another record", |row| {
        row.evicted
    }),
    MetricField::counter("shunt_lut_displaced", "Normal records replaced by another record", |row| {
        row.displaced
    }),
    MetricField::counter("shunt_lut_refused", "Keys that were not added because the LUT was full", |row| {
        row.refused
    }),
    MetricField::counter("shunt_lut_cleaned", "Records removed because rules changed", |row| row.cleaned),
    MetricField::seconds("shunt_lut_extract_mean", "Mean time to parse a packet and build its key", |row| {
        ps(row.extract_ps)
    }),
    MetricField::seconds("shunt_lut_probe_mean", "Mean time of a lookup in the LUT per packet", |row| {
        ps(row.probe_ps)
    }),
    MetricField::seconds("shunt_lut_lookup_mean", "Mean time of a lookup in the table per packet", |row| {
        ps(row.lookup_ps)
    }),
];

/// Converts picoseconds to seconds.
fn ps(ps: u64) -> f64 {
    ps as f64 / 1e12
}

pub fn describe(snapshot: &Snapshot, labels: &Labels, catalogue: &mut Catalogue) {
    catalogue.add_fields(CAPACITY, snapshot, labels);
    for table in &snapshot.tables.tables {
        let labels = with(labels, "table", table.table);
        catalogue.add_fields(TABLE, table, &labels);
        let info = with(&labels, "engine", &table.engine);
        catalogue.add("shunt_table", None, Kind::Info, "Lookup engine of the table", info, Value::Info);
    }
    let Some(ffp) = &snapshot.ffp else { return };
    catalogue.add_fields(FFP, ffp, labels);
    let info = with(labels, "consistency", &ffp.consistency);
    catalogue.add("shunt_ffp", None, Kind::Info, "Consistency mode of the LUTs", info, Value::Info);
    for table in &ffp.tables {
        let labels = with(labels, "table", table.table);
        catalogue.add_fields(LUT, table, &labels);
        let info = with(&labels, "way", &table.way);
        let help = "How the fast-forwarding path looks up packets in the table";
        catalogue.add("shunt_lut", None, Kind::Info, help, info, Value::Info);
    }
}
