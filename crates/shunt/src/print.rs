// SPDX-License-Identifier: Apache-2.0
//! Answers of the switch as text for people. Zero counters are omitted where they would make other counters
//! hard to find. Begin with [`counters`].

pub mod cache;
pub mod controllers;
pub mod device;
pub mod express;
pub mod live;
pub mod mirrors;
pub mod network;
pub mod sim;
pub mod store;
pub mod trace;

use config::stateless_form::{BankForm, GatesForm, LabelForm};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use switch::control::{
    CountersReport, Ffp, FlowPart, LatencyFigures, Limit, Macs, Ports, StatelessReport, Tables, microseconds,
};
use switch::log::{LogModuleRow, LogReport};
use switch::top::Board;

/// Returns a count with its noun in singular or plural, such as "1 port" or "2 ports".
pub fn count(number: usize, thing: &str) -> String {
    let plural = match number {
        1 => "",
        _ if thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {thing}{plural}")
}

/// Prints a value as JSON on one line.
pub fn value(out: &mut dyn Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{value}")
}

/// Prints an answer as JSON on one line.
pub fn json(out: &mut dyn Write, answer: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, answer)?;
    writeln!(out)
}

pub fn flows(out: &mut dyn Write, part: &FlowPart) -> io::Result<()> {
    match part {
        FlowPart::Lines(lines) => lines.iter().try_for_each(|line| writeln!(out, "{line}")),
        FlowPart::Rows(rows) => rows.iter().try_for_each(|row| {
            serde_json::to_writer(&mut *out, row)?;
            writeln!(out)
        }),
    }
}

pub fn ports(out: &mut dyn Write, ports: &Ports) -> io::Result<()> {
    let mut head = vec![
        "port",
        "name",
        "link",
        "speed",
        "mac",
        "rx packets",
        "rx bytes",
        "tx packets",
        "tx bytes",
        "losses",
    ];
    // Most switches have no VLANs, so the column is omitted there.
    let has_vlans = ports.ports.iter().any(|port| port.vlans.is_some());
    head.extend(has_vlans.then_some("vlans"));
    let has_refused = ports.ports.iter().any(|port| port.macs_refused > 0);
    head.extend(has_refused.then_some("macs refused"));
    let row = |p: &switch::control::PortRow| {
        let speed = if p.speed_mbps == 0 { "-".to_owned() } else { format!("{} Mbit/s", p.speed_mbps) };
        let losses: Vec<String> = p.dropped.iter().map(|(name, count)| format!("{name}={count}")).collect();
        let mut row = vec![
            p.number.to_string(),
            p.name.clone(),
            match (p.up, p.blocked) {
                (true, _) => "up",
                (false, true) if p.link_up => "blocked",
                (false, true) => "blocked, no link",
                (false, false) => "down",
            }
            .to_owned(),
            speed,
            p.mac.clone(),
            p.rx_packets.to_string(),
            p.rx_bytes.to_string(),
            p.tx_packets.to_string(),
            p.tx_bytes.to_string(),
            if losses.is_empty() { "-".to_owned() } else { losses.join(" ") },
        ];
        row.extend(has_vlans.then(|| p.vlans.clone().unwrap_or_else(|| "-".to_owned())));
        row.extend(has_refused.then(|| p.macs_refused.to_string()));
        row
    };
    table(out, &head, &ports.ports.iter().map(row).collect::<Vec<_>>())?;
    queues(out, ports)
}

