// SPDX-License-Identifier: Apache-2.0
//! The layout of a key: runs of examined bytes, and their positions.
//!
//! Runs that never occur in the same packet share bytes of the key, such as IPv4 and IPv6 addresses. The
//! presence bits show which of these runs a packet has. Likewise, the EtherType shares bytes with the headers
//! that imply it, and the protocol shares bytes with the ports.

use crate::conditions::{Condition, Facts, PROTO_GIVERS, SliceEnd, TYPE_GIVERS};
use flow::{FieldBase, FieldMatch, ext};

/// Maximum length of a key in a record of one cache line.
pub const ONE_LINE_BYTES: usize = 46;

/// Maximum length of a key in a record of two cache lines. Longer keys have no records.
pub const TWO_LINES_BYTES: usize = 110;

/// Length of a word of a key in bytes.
const WORD_BYTES: usize = size_of::<u64>();

/// Number of words to hash for a key of more than [`VECTOR_WORDS`] words.
pub const LONG_WORDS: usize = TWO_LINES_BYTES.div_ceil(WORD_BYTES);

/// Maximum length in words of a key that one byte shuffle builds.
pub const VECTOR_WORDS: usize = 64 / WORD_BYTES;

/// Maximum length in words of a key that fits into a record of one cache line.
pub const SHORT_WORDS: usize = ONE_LINE_BYTES.div_ceil(WORD_BYTES);

/// Maximum total length of the runs for which shared positions are searched. Longer keys do not fit into
/// records in any case.
const SEARCHED_BYTES_MAX: usize = 4 * TWO_LINES_BYTES;

/// Number of bytes of the extended header before the part that the parser writes. In an arriving packet, they
/// are the ingress port, which is in every key, and zeros.
pub(crate) const UNPARSED_BYTES: u16 = ext::ETH_TYPE_BIT / 8;

/// Consecutive bytes of a packet, each with at least one examined bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub base: FieldBase,
    /// Offset of the first byte from the base.
    pub byte: u16,
    /// Condition under which a packet has these bytes.
    pub when: Condition,
    /// Examined bits of each byte.
    pub masks: Vec<u8>,
}

/// Returns the bytes that the conditions examine, as runs. `slices` returns the fact for a slice end.
/// `headers` have presence bits in the key.
pub(crate) fn runs_of(
    conditions: &[FieldMatch],
    headers: u32,
    slices: impl Fn(SliceEnd) -> Facts,
) -> Vec<Run> {
    let mut bytes: Vec<ExaminedByte> = Vec::new();
    for condition in conditions {
        let location = condition.field.location();
        let end = SliceEnd::of(condition);
        for bit in 0..location.length_bits {
            if condition.mask >> (location.length_bits - 1 - bit) & 1 == 0 {
                continue;
            }
            let at = location.offset_bits + bit;
            let byte = at / 8;
            if location.base == FieldBase::Ext && byte < UNPARSED_BYTES {
                continue;
            }
            let when = match location.base {
                FieldBase::Ext => Condition { needs: 0, unless: implied_by(byte, headers) },
                _ => Condition { needs: end.map_or(location.needs.into(), &slices), unless: 0 },
            };
            bytes.push(((location.base, when, byte), 0x80 >> (at % 8)));
        }
    }
    bytes.sort_unstable();
    bytes.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        kept.1 |= if is_same { later.1 } else { 0 };
        is_same
    });
    omit_repeated(&mut bytes);
    let mut runs: Vec<Run> = Vec::new();
    for ((base, when, byte), mask) in bytes {
        match runs.last_mut() {
            Some(run)
                if (run.base, run.when) == (base, when)
                    && usize::from(run.byte) + run.masks.len() == usize::from(byte) =>
            {
                run.masks.push(mask);
            }
            _ => runs.push(Run { base, byte, when, masks: vec![mask] }),
        }
    }
    runs
}

/// Bits that are examined under a condition: base and condition, offset of the byte, and its bits.
type ExaminedByte = ((FieldBase, Condition, u16), u8);

