// SPDX-License-Identifier: Apache-2.0
//! Actions that only Shunt has: stateless headers, and `goto_direct`.

use super::arguments::Arguments;
use super::error::{Fault, Parsed};
use super::scan::Item;
use super::value::{integer, number_to};
use crate::action::{KeyHeader, PolkaHeader, TfHeader};
use crate::{Action, Next, TableId};

/// Length of the longest key in bytes.
const KEY_BYTES: usize = 32;

/// Parses `goto_direct(table,index)`.
pub(super) fn goto_direct<'t>(item: &Item<'t>) -> Parsed<'t, Next> {
    let mut arguments = Arguments::new(item.whole, item.arguments, "write goto_direct(table,index)")?;
    let table = TableId(integer(arguments.positional("table")?)?);
    let index = integer(arguments.positional("index")?)?;
    arguments.end()?;
    Ok(Next::Direct { table, index })
}

/// Parses `push_key(key=0x..,width=64|128|192|256,hops=N,epoch=0|1)`, with arguments in any order and `epoch`
/// 0 by default.
pub(super) fn push_key<'t>(item: &Item<'t>) -> Parsed<'t, Action> {
    let form = "write push_key(key=0x..,width=64|128|192|256,hops=N,epoch=0|1)";
    let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
    let (mut key, mut width, mut hops, mut epoch) = (None, None, None, None);
    while let Some((name, value)) = arguments.named()? {
        let repeated = match name {
            "key" => key.replace(value).is_some(),
            "width" => width.replace((value, number_to(value, 256)?)).is_some(),
            "hops" => hops.replace(integer(value)?).is_some(),
            "epoch" => epoch.replace(number_to(value, 1)? as u8).is_some(),
            _ => return Err(Fault::new(name, format!("is not known here; {form}"))),
        };
        if repeated {
            return Err(Fault::new(name, format!("is given twice; {form}")));
        }
    }
    let lacks = |what| item.refuse(format!("lacks {what}; {form}"));
    let (width_text, width) = width.ok_or_else(|| lacks("width"))?;
    if !matches!(width, 64 | 128 | 192 | 256) {
        return Err(Fault::new(width_text, "is not a key width; use 64, 128, 192 or 256 bits"));
    }
    let key = key_bytes(key.ok_or_else(|| lacks("key"))?, width as usize / 8)?;
    Ok(Action::PushKey(KeyHeader {
        key,
        hops: hops.ok_or_else(|| lacks("hops"))?,
        epoch: epoch.unwrap_or(0),
    }))
}

/// Parses `push_polka(key=0x..,ttl=N)`, with arguments in any order.
pub(super) fn push_polka<'t>(item: &Item<'t>) -> Parsed<'t, Action> {
    let form = "write push_polka(key=0x..,ttl=N)";
    let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
    let (mut key, mut ttl) = (None, None);
    while let Some((name, value)) = arguments.named()? {
        let repeated = match name {
            "key" => key.replace(key_bytes(value, 16)?).is_some(),
            "ttl" => ttl.replace(integer(value)?).is_some(),
            _ => return Err(Fault::new(name, format!("is not known here; {form}"))),
        };
        if repeated {
            return Err(Fault::new(name, format!("is given twice; {form}")));
        }
    }
    let lacks = |what| item.refuse(format!("lacks {what}; {form}"));
    let key = key.ok_or_else(|| lacks("key"))?;
    Ok(Action::PushPolka(PolkaHeader {
        key: key.iter().fold(0, |key, byte| key << 8 | u128::from(*byte)),
        ttl: ttl.ok_or_else(|| lacks("ttl"))?,
    }))
}

/// Parses a hexadecimal key, right-aligned in `width_bytes` bytes.
fn key_bytes(text: &str, width_bytes: usize) -> Parsed<'_, Box<[u8]>> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_hexdigit()))
        .ok_or_else(|| Fault::new(text, "is not a key; write 0x and hexadecimal digits"))?;
    let mut bytes = [0; KEY_BYTES];
    for (place, digit) in digits.bytes().rev().enumerate() {
        let nibble = char::from(digit).to_digit(16).unwrap_or(0) as u8;
        if nibble == 0 {
            continue;
        }
        if place / 2 >= width_bytes {
            return Err(Fault::new(text, format!("does not fit the width of {} bits", 8 * width_bytes)));
        }
        bytes[KEY_BYTES - 1 - place / 2] |= nibble << (4 * (place % 2));
    }
    Ok(bytes[KEY_BYTES - width_bytes..].into())
}

/// Parses `push_tf(qid,up,down)` and `push_tf_wide(qid,up,down)`, with gates of the given widths.
pub(super) fn tf_header<'t>(item: &Item<'t>, up_bits: u32, down_bits: u32) -> Parsed<'t, TfHeader> {
    let form =
        "write push_tf(qid,up,down): 3, 32 and 13 bits, or push_tf_wide(qid,up,down): 3, 29 and 16 bits";
    let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
    let header = TfHeader {
        qid: number_to(arguments.positional("qid")?, 7)? as u8,
        up: number_to(arguments.positional("up")?, (1 << up_bits) - 1)? as u32,
        down: number_to(arguments.positional("down")?, (1 << down_bits) - 1)? as u16,
    };
    arguments.end()?;
    Ok(header)
}