/// Prints the egress queues of all ports that have queues.
fn queues(out: &mut dyn Write, ports: &Ports) -> io::Result<()> {
    let head = [
        "port",
        "queue",
        "min kbit/s",
        "max kbit/s",
        "priority",
        "waiting",
        "limit",
        "tx packets",
        "tx bytes",
        "dropped",
    ];
    let rate = |kbps: Option<u32>| kbps.map_or_else(|| "-".to_owned(), |kbps| kbps.to_string());
    let row = |port: u32, queue: &switch::control::QueueRow| {
        vec![
            port.to_string(),
            queue.queue.to_string(),
            rate(queue.min_rate_kbps),
            rate(queue.max_rate_kbps),
            queue.priority.to_string(),
            queue.waiting.to_string(),
            queue.limit_frames.to_string(),
            queue.tx_packets.to_string(),
            queue.tx_bytes.to_string(),
            queue.dropped.to_string(),
        ]
    };
    let rows: Vec<_> =
        ports.ports.iter().flat_map(|port| port.queues.iter().map(|queue| row(port.number, queue))).collect();
    if rows.is_empty() { Ok(()) } else { table(out, &head, &rows) }
}

pub fn tables(out: &mut dyn Write, tables: &Tables) -> io::Result<()> {
    let head = ["table", "flows", "lookups", "matches", "compiled bytes", "engine"];
    let row = |t: &switch::control::TableRow| {
        vec![
            t.table.to_string(),
            t.entries.to_string(),
            t.lookups.to_string(),
            t.matches.to_string(),
            t.compiled_bytes.to_string(),
            t.engine.clone(),
        ]
    };
    table(out, &head, &tables.tables.iter().map(row).collect::<Vec<_>>())
}

pub fn log(out: &mut dyn Write, report: &LogReport) -> io::Result<()> {
    writeln!(out, "form: {}; level of modules without one: {}", report.format, report.default)?;
    let row = |row: &LogModuleRow| {
        vec![row.module.clone(), row.level.clone().unwrap_or_else(|| "-".to_owned()), row.meaning.clone()]
    };
    table(out, &["module", "level", "of"], &report.modules.iter().map(row).collect::<Vec<_>>())
}

pub fn macs(out: &mut dyn Write, macs: &Macs) -> io::Result<()> {
    let head = ["vlan", "mac", "port", "age"];
    let row = |m: &switch::control::MacRow| {
        let vlan = if m.vid == 0 { "-".to_owned() } else { m.vid.to_string() };
        vec![vlan, m.mac.clone(), m.port.to_string(), format!("{} s", m.age_s)]
    };
    table(out, &head, &macs.macs.iter().map(row).collect::<Vec<_>>())
}

pub fn stateless(out: &mut dyn Write, shown: &StatelessReport) -> io::Result<()> {
    let Some(stateless) = &shown.lane else {
        return writeln!(out, "stateless forwarding is off (datapath.stateless)");
    };
    writeln!(
        out,
        "{} of {} packets were sent or dropped by stateless forwarding",
        shown.taken, shown.received
    )?;
    for (reason, count) in shown.dropped.iter().filter(|(_, count)| **count > 0) {
        writeln!(out, "dropped {reason}: {count}")?;
    }
    let list = |numbers: &[i64]| match numbers {
        [] => "none".to_owned(),
        some => some.iter().map(i64::to_string).collect::<Vec<_>>().join(" "),
    };
    writeln!(out, "trusted ports: {}", list(&stateless.trusted))?;
    for (port, bytes) in &stateless.mtu {
        writeln!(out, "MTU of port {port}: {bytes} bytes")?;
    }
    let types = [
        ("KeyFlow", stateless.types.keyflow),
        ("PolKA", stateless.types.polka),
        ("TF", stateless.types.tf),
        ("wide TF", stateless.types.tf_wide),
    ];
    let types = types.map(|(name, it)| format!("{name} {:#06x}", it.unwrap_or_default()));
    writeln!(out, "EtherTypes: {}", types.join(", "))?;
    for one in &stateless.bank {
        bank(out, &format!("KeyFlow, epoch {}", one.epoch), one)?;
    }
    if let Some(one) = &stateless.polka {
        bank(out, "PolKA", one)?;
    }
    stateless.gates.as_ref().map_or(Ok(()), |form| gates(out, form))
}

