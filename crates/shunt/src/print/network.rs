// SPDX-License-Identifier: Apache-2.0
//! The result of a simulated network as text.

use super::{count, table};
use scenario::{ByEpochs, LayerOutcome, NetworkOutcome, Protected, Range, SwitchesOutcome};
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
    let overtaken = run.by_entries.as_ref().map(|switches| (switches.overtaken, "overtaken"));
    let faults = faults.iter().copied().chain(overtaken);
    let reported: Vec<String> = faults.map(|(number, what)| format!("{number} {what}")).collect();
    writeln!(out, "{}{}", if run.right { "right     " } else { "WRONG     " }, reported.join(", "))?;
    run.missed.iter().try_for_each(|missed| writeln!(out, "MISSED    {missed}"))?;

    let latency = run.latency_ns;
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
    let [mean, p50, p99, max] = [latency.mean, latency.p50, latency.p99, latency.max].map(micros);
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
    if let Some(found) = &run.by_entries {
        by_entries(out, found)?;
    }
    losses(out, run)
}

/// Prints the places with the most losses for each reason.
fn losses(out: &mut dyn Write, run: &NetworkOutcome) -> io::Result<()> {
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

/// Prints the results of switches that forward by entries.
fn by_entries(out: &mut dyn Write, found: &SwitchesOutcome) -> io::Result<()> {
    let SwitchesOutcome { port_cache, sent, delivered, lost, latency_ns, .. } = found;
    let warm_up = found.warm_up_ns as f64 / 1e6;
    writeln!(out)?;
    writeln!(out, "port cache {port_cache}, after a warm-up of {warm_up:.3} ms")?;
    let reasons = |lost: &BTreeMap<&str, u64>| {
        let all: Vec<String> = lost.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        if all.is_empty() { "0".to_owned() } else { all.join(", ") }
    };
    writeln!(out, "sent {sent}, delivered {delivered}, lost: {}", reasons(lost))?;
    let [p50, p99, p99_9] = [latency_ns.p50, latency_ns.p99, latency_ns.p99_9].map(micros);
    writeln!(out, "latency, us: p50 {p50}, p99 {p99}, p99.9 {p99_9}")?;
    let head = ["layer", "switches", "packets", "hits", "merged", "new", "passed", "uncached", "dropped"];
    let mut head = head.to_vec();
    head.extend(["hit rate, %", "sent", "p50, us", "p99, us", "p99.9, us", "lost"]);
    let row = |layer: &LayerOutcome| {
        let mut row = vec![layer.layer.to_owned()];
        let cache = layer.port_cache;
        let counts = cache.map(|c| [c.hits, c.merged, c.new, c.passed, c.uncached, c.dropped].map(Some));
        let counts = counts.unwrap_or([None; 6]);
        let numbers = [Some(layer.switches as u64), Some(layer.received)].into_iter().chain(counts);
        row.extend(numbers.map(|number| number.map_or("-".to_owned(), |number| number.to_string())));
        row.push(cache.map_or("-".to_owned(), |_| format!("{:.3}", layer.hit_rate_percent)));
        row.push(layer.forwarded.to_string());
        let delay = layer.delay_ns;
        row.extend([delay.p50, delay.p99, delay.p99_9].map(micros));
        row.push(reasons(&layer.lost));
        row
    };
    table(out, &head, &found.layers.iter().chain([&found.total]).map(row).collect::<Vec<_>>())
}

/// Returns a time in microseconds as text.
fn micros(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
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
