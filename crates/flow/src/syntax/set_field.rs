// SPDX-License-Identifier: Apache-2.0
//! Parser of the set-field action: `set_field:VALUE[/MASK]->FIELD`.

use super::ParseOptions;
use super::error::{Fault, Parsed};
use super::key_names::{KEY_NAMES, field_named};
use super::match_list::slice;
use super::refused::refused_key;
use super::scan::{Item, Scanner};
use super::suggest::suggestion;
use super::value::{field_value, integer};
use crate::action::SetField;
use crate::{Action, Field};

pub(super) fn parse<'t>(item: &Item<'t>, options: ParseOptions<'_>) -> Parsed<'t, Action> {
    let form = "write set_field:VALUE->FIELD";
    let text = item.argument().ok_or_else(|| item.refuse(format!("has no argument; {form}")))?;
    let (value_text, target) =
        text.split_once("->").ok_or_else(|| item.refuse(format!("names no field; {form}")))?;
    let field = match target {
        "nw_ttl" | "ip_ttl" => return Ok(Action::SetNwTtl(integer(value_text)?)),
        "mpls_ttl" => return Ok(Action::SetMplsTtl(integer(value_text)?)),
        _ if target.starts_with("slice") => slice_target(target)?,
        _ => field_named(target).ok_or_else(|| unknown(target))?,
    };
    if field == Field::Metadata {
        return Err(Fault::new(
            target,
            "is not set by set_field in OpenFlow 1.3; use write_metadata:VALUE/MASK",
        ));
    }
    if !field.settable() {
        return Err(Fault::new(target, "cannot be written; the switch derives it from the packet"));
    }
    let (value, mask) = field_value(field, value_text, options)?;
    if mask == 0 {
        return Err(Fault::new(value_text, "writes no bit; give a value, and a mask other than 0"));
    }
    Ok(Action::SetField(SetField { field, value, mask }))
}

pub(super) fn slice_target(target: &str) -> Parsed<'_, Field> {
    match Scanner::new(target).item()? {
        Some(item) if item.key == "slice" && item.value.is_none() => slice(target, item.arguments),
        _ => Err(unknown(target)),
    }
}

fn unknown(target: &str) -> Fault<'_> {
    let hint = match target {
        "tp_src" | "tp_dst" => {
            "; name the protocol's field: tcp_src, tcp_dst, udp_src, udp_dst, sctp_src, sctp_dst".to_owned()
        }
        "dl_vlan" | "vlan_tci" => {
            "; write vlan_vid (with 4096 added, because a tag is present) and vlan_pcp".to_owned()
        }
        "nw_tos" => "; write ip_dscp (the ToS byte divided by 4) and nw_ecn".to_owned(),
        _ => match refused_key(target) {
            Some(problem) => return Fault::new(target, problem),
            None => suggestion(target, KEY_NAMES.iter().copied().filter(|n| field_named(n).is_some())),
        },
    };
    Fault::new(target, format!("is not a field that can be set{hint}"))
}