fn bank(out: &mut dyn Write, name: &str, bank: &BankForm) -> io::Result<()> {
    let arithmetic = bank.arithmetic.as_deref().unwrap_or("integer");
    writeln!(out, "{name}: {arithmetic} ID {0} ({0:#x})", bank.id)?;
    let label = |(label, what): (usize, &LabelForm)| match what {
        LabelForm::Port(0) => None,
        LabelForm::Port(port) => Some(format!("{label}={port}")),
        LabelForm::Word(word) => Some(format!("{label}={word}")),
    };
    let labels: Vec<String> = bank.labels.iter().enumerate().filter_map(label).collect();
    writeln!(out, "  labels {}", labels.join(" "))?;
    if bank.backups.is_empty() {
        return Ok(());
    }
    let backups: Vec<String> = bank.backups.iter().map(|(port, by)| format!("{port}->{by}")).collect();
    writeln!(out, "  backups {}", backups.join(" "))
}

pub fn gates(out: &mut dyn Write, gates: &GatesForm) -> io::Result<()> {
    let GatesForm { down_d, up_d, external_d, server_gate_max, ports } = gates;
    writeln!(
        out,
        "gates: down-d {down_d}, up-d {up_d}, external-d {external_d}, server gates up to {server_gate_max}"
    )?;
    let row = |(port, gate, flag): &(i64, i64, String)| {
        vec![port.to_string(), gate.to_string(), if flag.is_empty() { "-" } else { flag }.to_owned()]
    };
    table(out, &["port", "gate", "flag"], &ports.iter().map(row).collect::<Vec<_>>())
}

pub fn ffp(out: &mut dyn Write, ffp: &Ffp) -> io::Result<()> {
    if ffp.lut_entries == 0 {
        return writeln!(out, "the fast-forwarding path is off (datapath.ffp.enabled)");
    }
    let Ffp { fast, received, consistency, .. } = ffp;
    writeln!(out, "{fast} of {received} packets left by the path alone; consistency {consistency}")?;
    let head = [
        "table",
        "way",
        "key bits",
        "records",
        "hits",
        "normal",
        "misses",
        "verified",
        "walked",
        "cleaned",
        "evicted",
        "displaced",
        "refused",
        "bytes",
        "LUT ns",
        "table ns",
    ];
    let row = |t: &switch::control::FastTable| {
        let figures = [
            t.hits,
            t.normal_hits,
            t.misses,
            t.verified,
            t.walked,
            t.cleaned,
            t.evicted,
            t.displaced,
            t.refused,
        ];
        let mut row = vec![t.table.to_string(), t.way.clone(), t.key_bits.to_string(), t.records.to_string()];
        row.extend(figures.iter().map(u64::to_string));
        row.push(t.bytes.to_string());
        row.extend([t.probe_ps, t.lookup_ps].map(nanoseconds));
        row
    };
    table(out, &head, &ffp.tables.iter().map(row).collect::<Vec<_>>())
}

/// Converts picoseconds to nanoseconds with one decimal. 0 means not measured and gives "-".
fn nanoseconds(ps: u64) -> String {
    if ps == 0 { "-".to_owned() } else { format!("{}.{}", ps / 1_000, ps % 1_000 / 100) }
}

