// SPDX-License-Identifier: Apache-2.0
//! Controllers as text.

use super::table;
use std::io::{self, Write};
use std::time::SystemTime;
use switch::control::{ControllerRow, ControllersReport};

/// Prints the controllers, each with the age of its connection.
pub fn controllers(out: &mut dyn Write, report: &ControllersReport) -> io::Result<()> {
    let head = ["protocol", "address", "opened by", "state", "role", "connected for", "failures"];
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let row = |row: &ControllerRow| {
        let dash = || "-".to_owned();
        vec![
            row.protocol.clone(),
            row.address.clone(),
            if row.configured { "switch" } else { "peer" }.to_owned(),
            row.state.clone(),
            row.role.clone().unwrap_or_else(dash),
            row.since_s.map_or_else(dash, |since| format!("{} s", now.saturating_sub(since))),
            if row.configured { row.failures.to_string() } else { dash() },
        ]
    };
    table(out, &head, &report.controllers.iter().map(row).collect::<Vec<_>>())
}
