// SPDX-License-Identifier: Apache-2.0
//! State of the port caches as text: the limits, then the counters of each worker and port.

use super::table;
use std::io::{self, Write};
use switch::control::{CacheCounts, CacheReport};

const HEAD: [&str; 27] = [
    "worker",
    "port",
    "pending",
    "negative",
    "waiting",
    "bytes",
    "packets",
    "hits",
    "new",
    "merged",
    "passed",
    "uncached",
    "dropped",
    "forced",
    "retried",
    "timed out",
    "stale",
    "sent",
    "answered",
    "outdated",
    "fallen back",
    "released",
    "evicted",
    "asked",
    "returned",
    "unquenched",
    "unanswered",
];

pub fn cache(out: &mut dyn Write, report: &CacheReport) -> io::Result<()> {
    if report.mode == "off" {
        return writeln!(
            out,
            "the port cache is off; datapath.port_cache.mode = \"nonblocking\" in the configuration switches it on"
        );
    }
    let CacheReport { mode, searcher, entries, queue, records, bytes, .. } = report;
    let records = if *records > 0 { format!(", {records} records") } else { String::new() };
    writeln!(
        out,
        "mode {mode}, searcher {searcher}; limits per port: {entries} pending flows{records}, {queue} waiting packets, {bytes} bytes"
    )?;
    let row = |worker: String, port: String, counts: &CacheCounts| {
        let mut row = vec![worker, port];
        row.extend(numbers(counts).map(|number| number.to_string()));
        row
    };
    let mut rows: Vec<_> = report
        .ports
        .iter()
        .map(|one| row(one.worker.to_string(), one.port.to_string(), &one.counts))
        .collect();
    if report.ports.len() > 1 {
        rows.push(row("sum".to_owned(), String::new(), &report.sum));
    }
    table(out, &HEAD, &rows)
}

/// Returns the numbers of a row in the order of the columns.
fn numbers(c: &CacheCounts) -> [u64; 25] {
    [
        c.pending,
        c.negative,
        c.waiting,
        c.waiting_bytes,
        c.packets,
        c.hits,
        c.new,
        c.merged,
        c.passed,
        c.uncached,
        c.dropped,
        c.forced,
        c.retried,
        c.timed_out,
        c.stale,
        c.sent,
        c.answered,
        c.outdated,
        c.fallen_back,
        c.released,
        c.evicted,
        c.asked,
        c.returned,
        c.unquenched,
        c.unanswered,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use switch::control::CachePort;

    fn report(mode: &str, ports: &[CachePort]) -> String {
        let mut sum = CacheCounts::default();
        ports.iter().for_each(|port| sum.add(&port.counts));
        let ports = ports.to_vec();
        let report = CacheReport {
            mode: mode.into(),
            searcher: "worker".into(),
            entries: 8,
            queue: 16,
            records: 9,
            bytes: 4_096,
            ports,
            sum,
        };
        let mut out = Vec::new();
        cache(&mut out, &report).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn port(number: u32, first: u64) -> CachePort {
        let port = serde_json::from_value(number.into()).unwrap();
        // Distinct numbers show that no column is printed twice.
        let counts = CacheCounts {
            pending: first,
            negative: first + 1,
            waiting: first + 2,
            waiting_bytes: first + 3,
            packets: first + 4,
            hits: first + 5,
            new: first + 6,
            merged: first + 7,
            passed: first + 8,
            uncached: first + 9,
            dropped: first + 10,
            forced: first + 11,
            retried: first + 12,
            timed_out: first + 13,
            stale: first + 14,
            sent: first + 15,
            answered: first + 16,
            outdated: first + 17,
            fallen_back: first + 18,
            released: first + 19,
            evicted: first + 20,
            asked: first + 21,
            returned: first + 22,
            unquenched: first + 23,
            unanswered: first + 24,
        };
        CachePort { worker: 0, port, counts }
    }

    #[test]
    fn a_cache_that_is_off_says_how_to_switch_it_on() {
        let printed = report("off", &[]);
        assert!(printed.starts_with("the port cache is off; datapath.port_cache.mode = "), "{printed}");
        assert_eq!(printed.lines().count(), 1);
    }

    #[test]
    fn each_port_has_a_row_and_several_have_a_sum() {
        let printed = report("nonblocking", &[port(1, 100), port(2, 200)]);
        let rows: Vec<Vec<&str>> =
            printed.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        let row = |head: &[&str], first: u64, step: usize| -> Vec<String> {
            let numbers = (first..).step_by(step).take(25).map(|number| number.to_string());
            head.iter().map(|text| (*text).to_owned()).chain(numbers).collect()
        };
        assert_eq!(rows, [row(&["0", "1"], 100, 1), row(&["0", "2"], 200, 1), row(&["sum"], 300, 2)]);
        let first = "mode nonblocking, searcher worker; limits per port: 8 pending flows, 9 records, 16 waiting packets, 4096 bytes\n";
        assert!(printed.starts_with(first), "{printed}");
        assert_eq!(report("nonblocking", &[port(1, 0)]).lines().count(), 3);
    }
}
