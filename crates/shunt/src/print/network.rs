// SPDX-License-Identifier: Apache-2.0
//! A simulated network as text.

use super::{count, table};
use std::collections::BTreeMap;
use std::io::{self, Write};
use switch::scenario::{NetworkOutcome, Range};

/// Places told of for each reason: those that lost most.
const PLACES: usize = 5;

pub fn outcome(out: &mut dyn Write, run: &NetworkOutcome) -> io::Result<()> {
    writeln!(out, "scenario  {}, seed {}", run.scenario, run.seed)?;
    let NetworkOutcome { kind, plan, network, .. } = run;
    let parts = [(run.switches, "switch"), (run.links, "link"), (run.hosts, "host")];
    let [switches, links, hosts] = parts.map(|(number, thing)| match (number, thing) {
        (1, _) | (_, "link" | "host") => count(number, thing),
        _ => format!("{number} switches"),
    });
    writeln!(out, "plan      {kind}, {plan}: {network}, {switches}, {links}, {hosts}")?;
    let sent = count(run.sent as usize, "packet");
    let (pairs, flows) = (count(run.pairs, "pair"), count(run.flows, "flow"));
    let ms = run.end_ns as f64 / 1e6;
    writeln!(
        out,
        "sent      {sent} of {flows} between {pairs} in {ms:.3} ms, on {} different paths",
        run.paths
    )?;
    writeln!(out, "delivered {}, lost {}", run.delivered, run.lost)?;
    let faults = [
        (run.misdelivered, "misdelivered"),
        (run.damaged, "changed"),
        (run.duplicated, "more than once"),
        (run.over_budget, "over the hop budget"),
        (run.lost_wrongly, "lost without an excuse"),
    ];
    let told: Vec<String> = faults.iter().map(|(number, what)| format!("{number} {what}")).collect();
    writeln!(out, "{}{}", if run.right { "right     " } else { "WRONG     " }, told.join(", "))?;

    let latency = run.latency_ns;
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let head = ["", "min", "mean", "max"];
    let row = |what: &str, range: Range| {
        vec![what.to_owned(), range.min.to_string(), format!("{:.2}", range.mean), range.max.to_string()]
    };
    let state = run.state;
    let rows = [
        row("links crossed", run.hops),
        row("beyond the fewest", run.hops_beyond_shortest),
        row("hop budget", run.hop_budget),
        row("header on links, bits", run.header.on_links_bits),
        row("of it key or tag, bits", run.header.key_bits),
        row("entries of a switch", state.entries),
        row("groups of a switch", state.groups),
        row("labels of a switch", state.labels),
        row("gates of a switch", state.gates),
    ];
    writeln!(out)?;
    table(out, &head, &rows)?;
    writeln!(out, "switches without entries: {}", state.without_entries)?;
    let [mean, p50, p99, max] = [latency.mean, latency.p50, latency.p99, latency.max].map(us);
    writeln!(out, "latency, us: mean {mean}, p50 {p50}, p99 {p99}, max {max}")?;

    writeln!(out)?;
    let head = ["packets that met", "delivered", "lost", "for lack of room", "loss"];
    let met = run.met.iter().map(|met| {
        let counts = [met.delivered, met.lost, met.crowded_out].map(|number| number.to_string());
        let verdict = match (met.safe, met.lost) {
            (true, 0) => "none, as it must be",
            (true, _) => "WRONG",
            (false, 0) => "none",
            (false, _) => "excused",
        };
        [met.failure.to_owned()].into_iter().chain(counts).chain([verdict.to_owned()]).collect()
    });
    table(out, &head, &met.collect::<Vec<_>>())?;
    let mut reasons: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for lost in &run.reasons {
        reasons.entry(lost.reason).or_default().push((lost.packets, &lost.place));
    }
    for (reason, mut places) in reasons {
        let all: u64 = places.iter().map(|(packets, _)| packets).sum();
        places.sort_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(other.1)));
        let most: Vec<String> =
            places.iter().take(PLACES).map(|(n, place)| format!("{n} at {place}")).collect();
        let more = if places.len() > PLACES { ", ..." } else { "" };
        writeln!(out, "lost: {reason} {all}: {}{more}", most.join(", "))?;
    }
    Ok(())
}