pub fn counters(out: &mut dyn Write, c: &CountersReport) -> io::Result<()> {
    let sum =
        |reasons: &BTreeMap<String, u64>| reasons.values().fold(0_u64, |sum, count| sum.wrapping_add(*count));
    let dropped = sum(&c.dropped);
    let mut rows = vec![("received", c.received), ("forwarded", c.forwarded), ("consumed", c.consumed)];
    rows.push(("dropped", dropped));
    rows.extend(reasons(&c.dropped));
    rows.push(("by stateless forwarding", c.stateless));
    rows.push(("held", c.held));
    rows.push(("held back for order", c.held_back));
    rows.push(("copies sent", c.copies));
    rows.push(("copies dropped", sum(&c.copies_dropped)));
    rows.extend(reasons(&c.copies_dropped));
    rows.push(("traced", c.traced.get("recorded").copied().unwrap_or(0)));
    rows.push(("trace faults", c.traced.get("faults").copied().unwrap_or(0)));
    rows.push(("lost for controllers", sum(&c.controllers_lost)));
    rows.extend(reasons(&c.controllers_lost));
    rows.push(("log lines written", c.log_lines_written));
    rows.push(("log lines lost", sum(&c.log_lines_lost)));
    rows.extend(reasons(&c.log_lines_lost));
    let is_reason = |name: &str| {
        [&c.dropped, &c.controllers_lost, &c.log_lines_lost].iter().any(|of| of.contains_key(name))
    };
    let digits = rows.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(1);
    for (name, count) in rows {
        let name = if is_reason(name) { format!("  {name}") } else { name.to_owned() };
        writeln!(out, "{name:<24} {count:>digits$}")?;
    }
    writeln!(
        out,
        "received {} = forwarded {} + consumed {} + dropped {dropped} + held {}",
        c.received, c.forwarded, c.consumed, c.held
    )?;
    limits(out, c)?;
    lanes(out, c)
}

/// Prints the usage of every limited resource.
fn limits(out: &mut dyn Write, c: &CountersReport) -> io::Result<()> {
    let row = |l: &Limit| {
        let limit = l.limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        vec![l.of.clone(), l.name.clone(), l.used.to_string(), limit]
    };
    writeln!(out)?;
    table(out, &["of", "what is limited", "in use", "limit"], &c.limits.iter().map(row).collect::<Vec<_>>())
}

/// Prints the time that frames spent in the switch, per lane.
fn lanes(out: &mut dyn Write, c: &CountersReport) -> io::Result<()> {
    let head = ["lane", "frames", "p50 us", "p99 us", "p99.9 us", "p99.99 us", "max us"];
    let row = |name: &str, f: &LatencyFigures| {
        let mut row = vec![name.to_owned(), f.frames.to_string()];
        row.extend([f.p50_ns, f.p99_ns, f.p999_ns, f.p9999_ns, f.max_ns].map(|ns| match f.frames {
            0 => "-".to_owned(),
            _ => microseconds(ns),
        }));
        row
    };
    let rows = c.lanes.iter().flat_map(|(name, lane)| {
        let aside = (lane.raw != lane.gaps_aside).then(|| row("  without gaps", &lane.gaps_aside));
        [row(name, &lane.raw)].into_iter().chain(aside)
    });
    writeln!(out, "\nlatency from receive poll to transmit doorbell:")?;
    table(out, &head, &rows.collect::<Vec<_>>())?;
    let (gaps, stolen) = (count(c.gaps as usize, "gap"), microseconds(c.stolen_ns));
    writeln!(out, "{gaps} in which something else used the CPU of a worker, {stolen} us in all")
}

/// Prints the rates and gauges of a switch in one period.
pub fn board(out: &mut dyn Write, board: &Board) -> io::Result<()> {
    writeln!(out, "{}", board.summary)?;
    board.sections.iter().try_for_each(|section| {
        writeln!(out, "\n{}", section.title)?;
        table(out, &section.head, &section.rows)
    })
}

fn reasons(reasons: &BTreeMap<String, u64>) -> impl Iterator<Item = (&str, u64)> {
    reasons.iter().filter(|(_, count)| **count != 0).map(|(name, count)| (name.as_str(), *count))
}

