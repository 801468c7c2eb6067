// SPDX-License-Identifier: Apache-2.0
//! Rates over a period, as tables of text.

use super::Reading;
use crate::control::{LaneBuckets, PortRow, TableRow, microseconds};
use std::collections::BTreeMap;
use std::time::Duration;

/// Rates and figures of a switch over a period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    /// Summary in one line.
    pub summary: String,
    /// Tables of ports, lanes, tables and drops, in this order.
    pub sections: [TopSection; 4],
}

/// Table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopSection {
    /// Title of the table.
    pub title: &'static str,
    /// Column names.
    pub head: Vec<&'static str>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// Converts the difference between two values of a counter to a rate over a period.
struct Rates(Duration);

impl Rates {
    /// Returns the rate of a counter per second. A counter that has decreased has restarted from 0.
    fn of(&self, before: u64, after: u64) -> f64 {
        let count = after.checked_sub(before).unwrap_or(after);
        count as f64 / self.0.as_secs_f64()
    }

    fn text(&self, before: u64, after: u64) -> String {
        short(self.of(before, after))
    }

    /// Returns the rate in bits per second of a byte counter.
    fn bits(&self, before: u64, after: u64) -> String {
        short(self.of(before, after) * 8.0)
    }
}

/// Formats a number with three significant digits and k, M, G or T, or as an integer below 1,000.
fn short(value: f64) -> String {
    let rounded = value.round();
    if rounded < 1_000.0 {
        return format!("{rounded:.0}");
    }
    let mut value = value / 1_000.0;
    let mut unit = 'k';
    for next in ['M', 'G', 'T'] {
        // From 999.5 on, the number would be rounded to 1000.
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1_000.0, next);
    }
    let decimals = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.decimals$}{unit}")
}

/// Formats a share in percent with one decimal, or "-" if the whole is 0.
fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1}", part / whole * 100.0) } else { "-".to_owned() }
}

impl Board {
    /// Returns the rates between two readings that are `span` apart.
    #[must_use]
    pub fn between(before: &Reading, after: &Reading, span: Duration) -> Self {
        let rates = Rates(span);
        let (c, d) = (&before.counters, &after.counters);
        let sum = |reasons: &BTreeMap<String, u64>| reasons.values().sum::<u64>();
        let summary = format!(
            "packets/s: received {}, forwarded {}, to the controller {}, dropped {}, by the fast path alone {}; held {}",
            rates.text(c.received, d.received),
            rates.text(c.forwarded, d.forwarded),
            rates.text(c.consumed, d.consumed),
            rates.text(sum(&c.dropped), sum(&d.dropped)),
            rates.text(before.ffp.fast, after.ffp.fast),
            d.held,
        );
        let sections = [
            ports(before, after, &rates),
            lanes(before, after, &rates),
            tables(before, after, &rates),
            drops(before, after, &rates),
        ];
        Self { summary, sections }
    }
}

fn ports(before: &Reading, after: &Reading, rates: &Rates) -> TopSection {
    let row = |now: &PortRow| {
        // A port that did not exist at the earlier reading has a rate of 0.
        let then = before.ports.ports.iter().find(|port| port.number == now.number).unwrap_or(now);
        vec![
            now.number.to_string(),
            now.name.clone(),
            if now.up { "up" } else { "down" }.to_owned(),
            rates.text(then.rx_packets, now.rx_packets),
            rates.bits(then.rx_bytes, now.rx_bytes),
            rates.text(then.rx_dropped, now.rx_dropped),
            rates.text(then.tx_packets, now.tx_packets),
            rates.bits(then.tx_bytes, now.tx_bytes),
            rates.text(then.tx_dropped, now.tx_dropped),
        ]
    };
    TopSection {
        title: "ports",
        head: vec![
            "port",
            "name",
            "link",
            "rx packets/s",
            "rx bit/s",
            "rx drops/s",
            "tx packets/s",
            "tx bit/s",
            "tx drops/s",
        ],
        rows: after.ports.ports.iter().map(row).collect(),
    }
}

