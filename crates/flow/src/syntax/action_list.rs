// SPDX-License-Identifier: Apache-2.0
//! Parser of the actions and instructions after `actions=`.

use super::ParseOptions;
use super::action_names::{ACTION_NAMES, Name, Stage, name};
use super::arguments::Arguments;
use super::error::{Fault, Parsed};
use super::old_actions::Headers;
use super::refused::refused_action;
use super::scan::{Item, Scanner};
use super::suggest::suggestion;
use super::value::{integer, mac, number_to, port};
use super::{edits, old_actions, own_actions, set_field};
use crate::action::WHOLE_PACKET;
use crate::{Action, Field, GroupId, Instructions, Match, MeterId, Next, QueueId, TableId, port_no};

pub(super) fn parse<'t>(
    text: &'t str,
    matching: &Match,
    options: ParseOptions<'_>,
) -> Parsed<'t, Instructions> {
    let mut done = Instructions::default();
    let mut headers = Headers::of(matching);
    let mut scanner = Scanner::new(text);
    let mut stage = None;
    let mut dropping = false;
    while let Some(item) = scanner.item()? {
        let name = find_name(&item, options)?;
        if dropping || (name == Name::Drop && stage.is_some()) {
            return Err(item.refuse(
                "is combined with drop; write drop alone, because it excludes other actions and instructions",
            ));
        }
        check_order(&mut stage, name.stage(), &item)?;
        match name {
            Name::Drop => dropping = true,
            Name::Meter => done.meter = Some(MeterId(integer(argument(&item)?)?)),
            Name::ClearActions => {
                no_argument(&item)?;
                done.clear = true;
            }
            Name::WriteActions => done.write = parse_list(list_text(&item)?, &mut headers, options)?,
            Name::ApplyActions => done.apply.extend(parse_list(list_text(&item)?, &mut headers, options)?),
            Name::WriteMetadata => {
                let text = argument(&item)?;
                let (value, mask) = text.split_once('/').map_or((text, None), |(v, m)| (v, Some(m)));
                done.metadata = Some((integer(value)?, mask.map_or(Ok(u64::MAX), integer)?));
            }
            Name::GotoTable => done.next = Some(Next::Table(TableId(integer(argument(&item)?)?))),
            Name::GotoDirect => done.next = Some(own_actions::goto_direct(&item)?),
            action => parse_action(action, &item, &mut done.apply, &mut headers, options)?,
        }
    }
    Ok(done)
}

/// Checks that instructions are in order, each at most once.
fn check_order<'t>(stage: &mut Option<Stage>, next: Stage, item: &Item<'t>) -> Parsed<'t, ()> {
    if let Some(last) = *stage
        && (next < last || (next == last && next != Stage::Apply))
    {
        return Err(item.refuse(if next == last {
            format!("is a second {}; give it once", next.text())
        } else {
            format!(
                "comes after {}; the order is meter, the actions, clear_actions, write_actions, write_metadata, \
                 goto_table",
                last.text()
            )
        }));
    }
    *stage = Some(next);
    Ok(())
}

/// Parses a list that may contain actions only.
pub(super) fn parse_list<'t>(
    text: &'t str,
    headers: &mut Headers,
    options: ParseOptions<'_>,
) -> Parsed<'t, Vec<Action>> {
    let mut list = Vec::new();
    let mut scanner = Scanner::new(text);
    let mut count = 0;
    let mut dropping = false;
    while let Some(item) = scanner.item()? {
        let name = find_name(&item, options)?;
        if dropping || (name == Name::Drop && count > 0) {
            return Err(item.refuse("is combined with drop; write drop alone"));
        }
        count += 1;
        if name == Name::Drop {
            dropping = true;
        } else if name.stage() != Stage::Apply || name == Name::ApplyActions {
            return Err(item.refuse("is an instruction; write it outside the list"));
        } else {
            parse_action(name, &item, &mut list, headers, options)?;
        }
    }
    Ok(list)
}

/// Length in bytes of the longest name that is looked up.
const NAME_BYTES: usize = 24;