/// Prints a table. Columns of numbers are right-aligned, and the last column is not padded.
fn table(out: &mut dyn Write, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let number = |c: &String| c == "-" || c.bytes().all(|b| b.is_ascii_digit() || b".kMGT".contains(&b));
    let numbers = |at: usize| rows.is_empty() || (cells(at).all(number) && cells(at).any(|c| c != "-"));
    let columns: Vec<(usize, bool)> = head
        .iter()
        .enumerate()
        .map(|(at, name)| (cells(at).map(String::len).max().unwrap_or(0).max(name.len()), numbers(at)))
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, (width, right)) in cells.zip(&columns) {
            let padded = if *right { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            text.push_str(&padded);
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&mut head.iter().copied())?;
    rows.iter().try_for_each(|row| line(&mut row.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use switch::control::LaneLatency;

    fn text(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [vec!["7".to_owned(), "a".to_owned()], vec!["1234567".to_owned(), "long name".to_owned()]];
        let printed = text(|out| table(out, &["number", "name"], &rows));
        assert_eq!(printed, " number  name\n      7  a\n1234567  long name\n");
    }

    #[test]
    fn counters_hide_zeros_and_show_the_balance() {
        let reasons = |counts: [u64; 2]| {
            BTreeMap::from([("runt".to_owned(), counts[0]), ("table_miss".to_owned(), counts[1])])
        };
        let figures = |frames, p9999_ns, max_ns| LatencyFigures {
            frames,
            p50_ns: 500,
            p99_ns: 700,
            p999_ns: 900,
            p9999_ns,
            max_ns,
        };
        let lane = LaneLatency {
            raw: figures(2_000, 18_000_000, 18_000_100),
            gaps_aside: figures(1_999, 1_100, 1_200),
        };
        let counters = CountersReport {
            received: 10,
            forwarded: 6,
            consumed: 1,
            stateless: 0,
            held: 0,
            held_back: 0,
            dropped: reasons([0, 3]),
            copies: 8,
            copies_dropped: reasons([0, 0]),
            traced: BTreeMap::new(),
            controllers_lost: BTreeMap::from([("flow_removed".to_owned(), 4), ("reply".to_owned(), 0)]),
            log_lines_written: 5,
            log_lines_lost: BTreeMap::from([("log_refused".to_owned(), 2), ("log_no_room".to_owned(), 0)]),
            limits: vec![
                Limit { of: "worker 0".into(), name: "hold".into(), used: 3, limit: Some(256) },
                Limit {
                    of: "port 1, worker 0".into(),
                    name: "outstanding_bytes".into(),
                    used: 768,
                    limit: None,
                },
            ],
            lanes: BTreeMap::from([
                ("low_latency".to_owned(), lane),
                ("normal".to_owned(), LaneLatency::default()),
            ]),
            gaps: 1,
            stolen_ns: 18_000_250,
        };
        let printed = text(|out| super::counters(out, &counters));
        let (printed, rest) = printed.split_once("\n\n").unwrap();
        let (limits, lanes) = rest.split_once("\n\n").unwrap();
        let expected = "\
of                what is limited    in use  limit
worker 0          hold                    3    256
port 1, worker 0  outstanding_bytes     768      -";
        assert_eq!(limits, expected);
        let expected = "\
latency from receive poll to transmit doorbell:
lane            frames  p50 us  p99 us  p99.9 us  p99.99 us     max us
low_latency       2000   0.500   0.700     0.900  18000.000  18000.100
  without gaps    1999   0.500   0.700     0.900      1.100      1.200
normal               0       -       -         -          -          -
1 gap in which something else used the CPU of a worker, 18000.250 us in all
";
        assert_eq!(lanes, expected);
        assert!(printed.contains("\n  table_miss              "), "{printed}");
        assert!(!printed.contains("runt") && !printed.contains("reply"), "{printed}");
        assert!(printed.contains("\nlost for controllers      4\n  flow_removed "), "{printed}");
        assert!(printed.contains("\nlog lines lost            2\n  log_refused "), "{printed}");
        assert!(
            printed.ends_with("received 10 = forwarded 6 + consumed 1 + dropped 3 + held 0"),
            "{printed}"
        );
    }
}
