// SPDX-License-Identifier: Apache-2.0
//! Configuration of stateless forwarding in Shunt's experimenter messages: docs/openflow-extensions.md,
//! section "Stateless forwarding". [`flow::stateless`] defines the meaning.

mod answer;
mod section;

pub use answer::StatelessReplies;

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::stateless::{StatelessChange, StatelessSection};

/// Flag: stateless forwarding is off, and no sections follow.
const OFF: u32 = 1;
/// Flag of replies: another message of the same reply follows.
const MORE: u32 = 2;

/// One message of a reply with the stateless configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatelessReply {
    /// Whether another message of the same reply follows.
    pub more: bool,
    /// Sections of the configuration, or `None` if stateless forwarding is off. A section that repeats a bank
    /// continues the bank.
    pub sections: Option<Vec<StatelessSection>>,
}

pub(crate) fn decode_change(r: &mut Reader<'_>) -> Result<StatelessChange, DecodeError> {
    let flags = flags(r, OFF)?;
    Ok(match sections(r, flags)? {
        None => StatelessChange::Off,
        Some(sections) => StatelessChange::Set(sections),
    })
}

pub(crate) fn decode_reply(r: &mut Reader<'_>) -> Result<StatelessReply, DecodeError> {
    let flags = flags(r, OFF | MORE)?;
    Ok(StatelessReply { more: flags & MORE != 0, sections: sections(r, flags)? })
}

fn flags(r: &mut Reader<'_>, known: u32) -> Result<u32, DecodeError> {
    let flags = r.u32()?;
    r.skip(4)?;
    if flags & !known != 0 {
        return error::BAD_EXP_TYPE
            .says(format!("flags {flags:#x} of a stateless message; this message may have {known:#x}"));
    }
    Ok(flags)
}

fn sections(r: &mut Reader<'_>, flags: u32) -> Result<Option<Vec<StatelessSection>>, DecodeError> {
    if flags & OFF == 0 {
        return section::decode_list(r).map(Some);
    }
    if !r.is_empty() {
        return error::BAD_LEN.says(format!("{} bytes of sections follow the flag 1 (off)", r.remaining()));
    }
    Ok(None)
}

pub(crate) fn encode_change(change: &StatelessChange, out: &mut Vec<u8>) {
    match change {
        StatelessChange::Off => encode(0, None, out),
        StatelessChange::Set(sections) => encode(0, Some(sections), out),
    }
}

pub(crate) fn encode_reply(reply: &StatelessReply, out: &mut Vec<u8>) {
    encode(if reply.more { MORE } else { 0 }, reply.sections.as_deref(), out);
}

fn encode(flags: u32, sections: Option<&[StatelessSection]>, out: &mut Vec<u8>) {
    out.put_u32(flags | if sections.is_none() { OFF } else { 0 });
    out.zeros(4);
    sections.unwrap_or_default().iter().for_each(|one| section::encode(one, out));
}
