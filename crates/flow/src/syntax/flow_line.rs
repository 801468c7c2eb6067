// SPDX-License-Identifier: Apache-2.0
//! Parser of a flow: command word, match and settings, and actions.

use super::ParseOptions;
use super::action_list;
use super::error::{Fault, Parsed};
use super::key_names::{KEY_NAMES, Key, key};
use super::match_list::Conditions;
use super::refused::refused_key;
use super::scan::{Item, Scanner};
use super::suggest::suggestion;
use super::value::{integer, port};
use crate::validate::validate;
use crate::{FlowMod, FlowModCommand, GroupId, Match, TableId};

pub(super) fn parse<'t>(
    text: &'t str,
    default_command: FlowModCommand,
    options: ParseOptions<'_>,
) -> Parsed<'t, FlowMod> {
    let text = text.trim_ascii();
    let (command, body) = command_word(text).unwrap_or((default_command, text));
    let deletes = matches!(command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let mut flow = FlowMod { command, table: (!deletes).then_some(TableId(0)), ..FlowMod::default() };
    let mut conditions = Conditions::new();
    let mut actions = None;
    let mut scanner = Scanner::new(body);
    while let Some(item) = scanner.item()? {
        let Some(key) = key(item.key) else { return Err(unknown(&item)) };
        if key == Key::Actions {
            actions = Some(actions_text(&item, body, &mut scanner)?);
            break;
        }
        if !conditions.take(key, &item, options)? {
            take_setting(&mut flow, key, &item, options)?;
        }
    }
    flow.matching = conditions.finish(text)?;
    match actions {
        Some(actions) if deletes => {
            return Err(Fault::new(actions, "has no meaning in a delete; drop actions="));
        }
        Some(actions) => flow.instructions = action_list::parse(actions, &flow.matching, options)?,
        None if !deletes => return Err(Fault::new(text, "has no actions; add actions=..., or actions=drop")),
        None => {}
    }
    validate(&flow).map_err(|e| Fault::new(text, e.to_string()))?;
    Ok(flow)
}

pub(super) fn parse_match<'t>(text: &'t str, options: ParseOptions<'_>) -> Parsed<'t, Match> {
    let mut conditions = Conditions::new();
    let mut scanner = Scanner::new(text);
    while let Some(item) = scanner.item()? {
        let Some(key) = key(item.key) else { return Err(unknown(&item)) };
        if !conditions.take(key, &item, options)? {
            return Err(item.refuse("is not a match field"));
        }
    }
    conditions.finish(text)
}

/// Splits off the command word and returns the remaining text.
fn command_word(text: &str) -> Option<(FlowModCommand, &str)> {
    let cut =
        |text: &'_ str| -> usize { text.bytes().position(|b| b.is_ascii_whitespace()).unwrap_or(text.len()) };
    let text = match text.strip_prefix("flow") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_ascii_start(),
        _ => text,
    };
    let (word, rest) = text.split_at(cut(text));
    let command = match word {
        "add" => FlowModCommand::Add,
        "modify" => FlowModCommand::Modify,
        "modify_strict" => FlowModCommand::ModifyStrict,
        "delete" => FlowModCommand::Delete,
        "delete_strict" => FlowModCommand::DeleteStrict,
        _ => return None,
    };
    Some((command, rest))
}

/// Returns the text after `actions=`.
fn actions_text<'t>(item: &Item<'t>, body: &'t str, scanner: &mut Scanner<'t>) -> Parsed<'t, &'t str> {
    match item.value {
        Some(value) => {
            // The actions extend to the end of the line, beyond the item.
            let offset = value.as_ptr() as usize - body.as_ptr() as usize;
            Ok(body.get(offset..).unwrap_or_default())
        }
        None if item.arguments.is_none() && scanner.late_equals() => Ok(scanner.rest()),
        None => Err(item.refuse("has no list; write actions=output:2 or actions=drop")),
    }
}

fn unknown<'t>(item: &Item<'t>) -> Fault<'t> {
    if let Some(problem) = refused_key(item.key) {
        return item.refuse(problem);
    }
    item.refuse(format!(
        "is not a match field or flow setting{}",
        suggestion(item.key, KEY_NAMES.iter().copied())
    ))
}

