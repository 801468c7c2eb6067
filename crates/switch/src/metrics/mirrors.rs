// SPDX-License-Identifier: Apache-2.0
//! Metrics of mirrors.

use super::catalogue::{Catalogue, MetricField, with};
use crate::control::{MirrorRow, MirrorsReport};
use metrics::Labels;

const MIRROR: &[MetricField<MirrorRow>] = &[
    MetricField::gauge(
        "shunt_mirror_active",
        "Whether the mirror copies frames (1) or has ended (0)",
        |row| u64::from(row.reason.is_none()),
    ),
    MetricField::counter("shunt_mirror_frames", "Frames copied to the output of the mirror", |row| {
        row.mirrored
    }),
    MetricField::<MirrorRow>::counter("shunt_mirror_copied", "Bytes of the copied frames", |row| {
        row.mirrored_bytes
    })
    .of("bytes"),
    MetricField::gauge("shunt_mirror_file_frames", "Frames in the file of the mirror", |row| row.written),
    MetricField::<MirrorRow>::gauge("shunt_mirror_file", "Size of the file of the mirror", |row| {
        row.file_bytes
    })
    .of("bytes"),
];

pub fn describe(mirrors: &MirrorsReport, labels: &Labels, catalogue: &mut Catalogue) {
    for mirror in &mirrors.mirrors {
        let labels = &with(labels, "mirror", &mirror.name);
        catalogue.add_fields(MIRROR, mirror, labels);
        let help = "Frames that the mirror did not copy, by reason";
        catalogue.add_by_name("shunt_mirror_drops", help, labels, "reason", &mirror.dropped);
    }
}
