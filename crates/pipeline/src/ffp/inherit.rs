// SPDX-License-Identifier: Apache-2.0
//! When a rule makes a table examine more bits, its LUT is laid out anew and empty. So that the flows in use need not
//! all go through the table once more, the LUT before goes on serving beside it for a while: its records are cleaned
//! like the others, by what both the record and the rule look at, so what remains is right for all packets of its
//! value, whatever the new bits are. What it hits is learned by the new LUT.
//!
//! A LUT inherits only if it examines every bit that the one before examined. Otherwise packets of two values there have one
//! value now: one of them could miss and wait for the table, and later packets overtake it by a record inherited for another.

use super::lut::{Lut, Record};
use crate::extract::Extractor;
use crate::packet::Packet;
use flow::{Limits, Nanos};
use tables::NONE;

/// How long the LUT before serves.
const SERVES_NS: Nanos = 2_000_000_000;

/// The LUT before.
#[derive(Debug)]
pub(super) struct Previous {
    pub lut: Box<Lut>,
    /// Builds its rows, where they are laid out differently.
    extractor: Option<Box<Extractor>>,
    /// When it ceases to serve; 0: it has not begun.
    until_ns: Nanos,
}

/// What a LUT needs to go on with the records of the one before it.
#[derive(Debug)]
pub struct Inheritance {
    /// Builds the rows of the LUT before, where they are laid out differently.
    pub extractor: Option<Box<Extractor>>,
}

impl Previous {
    /// Whether it still serves.
    #[inline]
    fn serves(&self, now: Nanos) -> bool {
        self.until_ns == 0 || now <= self.until_ns
    }
}

impl Lut {
    /// Lets the LUT before serve beside this one, and gives back what that one had inherited itself.
    pub(super) fn inherit(&mut self, mut before: Box<Lut>) -> Option<Box<Lut>> {
        let Some(Inheritance { extractor }) = self.inheritance.take() else { return Some(before) };
        let older = before.previous.take();
        // What is under way there has no row of the layout to come.
        before.put_off();
        before.is_previous = true;
        self.previous = Some(Previous { lut: before, extractor, until_ns: 0 });
        older.map(|Previous { mut lut, extractor, .. }| {
            // It rides back with its LUT: nothing is freed here.
            lut.inheritance = Some(Inheritance { extractor });
            lut
        })
    }

    /// Whether a record, or that there is none, is not the last word: a LUT from before serves, or a change is under way.
    #[inline]
    pub(super) fn is_in_flux(&self, now: Nanos) -> bool {
        self.is_cleaning() || self.previous.as_ref().is_some_and(|previous| previous.serves(now))
    }

    /// Asks the LUT before for the packet's value. `key` is the packet's row in this one, which learns what it hears.
    pub(super) fn ask_previous(
        &mut self,
        packets: &mut [Packet],
        packet: u16,
        key: &[u64],
        now: Nanos,
    ) -> Option<Record> {
        let mut row = [0; Limits::KEY_WORDS];
        let previous = self.previous.as_mut().filter(|previous| previous.serves(now))?;
        if previous.until_ns == 0 {
            previous.until_ns = now + SERVES_NS;
        }
        let row = &mut row[..previous.lut.words()];
        match &previous.extractor {
            Some(extractor) => extractor.extract(packets, &[packet], row),
            None => row.copy_from_slice(key),
        }
        let lut = &mut previous.lut;
        row.iter_mut().zip(&lut.mask).for_each(|(word, mask)| *word &= mask);
        let mut place = [NONE];
        lut.probe(row, now, &mut place, |_, _| ());
        let record = lut.record(place[0]).copied().filter(|_| lut.stands(place[0], row))?;
        // Its packets have never missed while this LUT was there: none of them waits.
        self.learn_masked(key, record.id, record.priority, record.low_latency, 0);
        Some(Record { generation: self.generation(), fence: 0, ..record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_lut_before_serves_for_a_while_and_then_hits_are_simple_again() {
        let lut = |mask: u64| Lut::new(&[mask], 64, Arc::default());
        let mut before = Box::new(lut(0xff));
        before.learn(&mut [7], 3, 10, true);
        let mut wider = lut(0xffff).inheriting(Inheritance { extractor: None });
        assert!(wider.inherit(before).is_none());
        let mut ask = |key: u64, now| wider.ask_previous(&mut [], 0, &[key], now).map(|record| record.id);
        let begin = 5;
        assert_eq!([ask(0x107, begin), ask(8, begin)], [Some(3), None]);
        assert_eq!([ask(0x207, begin + SERVES_NS), ask(0x307, begin + SERVES_NS + 1)], [Some(3), None]);
        assert!(wider.is_in_flux(begin + SERVES_NS) && !wider.is_in_flux(begin + SERVES_NS + 1));
        let known = |key: u64| wider.find(&[key], wider.hash(&[key])) != NONE;
        assert_eq!([0x107, 0x207, 0x307, 8].map(known), [true, true, false, false]);
    }
}
