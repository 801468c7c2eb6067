// SPDX-License-Identifier: Apache-2.0
//! Edits: actions of programs without a parser.

use super::action_names::Name;
use super::arguments::Arguments;
use super::error::{Fault, Parsed};
use super::scan::Item;
use super::set_field::slice_target;
use super::value::{integer, number_to};
use crate::{Action, BitRange, CutOrigin, Edit, Field, Slice, SliceBase};
use std::fmt::{self, Display, Formatter};

/// Parses an edit, whose name is `name`.
pub(super) fn parse<'t>(name: Name, item: &Item<'t>) -> Parsed<'t, Action> {
    let edit = match name {
        Name::MoveBase => move_base(item)?,
        Name::AddField => add_field(item)?,
        Name::DeleteField => {
            let mut arguments =
                Arguments::new(item.whole, item.arguments, "write delete_field(offset,length)")?;
            let range = range(&mut arguments, ["offset", "length"])?;
            arguments.end()?;
            Edit::DeleteField(range)
        }
        Name::CutFront => cut_front(item)?,
        Name::ModifyField => modify_field(item)?,
        Name::CopyField => copy_field(item)?,
        Name::CalculateChecksum => {
            let form = "write calculate_checksum(offset,length,start,covered) in bits";
            let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
            let checksum = range(&mut arguments, ["offset", "length"])?;
            let covered = range(&mut arguments, ["start", "covered"])?;
            arguments.end()?;
            Edit::CalculateChecksum { checksum, covered }
        }
        _ => return Err(item.refuse("is not an edit")),
    };
    edit.check().map_err(|problem| item.refuse(format!("is refused: {problem}")))?;
    Ok(edit.into())
}

fn range<'t>(arguments: &mut Arguments<'t>, names: [&str; 2]) -> Parsed<'t, BitRange> {
    let offset_bits = integer(arguments.positional(names[0])?)?;
    let length_bits = integer(arguments.positional(names[1])?)?;
    Ok(BitRange { offset_bits, length_bits })
}

/// Parses `move_base(BYTES)`.
fn move_base<'t>(item: &Item<'t>) -> Parsed<'t, Edit> {
    let mut arguments = Arguments::new(item.whole, item.arguments, "write move_base(bytes)")?;
    let bytes = arguments.positional("bytes")?;
    arguments.end()?;
    match signed(bytes)?.try_into() {
        Ok(bytes) => Ok(Edit::MoveBase(bytes)),
        Err(_) => Err(Fault::new(bytes, "moves the base too far")),
    }
}

/// Parses `cut_front(ORIGIN,BYTES)`.
fn cut_front<'t>(item: &Item<'t>) -> Parsed<'t, Edit> {
    let form = "write cut_front(packet,bytes) or cut_front(base,bytes)";
    let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
    let name = arguments.positional("origin")?;
    let bytes = integer(arguments.positional("bytes")?)?;
    arguments.end()?;
    let base = SliceBase::ALL.into_iter().find(|base| base.name() == name);
    match base.and_then(CutOrigin::of) {
        Some(origin) => Ok(Edit::CutFront { origin, bytes }),
        None => Err(Fault::new(name, "is not an origin; write packet or base")),
    }
}

/// Parses `add_field(offset,length,value)`.
fn add_field<'t>(item: &Item<'t>) -> Parsed<'t, Edit> {
    let form = "write add_field(offset,length,value) with offset and length in bits";
    let mut arguments = Arguments::new(item.whole, item.arguments, form)?;
    let range = range(&mut arguments, ["offset", "length"])?;
    let value = number_to(arguments.positional("value")?, u128::MAX)?;
    arguments.end()?;
    Ok(Edit::AddField { range, value })
}

/// Parses `modify_field:NUMBER->slice(base,offset,length)`.
fn modify_field<'t>(item: &Item<'t>) -> Parsed<'t, Edit> {
    let (number, target) = arrow(item, "write modify_field:NUMBER->slice(base,offset,length)")?;
    let increment = signed(number)?;
    let slice = slice_of(target)?;
    Ok(Edit::ModifyField { slice, increment })
}

/// Parses `copy_field:slice(..)->slice(..)`.
fn copy_field<'t>(item: &Item<'t>) -> Parsed<'t, Edit> {
    let (from, to) = arrow(item, "write copy_field:slice(base,offset,length)->slice(base,offset,length)")?;
    Ok(Edit::CopyField { from: slice_of(from)?, to: slice_of(to)? })
}

fn arrow<'t>(item: &Item<'t>, form: &str) -> Parsed<'t, (&'t str, &'t str)> {
    let parts = item.value.and_then(|text| text.split_once("->"));
    parts.ok_or_else(|| item.refuse(format!("has no `->`; {form}")))
}

fn slice_of(text: &str) -> Parsed<'_, Slice> {
    match text.starts_with("slice").then(|| slice_target(text)).transpose()? {
        Some(Field::Slice(slice)) => Ok(slice),
        _ => Err(Fault::new(text, "is not a slice; write slice(base,offset,length)")),
    }
}

/// Parses a number that may have a sign.
fn signed(text: &str) -> Parsed<'_, i32> {
    let (digits, sign) = match text.strip_prefix('-') {
        Some(digits) => (digits, -1),
        None => (text, 1),
    };
    let most = i64::from(i32::MAX) + i64::from(sign < 0);
    let number = number_to(digits, most.unsigned_abs().into())?;
    Ok((number as i64 * sign) as i32)
}

impl Display for Edit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let pair = |range: &BitRange| format!("{},{}", range.offset_bits, range.length_bits);
        match self {
            Self::MoveBase(bytes) => write!(f, "{name}({bytes})"),
            Self::AddField { range, value } => write!(f, "{name}({},0x{value:x})", pair(range)),
            Self::DeleteField(range) => write!(f, "{name}({})", pair(range)),
            Self::CutFront { origin, bytes } => write!(f, "{name}({},{bytes})", origin.slice_base().name()),
            Self::ModifyField { slice, increment } => {
                write!(f, "{name}:{increment}->{}", Field::Slice(*slice))
            }
            Self::CopyField { from, to } => {
                write!(f, "{name}:{}->{}", Field::Slice(*from), Field::Slice(*to))
            }
            Self::CalculateChecksum { checksum, covered } => {
                write!(f, "{name}({},{})", pair(checksum), pair(covered))
            }
        }
    }
}
