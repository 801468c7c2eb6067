// SPDX-License-Identifier: Apache-2.0
//! Formats a trace of the model as text.

use super::form::{GroupForm, NearMissForm, Output, PacketInForm, Rule, TableForm, TraceForm};
use super::plane::{DEVICE, TracedPlane};
use super::why::{self, Ways};
use crate::packet::hexadecimal;
use dataplane::DataPlane;
use flow::group::GroupType;
use flow::{Field, FieldMatch, FlowEntry, Match, Outcome, PacketInReason, PortNo};
use model::Model;
use model::trace::{Excluded, FrameChange, Trace as Found, TraceStep, value_of};

/// Maximum number of dropped copies that are reported.
const COPY_DROPS: usize = 64;

/// Formats a trace.
#[must_use]
pub fn report<P: TracedPlane>(model: &mut Model<P>, found: &Found) -> TraceForm {
    let ways: Ways = model
        .plane_mut()
        .workers()
        .into_iter()
        .flat_map(|workers| workers.fast_tables())
        .map(|(table, lut)| (table, if lut.is_some() { "lut" } else { "shared" }))
        .collect();
    let tables = tables(model, found, &ways);
    let processed = &found.processed;
    let (outcome, reason) = match processed.outcome {
        Outcome::Forwarded => ("forwarded", None),
        Outcome::Consumed => ("consumed", None),
        Outcome::Dropped(reason) => ("dropped", Some(reason)),
    };
    let (fast, fast_why) = why::fast(model, found, &ways);
    let (express, express_why) = why::express(model, found);
    let (port_cache, port_cache_why) = why::port_cache(model, found, express);
    let packet_in = |p: &model::trace::ControllerCopy| PacketInForm {
        table: p.table,
        reason: match p.reason {
            PacketInReason::NoMatch => "no_match",
            PacketInReason::Action => "action",
            PacketInReason::InvalidTtl => "invalid_ttl",
        }
        .into(),
        bytes: p.bytes.len().min(p.max_len.into()),
    };
    let output = |copy: &model::trace::Sent| Output {
        port: copy.port,
        name: model.port(copy.port).map(|port| port.desc.name.clone()).unwrap_or_default(),
        queue: copy.queue,
        changes: found.changes(&found.frame, &copy.bytes).iter().map(change).collect(),
        hex: hexadecimal::format(&copy.bytes),
    };
    TraceForm {
        in_port: found.in_port,
        packet: describe(found.in_port, &found.frame),
        hex: hexadecimal::format(&found.frame),
        version: found.version,
        tables,
        groups: groups(model, found),
        outputs: processed.sent.iter().map(output).collect(),
        packet_ins: processed.packet_ins.iter().map(packet_in).collect(),
        low_latency: processed.low_latency,
        normal_from: found.normal_from(),
        fast,
        fast_why,
        express,
        express_why,
        port_cache,
        port_cache_why,
        outcome: outcome.into(),
        reason: reason.map(|reason| reason.name().to_owned()),
        why: why::outcome(model, found),
        copies_dropped: processed
            .copy_drops
            .iter()
            .take(COPY_DROPS)
            .map(|reason| format!("{}: {}", reason.name(), why::dropped(model, found, *reason)))
            .collect(),
        notes: why::notes(model, found),
    }
}

fn tables<P: TracedPlane>(model: &mut Model<P>, found: &Found, ways: &Ways) -> Vec<TableForm> {
    let ends = found.steps.iter().skip(1).map(Some).chain([None]);
    let table = |(step, next): (&TraceStep, Option<&TraceStep>)| TableForm {
        table: step.table,
        engine: model.plane_mut().workers().map_or(DEVICE, |workers| workers.engine(step.table).0).to_owned(),
        entries: step.entries,
        index: step.index,
        rule: step.entry.as_deref().map(rule),
        values: step.values.iter().map(|(field, value)| field_value(*field, *value)).collect(),
        near: step
            .near_misses
            .iter()
            .map(|near| NearMissForm {
                rule: rule(&near.entry),
                excluded: near.excluded.iter().map(excluded).collect(),
            })
            .collect(),
        looked_at: step.looked_at,
        changes: next.map(|next| changes(found, step, next)).unwrap_or_default(),
        metadata: format!("{:#x}", step.metadata),
        way: (*ways.get(&step.table).unwrap_or(&"closed")).to_owned(),
    };
    found.steps.iter().zip(ends).map(table).collect()
}