/// Returns the action or instruction that an item names, ignoring case. A port alone is an output.
fn find_name<'t>(item: &Item<'t>, options: ParseOptions<'_>) -> Parsed<'t, Name> {
    let key = item.key;
    let mut buffer = [0; NAME_BYTES];
    let lower = match buffer.get_mut(..key.len()) {
        Some(lower) => {
            lower.copy_from_slice(key.as_bytes());
            lower.make_ascii_lowercase();
            std::str::from_utf8(lower).unwrap_or(key)
        }
        None => key,
    };
    if let Some(found) = name(lower) {
        return Ok(found);
    }
    if lower == "apply" || lower == "write" {
        return Err(item.refuse(format!("is not an action; write {lower}_actions(...)")));
    }
    let bare = item.argument().is_none();
    if let Some(problem) = refused_action(lower) {
        return Err(item.refuse(problem));
    }
    if bare && port(key, options).is_ok() {
        return Ok(Name::Output);
    }
    Err(item.refuse(format!(
        "is not an action, instruction or port{}",
        suggestion(key, ACTION_NAMES.iter().copied())
    )))
}

pub(super) fn argument<'t>(item: &Item<'t>) -> Parsed<'t, &'t str> {
    item.argument()
        .filter(|a| !a.is_empty())
        .ok_or_else(|| item.refuse(format!("has no argument; write {}:VALUE", item.key)))
}

fn no_argument<'t>(item: &Item<'t>) -> Parsed<'t, ()> {
    match item.argument() {
        None | Some("") => Ok(()),
        Some(_) => Err(item.refuse(format!("takes no argument; write {} alone", item.key))),
    }
}

fn list_text<'t>(item: &Item<'t>) -> Parsed<'t, &'t str> {
    item.arguments
        .filter(|_| item.value.is_none())
        .ok_or_else(|| item.refuse(format!("has no list; write {}(action,action,...)", item.key)))
}

fn parse_action<'t>(
    name: Name,
    item: &Item<'t>,
    list: &mut Vec<Action>,
    headers: &mut Headers,
    options: ParseOptions<'_>,
) -> Parsed<'t, ()> {
    let ethertype = || number_to(argument(item)?, 0xffff).map(|n| n as u16);
    let without = |action: Action| no_argument(item).map(|()| action);
    let action = match name {
        Name::Output => output(item, options)?,
        Name::Controller => controller(item)?,
        Name::Enqueue => {
            let (port, queue) = old_actions::enqueue(item, options)?;
            list.push(Action::SetQueue(queue));
            Action::output(port)
        }
        Name::Group => Action::Group(GroupId(integer(argument(item)?)?)),
        Name::SetQueue => Action::SetQueue(QueueId(integer(argument(item)?)?)),
        Name::ModDlSrc | Name::ModDlDst => {
            let text = argument(item)?;
            let value =
                mac(text).ok_or_else(|| Fault::new(text, "is not a MAC address; write 00:11:22:33:44:55"))?;
            Action::set(if name == Name::ModDlSrc { Field::EthSrc } else { Field::EthDst }, value)
        }
        Name::PushVlan => Action::PushVlan(ethertype()?),
        Name::PopVlan => without(Action::PopVlan)?,
        Name::PushMpls => Action::PushMpls(ethertype()?),
        Name::PopMpls => Action::PopMpls(ethertype()?),
        Name::PushPbb => Action::PushPbb(ethertype()?),
        Name::PopPbb => without(Action::PopPbb)?,
        Name::SetMplsLabel => Action::set(Field::MplsLabel, number_to(argument(item)?, 0xf_ffff)?),
        Name::SetMplsTc => Action::set(Field::MplsTc, number_to(argument(item)?, 7)?),
        Name::SetMplsTtl => Action::SetMplsTtl(integer(argument(item)?)?),
        Name::DecMplsTtl => without(Action::DecMplsTtl)?,
        Name::DecTtl if item.argument().is_some_and(|a| !a.is_empty()) => {
            return Err(
                item.refuse("names controllers, which is Open vSwitch's extension; write dec_ttl alone")
            );
        }
        Name::DecTtl => Action::DecNwTtl,
        Name::ModNwTtl => Action::SetNwTtl(integer(argument(item)?)?),
        Name::CopyTtlIn => without(Action::CopyTtlIn)?,
        Name::CopyTtlOut => without(Action::CopyTtlOut)?,
        Name::SetField => set_field::parse(item, options)?,
        Name::SetTunnel => Action::set(Field::TunnelId, number_to(argument(item)?, u128::from(u64::MAX))?),
        Name::PushKey => own_actions::push_key(item)?,
        Name::PushPolka => own_actions::push_polka(item)?,
        Name::PopKey => without(Action::PopKey)?,
        Name::PushTf => Action::PushTf(own_actions::tf_header(item, 32, 13)?),
        Name::PushTfWide => Action::PushTfWide(own_actions::tf_header(item, 29, 16)?),
        Name::PopTf => without(Action::PopTf)?,
        Name::MoveBase
        | Name::AddField
        | Name::DeleteField
        | Name::CutFront
        | Name::ModifyField
        | Name::CopyField
        | Name::CalculateChecksum => edits::parse(name, item)?,
        old => return old_actions::parse(old, item, list, headers),
    };
    headers.note(&action);
    list.push(action);
    Ok(())
}

