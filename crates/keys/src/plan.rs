// SPDX-License-Identifier: Apache-2.0
//! The plan of the express path's keys. One plan serves all tables that packets can reach from table 0.
//!
//! A key has the bytes with an examined bit, the ingress port, and the presence bits of the headers and
//! slices that tables need. It omits the metadata register and the tunnel ID, which are 0 in an arriving
//! packet.
//!
//! A program may depend on bits that no table examines, such as the TTL or the presence of a header. Such
//! bits are not in the key, so they are checked at each hit of a record.

use crate::arrival::on_arrival;
use crate::conditions::{FIRST_SLICE, Facts, SLICES_MAX, SliceEnd};
use crate::depth::depth_of;
use crate::key::{ExpressKey, KeyReader};
use crate::layout::{self, KeyFit, Layout};
use crate::row::{Rewritten, RowLayout, RuleRow, TTL_BYTES};
use actions::{HeaderChange, Shift};
use flow::{Field, FieldMatch, Match, PortNo, SliceBase};
use wire::ethernet::ETHERNET_BYTES;
use wire::layers::header;

/// Number of a plan. New plans of a data plane have higher numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanVersion(pub u64);

/// Greatest changes of a packet after which its key still determines all bits that a later table examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permitted {
    /// Greatest change of headers.
    pub change: HeaderChange,
    /// Greatest shift, by entries that change nothing more than MAC addresses besides.
    pub shift: Shift,
}

impl Permitted {
    /// What keys without examined bits permit.
    pub const WITHOUT_BITS: Self = Self { change: HeaderChange::Fields, shift: Shift::Nothing };
}

/// Plan of the express path's keys.
#[derive(Clone, Debug)]
pub struct ExpressPlan {
    version: PlanVersion,
    /// Examined bits of each field, ordered by field.
    examined: Vec<(Field, u128)>,
    port_bytes: usize,
    length_bytes: usize,
    permitted: Permitted,
    /// Builds the keys, or `None` if they are too long.
    reader: Option<KeyReader>,
    /// Layout of rules for comparison with keys, or `None` if keys are too long.
    rows: Option<RowLayout>,
}

/// Returns the number of bytes in which keys hold the number of the ingress port. `highest` is the highest
/// port number.
#[must_use]
pub fn port_bytes(highest: PortNo) -> usize {
    if highest.0 <= u32::from(u16::MAX) { 2 } else { 4 }
}

impl ExpressPlan {
    /// Makes a plan for tables that examine these bits of each field. `highest_port` is the highest port
    /// number.
    #[must_use]
    pub fn new(version: PlanVersion, mut examined: Vec<(Field, u128)>, highest_port: PortNo) -> Self {
        examined.iter_mut().for_each(|(field, _)| *field = on_arrival(*field));
        examined.sort_unstable_by_key(|(field, _)| *field);
        examined.dedup_by(|(field, mask), (kept, all)| {
            *all |= if field == kept { *mask } else { 0 };
            field == kept
        });
        let conditions: Vec<FieldMatch> =
            examined.iter().map(|&(field, mask)| FieldMatch { field, value: 0, mask }).collect();
        let headers = conditions.iter().fold(0, |headers, c| headers | c.field.location().needs);
        let mut slices: Vec<SliceEnd> = conditions.iter().filter_map(SliceEnd::of).collect();
        slices.sort_unstable();
        slices.dedup();
        let fact_of = |end: SliceEnd| match slices.binary_search(&end) {
            Ok(at) if at < SLICES_MAX => 1 << (FIRST_SLICE as usize + at),
            _ => 0,
        };
        let runs = layout::runs_of(&conditions, headers, fact_of);
        let presence = presence_facts(headers, slices.len());
        let port_bytes = port_bytes(highest_port);
        let layout = Layout::new(runs, port_bytes, presence.len().div_ceil(8));
        let length_bytes = layout.length_bytes;
        let is_short = KeyFit::of_length(length_bytes) != KeyFit::TooLong && slices.len() <= SLICES_MAX;
        let depth = examined.iter().map(|(field, _)| depth_of(*field)).max().unwrap_or_default();
        let reader = is_short.then(|| KeyReader::new(&layout, depth, presence.clone(), slices.clone()));
        let rows = is_short.then(|| RowLayout::new(layout, presence, slices, headers));
        let permitted_change = examined.iter().map(|(field, _)| permitted_by(*field)).min();
        let change = permitted_change.unwrap_or(HeaderChange::Fields);
        let permitted = Permitted { change, shift: Shift::Nothing };
        Self { version, examined, port_bytes, length_bytes, permitted, reader, rows }
    }

    /// Returns the plan for paths on which entries shift packets up to this level. Its examined bits must
    /// include the bits that tables examine in each [`crate::View`] of such paths.
    #[must_use]
    pub fn permitting(mut self, shift: Shift) -> Self {
        self.permitted.shift = shift;
        self
    }