/// Removes the bits that a key also has under a weaker condition, such as those of a longer slice that a
/// shorter slice examines, too. A packet with the longer slice has the shorter one.
fn omit_repeated(bytes: &mut Vec<ExaminedByte>) {
    let place = |((base, _, byte), _): &ExaminedByte| (*base, *byte);
    let mut by_place = bytes.clone();
    by_place.sort_by_key(place);
    bytes.retain_mut(|examined| {
        let at = place(examined);
        let first = by_place.partition_point(|other| place(other) < at);
        let ((base, when, _), mask) = examined;
        for ((_, other, _), held) in by_place[first..].iter().take_while(|other| place(other) == at) {
            *mask &= if other != when && other.is_implied_by(*when, *base) { !held } else { u8::MAX };
        }
        *mask != 0
    });
}

/// Returns those of `headers` that imply the value of a byte of the extended header.
pub(crate) fn implied_by(byte: u16, headers: u32) -> Facts {
    const TYPE_FROM: u16 = ext::ETH_TYPE_BIT / 8;
    const TYPE_TO: u16 = TYPE_FROM + 1;
    const PROTO: u16 = ext::IP_PROTO_BIT / 8;
    let givers = match byte {
        TYPE_FROM | TYPE_TO => TYPE_GIVERS,
        PROTO => PROTO_GIVERS,
        _ => 0,
    };
    Facts::from(headers & givers)
}

/// Kind of record into which a plan's keys fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFit {
    /// A record of one cache line.
    OneLine,
    /// A record of two cache lines.
    TwoLines,
    /// No record. Packets do not use the express path.
    TooLong,
}

impl KeyFit {
    /// Returns the kind of record for keys of this length.
    pub(crate) fn of_length(bytes: usize) -> Self {
        match bytes {
            bytes if bytes <= ONE_LINE_BYTES => Self::OneLine,
            bytes if bytes <= TWO_LINES_BYTES => Self::TwoLines,
            _ => Self::TooLong,
        }
    }

    /// Returns the kind's name as commands print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneLine => "one line",
            Self::TwoLines => "two lines",
            Self::TooLong => "too long",
        }
    }
}

/// Positions of the parts of a key that are not bytes of the packet: the ingress port and the presence bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyEnds {
    /// Offset of the ingress port in bytes. The least significant byte of the port number comes first.
    pub port_at: usize,
    /// Length of the ingress port in bytes.
    pub port_bytes: usize,
    /// Offset of the presence bits in bytes.
    pub presence_at: usize,
}

/// Positions of the parts of a key.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Each run, and its offset in the key in bytes.
    pub placed: Vec<(Run, usize)>,
    pub ends: KeyEnds,
    /// Length of the key in bytes.
    pub length_bytes: usize,
}

impl Layout {
    /// Places the runs, the ingress port and the presence bits.
    ///
    /// In an aligned layout, the runs of most words are as far from each other as in the packet, so one load
    /// reads such a word. The packed layout often needs several loads for a word, but has fewer words. An
    /// additional word costs about as much as second loads of three words.
    pub fn new(runs: Vec<Run>, port_bytes: usize, presence_bytes: usize) -> Self {
        if runs.iter().map(|run| run.masks.len()).sum::<usize>() > SEARCHED_BYTES_MAX {
            return Self::in_order(runs, port_bytes, presence_bytes);
        }
        let aligned = Self::of_groups(aligned_groups(&runs), port_bytes, presence_bytes);
        let packed =
            Self::of_groups(runs.into_iter().map(Group::of_run).collect(), port_bytes, presence_bytes);
        let [words, packed_words] = [&aligned, &packed].map(|layout| hashed_words(layout.length_bytes));
        let fit = |layout: &Self| KeyFit::of_length(layout.length_bytes);
        let is_worth_it = fit(&aligned) == fit(&packed) && words <= packed_words + packed_words / 3;
        if is_worth_it { aligned } else { packed }
    }

    /// Places the groups by their length, so that short groups fill the gaps between long groups.
    fn of_groups(mut groups: Vec<Group>, port_bytes: usize, presence_bytes: usize) -> Self {
        groups.sort_by_key(|group| (group.step == 1, std::cmp::Reverse(group.length())));
        let (mut occupied, mut placed) = (Occupied::default(), Vec::new());
        for group in groups {
            let at = occupied.place(&group);
            placed.extend(group.runs.into_iter().map(|(run, offset)| (run, at + offset)));
        }
        let [port_at, presence_at] =
            [port_bytes, presence_bytes].map(|bytes| occupied.place(&Group::in_all_packets(bytes)));
        let ends = KeyEnds { port_at, port_bytes, presence_at };
        Self { placed, ends, length_bytes: occupied.0.len() }
    }

