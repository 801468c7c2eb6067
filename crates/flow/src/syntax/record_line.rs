// SPDX-License-Identifier: Apache-2.0
//! Groups and meters as lines of a flow file, in the syntax of `ovs-ofctl add-group` and `add-meter`.

use super::ParseOptions;
use super::action_list::parse_list;
use super::error::{Fault, Parsed};
use super::flow_line;
use super::old_actions::Headers;
use super::scan::{Item, Scanner};
use super::suggest::suggestion;
use super::value::{integer, port};
use crate::group::{Bucket, Group, GroupType};
use crate::meter::{Band, Meter, MeterBand};
use crate::validate::validate_action_set;
use crate::{FlowMod, FlowModCommand, GroupId, Match, MeterId, PortNo, port_no};

/// Command of a group or meter (a record) in a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordCommand {
    /// Add the record. No record with its number may exist.
    Add,
    /// Add the record, or replace the record with the same number.
    AddOrModify,
    /// Replace the record with this number.
    Modify,
    /// Delete the record with this number, and the entries that use it.
    Delete,
    /// Delete all groups or all meters, and the entries that use them.
    DeleteAll,
}

/// A line of a flow file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileLine {
    /// A flow.
    Flow(FlowMod),
    /// A group. A delete uses only its number.
    Group(RecordCommand, Group),
    /// A meter. A delete uses only its number.
    Meter(RecordCommand, Meter),
}

impl FileLine {
    /// Returns the real ports that the line matches, watches or sends to.
    pub fn ports(&self) -> impl Iterator<Item = PortNo> + '_ {
        let (flow, group) = match self {
            Self::Flow(flow) => (Some(flow), None),
            Self::Group(_, group) => (None, Some(group)),
            Self::Meter(..) => (None, None),
        };
        let of_group = group.into_iter().flat_map(Group::ports);
        flow.into_iter().flat_map(FlowMod::ports).chain(of_group)
    }
}

/// Parses a line from which the comment was removed.
pub(super) fn parse<'t>(text: &'t str, options: ParseOptions<'_>) -> Parsed<'t, FileLine> {
    let trimmed = text.trim_ascii();
    if let Some(rest) = after_word(trimmed, "group") {
        let (command, rest) = command(rest);
        return group(trimmed, command, rest, options)
            .map(|(command, group)| FileLine::Group(command, group));
    }
    if let Some(rest) = after_word(trimmed, "meter") {
        let (command, rest) = command(rest);
        return meter(trimmed, command, rest).map(|(command, meter)| FileLine::Meter(command, meter));
    }
    flow_line::parse(text, FlowModCommand::Add, options).map(FileLine::Flow)
}

/// Returns the text after `word` and white space, if `text` begins with them.
fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?;
    rest.starts_with([' ', '\t']).then(|| rest.trim_ascii_start())
}

fn command(text: &str) -> (RecordCommand, &str) {
    let words = [
        ("add_or_mod", RecordCommand::AddOrModify),
        ("add", RecordCommand::Add),
        ("modify", RecordCommand::Modify),
        ("delete", RecordCommand::Delete),
    ];
    let found = words.into_iter().find_map(|(word, command)| Some((command, after_word(text, word)?)));
    found.unwrap_or((RecordCommand::Add, text))
}

/// Returns the offset of the next `bucket=` that follows a separator, and the offset of its value.
fn next_bucket(text: &str) -> Option<(usize, usize)> {
    let mut depth = 0_u32;
    let mut separated = true;
    for (at, byte) in text.bytes().enumerate() {
        let rest = text.get(at..).unwrap_or_default();
        let word = rest.strip_prefix("buckets").or_else(|| rest.strip_prefix("bucket"));
        if let (0, true, Some(value)) = (depth, separated, word.and_then(|after| after.strip_prefix('='))) {
            return Some((at, text.len() - value.len()));
        }
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        separated = matches!(byte, b',' | b' ' | b'\t');
    }
    None
}

