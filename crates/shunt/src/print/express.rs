// SPDX-License-Identifier: Apache-2.0
//! State of the express path as text: the plan of the keys, then the records and counters of each worker.

use super::{count, table};
use std::io::{self, Write};
use switch::control::{ExaminedField, ExpressCounts, ExpressReport, ExpressWorker, PlanForm};

pub fn express(out: &mut dyn Write, report: &ExpressReport) -> io::Result<()> {
    if !report.enabled {
        writeln!(
            out,
            "the express path is off; datapath.express.enabled = true in the configuration switches it on"
        )?;
        return plan(out, &report.plan);
    }
    plan(out, &report.plan)?;
    workers(out, report)
}

fn plan(out: &mut dyn Write, plan: &PlanForm) -> io::Result<()> {
    let PlanForm { version, key_bytes, record, examined_bits, .. } = plan;
    let record = match record.as_str() {
        "one line" => "in records of one cache line",
        "two lines" => "in records of two cache lines",
        _ => "too long for a record, so no packet takes the path",
    };
    let tables: Vec<String> = plan.tables.iter().map(ToString::to_string).collect();
    let noun = if tables.len() == 1 { "table" } else { "tables" };
    writeln!(out, "plan {version}: keys of {}, {record}", count(*key_bytes, "byte"))?;
    if let Some(previous) = plan.previous {
        writeln!(out, "records of plan {previous} are used until new ones are learned")?;
    }
    writeln!(out, "packets can reach {noun} {}", tables.join(", "))?;
    let fields: Vec<String> = plan.examined.iter().map(field).collect();
    let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
    writeln!(out, "their rules examine {}{fields}", count(*examined_bits as usize, "bit"))
}

/// Formats the examined bits of a field, such as "nw_dst/0xffffff00".
fn field(of: &ExaminedField) -> String {
    if of.whole { of.field.clone() } else { format!("{}/{}", of.field, of.mask) }
}

fn workers(out: &mut dyn Write, report: &ExpressReport) -> io::Result<()> {
    let head = [
        "worker",
        "now",
        "records",
        "room",
        "bytes",
        "hit %",
        "hits",
        "misses",
        "bypassed",
        "learned",
        "renewed",
        "verified",
        "upheld",
        "inherited",
        "displaced",
        "refused",
    ];
    let row = |name: String, now: &str, c: &ExpressCounts| {
        let mut row = vec![name, now.to_owned()];
        row.extend([c.records, c.room, c.bytes].map(|number| number.to_string()));
        row.push(percent(c.hits, c.packets()));
        row.extend([c.hits, c.misses, c.bypassed, c.learned, c.renewed].map(|number| number.to_string()));
        let figures = [c.verified, c.upheld, c.inherited, c.displaced, c.refused];
        row.extend(figures.map(|number| number.to_string()));
        row
    };
    let now = |worker: &ExpressWorker| match (worker.counts.room, worker.bypassed_now) {
        (0, _) => "closed",
        (_, true) => "bypassed",
        (_, false) => "open",
    };
    let mut rows: Vec<_> =
        report.workers.iter().map(|one| row(one.worker.to_string(), now(one), &one.counts)).collect();
    if report.workers.len() > 1 {
        rows.push(row("sum".to_owned(), "", &report.sum));
    }
    table(out, &head, &rows)
}

/// Formats a share in percent with one decimal, or "-" if the whole is 0.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1}", 100.0 * part as f64 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(enabled: bool, record: &str, workers: &[ExpressWorker]) -> String {
        let examined = |field: &str, mask: &str, bits, whole| ExaminedField {
            field: field.into(),
            mask: mask.into(),
            bits,
            whole,
        };
        let plan = PlanForm {
            version: 3,
            previous: (record == "two lines").then_some(2),
            tables: serde_json::from_str("[0,2]").unwrap(),
            examined: vec![
                examined("dl_dst", "0xffffffffffff", 48, true),
                examined("nw_dst", "0xffffff00", 24, false),
            ],
            examined_bits: 72,
            key_bytes: 12,
            record: record.into(),
        };
        let mut sum = ExpressCounts::default();
        workers.iter().for_each(|worker| sum.add(&worker.counts));
        let mut out = Vec::new();
        express(&mut out, &ExpressReport { enabled, plan, workers: workers.to_vec(), sum }).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn worker(worker: usize, bypassed_now: bool, hits: u64, misses: u64) -> ExpressWorker {
        let counts = ExpressCounts {
            records: 5,
            room: 64,
            bytes: 9_000,
            hits,
            misses,
            learned: 5,
            ..ExpressCounts::default()
        };
        ExpressWorker { worker, bypassed_now, counts }
    }

    const PLAN: &str = "\
packets can reach tables 0, 2
their rules examine 72 bits: dl_dst, nw_dst/0xffffff00
";

    #[test]
    fn a_path_that_is_off_says_how_to_switch_it_on() {
        let printed = report(false, "one line", &[]);
        let (first, rest) = printed.split_once('\n').unwrap();
        assert!(first.contains("is off; datapath.express.enabled = true"), "{first}");
        assert_eq!(rest, format!("plan 3: keys of 12 bytes, in records of one cache line\n{PLAN}"));
    }

    #[test]
    fn each_worker_has_a_row_and_several_have_a_sum() {
        let printed = report(true, "two lines", &[worker(0, false, 30, 10), worker(1, true, 0, 0)]);
        let expected = "\
worker  now       records  room  bytes  hit %  hits  misses  bypassed  learned  renewed  verified  upheld  inherited  displaced  refused
0       open            5    64   9000   75.0    30      10         0        5        0         0       0          0          0        0
1       bypassed        5    64   9000      -     0       0         0        5        0         0       0          0          0        0
sum                    10   128  18000   75.0    30      10         0       10        0         0       0          0          0        0
";
        let previous = "records of plan 2 are used until new ones are learned\n";
        let plan = format!("plan 3: keys of 12 bytes, in records of two cache lines\n{previous}{PLAN}");
        assert_eq!(printed, format!("{plan}{expected}"));
        assert_eq!(report(true, "one line", &[worker(0, false, 1, 0)]).lines().count(), 5);
    }

    #[test]
    fn keys_that_are_too_long_close_the_path() {
        let closed = ExpressWorker { worker: 0, bypassed_now: false, counts: ExpressCounts::default() };
        let printed = report(true, "too long", &[closed]);
        assert!(printed.starts_with("plan 3: keys of 12 bytes, too long for a record,"), "{printed}");
        assert!(printed.contains("\n     0  closed  "), "{printed}");
    }
}