fn take_setting<'t>(
    flow: &mut FlowMod,
    key: Key,
    item: &Item<'t>,
    options: ParseOptions<'_>,
) -> Parsed<'t, ()> {
    let deletes = matches!(flow.command, FlowModCommand::Delete | FlowModCommand::DeleteStrict);
    let value = || item.value.ok_or_else(|| item.refuse(format!("has no value; write {}=VALUE", item.key)));
    let flag = || match item.argument() {
        None => Ok(true),
        Some(_) => Err(item.refuse(format!("takes no value; write {} alone", item.key))),
    };
    match key {
        Key::Table => {
            let text = value()?;
            flow.table = match text {
                "all" | "ALL" | "*" => None,
                _ => Some(TableId(integer(text)?)).filter(|table| *table != TableId(u8::MAX)),
            };
        }
        Key::Cookie => take_cookie(flow, item, value()?)?,
        Key::Statistic => {}
        Key::Priority if flow.command == FlowModCommand::Delete => {
            return Err(item.refuse("has no meaning in a non-strict delete; use delete_strict"));
        }
        Key::Priority => flow.priority = integer(value()?)?,
        Key::OutPort if deletes => {
            flow.out_port = Some(port(value()?, options)?).filter(|&p| p != crate::port_no::ANY);
        }
        Key::OutGroup if deletes => flow.out_group = group(value()?)?,
        Key::OutPort | Key::OutGroup => {
            return Err(item.refuse("selects entries to delete; use it in delete and delete_strict only"));
        }
        _ if deletes => return Err(item.refuse("has no meaning in a delete; leave it out")),
        Key::IdleTimeout => flow.idle_timeout_s = integer(value()?)?,
        Key::HardTimeout => flow.hard_timeout_s = integer(value()?)?,
        Key::SendFlowRem => flow.flags.send_flow_removed = flag()?,
        Key::CheckOverlap => flow.flags.check_overlap = flag()?,
        Key::ResetCounts => flow.flags.reset_counts = flag()?,
        Key::NoPacketCounts => flow.flags.no_packet_counts = flag()?,
        Key::NoByteCounts => flow.flags.no_byte_counts = flag()?,
        Key::LowLatency => {
            flow.low_latency = match item.argument() {
                None | Some("true") => Some(true),
                Some("false") => Some(false),
                // A dump prints this value for entries that the switch has learned to be low-latency.
                Some("learned") => None,
                Some(other) => return Err(Fault::new(other, "is neither true nor false")),
            };
        }
        // Other keys are conditions, or the caller handles them.
        _ => return Err(item.refuse("is not a flow setting")),
    }
    Ok(())
}

fn group(text: &str) -> Parsed<'_, Option<GroupId>> {
    if text.eq_ignore_ascii_case("any") {
        return Ok(None);
    }
    Ok(Some(integer(text)?).filter(|&g| g != u32::MAX).map(GroupId))
}

/// Parses a cookie. In an add, `V` is the entry's cookie. In a modify or delete, `V/M` selects entries.
fn take_cookie<'t>(flow: &mut FlowMod, item: &Item<'t>, text: &'t str) -> Parsed<'t, ()> {
    let (value, mask) = text.split_once('/').map_or((text, None), |(v, m)| (v, Some(m)));
    flow.cookie = integer(value)?;
    match (mask, flow.command) {
        (None, FlowModCommand::Add) => {}
        (Some(_), FlowModCommand::Add) => {
            return Err(item.refuse("has a mask, but an add sets the whole cookie; leave the mask out"));
        }
        (Some("-1"), _) => flow.cookie_mask = u64::MAX,
        (Some(mask), _) => flow.cookie_mask = integer(mask)?,
        (None, _) => {
            return Err(item.refuse(
                "has no mask; write cookie=VALUE/MASK (all bits: /-1) to select entries by cookie, because OpenFlow 1.3 cannot change the cookie of an entry",
            ));
        }
    }
    Ok(())
}
