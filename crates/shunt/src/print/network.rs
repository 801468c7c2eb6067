// SPDX-License-Identifier: Apache-2.0
//! The result of a simulated network as text.

use super::{count, table};
use scenario::{ByEpochs, NetworkOutcome, Protected, Range};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Maximum number of places listed per drop reason; the places with the most losses come first.
const PLACES: usize = 5;

pub fn outcome(out: &mut dyn Write, run: &NetworkOutcome) -> io::Result<()> {
    writeln!(out, "scenario  {}, seed {}", run.scenario, run.seed)?;
    let NetworkOutcome { kind, plan, network, .. } = run;
    let parts = [(run.switches.len(), "switch"), (run.links, "link"), (run.hosts, "host")];
    let [switches, links, hosts] = parts.map(|(number, thing)| count(number, thing));
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
        (run.lost_wrongly, "unexcused losses"),
    ];
    let reported: Vec<String> = faults.iter().map(|(number, what)| format!("{number} {what}")).collect();
    writeln!(out, "{}{}", if run.right { "right     " } else { "WRONG     " }, reported.join(", "))?;
    run.missed.iter().try_for_each(|missed| writeln!(out, "MISSED    {missed}"))?;

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
        row("key or tag, bits", run.header.key_bits),
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
        let verdict = match (met.lost, met.crowded_out) {
            (0, 0) if met.safe => "none, as required",
            (0, 0) => "none",
            (0, _) => "for lack of room",
            _ if met.safe => "WRONG",
            _ => "excused",
        };
        [met.failure.to_owned()].into_iter().chain(counts).chain([verdict.to_owned()]).collect()
    });
    table(out, &head, &met.collect::<Vec<_>>())?;
    protection(out, run)?;
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

/// Prints which parts the plan protects, which of them failed under traffic, and which keys delivered
/// packets.
fn protection(out: &mut dyn Write, run: &NetworkOutcome) -> io::Result<()> {
    let row = |what: &str, of: Protected| {
        let Protected { total, used, protected, failed, exercised } = of;
        let counts = [total, used, protected, failed, exercised].map(|number| number.to_string());
        [what.to_owned()].into_iter().chain(counts).collect::<Vec<_>>()
    };
    let (links, switches) = (run.protection.links, run.protection.switches);
    if !run.failures.is_empty() || links.protected + switches.protected > 0 {
        writeln!(out)?;
        let head = ["", "in all", "on paths", "protected", "failed", "tested"];
        table(out, &head, &[row("links", links), row("switches", switches)])?;
    }
    let unmet: Vec<_> = run.failures.iter().filter(|failure| failure.packets == 0).collect();
    if !unmet.is_empty() {
        let ms = |ns: u64| ns as f64 / 1e6;
        let reported: Vec<String> =
            unmet.iter().take(PLACES).map(|one| format!("{} at {:.3} ms", one.part, ms(one.at_ns))).collect();
        let more = if unmet.len() > PLACES { ", ..." } else { "" };
        let (unmet, all) = (unmet.len(), count(run.failures.len(), "failure"));
        writeln!(out, "met by no packet: {unmet} of {all}: {}{more}", reported.join(", "))?;
    }
    if let Some(ByEpochs { none, epoch_0, epoch_1, both }) = run.delivered_by {
        writeln!(
            out,
            "delivered by keys of epoch 0: {epoch_0}, of epoch 1: {epoch_1}, of both: {both}, by none: {none}"
        )?;
    }
    Ok(())
}