/// Parses `output:PORT`, `PORT` or `output(port=PORT,max_len=N)`.
fn output<'t>(item: &Item<'t>, options: ParseOptions<'_>) -> Parsed<'t, Action> {
    let mut target = item.argument();
    let mut max_len = None;
    if target.is_none() && !item.key.eq_ignore_ascii_case("output") {
        target = Some(item.key);
    }
    let text = target.ok_or_else(|| item.refuse("has no port; write output:PORT"))?;
    let mut port_text = text;
    if item.arguments.is_some() && text.contains('=') {
        let form = "write output(port=controller,max_len=N)";
        let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
        port_text = arguments.positional("port")?;
        if let Some((name, value)) = arguments.named()? {
            if name != "max_len" {
                return Err(Fault::new(name, format!("is not known here; {form}")));
            }
            max_len = Some((value, number_to(value, u128::from(WHOLE_PACKET))? as u16));
        }
        arguments.end()?;
    }
    let number = match refused_action(&port_text.to_ascii_lowercase()) {
        Some(problem) => return Err(Fault::new(port_text, problem)),
        None => port(port_text, options)?,
    };
    match max_len {
        Some((at, len)) if number != port_no::CONTROLLER && len != WHOLE_PACKET => Err(Fault::new(
            at,
            "truncates packets to a port, which OpenFlow 1.3 cannot do; max_len is for the controller",
        )),
        Some((_, max_len)) if number == port_no::CONTROLLER => Ok(Action::Output { port: number, max_len }),
        _ => Ok(Action::output(number)),
    }
}

/// Parses `controller`, `controller:MAX_LEN` or `controller(max_len=N)`.
fn controller<'t>(item: &Item<'t>) -> Parsed<'t, Action> {
    let whole = Action::output(port_no::CONTROLLER);
    let length = |text| {
        let max_len = number_to(text, u128::from(WHOLE_PACKET))? as u16;
        Ok(Action::Output { port: port_no::CONTROLLER, max_len })
    };
    let Some(text) = item.argument().filter(|a| !a.is_empty()) else { return Ok(whole) };
    if item.value.is_some() || !text.contains('=') {
        return length(text);
    }
    let mut arguments = Arguments::new(item.whole, item.arguments, "write controller(max_len=N)")?;
    let mut action = whole;
    while let Some((name, value)) = arguments.named()? {
        match (name, value) {
            ("max_len", value) => action = length(value)?,
            ("reason", "action") | ("id", "0" | "0x0") => {}
            ("reason" | "id" | "userdata" | "meter_id" | "pause", _) => {
                return Err(Fault::new(
                    name,
                    "is Open vSwitch's extension; OpenFlow 1.3 gives max_len only, write controller(max_len=N)",
                ));
            }
            _ => return Err(Fault::new(name, "is unknown; write controller(max_len=N)")),
        }
    }
    Ok(action)
}