fn lanes(before: &Reading, after: &Reading, rates: &Rates) -> TopSection {
    let row = |name: &String, now: &LaneBuckets| {
        let then = before.latencies.lanes.get(name).cloned().unwrap_or_default().latencies();
        let now = now.latencies();
        let whole = now.whole.since(&then.whole);
        let in_gaps = now.in_gaps.since(&then.in_gaps);
        let raw = whole.with(&in_gaps);
        let mut row = vec![name.clone(), rates.text(0, raw.frames())];
        let figures = [0.5, 0.99, 0.999, 0.999_9].map(|share| raw.quantile_ns(share));
        row.extend(figures.into_iter().chain([raw.max_ns]).map(|ns| match raw.frames() {
            0 => "-".to_owned(),
            _ => microseconds(ns.0),
        }));
        row.push(match whole.frames() {
            0 => "-".to_owned(),
            _ => microseconds(whole.quantile_ns(0.999).0),
        });
        row.push(rates.text(0, in_gaps.frames()));
        row
    };
    TopSection {
        title: "lanes: us from receive poll to transmit doorbell",
        head: vec![
            "lane",
            "frames/s",
            "p50",
            "p99",
            "p99.9",
            "p99.99",
            "max",
            "p99.9 without gaps",
            "frames in gaps/s",
        ],
        rows: after.latencies.lanes.iter().map(|(name, now)| row(name, now)).collect(),
    }
}

fn tables(before: &Reading, after: &Reading, rates: &Rates) -> TopSection {
    let row = |now: &TableRow| {
        let then = before.tables.tables.iter().find(|table| table.table == now.table);
        let (lookups, matches) = then.map_or((0, 0), |then| (then.lookups, then.matches));
        let found = rates.of(matches, now.matches);
        let lut = |reading: &Reading| {
            let row = reading.ffp.tables.iter().find(|row| row.table == now.table);
            row.map(|row| (row.way.clone(), row.hits, row.hits + row.normal_hits + row.misses))
        };
        let (way, hits, hit_share) = match lut(after) {
            Some((way, hits, asked)) if way == "lut" => {
                // A LUT with a new layout counts from 0.
                let (_, hits_before, asked_before) =
                    lut(before).filter(|then| then.2 <= asked).unwrap_or((String::new(), 0, 0));
                let (hit, all) = (rates.of(hits_before, hits), rates.of(asked_before, asked));
                (way, short(hit), share(hit, all))
            }
            Some((way, ..)) => (way, "-".to_owned(), "-".to_owned()),
            None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        };
        vec![
            now.table.to_string(),
            now.entries.to_string(),
            rates.text(lookups, now.lookups),
            rates.text(matches, now.matches),
            share(found, rates.of(lookups, now.lookups)),
            way,
            hits,
            hit_share,
            now.engine.clone(),
        ]
    };
    TopSection {
        title: "tables",
        head: vec![
            "table",
            "flows",
            "lookups/s",
            "matches/s",
            "match %",
            "fast path",
            "LUT hits/s",
            "LUT hit %",
            "engine",
        ],
        rows: after.tables.tables.iter().map(row).collect(),
    }
}

fn drops(before: &Reading, after: &Reading, rates: &Rates) -> TopSection {
    let mut rows = Vec::new();
    let mut add = |what: &str, then: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>| {
        for (reason, now) in now.iter().filter(|(_, count)| **count != 0) {
            let then = then.get(reason).copied().unwrap_or(0);
            rows.push(vec![reason.clone(), what.to_owned(), rates.text(then, *now), now.to_string()]);
        }
    };
    let (then, now) = (&before.counters, &after.counters);
    add("packet", &then.dropped, &now.dropped);
    add("copy", &then.copies_dropped, &now.copies_dropped);
    for port in &after.ports.ports {
        let earlier = before.ports.ports.iter().find(|earlier| earlier.number == port.number);
        let none = BTreeMap::new();
        add(&format!("port {}", port.number), earlier.map_or(&none, |port| &port.dropped), &port.dropped);
    }
    TopSection { title: "drops", head: vec!["reason", "of", "drops/s", "total"], rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        let rates = [0.0, 0.4, 999.4, 999.6, 1_234.0, 12_345.0, 99_960.0, 999_600.0, 14_880_000.0, 4.2e9];
        let texts = rates.map(short);
        assert_eq!(texts, ["0", "0", "999", "1.00k", "1.23k", "12.3k", "100k", "1.00M", "14.9M", "4.20G"]);
        assert_eq!((share(1.0, 3.0), share(0.0, 0.0)), ("33.3".to_owned(), "-".to_owned()));
    }

    #[test]
    fn a_counter_that_decreased_has_restarted() {
        let rates = Rates(Duration::from_secs(2));
        assert_eq!((rates.of(10, 30), rates.of(30, 10)), (10.0, 5.0));
    }
}
