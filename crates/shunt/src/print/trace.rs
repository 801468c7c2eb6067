// SPDX-License-Identifier: Apache-2.0
//! A trace as text: the packet, its hits table by table, and its outcome.

use super::count;
use config::trace::{GroupForm, NearMissForm, Output, PacketInForm, TableForm, TraceForm};
use std::io::{self, Write};

pub fn trace(out: &mut dyn Write, trace: &TraceForm) -> io::Result<()> {
    writeln!(out, "packet  {}", trace.packet)?;
    trace.tables.iter().try_for_each(|step| table(out, step))?;
    trace.groups.iter().try_for_each(|used| group(out, used))?;
    trace.outputs.iter().try_for_each(|copy| output(out, copy))?;
    trace.packet_ins.iter().try_for_each(|copy| packet_in(out, copy))?;
    for reason in &trace.copies_dropped {
        writeln!(out, "no copy {reason}")?;
    }
    for note in &trace.notes {
        writeln!(out, "note    {note}")?;
    }
    let low_latency = match (trace.low_latency, trace.normal_from) {
        (true, _) if trace.tables.is_empty() => "undecided, because it reaches no table".to_owned(),
        (true, _) => "yes, every entry is".to_owned(),
        (false, Some(table)) => format!("no, it hits a normal entry in table {table}"),
        (false, None) => "no".to_owned(),
    };
    writeln!(out, "low latency: {low_latency}")?;
    let fast = if trace.fast { "yes" } else { "no" };
    writeln!(out, "fast-forwarding path: {fast}, {}", trace.fast_why)?;
    let express = if trace.express { "yes" } else { "no" };
    writeln!(out, "express path: {express}, {}", trace.express_why)?;
    let waits = if trace.port_cache { "yes" } else { "no" };
    writeln!(out, "port cache: {waits}, {}", trace.port_cache_why)?;
    match &trace.reason {
        Some(reason) => writeln!(out, "result: {} ({reason}): {}", trace.outcome, trace.why),
        None => writeln!(out, "result: {}: {}", trace.outcome, trace.why),
    }
}

fn table(out: &mut dyn Write, table: &TableForm) -> io::Result<()> {
    let size = match table.entries {
        0 => "empty".to_owned(),
        1 => format!("{}, 1 entry", table.engine),
        entries => format!("{}, {entries} entries", table.engine),
    };
    let index = table.index.map(|index| format!(", entered by index {index}")).unwrap_or_default();
    let metadata =
        if table.metadata == "0x0" { String::new() } else { format!(", metadata {}", table.metadata) };
    writeln!(out, "table {} ({size}{index}{metadata})", table.table)?;
    table.near.iter().try_for_each(|entry| near(out, entry))?;
    match &table.rule {
        None => writeln!(out, "  miss")?,
        Some(rule) => {
            writeln!(out, "  hits  {}", rule.line())?;
            if !table.values.is_empty() {
                writeln!(out, "        as the packet has {}", table.values.join(", "))?;
            }
        }
    }
    table.changes.iter().try_for_each(|change| writeln!(out, "  then  {change}"))
}

fn near(out: &mut dyn Write, near: &NearMissForm) -> io::Result<()> {
    writeln!(out, "  not   {}", near.rule.line())?;
    near.excluded.iter().try_for_each(|why| writeln!(out, "        it {why}"))
}

fn group(out: &mut dyn Write, group: &GroupForm) -> io::Result<()> {
    let buckets: Vec<String> = group.buckets.iter().map(usize::to_string).collect();
    let used = match buckets.len() {
        0 => "no live bucket".to_owned(),
        1 => format!("bucket {}", buckets[0]),
        _ => format!("buckets {}", buckets.join(", ")),
    };
    writeln!(out, "group   {} ({}): {used}", group.group, group.kind)
}

fn output(out: &mut dyn Write, output: &Output) -> io::Result<()> {
    let queue = if output.queue.0 == 0 { String::new() } else { format!(", queue {}", output.queue) };
    let changed = if output.changes.is_empty() { ": unchanged" } else { ":" };
    writeln!(out, "output  port {} ({}){queue}{changed}", output.port, output.name)?;
    output.changes.iter().try_for_each(|change| writeln!(out, "        {change}"))
}

fn packet_in(out: &mut dyn Write, packet_in: &PacketInForm) -> io::Result<()> {
    let bytes = count(packet_in.bytes, "byte");
    writeln!(
        out,
        "to the controller: {bytes}, by an entry of table {} ({})",
        packet_in.table, packet_in.reason
    )
}