fn group<'t>(
    whole: &'t str,
    mut command: RecordCommand,
    text: &'t str,
    options: ParseOptions<'_>,
) -> Parsed<'t, (RecordCommand, Group)> {
    let mut next = next_bucket(text);
    let settings = text.get(..next.map_or(text.len(), |(from, _)| from)).unwrap_or_default();
    let (mut id, mut kind) = (None, None);
    let mut scanner = Scanner::new(settings);
    while let Some(item) = scanner.item()? {
        match item.key {
            "group_id" if command == RecordCommand::Delete && value(&item)?.eq_ignore_ascii_case("all") => {
                command = RecordCommand::DeleteAll;
            }
            "group_id" => id = Some(GroupId(integer(value(&item)?)?)),
            "type" => kind = Some(group_type(&item)?),
            "selection_method" | "selection_method_param" | "fields" => {
                return Err(
                    item.refuse("is Open vSwitch's extension; a select group chooses by a hash of the flow")
                );
            }
            other => {
                let near = suggestion(other, ["group_id", "type", "bucket"]);
                return Err(item.refuse(format!("is not a setting of a group{near}")));
            }
        }
    }
    let mut buckets = Vec::new();
    let mut rest = text;
    while let Some((_, from)) = next {
        rest = rest.get(from..).unwrap_or_default();
        next = next_bucket(rest);
        let end = next.map_or(rest.len(), |(at, _)| at);
        buckets.push(bucket(rest.get(..end).unwrap_or_default(), kind, options)?);
    }
    let deletes = matches!(command, RecordCommand::Delete | RecordCommand::DeleteAll);
    if deletes && (kind.is_some() || !buckets.is_empty()) {
        return Err(Fault::new(whole, "names more than the group; a delete takes group_id alone"));
    }
    let id = match (id, command) {
        (Some(id), _) => id,
        (None, RecordCommand::DeleteAll) => GroupId(0),
        (None, _) => return Err(Fault::new(whole, "has no number; add group_id=1, for instance")),
    };
    let kind = match kind {
        Some(kind) => kind,
        None if deletes => GroupType::All,
        None => return Err(Fault::new(whole, "has no type; add type=all, select, indirect or ff")),
    };
    Ok((command, Group { id, kind, buckets }))
}

fn value<'t>(item: &Item<'t>) -> Parsed<'t, &'t str> {
    let value = item.value.filter(|value| !value.is_empty() && item.arguments.is_none());
    value.ok_or_else(|| item.refuse(format!("has no value; write {}=VALUE", item.key)))
}

fn group_type<'t>(item: &Item<'t>) -> Parsed<'t, GroupType> {
    let text = value(item)?;
    match text {
        "all" => Ok(GroupType::All),
        "select" => Ok(GroupType::Select),
        "indirect" => Ok(GroupType::Indirect),
        "ff" | "fast_failover" => Ok(GroupType::FastFailover),
        _ => Err(Fault::new(text, "is not a group type; write all, select, indirect or ff")),
    }
}

/// Parses a bucket: its settings, then its actions, with or without `actions=`.
fn bucket<'t>(text: &'t str, kind: Option<GroupType>, options: ParseOptions<'_>) -> Parsed<'t, Bucket> {
    let weight = u16::from(kind == Some(GroupType::Select));
    let mut bucket = Bucket { weight, ..Bucket::default() };
    let mut scanner = Scanner::new(text);
    let mut actions = None;
    while let Some(item) = scanner.item()? {
        match item.key {
            "weight" => bucket.weight = integer(value(&item)?)?,
            "watch_port" => {
                bucket.watch_port = Some(port(value(&item)?, options)?).filter(|port| *port != port_no::ANY);
            }
            "watch_group" if value(&item)?.eq_ignore_ascii_case("any") => bucket.watch_group = None,
            "watch_group" => bucket.watch_group = Some(GroupId(integer(value(&item)?)?)),
            // OpenFlow 1.3 has no bucket numbers.
            "bucket_id" => {}
            "actions" | "action" => {
                let value = item.value.unwrap_or_default();
                actions = Some(from_there(text, value));
                break;
            }
            _ => {
                actions = Some(from_there(text, item.whole));
                break;
            }
        }
    }
    let Some(actions) = actions else {
        return Err(Fault::new(text, "has no actions; add actions=output:2, or actions=drop"));
    };
    bucket.actions = parse_list(actions, &mut Headers::of(&Match::any()), options)?;
    validate_action_set(&bucket.actions).map_err(|error| Fault::new(actions, error.to_string()))?;
    Ok(bucket)
}

