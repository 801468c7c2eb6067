// SPDX-License-Identifier: Apache-2.0
//! Control side: compiles a table's rules into a base.
//!
//! A [`Job`] shares its input with the table: the rules of the last base, their tombstones, and the rules
//! added since. It may run on another thread while the rules continue to change. Later changes go to the
//! delta and the tombstones of the new base.

use crate::additions::Additions;
use crate::choice::Choice;
use crate::delta::FilterHint;
use crate::delta::bit_vectors::{Byte, Ranks};
use crate::id_map::IdMap;
use crate::row_encoder::RowEncoder;
use engines::base::{Engine, Lookup};
use engines::exact::Exact;
use engines::lpm::{Lpm, Piece};
use engines::mask::{Mask, Vain};
use engines::parallel::{PARALLEL_MIN, RunInParallel, halves};
use engines::scan::Scan;
use engines::simd::Level;
use engines::{Base, BitSet, KeyPlan, NONE};
use flow::{EntryId, FlowEntry};
use std::cmp::Reverse;
use std::sync::Arc;

/// A delta has space for 1/`HEAD_PART` as many rules as its base has. If n rules are added one by one, and
/// each full delta causes a compilation, then fewer than 5 n rules are compiled in total. In large tables,
/// the capacity is limited to [`HEAD_LARGE`] or 1/[`HEAD_LARGE_PART`] of the rules, whichever is greater,
/// because all memory of a new delta must be written.
const HEAD_PART: usize = 4;
const HEAD_LARGE: usize = 16_384;
const HEAD_LARGE_PART: usize = 16;

/// Minimum capacity of a delta in additions.
pub(crate) const HEAD_MIN: usize = 64;

/// Returns the capacity of the delta of a base with `rules` rules, in additions.
fn head_room(rules: usize) -> usize {
    (rules / HEAD_PART).clamp(HEAD_MIN, HEAD_LARGE.max(rules / HEAD_LARGE_PART))
}

/// A rule of a base, or a rule that was added after the base was compiled.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub entry: Arc<FlowEntry>,
    /// Number of the addition in the table. Among rules of equal priority, the one with the lowest number is
    /// hit.
    pub sequence: u64,
    /// ID and priority of the entry. Reading them here avoids a cache miss.
    id: EntryId,
    priority: u16,
}

impl Row {
    /// Creates the row of an added entry.
    pub fn new(entry: &Arc<FlowEntry>, sequence: u64) -> Self {
        Self { id: entry.id, priority: entry.priority, entry: Arc::clone(entry), sequence }
    }

    fn precedence(&self) -> (Reverse<u16>, u64) {
        (Reverse(self.priority), self.sequence)
    }
}

/// Function that creates an engine from rows of values and masks, best first. If it returns `None`, the
/// engine of the given choice is used.
pub type Maker = fn(Choice, &KeyPlan, &[u64], &[u64]) -> Option<Box<dyn Lookup>>;

/// Input of a compilation: the rules to be compiled.
#[derive(Debug)]
pub struct Job {
    pub(crate) plan: Arc<KeyPlan>,
    pub(crate) choice: Choice,
    pub(crate) maker: Option<Maker>,
    /// Runs parts of the compilation on another thread, if that is permitted.
    pub(crate) run_in_parallel: Option<RunInParallel>,
    /// The last base, its rules in order of precedence, and its tombstones.
    pub(crate) base: Arc<Base>,
    pub(crate) rows: Arc<Vec<Row>>,
    pub(crate) tombstones: BitSet,
    /// Active rules added since the last base was compiled, in order of addition.
    pub(crate) added: Arc<Vec<Row>>,
    /// Sequence number of the table's last rule.
    pub(crate) sequence: u64,
    /// Number of bases compiled for the table so far.
    pub(crate) compiled: usize,
}

/// Result of a job.
#[derive(Debug)]
pub struct Compiled {
    pub(crate) base: Arc<Base>,
    pub(crate) rows: Arc<Vec<Row>>,
    /// Slot of each entry, by entry ID.
    pub(crate) slots: IdMap<u32>,
    /// Control side of the new base's deltas, which are empty.
    pub(crate) additions: Additions,
    /// Hint for the filter of the deltas.
    pub(crate) hint: FilterHint,
    pub(crate) sequence: u64,
    pub(crate) compiled: usize,
}

