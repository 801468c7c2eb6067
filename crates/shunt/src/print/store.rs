// SPDX-License-Identifier: Apache-2.0
//! Prints the condition of the store.

use std::io::{self, Write};
use switch::control::StoreReport;

/// Prints the condition of the store that keeps the rules.
pub fn store(out: &mut dyn Write, report: &StoreReport) -> io::Result<()> {
    writeln!(out, "folder: {}", report.path)?;
    match &report.trouble {
        Some(trouble) => writeln!(out, "state: {}: {trouble}", report.state)?,
        None => writeln!(out, "state: {}", report.state)?,
    }
    writeln!(
        out,
        "changes: {} made, {} kept, {} values queued",
        report.recorded, report.kept, report.queued
    )?;
    writeln!(
        out,
        "since the start: {} snapshots, {} changes left to a snapshot, {} rules that cannot be kept",
        report.snapshots, report.skipped, report.left_out
    )?;
    writeln!(out, "bytes: {} in the last snapshot, {} in the log", report.snapshot_bytes, report.log_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_store_says_why() {
        let report = StoreReport {
            path: "/s".into(),
            state: "failing".into(),
            trouble: Some("No space left on device".into()),
            recorded: 9,
            kept: 7,
            queued: 2,
            log_bytes: 3,
            snapshot_bytes: 4,
            snapshots: 5,
            skipped: 6,
            left_out: 1,
        };
        let mut out = Vec::new();
        store(&mut out, &report).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("state: failing: No space left on device\nchanges: 9 made, 7 kept, 2 values"),
            "{text}"
        );
    }
}