    /// Returns the greatest changes of a packet after which its key still determines all bits that a later
    /// table examines.
    #[must_use]
    pub fn permitted(&self) -> Permitted {
        self.permitted
    }

    /// Returns whether packets with this key may match the rule after earlier entries have rewritten the
    /// parts in `rewritten`. The result is false only if no such packet matches.
    #[must_use]
    pub fn may_match(&self, matching: &Match, key: &ExpressKey, rewritten: Rewritten) -> bool {
        let mut row = Vec::new();
        self.append_row(matching, &mut row);
        row.is_empty() || RuleRow::of(&row).may_match(key.words(), rewritten)
    }

    /// Returns the length of a rule's row in words, or `None` if keys are too long.
    #[must_use]
    pub fn row_words(&self) -> Option<usize> {
        self.rows.as_ref().map(RowLayout::row_words)
    }

    /// Appends a rule's row, in the layout of the keys. Appends nothing if keys are too long.
    pub fn append_row(&self, matching: &Match, to: &mut Vec<u64>) {
        self.rows.iter().for_each(|rows| rows.append(matching, to));
    }

    /// Returns whether both plans give equal keys and permit the same. Their numbers may differ.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let has_equal_keys = self.examined == other.examined && self.port_bytes == other.port_bytes;
        has_equal_keys && self.permitted == other.permitted
    }

    /// Returns whether keys of both plans hold the ingress port in the same number of bytes.
    #[must_use]
    pub fn has_ports_of(&self, other: &Self) -> bool {
        self.port_bytes == other.port_bytes
    }

    /// Returns the plan's number.
    #[must_use]
    pub fn version(&self) -> PlanVersion {
        self.version
    }

    /// Returns the examined bits of each field, ordered by field.
    #[must_use]
    pub fn examined(&self) -> &[(Field, u128)] {
        &self.examined
    }

    /// Returns the length of a key in bytes, or an upper bound if the key is too long.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Returns the length of a key in words.
    #[must_use]
    pub fn key_words(&self) -> usize {
        self.length_bytes.div_ceil(size_of::<u64>())
    }

    /// Returns the number of examined bits, without presence bits and ingress port.
    #[must_use]
    pub fn examined_bits(&self) -> u32 {
        self.examined.iter().map(|(_, mask)| mask.count_ones()).sum()
    }

    /// Returns the kind of record into which the keys fit.
    #[must_use]
    pub fn fit(&self) -> KeyFit {
        self.reader.as_ref().map_or(KeyFit::TooLong, |_| KeyFit::of_length(self.length_bytes))
    }

    /// Returns the reader that builds the keys, or `None` if they are too long.
    #[must_use]
    pub fn reader(&self) -> Option<&KeyReader> {
        self.reader.as_ref()
    }

    /// Returns whether the key determines these bits of a field.
    #[must_use]
    pub fn holds(&self, field: Field, mask: u128) -> bool {
        let field = on_arrival(field);
        let found = self.examined.binary_search_by_key(&field, |(field, _)| *field);
        mask == 0 || found.is_ok_and(|at| mask & !self.examined[at].1 == 0)
    }
}

/// Returns, for each presence bit, the position of its fact in [`Facts`]. IP has no presence bit if IPv4 and
/// IPv6 have one.
fn presence_facts(headers: u32, slices: usize) -> Vec<u8> {
    let both = header::IPV4 | header::IPV6;
    let shown = if headers & both == both { headers & !header::IP } else { headers };
    let of_headers = (0..FIRST_SLICE as u8).filter(|bit| Facts::from(shown) >> bit & 1 != 0);
    of_headers.chain((0..slices.min(SLICES_MAX) as u8).map(|slice| FIRST_SLICE as u8 + slice)).collect()
}

/// Returns the greatest change of a packet after which the field still consists of bits of the arriving
/// packet and of constants of entries.
///
/// A slice may have a part of a TTL or checksum, which depends on bits outside keys. A slice may also have a
/// written field in some packets only, because the field's position depends on the IP version and on the
/// header length.
fn permitted_by(field: Field) -> HeaderChange {
    let Field::Slice(slice) = field else { return HeaderChange::Fields };
    let (first, end) = (slice.offset_bits / 8, (slice.offset_bits + slice.length_bits).div_ceil(8));
    match slice.base {
        SliceBase::Packet if usize::from(end) > ETHERNET_BYTES => HeaderChange::Macs,
        SliceBase::L3 if first < TTL_BYTES.end && end > TTL_BYTES.start => HeaderChange::Macs,
        SliceBase::L3 | SliceBase::L4 => HeaderChange::Ttl,
        SliceBase::Packet | SliceBase::Metadata => HeaderChange::Fields,
        // A plan has slices of the arriving packet only.
        SliceBase::Moving => HeaderChange::Nothing,
    }
}