/// IDs, priorities and slots of a base's rules, which the base needs besides its engine.
#[derive(Default)]
struct Lists {
    ids: Vec<EntryId>,
    priorities: Vec<u16>,
    /// Slot of each entry.
    slots: IdMap<u32>,
}

impl Lists {
    fn of(rows: &[Row]) -> Self {
        let mut lists = Self {
            ids: Vec::with_capacity(rows.len()),
            priorities: Vec::with_capacity(rows.len()),
            slots: IdMap::with_capacity_and_hasher(rows.len(), Default::default()),
        };
        for (slot, row) in (0..).zip(rows) {
            lists.slots.insert(row.id, slot);
            lists.ids.push(row.id);
            lists.priorities.push(row.priority);
        }
        lists
    }
}

impl Job {
    /// Compiles the rules, in time proportional to their number.
    #[must_use]
    pub fn run(mut self) -> Compiled {
        let changes = self.added.len() + self.tombstones.len();
        let (rows, before) = self.merged();
        let mut lists = Lists::default();
        let mut engine = None;
        let mut make_engine = || engine = Some(self.engine(&rows, &before, changes));
        match self.run_in_parallel.filter(|_| rows.len() >= PARALLEL_MIN) {
            Some(run_in_parallel) => run_in_parallel(&mut || lists = Lists::of(&rows), &mut make_engine),
            None => {
                make_engine();
                lists = Lists::of(&rows);
            }
        }
        // Both functions have run, so the engine is not made again.
        let (engine, keyed, hint) = engine.unwrap_or_else(|| self.engine(&rows, &before, changes));
        let Lists { ids, priorities, slots } = lists;
        debug_assert_eq!(ids.len(), rows.len(), "both functions have run");
        let room = head_room(ids.len());
        let additions = match &engine {
            Engine::Exact(engine) => Additions::new(&self.plan, room, [engine.mask()], ids.len() - keyed),
            Engine::Mask(engine) => Additions::new(&self.plan, room, engine.masks(), engine.walked()),
            Engine::Lpm(engine) => Additions::new(&self.plan, room, [], engine.catch_alls()),
            Engine::Scan(_) | Engine::Foreign(_) => Additions::new(&self.plan, room, [], ids.len()),
        };
        Compiled {
            base: Arc::new(Base::new(self.plan, engine, ids, priorities)),
            rows: Arc::new(rows),
            slots,
            additions,
            hint,
            sequence: self.sequence,
            compiled: self.compiled,
        }
    }

    /// Returns the active rules in order of precedence, with their slots in the last base.
    fn merged(&mut self) -> (Vec<Row>, Vec<u32>) {
        if self.rows.is_empty()
            && let Some(added) = Arc::get_mut(&mut self.added)
        {
            // The added rules have no other user, so they are not copied. Most of them are in order, for
            // which a stable sort is faster.
            let mut merged = std::mem::take(added);
            merged.sort_by_key(Row::precedence);
            let before = vec![NONE; merged.len()];
            return (merged, before);
        }
        let mut added: Vec<&Row> = self.added.iter().collect();
        added.sort_unstable_by_key(|row| row.precedence());
        let len = self.rows.len() - self.tombstones.len() + added.len();
        let (mut merged, mut before) = (Vec::with_capacity(len), Vec::with_capacity(len));
        let mut added = added.into_iter().peekable();
        for (slot, row) in (0..).zip(self.rows.iter()) {
            if self.tombstones.contains(slot) {
                continue;
            }
            while let Some(other) = added.next_if(|other| other.precedence() < row.precedence()) {
                merged.push(other.clone());
                before.push(NONE);
            }
            merged.push(row.clone());
            before.push(slot);
        }
        merged.extend(added.cloned());
        before.resize(merged.len(), NONE);
        (merged, before)
    }

