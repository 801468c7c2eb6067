// SPDX-License-Identifier: Apache-2.0
//! Traces of real packets as text, and the summary after the last trace.

use super::count;
use super::trace::trace;
use std::io::{self, Write};
use switch::live_trace::{LiveSummary, Real, RealHit};

pub fn real(out: &mut dyn Write, real: &Real) -> io::Result<()> {
    let bytes = count(real.bytes as usize, "byte");
    writeln!(out, "packet  {} ({bytes}, worker {})", real.packet, real.worker)?;
    real.hits.iter().try_for_each(|one| hit(out, one, real))?;
    let mut copies: Vec<String> = real.ports.iter().map(|port| format!("port {port}")).collect();
    if real.packet_ins > 0 {
        copies.push("the controller".to_owned());
    }
    let copies = if copies.is_empty() { String::new() } else { format!(": {}", copies.join(", ")) };
    let reason = real.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let path = match (real.fast, real.express) {
        (true, _) => ", by the fast-forwarding path alone",
        (_, true) => ", by a path record",
        _ => "",
    };
    match real.waited.as_deref() {
        Some("new") => {
            writeln!(out, "port cache: it started the search of its flow, and waited for the answer")?
        }
        Some(_) => writeln!(out, "port cache: it waited behind an earlier packet of its flow")?,
        None => {}
    }
    writeln!(out, "result: {}{reason}{copies}, after {}{path}", real.outcome, time(real.left_ns.0))?;
    match real.verdict.as_str() {
        "agrees" => {
            writeln!(out, "the rules agree: {}", real.imagined.why)
        }
        verdict => {
            let says = match verdict {
                "fault" => "FAULT: the rules differ",
                "changed" => "not compared",
                _ => "different, but this is allowed",
            };
            writeln!(out, "{says}: {}", real.why.join("; "))?;
            writeln!(out, "according to the current rules:")?;
            trace(out, &real.imagined)
        }
    }?;
    writeln!(out)
}

/// Writes one lookup of the packet.
fn hit(out: &mut dyn Write, hit: &RealHit, packet: &Real) -> io::Result<()> {
    let by = match hit.by.as_str() {
        "table" if packet.missed == Some(hit.table) => "the table, after a miss in its LUT",
        "table" => "the table",
        "index" => "its index",
        "lut" => "a record of the LUT",
        "verified" => "a record of the LUT, verified against the table",
        "inherited" => "a record of the previous LUT",
        "shared" => "the table, on the fast-forwarding path",
        "known" => "a record of the LUT, for a normal entry",
        "express" => "the path record",
        other => other,
    };
    let what = match (&hit.line, hit.hit) {
        (Some(line), _) => format!("hits  {line}"),
        (None, true) => "hits  an entry (the rules have changed since)".to_owned(),
        (None, false) => "miss".to_owned(),
    };
    writeln!(out, "table {} after {}, by {by}", hit.table, time(hit.after_ns.0))?;
    writeln!(out, "  {what}")
}

/// Formats a time in nanoseconds, or in microseconds from 10 us on.
fn time(ns: u64) -> String {
    if ns < 10_000 { format!("{ns} ns") } else { format!("{}.{} us", ns / 1_000, ns % 1_000 / 100) }
}

pub fn summary(out: &mut dyn Write, summary: &LiveSummary) -> io::Result<()> {
    let packets = count(summary.recorded as usize, "packet");
    let faults = count(summary.faults as usize, "fault");
    writeln!(out, "{packets} recorded, {} compared with the rules, {faults}", summary.compared)?;
    if summary.lost > 0 {
        writeln!(out, "{} more matched but were not recorded for lack of space", summary.lost)?;
    }
    Ok(())
}