/// Returns `text` from the start of its slice `part`.
fn from_there<'t>(text: &'t str, part: &'t str) -> &'t str {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    text.get(offset..).unwrap_or_default()
}

fn meter<'t>(
    whole: &'t str,
    mut command: RecordCommand,
    text: &'t str,
) -> Parsed<'t, (RecordCommand, Meter)> {
    let mut meter = Meter { id: MeterId(0), packets: false, stats: false, burst: false, bands: Vec::new() };
    let (mut has_id, mut settings) = (false, 0);
    let mut scanner = Scanner::new(text);
    while let Some(item) = scanner.item()? {
        settings += 1;
        match item.key {
            "meter" if command == RecordCommand::Delete && value(&item)?.eq_ignore_ascii_case("all") => {
                command = RecordCommand::DeleteAll;
                has_id = true;
            }
            "meter" => {
                meter.id = MeterId(integer(value(&item)?)?);
                has_id = true;
            }
            "kbps" => meter.packets = false,
            "pktps" => meter.packets = true,
            "burst" => meter.burst = true,
            "stats" => meter.stats = true,
            "bands" | "band" => {
                meter.bands = bands(from_there(text, item.value.unwrap_or_default()))?;
                break;
            }
            other => {
                let known = ["meter", "kbps", "pktps", "burst", "stats", "bands"];
                let near = suggestion(other, known);
                return Err(item.refuse(format!("is not a setting of a meter{near}")));
            }
        }
    }
    if !has_id {
        return Err(Fault::new(whole, "has no number; add meter=1, for instance"));
    }
    let deletes = matches!(command, RecordCommand::Delete | RecordCommand::DeleteAll);
    if deletes && settings > 1 {
        return Err(Fault::new(whole, "names more than the meter; a delete takes meter=N alone"));
    }
    Ok((command, meter))
}

/// Parses bands. Each band begins with its type.
fn bands(text: &str) -> Parsed<'_, Vec<MeterBand>> {
    let mut bands: Vec<(&str, MeterBand, Option<u8>)> = Vec::new();
    let mut scanner = Scanner::new(text);
    while let Some(item) = scanner.item()? {
        if item.key == "type" {
            let band = match value(&item)? {
                "drop" => Band::Drop,
                "dscp_remark" => Band::DscpRemark { precedence_level: 0 },
                other => return Err(Fault::new(other, "is not a band type; write drop or dscp_remark")),
            };
            bands.push((item.whole, MeterBand { band, rate: 0, burst: 0 }, None));
            continue;
        }
        let Some((_, band, level)) = bands.last_mut() else {
            return Err(
                item.refuse("comes before the type of the band; begin with type=drop or type=dscp_remark")
            );
        };
        match item.key {
            "rate" => band.rate = integer(value(&item)?)?,
            "burst_size" | "burst" => band.burst = integer(value(&item)?)?,
            "prec_level" => *level = Some(integer(value(&item)?)?),
            other => {
                let near = suggestion(other, ["type", "rate", "burst_size", "prec_level"]);
                return Err(item.refuse(format!("is not a setting of a band{near}")));
            }
        }
    }
    bands.into_iter().map(finished).collect()
}

fn finished<'t>((text, mut band, level): (&'t str, MeterBand, Option<u8>)) -> Parsed<'t, MeterBand> {
    if band.rate == 0 {
        return Err(Fault::new(text, "has no rate above 0; add rate=1000, for instance"));
    }
    match (&mut band.band, level) {
        (Band::DscpRemark { precedence_level }, Some(level)) => *precedence_level = level,
        (Band::DscpRemark { .. }, None) => {
            return Err(Fault::new(text, "has no drop precedence; add prec_level=1 or 2"));
        }
        (Band::Drop, Some(_)) => return Err(Fault::new(text, "has prec_level, which is for dscp_remark")),
        (Band::Drop, None) => {}
    }
    Ok(band)
}

#[cfg(test)]
mod tests;