    /// Places the runs one after another.
    fn in_order(runs: Vec<Run>, port_bytes: usize, presence_bytes: usize) -> Self {
        let mut port_at = 0;
        let placed = runs.into_iter().map(|run| {
            let at = port_at;
            port_at += run.masks.len();
            (run, at)
        });
        let placed = placed.collect();
        let presence_at = port_at + port_bytes;
        let ends = KeyEnds { port_at, port_bytes, presence_at };
        Self { placed, ends, length_bytes: presence_at + presence_bytes }
    }
}

/// Returns the number of words to hash for a key of this length.
pub(crate) fn hashed_words(length_bytes: usize) -> usize {
    match length_bytes.div_ceil(WORD_BYTES) {
        0 => 1,
        words @ 1..=SHORT_WORDS => words,
        words if words <= VECTOR_WORDS => VECTOR_WORDS,
        _ => LONG_WORDS,
    }
}

/// Runs that keep their distance from each other.
#[derive(Clone, Debug)]
struct Group {
    /// Each run, and its offset from the start of the group in bytes.
    runs: Vec<(Run, usize)>,
    /// The group's position in the key is a multiple of this number of bytes.
    step: usize,
}

impl Group {
    /// Returns the group of one run, at any position.
    fn of_run(run: Run) -> Self {
        Self { runs: vec![(run, 0)], step: 1 }
    }

    /// Returns the group of bytes that the keys of all packets have.
    fn in_all_packets(bytes: usize) -> Self {
        let (base, when) = (FieldBase::Ext, Condition::default());
        Self::of_run(Run { base, byte: 0, when, masks: vec![0xff; bytes] })
    }

    /// Returns whether a run begins in one of the group's words, and no packet has other runs of the group in
    /// the same bytes.
    fn can_add(&self, run: &Run, offset: usize) -> bool {
        let excludes = |(other, at): &(Run, usize)| {
            let is_apart = offset >= at + other.masks.len() || *at >= offset + run.masks.len();
            is_apart || other.when.excludes(run.when)
        };
        offset < self.length().max(1).next_multiple_of(WORD_BYTES) && self.runs.iter().all(excludes)
    }

    /// Returns the length in bytes.
    fn length(&self) -> usize {
        self.runs.iter().map(|(run, offset)| offset + run.masks.len()).max().unwrap_or_default()
    }
}

/// Groups runs that one load for each word can read. Each group begins at a word of the key. A run of the
/// extended header is a group of its own, because most loads omit it.
fn aligned_groups(runs: &[Run]) -> Vec<Group> {
    let (parsed, mut waiting): (Vec<_>, Vec<_>) =
        runs.iter().cloned().partition(|run| run.base == FieldBase::Ext);
    let mut groups: Vec<_> = parsed.into_iter().map(Group::of_run).collect();
    waiting.sort_by_key(|run| (run.base, run.byte));
    while let Some(first) = waiting.first() {
        let (base, start) = (first.base, first.byte);
        let mut group = Group { runs: Vec::new(), step: WORD_BYTES };
        waiting.retain(|run| {
            let offset = usize::from(run.byte.saturating_sub(start));
            let joins = run.base == base && group.can_add(run, offset);
            if joins {
                group.runs.push((run.clone(), offset));
            }
            !joins
        });
        groups.push(group);
    }
    groups
}

/// For each byte of a key, the conditions of the runs that occupy it.
#[derive(Debug, Default)]
struct Occupied(Vec<Vec<Condition>>);

impl Occupied {
    /// Places a group at the first position at which no packet has another run in the same bytes. Returns the
    /// position.
    fn place(&mut self, group: &Group) -> usize {
        let fits = |at: &usize| {
            group.runs.iter().all(|(run, offset)| {
                let taken = self.0.iter().skip(at + offset).take(run.masks.len()).flatten();
                taken.into_iter().all(|user| user.excludes(run.when))
            })
        };
        let end = self.0.len().next_multiple_of(group.step);
        let at = (0..end).step_by(group.step).find(fits).unwrap_or(end);
        for (run, offset) in &group.runs {
            let bytes = at + offset..at + offset + run.masks.len();
            if self.0.len() < bytes.end {
                self.0.resize(bytes.end, Vec::new());
            }
            self.0[bytes].iter_mut().for_each(|users| users.push(run.when));
        }
        at
    }
}