    /// Returns the values and masks of rules, given their slots in the last base. For `exact`, the masks are
    /// those of one rule.
    fn encoded(&self, rows: &[Row], before: &[u32]) -> (Vec<u64>, Vec<u64>) {
        let words = self.plan.words();
        let hashed = self.choice == Choice::Exact;
        let mut values = Vec::with_capacity(words * rows.len());
        let mut masks = Vec::with_capacity(if hashed { words } else { words * rows.len() });
        // Rows of unchanged rules are copied from the last base.
        let known = if hashed && *self.plan == **self.base.plan() { self.base.exact() } else { None };
        let known = known.map(Exact::rows);
        let mut encoder = RowEncoder::new(&self.plan);
        for (row, slot) in rows.iter().zip(before) {
            let known = match &known {
                Some(rows) if !masks.is_empty() => {
                    rows.get(*slot as usize * words..).and_then(|rows| rows.get(..words))
                }
                _ => None,
            };
            match known {
                Some(row) => values.extend_from_slice(row),
                None => {
                    if hashed {
                        masks.clear();
                    }
                    encoder.encode(&row.entry.matching, &mut values, &mut masks);
                }
            }
        }
        (values, masks)
    }

    /// Returns the engine after this number of changes of the base, the number of rules before those that
    /// match everything (for `exact`), and a hint for the deltas.
    fn engine(&self, rows: &[Row], before: &[u32], changes: usize) -> (Engine, usize, FilterHint) {
        let words = self.plan.words();
        let hashed = self.choice == Choice::Exact;
        let keyed =
            if hashed { rows.partition_point(|row| !row.entry.matching.is_any()) } else { rows.len() };
        let mut parts =
            halves(self.run_in_parallel, keyed, |part| self.encoded(&rows[part.clone()], &before[part]));
        let (mut values, mut masks) = parts.next().unwrap_or_default();
        if let Some((other_values, other_masks)) = parts.next() {
            values.extend(other_values);
            masks.extend_from_slice(if hashed { &[] } else { &other_masks });
        }
        let hint = match self.choice {
            Choice::Exact => FilterHint::Mask(masks.clone()),
            Choice::Lpm(field) => Piece::of_field(&self.plan, field)
                .first()
                .map_or(FilterHint::None, |first| FilterHint::Field(*first)),
            Choice::Scan | Choice::Mask => {
                let priorities: Vec<u16> = rows.iter().map(|row| row.priority).collect();
                FilterHint::Rules(Byte::best(words, &values, &masks), Ranks::new(&priorities))
            }
        };
        let foreign = self.maker.filter(|_| !hashed);
        let foreign = foreign.and_then(|make| make(self.choice, &self.plan, &values, &masks));
        let engine = match (foreign, self.choice) {
            (Some(engine), _) => Engine::Foreign(engine),
            (None, Choice::Exact) => Engine::Exact(Exact::new(words, &masks, values, keyed, rows.len())),
            (None, Choice::Scan) => Engine::Scan(Scan::new(words, rows.len(), &values, &masks)),
            (None, Choice::Lpm(field)) => {
                Engine::Lpm(Lpm::new(words, &Piece::of_field(&self.plan, field), rows.len(), &values, &masks))
            }
            (None, Choice::Mask) => {
                let vain = match self.base.engine() {
                    Engine::Mask(last) => last.vain().after(changes, rows.len()),
                    _ => Vain::default(),
                };
                Engine::Mask(Mask::again(
                    &self.plan,
                    rows.len(),
                    &values,
                    &masks,
                    Level::found(),
                    vain,
                    self.run_in_parallel,
                ))
            }
        };
        (engine, keyed, hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_has_space_for_a_quarter_of_the_base_within_limits() {
        let rooms = [
            (0, 64),
            (259, 64),
            (260, 65),
            (65_535, 16_383),
            (65_536, 16_384),
            (262_159, 16_384),
            (262_160, 16_385),
            (1 << 20, 1 << 16),
        ];
        for (rules, room) in rooms {
            assert_eq!(head_room(rules), room, "{rules} rules");
        }
    }
}
