// SPDX-License-Identifier: Apache-2.0
//! The report of `shunt show device`.

use super::table;
use std::io::{self, Write};
use switch::control::DeviceReport;

pub fn device(out: &mut dyn Write, report: &DeviceReport) -> io::Result<()> {
    let tables: Vec<String> = report.tables.iter().map(u8::to_string).collect();
    writeln!(out, "PPUs of each table: {}; entries of each PPU: {}", tables.join(" "), report.entries)?;
    if let Some((ppus, entries)) = report.wrong_size {
        writeln!(out, "the device has {ppus} PPUs of {entries} entries, so it gets no rules")?;
    }
    writeln!(
        out,
        "state: {}, rewritten {} times, {} requests without an answer",
        report.state, report.rewrites, report.pending
    )?;
    if let Some(fault) = &report.fault {
        writeln!(out, "cannot reach the device: {fault}")?;
    }
    for (head, counters) in [("session", &report.session), ("device", &report.counters)] {
        let counted = counters.iter().filter(|(_, count)| **count > 0);
        let rows: Vec<_> = counted.map(|(name, count)| vec![name.clone(), count.to_string()]).collect();
        if !rows.is_empty() {
            writeln!(out)?;
            table(out, &[head, "count"], &rows)?;
        }
    }
    Ok(())
}
