// SPDX-License-Identifier: Apache-2.0
//! The records of the previous key plan. They serve packets without a record of the new plan for a while, so
//! that a new plan does not send all flows through the tables at once.
//!
//! Records of the previous plan are compared with changes of the rules like all other records. Bits that the
//! keys of the previous plan lack match every rule. A record that is still right is therefore right for every
//! packet with its key, and its path is copied into the record of the new plan.
//!
//! No path is copied while packets wait in the backlog or are held, because one of them could belong to the
//! same flow. A packet whose key waits in the port cache uses no path of the previous plan. In a burst,
//! packets of one flow find the same record, because records are made after the whole burst has been
//! processed.

use super::budget::RecordBudget;
use super::cache::Express;
use super::path::RecordedPath;
use crate::context::BurstContext;
use crate::lanes::Queued;
use crate::packet::{self, Packet};
use crate::slab::{BURST, first_bits};
use engines::NONE;
use frame::Frame;

/// Earlier records whose paths new records inherit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Predecessor {
    /// No records.
    #[default]
    None,
    /// The records that are now in use.
    Current,
    /// The predecessor of the records that are now in use. It is the better choice while most flows have no
    /// record in them.
    Previous,
}

impl Express {
    /// Sets the earlier records whose paths these records inherit.
    #[must_use]
    pub fn with_predecessor(mut self, predecessor: Predecessor) -> Self {
        self.predecessor = predecessor;
        self
    }

    /// Replaces the records in use, which `before` contains. Afterwards, `before` contains the records to
    /// free. A predecessor without records is not kept, because each search in it would be in vain.
    pub(crate) fn succeed(&mut self, before: &mut Option<Box<Self>>) {
        before.iter().for_each(|before| before.retire());
        match self.predecessor {
            Predecessor::None => {}
            Predecessor::Current if before.as_ref().is_none_or(|before| before.store.is_empty()) => {}
            Predecessor::Previous => {
                self.previous = before.as_mut().and_then(|before| before.previous.take());
            }
            Predecessor::Current => {
                let older = before.as_mut().and_then(|before| before.previous.take());
                self.previous = std::mem::replace(before, older);
            }
        }
    }

    /// Ends the use of the previous records and returns them.
    pub(crate) fn take_previous(&mut self) -> Option<Box<Self>> {
        self.previous.take()
    }

    /// Looks up the kept frames of a burst in the records of the previous plan. Returns the number of frames
    /// without a record of the new plan for which a previous record was found. `kept` has the index of each
    /// frame in the burst.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_previous<E>(
        &mut self,
        context: &BurstContext<'_, E>,
        frames: &[Frame],
        kept: &[usize],
        queued: Queued,
    ) -> usize {
        let Some(previous) = self.previous.as_mut().filter(|_| queued == Queued::Nothing) else { return 0 };
        let frames = &frames[..kept.len()];
        previous.read_keys(frames, context.now);
        if previous.find(first_bits(frames.len())).outdated {
            previous.verify_outdated(context, frames.len());
        }
        self.takes_over = true;
        let (mut places, mut found) = ([NONE; BURST], 0);
        for (at, inherited) in kept.iter().zip(previous.burst.places) {
            if self.burst.places[*at] == NONE {
                places[*at] = inherited;
                found += usize::from(inherited != NONE);
            }
        }
        previous.burst.places = places;
        found
    }

    /// Returns the path that the previous records give for the frame at index `at` of the burst.
    #[inline]
    pub(super) fn previous_path(&self, at: usize) -> Option<RecordedPath<'_>> {
        let previous = self.previous.as_deref().filter(|_| self.takes_over)?;
        previous.path(previous.burst.places[at])
    }

    /// Makes records of the paths that packets of the burst have inherited.
    #[cold]
    #[inline(never)]
    pub(super) fn learn_previous<E>(
        &mut self,
        context: &BurstContext<'_, E>,
        packets: &[Packet],
        budget: &mut RecordBudget<'_>,
    ) {
        for number in 0..self.kept.len() {
            let at = self.kept[number];
            let Some(path) = self.previous_path(at).map(RecordedPath::to_path) else { continue };
            let (key, hash) = (self.burst.keys[at], self.burst.hashes[at]);
            // If the new plan examines fewer bits, another packet may have the same new key but no previous
            // record, and may still wait.
            let waits = self.missed.iter().any(|missed| {
                self.burst.hashes[missed.at] == hash
                    && packets[missed.slot.index()].path != packet::Path::Left
            });
            if !waits {
                self.learn_path(&key, hash, &path, 0, context, budget);
                self.counters.inherited(1);
            }
        }
        self.takes_over = false;
    }
}
