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

/// Number of matches that a [`MatchDecoder`] remembers, because the rules of a table often alternate between
/// a few shapes.
const REMEMBERED: usize = 2;

/// Decodes matches. It is faster than [`decode`] if most matches differ from one of the matches before them
/// only in values that need no check.
#[derive(Debug, Default)]
pub(crate) struct MatchDecoder {
    remembered: [Remembered; REMEMBERED],
    /// Which of them the next match replaces that is decoded by [`decode`].
    oldest: usize,
}

/// A match that was decoded by [`decode`].
#[derive(Debug, Default)]
struct Remembered {
    /// The encoded match with its padding.
    bytes: Vec<u8>,
    decoded: Match,
    /// Where values may differ: their positions in `bytes`, in ascending order, and in `decoded`.
    values: Vec<(Range<usize>, FreeValue)>,
}

impl MatchDecoder {
    /// Decodes a match like [`decode`].
    pub fn decode(&mut self, r: &mut Reader<'_>) -> Result<Match, DecodeError> {
        for remembered in &self.remembered {
            if let Some(bytes) = r.peek(remembered.bytes.len())
                && let Some(made) = remembered.with_values_of(bytes)
            {
                r.skip(bytes.len())?;
                return Ok(made);
            }
        }
        let whole = r.clone();
        let made = decode(r)?;
        let bytes = whole.peek(whole.remaining() - r.remaining()).unwrap_or_default();
        self.remembered[self.oldest].set(bytes, &made);
        self.oldest = (self.oldest + 1) % REMEMBERED;
        Ok(made)
    }
}

impl Remembered {
    /// Decodes a match of the same length. Returns `None` if it differs in more than values that need no
    /// check.
    fn with_values_of(&self, bytes: &[u8]) -> Option<Match> {
        let mut from = 0;
        for (value, _) in &self.values {
            if bytes.get(from..value.start)? != self.bytes.get(from..value.start)? {
                return None;
            }
            from = value.end;
        }
        if bytes.is_empty() || bytes.get(from..)? != self.bytes.get(from..)? {
            return None;
        }
        self.decoded.with_values(self.values.iter().map(|(at, to)| (to, &bytes[at.clone()])))
    }

    fn set(&mut self, bytes: &[u8], decoded: &Match) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.decoded.clone_from(decoded);
        self.values.clear();
        let Some(&[_, _, high, low]) = bytes.get(..HEAD) else { return };
        // Padding, which may have any content, follows the fields.
        let fields = bytes.get(..usize::from(u16::from_be_bytes([high, low]))).unwrap_or_default();
        for (field, to) in decoded.free_values() {
            if let Some(start) = oxm::exact_value(fields, HEAD, field, to.bytes()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Encodes TLVs as a match with this padding.
    fn encoded(tlvs: &[Vec<u8>], padding: &[u8]) -> Vec<u8> {
        let fields = tlvs.concat();
        let length = HEAD + fields.len();
        let mut bytes = [&OXM.to_be_bytes()[..], &(length as u16).to_be_bytes()].concat();
        bytes.extend(fields);
        bytes.extend(&padding[..length.next_multiple_of(8) - length]);
        bytes
    }

    fn tlv(number: u8, value: &[u8], mask: &[u8]) -> Vec<u8> {
        let length = (value.len() + mask.len()) as u8;
        [&[0x80, 0, number << 1 | u8::from(!mask.is_empty()), length], value, mask].concat()
    }

    fn decoded(bytes: &[u8]) -> Result<Match, DecodeError> {
        decode(&mut reader(bytes))
    }

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new(bytes, "the test", error::BAD_LEN)
    }

    #[test]
    fn the_padding_is_not_taken_for_a_field() {
        // A full mask gives an exact condition, whose value is not replaced. The padding looks like its TLV.
        let whole_mask = encoded(&[tlv(3, &[1; 6], &[0xff; 6])], &[0x80, 0, 6, 6]);
        let code = [tlv(5, &[8, 0], &[]), tlv(10, &[1], &[]), tlv(19, &[3], &[0xff]), tlv(20, &[5], &[])];
        let mut decoder = MatchDecoder::default();
        for last in [7, 8, 9] {
            for bytes in [&whole_mask, &encoded(&code, &[0x80, 0, 38, 1, last, 0])] {
                assert_eq!(decoder.decode(&mut reader(bytes)), decoded(bytes));
            }
        }
    }

    #[test]
    fn a_decoder_gives_the_same_matches_and_errors_and_remembers_two() {
        let mut rng = Rng::with_seed(1);
        let mut decoder = MatchDecoder::default();
        let (mut fast, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mac = |rng: &mut Rng| [2, 0, 0, 0, rng.u8(..), rng.u8(..)];
            let mask: &[u8] = [&[][..], &[0xff; 6], &[0; 6], &[0xff, 0xff, 0xff, 0, 0, 0]][rng.usize(..4)];
            let under = |value: [u8; 6]| {
                std::array::from_fn::<u8, 6, _>(|at| value[at] & mask.get(at).unwrap_or(&0xff))
            };
            let mut tlvs = vec![
                tlv(5, &[8, if rng.u8(..9) == 0 { 6 } else { 0 }], &[]),
                tlv(12, &[10, 0, rng.u8(..), rng.u8(..)], &[]),
                tlv(3, &under(mac(&mut rng)), mask),
                tlv(4, &mac(&mut rng), &[]),
            ];
            tlvs.truncate(rng.usize(2..=4));
            if rng.u8(..9) == 0 {
                rng.shuffle(&mut tlvs);
            }
            if rng.u8(..50) == 0 {
                tlvs.push(tlv(5, &[8, 0], &[]));
            }
            let padding: [u8; 8] = if rng.u8(..9) == 0 { rng.u64(..).to_ne_bytes() } else { [0; 8] };
            let bytes = encoded(&tlvs, &padding);
            // What follows the match is not read.
            let followed = [&bytes[..], &[1, 2, 3]].concat();
            let mut r = reader(&followed);
            let before = decoder.oldest;
            let ours = decoder.decode(&mut r);
            assert_eq!(ours, decoded(&bytes), "{bytes:?}");
            if ours.is_ok() {
                assert_eq!(r.remaining(), 3);
                fast += usize::from(decoder.oldest == before);
            } else {
                refused += 1;
            }
        }
        assert!(fast > 2_000 && refused > 1_000, "{fast} fast, {refused} refused");
        // Matches that alternate between two shapes are remembered.
        let mut decoder = MatchDecoder::default();
        for last in 0..10 {
            for field in [3, 4] {
                let bytes = encoded(&[tlv(field, &[2, 0, 0, 0, 0, last], &[])], &[0; 8]);
                assert_eq!(decoder.decode(&mut reader(&bytes)), decoded(&bytes));
            }
            assert_eq!(decoder.oldest, 0, "two matches are decoded anew");
        }
        assert!(decoder.remembered.iter().all(|remembered| remembered.bytes[13] == 0), "the first two");
    }
}
