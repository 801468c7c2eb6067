// SPDX-License-Identifier: Apache-2.0
//! The result of a simulated switch as text.

use super::{count, table};
use scenario::{CacheUse, ScenarioOutcome, TrafficShare};
use std::io::{self, Write};

/// Prints the outcome of each switch, and then a table that compares the latencies.
pub fn comparison(out: &mut dyn Write, runs: &[ScenarioOutcome]) -> io::Result<()> {
    for run in runs {
        figures(out, run)?;
        // A scenario has one list of costs, so the measured costs of several switches cannot be put into it.
        if run.agreement.is_some() {
            writeln!(out, "costs:")?;
            run.steps.iter().try_for_each(|step| writeln!(out, "    {step}"))?;
        }
        writeln!(out)?;
    }
    let head = ["traffic", "switch", "delivered", "p50 us", "p99", "p99.9", "p99.9 - p50"];
    let mut rows = Vec::new();
    for class in 0..runs.iter().map(|run| run.traffic.len()).min().unwrap_or(0) {
        for run in runs {
            let part = &run.traffic[class];
            let latency = part.latency_ns;
            let jitter_ns = latency.p99_9 - latency.p50;
            let times = [latency.p50, latency.p99, latency.p99_9, jitter_ns].map(microseconds);
            let names = [part.name.clone(), run.switch.clone().unwrap_or_default()];
            rows.push(names.into_iter().chain([part.delivered.to_string()]).chain(times).collect());
        }
    }
    table(out, &head, &rows)
}

/// Prints the outcome of one switch.
pub fn outcome(out: &mut dyn Write, run: &ScenarioOutcome) -> io::Result<()> {
    figures(out, run)?;
    if run.agreement.is_some() {
        writeln!(out, "\nTo repeat this run, put into the scenario:")?;
        if run.capacity_pps.is_some() {
            writeln!(out, "load.rate_pps = {:.1} in place of load.factor, and", run.offered_pps)?;
        }
        writeln!(out, "costs = [")?;
        run.steps.iter().try_for_each(|step| writeln!(out, "    {step},"))?;
        writeln!(out, "]")?;
    }
    Ok(())
}

fn figures(out: &mut dyn Write, run: &ScenarioOutcome) -> io::Result<()> {
    writeln!(out, "scenario  {}, seed {}", run.scenario, run.seed)?;
    if let Some(switch) = &run.switch {
        writeln!(out, "switch    {switch}")?;
    }
    let agreement = run.agreement.map(|ratio| format!("; their sum is {ratio:.3} of real time"));
    writeln!(out, "costs     {}{}", run.costs, agreement.unwrap_or_default())?;
    if !run.unmeasured.is_empty() {
        writeln!(out, "costs     not measured, so they cost nothing: {}", run.unmeasured.join(", "))?;
    }
    let (span, warm_up) = (milliseconds(run.span_ns), milliseconds(run.warm_up_ns));
    let capacity = run.capacity_pps.map(|pps| format!("; the switch carries {} of this mix", mpps(pps)));
    let offered = mpps(run.offered_pps);
    writeln!(out, "offered   {offered} for {span} ms after {warm_up} ms{}", capacity.unwrap_or_default())?;
    let (busy, turns) = (run.busy_percent, count(run.turns as usize, "turn"));
    writeln!(out, "worker    had packets {busy:.1} % of {} ms, {turns}", milliseconds(run.end_ns))?;
    if let Some(cache) = &run.port_cache {
        let CacheUse { packets, hits, new, merged, passed, uncached, dropped, timed_out } = cache;
        writeln!(
            out,
            "cache     {packets} packets = {hits} hits + {new} new + {merged} merged + {passed} passed + {uncached} uncached + {dropped} dropped; {timed_out} timed out"
        )?;
    }
    parts(out, "lane", &run.lanes)?;
    parts(out, "traffic", &run.traffic)?;
    for part in &run.traffic {
        let learned = match part.learned.flows {
            0 => String::new(),
            flows => {
                let longest = microseconds(part.learned.longest_ns);
                let flows = count(flows as usize, "flow");
                format!(", the first of each of {flows} at most {longest} us after the flow began")
            }
        };
        let (name, fast, overtaken) = (&part.name, part.fast, part.overtaken);
        let overtaken =
            if overtaken > 0 { format!("; {overtaken} overtaken in their flow") } else { String::new() };
        let express =
            if part.express > 0 { format!(", {} by a path record", part.express) } else { String::new() };
        writeln!(out, "{name}: {fast} over the fast-forwarding path{express}{learned}{overtaken}")?;
    }
    Ok(())
}

/// Prints one row of packet counts and latencies per part, then the drops by reason.
fn parts(out: &mut dyn Write, what: &str, parts: &[TrafficShare]) -> io::Result<()> {
    writeln!(out)?;
    let head = [
        what,
        "offered",
        "delivered",
        "consumed",
        "dropped",
        "mean us",
        "spread",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "max",
    ];
    let row = |part: &TrafficShare| {
        let dropped: u64 = part.dropped.values().sum();
        let l = part.latency_ns;
        let counts = [part.offered, part.delivered, part.consumed, dropped].map(|count| count.to_string());
        let times = [l.mean, l.deviation, l.p50, l.p99, l.p99_9, l.p99_99, l.max].map(microseconds);
        [part.name.clone()].into_iter().chain(counts).chain(times).collect::<Vec<_>>()
    };
    table(out, &head, &parts.iter().map(row).collect::<Vec<_>>())?;
    for part in parts.iter().filter(|part| !part.dropped.is_empty()) {
        let reasons: Vec<String> =
            part.dropped.iter().map(|(name, count)| format!("{name} {count}")).collect();
        writeln!(out, "{}: dropped: {}", part.name, reasons.join(", "))?;
    }
    Ok(())
}

fn microseconds(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

fn milliseconds(ns: f64) -> String {
    format!("{:.3}", ns / 1e6)
}

fn mpps(pps: f64) -> String {
    format!("{:.3} Mpps", pps / 1e6)
}
