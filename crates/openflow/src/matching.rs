// SPDX-License-Identifier: Apache-2.0
//! `ofp_match` (section 7.2.2): type 16 bits, length 16 bits without padding, OXM fields, zeros to a multiple
//! of 8 bytes. Fields are accepted in any order and written in the order of their numbers.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError, ErrorCode};
use crate::oxm::{self, Tlv};
use flow::{FreeValue, Match, MatchError};
use std::ops::Range;

/// Type of a match that consists of OXM fields (OFPMT_OXM).
const OXM: u16 = 1;

/// Length of the type and the length of a match in bytes.
const HEAD: usize = 4;

/// Maximum number of conditions for which memory is reserved before they are read.
const CONDITIONS_RESERVED: usize = 16;

/// Decodes a match and checks its prerequisites.
pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Match, DecodeError> {
    let made = decode_unchecked(r)?;
    match made.check_prerequisites() {
        Ok(()) => Ok(made),
        Err(problem) => refuse(&problem),
    }
}

/// Decodes the match of a packet-in, without checking prerequisites.
pub(crate) fn decode_unchecked(r: &mut Reader<'_>) -> Result<Match, DecodeError> {
    let kind = r.u16()?;
    let length = usize::from(r.u16()?);
    if kind != OXM {
        return error::MATCH_BAD_TYPE
            .says(format!("match type {kind}; OpenFlow 1.3 matches have type 1 (OXM)"));
    }
    if length < HEAD {
        return error::MATCH_BAD_LEN
            .says(format!("the match has {length} bytes; its header alone has {HEAD}"));
    }
    let mut fields = r.part(length - HEAD, "the match", error::MATCH_BAD_LEN)?;
    // Missing padding is reported as a wrong length of the match.
    r.part(length.next_multiple_of(8) - length, "the match's padding", error::MATCH_BAD_LEN)?;
    let mut index = None;
    // A condition with its head has at least 5 bytes. Most matches have few conditions.
    let mut conditions = Vec::with_capacity((fields.remaining() / 5).min(CONDITIONS_RESERVED));
    let mut seen = 0u64;
    while !fields.is_empty() {
        match oxm::decode(&mut fields, oxm::IN_MATCH)? {
            Tlv::Field { condition, .. } => {
                // Duplicates are detected here, because wildcarded fields are not part of the match below.
                let bit = condition.field.oxm().map_or(0, |number| 1 << number);
                if seen & bit != 0 {
                    return refuse(&MatchError::Duplicate(condition.field.to_string()));
                }
                seen |= bit;
                conditions.push(condition);
            }
            Tlv::Index(number) => {
                if index.replace(number).is_some() {
                    return refuse(&MatchError::Duplicate("index".into()));
                }
            }
        }
    }
    match index {
        Some(number) if conditions.is_empty() => Ok(Match::at_index(number)),
        Some(number) => refuse(&MatchError::IndexWithFields(number)),
        None => Match::unchecked_prerequisites(conditions).or_else(|problem| refuse(&problem)),
    }
}

/// Decodes matches. It is faster than [`decode`] if most matches differ from the match before them only in
/// values that need no check.
#[derive(Debug, Default)]
pub(crate) struct MatchDecoder {
    /// The last match that was decoded by [`decode`], with its padding.
    bytes: Vec<u8>,
    decoded: Match,
    /// Where values may differ: their positions in `bytes` and in `decoded`, in ascending order of the
    /// former.
    values: Vec<(Range<usize>, FreeValue)>,
}

impl MatchDecoder {
    /// Decodes a match like [`decode`].
    pub fn decode(&mut self, r: &mut Reader<'_>) -> Result<Match, DecodeError> {
        if let Some(bytes) = r.peek(self.bytes.len()).filter(|bytes| self.differs_only_in_values(bytes))
            && let Some(made) =
                self.decoded.with_values(self.values.iter().map(|(at, to)| (to, &bytes[at.clone()])))
        {
            r.skip(bytes.len())?;
            return Ok(made);
        }
        let whole = r.clone();
        let made = decode(r)?;
        self.learn(whole.peek(whole.remaining() - r.remaining()).unwrap_or_default(), &made);
        Ok(made)
    }

    fn differs_only_in_values(&self, bytes: &[u8]) -> bool {
        let mut from = 0;
        for (value, _) in &self.values {
            if bytes[from..value.start] != self.bytes[from..value.start] {
                return false;
            }
            from = value.end;
        }
        !bytes.is_empty() && bytes[from..] == self.bytes[from..]
    }

    fn learn(&mut self, bytes: &[u8], made: &Match) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.decoded.clone_from(made);
        self.values.clear();
        for (field, to) in made.free_values() {
            if let Some(start) = oxm::exact_value(bytes, HEAD, field, to.bytes()) {
                self.values.push((start..start + to.bytes(), to));
            }
        }
        self.values.sort_unstable_by_key(|(at, _)| at.start);
    }
}

fn refuse<T>(problem: &MatchError) -> Result<T, DecodeError> {
    code_of(problem).says(problem.to_string())
}

/// Returns the error code that OpenFlow 1.3 defines for a refused match.
#[must_use]
pub fn code_of(problem: &MatchError) -> ErrorCode {
    match problem {
        MatchError::Duplicate(_) => error::MATCH_DUP_FIELD,
        MatchError::ValueTooLarge(..) => error::MATCH_BAD_VALUE,
        MatchError::ValueOutsideMask(..) | MatchError::IndexWithFields(_) => error::MATCH_BAD_WILDCARDS,
        MatchError::MaskNotAllowed(..) => error::MATCH_BAD_MASK,
        MatchError::Prerequisite(..) => error::MATCH_BAD_PREREQ,
    }
}

pub(crate) fn encode(matching: &Match, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_u16(OXM);
    out.put_u16(0);
    if let Some(index) = matching.index() {
        oxm::encode_index(out, index);
    }
    for condition in matching.fields() {
        oxm::encode(out, condition.field, condition.value, condition.mask);
    }
    out.patch_length(start + 2, start);
    out.pad8(start);
}
