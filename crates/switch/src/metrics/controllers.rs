// SPDX-License-Identifier: Apache-2.0
//! Metrics of controllers and their connections.

use super::catalogue::{Catalogue, MetricField, with};
use crate::control::{ControllerRow, ControllersReport};
use metrics::{Kind, Labels, Value};

const CONFIGURED: &[MetricField<ControllerRow>] = &[
    MetricField::gauge(
        "shunt_controller_connected",
        "Whether the controller is connected (1) or not (0)",
        |row| (row.state == "connected").into(),
    ),
    MetricField::<ControllerRow>::optional(
        "shunt_controller_connected_since",
        "Time of day of the connection, since 1970",
        |row| row.since_s,
    )
    .of("seconds"),
    MetricField::counter(
        "shunt_controller_failures",
        "Attempts and connections that failed or ended",
        |row| row.failures,
    ),
];

/// Roles that peers may have. A POF controller has none.
const ROLES: [&str; 4] = ["equal", "master", "slave", "none"];

pub fn describe(report: &ControllersReport, labels: &Labels, catalogue: &mut Catalogue) {
    for row in report.controllers.iter().filter(|row| row.configured) {
        let labels = with(&with(labels, "protocol", &row.protocol), "address", &row.address);
        catalogue.add_fields(CONFIGURED, row, &labels);
        let info = with(&labels, "role", row.role.as_deref().unwrap_or("none"));
        catalogue.add("shunt_controller", None, Kind::Info, "Role of the controller", info, Value::Info);
    }
    // Peers have changing addresses, so they are only counted.
    for protocol in ["openflow", "pof"] {
        for role in ROLES {
            let is_counted = |row: &&ControllerRow| {
                let has_role = row.role.as_deref().unwrap_or("none") == role;
                !row.configured && row.state == "connected" && row.protocol == protocol && has_role
            };
            let count = report.controllers.iter().filter(is_counted).count();
            let labels = with(&with(labels, "protocol", protocol), "role", role);
            let help = "Connected peers that the configuration does not name";
            catalogue.add(
                "shunt_controller_peers",
                None,
                Kind::Gauge,
                help,
                labels,
                Value::Integer(count as u64),
            );
        }
    }
}