/// Returns the changes of the packet and its registers between two lookups.
fn changes(found: &Found, before: &TraceStep, after: &TraceStep) -> Vec<String> {
    let mut changes: Vec<String> = found.changes(&before.frame, &after.frame).iter().map(change).collect();
    for (name, old, new) in
        [("metadata", before.metadata, after.metadata), ("tun_id", before.tunnel_id, after.tunnel_id)]
    {
        if old != new {
            changes.push(format!("{name}: {old:#x} -> {new:#x}"));
        }
    }
    changes
}

fn groups<D: DataPlane>(model: &Model<D>, found: &Found) -> Vec<GroupForm> {
    let kind = |id| {
        Some(match model.group_numbered(id)?.kind {
            GroupType::All => "all",
            GroupType::Select => "select",
            GroupType::Indirect => "indirect",
            GroupType::FastFailover => "fast_failover",
        })
    };
    let used = found.processed.groups.iter();
    used.map(|(group, buckets)| GroupForm {
        group: *group,
        kind: kind(*group).unwrap_or_default().to_owned(),
        buckets: buckets.clone(),
    })
    .collect()
}

/// Formats an entry in flow syntax.
#[must_use]
pub fn rule(entry: &FlowEntry) -> Rule {
    Rule {
        cookie: format!("{:#x}", entry.cookie),
        priority: entry.priority,
        low_latency: entry.low_latency,
        matching: entry.matching.to_string(),
        actions: entry.instructions.to_string(),
    }
}

/// Formats a packet in flow syntax.
#[must_use]
pub fn describe(in_port: PortNo, frame: &[u8]) -> String {
    let value = value_of(in_port, frame);
    // Omits fields that repeat others, and some fields whose value is 0 in most packets.
    let says = |field: Field, value: u128| match field {
        Field::InPhyPort | Field::Metadata | Field::TunnelId => false,
        Field::Ipv6Exthdr | Field::IpEcn | Field::VlanVid | Field::Ipv6Flabel | Field::IpDscp => value != 0,
        _ => true,
    };
    let named = Field::NAMED.iter().filter_map(|field| Some((*field, value(*field)?)));
    let named = named.filter(|(field, value)| says(*field, *value));
    match Match::unchecked_prerequisites(named.map(|(field, value)| FieldMatch::exact(field, value))) {
        Ok(matching) if !matching.is_any() => matching.to_string(),
        _ => format!("in_port={in_port}, {} bytes: too short for Ethernet", frame.len()),
    }
}

/// Formats `field=value` in flow syntax.
fn field_value(field: Field, value: u128) -> String {
    condition(FieldMatch::exact(field, value))
}

fn condition(condition: FieldMatch) -> String {
    Match::unchecked_prerequisites([condition]).map(|one| one.to_string()).unwrap_or_default()
}

fn excluded(excluded: &Excluded) -> String {
    let wanted = condition(excluded.condition);
    match excluded.value {
        Some(value) => {
            format!("wants {wanted}, the packet has {}", field_value(excluded.condition.field, value))
        }
        None => format!("wants {wanted}, the packet has no such header"),
    }
}

fn change(change: &FrameChange) -> String {
    match change {
        FrameChange::Field { field, before, after } => {
            let text = |value: &Option<u128>| {
                let text = value.map_or_else(|| "none".to_owned(), |value| field_value(*field, value));
                text.split_once('=').map_or(text.clone(), |(_, value)| value.to_owned())
            };
            format!("{field}: {} -> {}", text(before), text(after))
        }
        FrameChange::Ttl { before, after } => format!("nw_ttl: {before} -> {after}"),
        FrameChange::Bytes { at, before, after } => {
            let end = at + before.len() - 1;
            let place = if end == *at { format!("byte {at}") } else { format!("bytes {at} to {end}") };
            format!("{place}: {} -> {}", hexadecimal::format(before), hexadecimal::format(after))
        }
        FrameChange::Length { before, after } => format!("length: {before} -> {after} bytes"),
    }
}
