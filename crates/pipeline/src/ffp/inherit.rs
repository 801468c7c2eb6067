// SPDX-License-Identifier: Apache-2.0
//! Inheritance of records by a LUT with a new layout.
//!
//! When a rule makes a table examine more bits, the table gets a new, empty LUT with another layout. The
//! previous LUT stays in use for a while, so that active flows need not pass the tables again. Rule changes
//! are applied to the records of the previous LUT by comparing the bits that both record and rule examine. A
//! remaining record is therefore right for all packets of its value, whatever their new bits are. The new LUT
//! learns each value that hits a record of the previous LUT.
//!
//! A LUT without records is not kept, because each search in it would be in vain.
//!
//! A LUT inherits only if it examines every bit that the previous LUT examines. Otherwise two values of the
//! previous LUT may become one value. A packet with the first value could then miss and wait for the table,
//! while a packet with the second value inherits a record. Later packets with the first value would hit this
//! record and overtake the waiting packet.

use super::change::LutRole;
use super::lut::{Inheritance, Lut, Previous, Record};
use crate::packet::Packet;
use crate::slab::PacketSlot;
use engines::NONE;
use flow::{Limits, Nanos};

/// Time for which the previous LUT stays in use, in ns.
const SERVES_NS: Nanos = Nanos(2_000_000_000);

impl Previous {
    /// Returns whether the previous LUT is still in use.
    #[inline]
    fn serves(&self, now: Nanos) -> bool {
        self.until_ns == Nanos(0) || now <= self.until_ns
    }
}

impl Lut {
    /// Keeps the previous LUT in use together with this one, unless it has no records. Returns the LUT that
    /// is no longer used: the previous LUT, or the one that the previous LUT itself had inherited from.
    pub(super) fn inherit(&mut self, mut before: Box<Lut>) -> Option<Box<Lut>> {
        if before.is_empty() {
            return Some(before);
        }
        let Some(Inheritance { extractor }) = self.inheritance.take() else { return Some(before) };
        let older = before.previous.take();
        // The rows of changes in progress have the layout of a current LUT. `put_off` must read them before
        // `before` becomes a previous LUT.
        before.put_off();
        before.role = LutRole::Previous;
        self.previous = Some(Previous { lut: before, extractor, until_ns: Nanos(0) });
        older.map(|Previous { mut lut, extractor, .. }| {
            // The extractor returns to the control thread with its LUT, because a worker frees nothing.
            lut.inheritance = Some(Inheritance { extractor });
            lut
        })
    }

    /// Returns whether the lookup's result is preliminary: the previous LUT is still in use, or a change is
    /// in progress.
    #[inline]
    pub(super) fn is_in_flux(&self, now: Nanos) -> bool {
        self.is_cleaning() || self.previous.as_ref().is_some_and(|previous| previous.serves(now))
    }

    /// Looks up the packet's value in the previous LUT. `key` is the packet's row in this LUT, which learns
    /// the record found.
    pub(super) fn ask_previous(
        &mut self,
        packets: &mut [Packet],
        packet: PacketSlot,
        key: &[u64],
        now: Nanos,
    ) -> Option<Record> {
        let mut row = [0; Limits::KEY_WORDS];
        let previous = self.previous.as_mut().filter(|previous| previous.serves(now))?;
        if previous.until_ns == Nanos(0) {
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
        // The new record needs no fence, because no earlier packet of this value waits: it would have hit the
        // same record of the previous LUT.
        self.learn_masked(key, record.id, record.priority, record.low_latency, 0);
        Some(Record { generation: self.generation(), fence: 0, ..record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::EntryId;
    use std::sync::Arc;

    #[test]
    fn a_lut_without_records_is_not_kept() {
        let lut = |mask: u64| Box::new(Lut::new(&[mask], 64, Arc::default()));
        let wider = |mask| Box::new(lut(mask).inheriting(Inheritance { extractor: None }));
        let (mut first, mut second, mut third) = (lut(0xff), wider(0xffff), wider(0xf_ffff));
        first.learn(&mut [7], EntryId(3), 10, true);
        let place = first.find(&[7], first.hash(&[7]));
        first.free(place as usize);
        assert!(second.inherit(first).is_some() && !second.is_in_flux(Nanos(1)));
        second.learn(&mut [7], EntryId(3), 10, true);
        assert!(third.inherit(second).is_none() && third.is_in_flux(Nanos(1)));
        let mut fourth = wider(0xff_ffff);
        assert!(fourth.inherit(third).is_some() && !fourth.is_in_flux(Nanos(1)));
    }

    #[test]
    fn the_lut_before_serves_for_a_while_and_then_hits_are_simple_again() {
        let lut = |mask: u64| Lut::new(&[mask], 64, Arc::default());
        let mut before = Box::new(lut(0xff));
        before.learn(&mut [7], EntryId(3), 10, true);
        let mut wider = lut(0xffff).inheriting(Inheritance { extractor: None });
        assert!(wider.inherit(before).is_none());
        let mut ask =
            |key: u64, now| wider.ask_previous(&mut [], PacketSlot(0), &[key], now).map(|record| record.id);
        let begin = Nanos(5);
        assert_eq!([ask(0x107, begin), ask(8, begin)], [Some(EntryId(3)), None]);
        assert_eq!(
            [ask(0x207, begin + SERVES_NS), ask(0x307, begin + SERVES_NS + Nanos(1))],
            [Some(EntryId(3)), None]
        );
        assert!(wider.is_in_flux(begin + SERVES_NS) && !wider.is_in_flux(begin + SERVES_NS + Nanos(1)));
        let known = |key: u64| wider.find(&[key], wider.hash(&[key])) != NONE;
        assert_eq!([0x107, 0x207, 0x307, 8].map(known), [true, true, false, false]);
    }
}
