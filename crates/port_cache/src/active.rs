// SPDX-License-Identifier: Apache-2.0
//! Path records of each port, and the choice of a victim if a port has too many of them.
//!
//! The records are elsewhere and have numbers (places). The records of a port form a list. New records join
//! at its end.

use flow::Nanos;

/// Number that stands for no record.
const NONE: u32 = u32::MAX;

/// Maximum number of records that are examined to find a victim by [`Victim::Clock`].
const CLOCK_STEPS: u32 = 64;

/// Which record of a port is removed if the port has too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Victim {
    /// The first record in the list without a hit since it joined the list. Records with a hit join the list
    /// again, at its end (CLOCK). If 64 records in succession have a hit, the first one of them is removed.
    #[default]
    Clock,
    /// The record whose last hit is oldest. All records of the port are compared.
    LeastRecentlyUsed,
}

/// A record's place in the list of its port.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Index of the port, or `u16::MAX` if the record belongs to no port.
    port: u16,
    before: u32,
    after: u32,
    /// Hits after this time give the record another chance.
    joined: Nanos,
}

impl Link {
    const FREE: Self = Self { port: u16::MAX, before: NONE, after: NONE, joined: Nanos(0) };
}

/// Records of a port.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
    length: u32,
}

impl List {
    const EMPTY: Self = Self { first: NONE, last: NONE, length: 0 };
}

/// Records of all ports.
#[derive(Debug)]
pub(crate) struct ActiveRecords {
    ports: Box<[List]>,
    /// One link for each record.
    links: Box<[Link]>,
}

impl ActiveRecords {
    /// Creates empty lists for records with numbers below `places`.
    pub fn new(ports: usize, places: usize) -> Self {
        Self {
            ports: vec![List::EMPTY; ports].into_boxed_slice(),
            links: vec![Link::FREE; places].into_boxed_slice(),
        }
    }

    /// Returns the number of records of a port.
    pub fn count(&self, port: u16) -> u32 {
        self.ports.get(usize::from(port)).map_or(0, |list| list.length)
    }

    /// Adds a new record of a port. If a record of any port had this number, it no longer exists.
    pub fn add(&mut self, port: u16, place: u32, now: Nanos) {
        self.remove(place);
        let Some(list) = self.ports.get_mut(usize::from(port)) else { return };
        let before = list.last;
        let Some(link) = self.links.get_mut(place as usize) else { return };
        *link = Link { port, before, after: NONE, joined: now };
        list.last = place;
        list.length += 1;
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = place,
            None => list.first = place,
        }
    }

    /// Removes a record, if it belongs to a port.
    pub fn remove(&mut self, place: u32) {
        let Some(link) = self.links.get_mut(place as usize) else { return };
        let Link { port, before, after, .. } = std::mem::replace(link, Link::FREE);
        let Some(list) = self.ports.get_mut(usize::from(port)) else { return };
        list.length -= 1;
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => list.first = after,
        }
        match self.links.get_mut(after as usize) {
            Some(link) => link.before = before,
            None => list.last = before,
        }
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.ports.fill(List::EMPTY);
        self.links.fill(Link::FREE);
    }

    /// Chooses a record of a port and removes it from the list. `used` returns the time of a record's last
    /// hit, or `None` if the record must stay. Returns `None` if all records must stay.
    pub fn take_victim(
        &mut self,
        port: u16,
        policy: Victim,
        used: impl Fn(u32) -> Option<Nanos>,
    ) -> Option<u32> {
        let victim = match policy {
            Victim::Clock => self.next_unused(port, used),
            Victim::LeastRecentlyUsed => {
                let all = self.places(port).filter_map(|place| Some((used(place)?, place)));
                all.min_by_key(|(time, _)| *time).map(|(_, place)| place)
            }
        };
        victim.inspect(|place| self.remove(*place))
    }

    /// Returns the first record without a hit. Records before it join the list again, at its end. If none of
    /// the first [`CLOCK_STEPS`] records is without a hit, returns the first of them that need not stay.
    fn next_unused(&mut self, port: u16, used: impl Fn(u32) -> Option<Nanos>) -> Option<u32> {
        let mut other = None;
        // In the second round, no record has a hit since it joined.
        for _ in 0..CLOCK_STEPS.min(2 * self.count(port)) {
            let place = self.ports.get(usize::from(port))?.first;
            let joined = self.links.get(place as usize)?.joined;
            match used(place) {
                Some(time) if time <= joined => return Some(place),
                time => {
                    self.add(port, place, time.unwrap_or(joined));
                    other = other.or(time.map(|_| place));
                }
            }
        }
        other
    }

    /// Returns the records of a port in the order of the list.
    fn places(&self, port: u16) -> impl Iterator<Item = u32> + '_ {
        let first = self.ports.get(usize::from(port)).map_or(NONE, |list| list.first);
        let next = |place: &u32| self.links.get(*place as usize).map(|link| link.after);
        std::iter::successors(Some(first), next).take_while(|place| *place != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    const PORTS: u16 = 3;
    const PLACES: u32 = 20;

    /// A record in the model: port, place, time of joining.
    type Listed = (u16, u32, Nanos);

    fn naive_victim(
        model: &mut Vec<Listed>,
        port: u16,
        policy: Victim,
        used: &[Option<Nanos>],
    ) -> Option<u32> {
        let use_of = |place: u32| used[place as usize];
        let victim = match policy {
            Victim::LeastRecentlyUsed => model
                .iter()
                .filter(|(of, place, _)| *of == port && use_of(*place).is_some())
                .min_by_key(|(_, place, _)| use_of(*place))
                .map(|(_, place, _)| *place),
            Victim::Clock => {
                let count = model.iter().filter(|(of, ..)| *of == port).count();
                (0..2 * count).find_map(|_| {
                    let at = model.iter().position(|(of, ..)| *of == port)?;
                    let (of, place, joined) = model.remove(at);
                    let is_victim = use_of(place).is_some_and(|time| time <= joined);
                    model.push((of, place, use_of(place).unwrap_or(joined)));
                    is_victim.then_some(place)
                })
            }
        };
        model.retain(|(_, place, _)| Some(*place) != victim);
        victim
    }

    #[test]
    fn lists_and_victims_are_those_of_a_naive_model() {
        let mut rng = Rng::with_seed(3);
        let (mut victims, mut none) = (0, 0);
        for round in 0..200 {
            let policy = if round % 2 == 0 { Victim::Clock } else { Victim::LeastRecentlyUsed };
            let mut records = ActiveRecords::new(PORTS.into(), PLACES as usize);
            let mut model: Vec<Listed> = Vec::new();
            let mut used = [Some(Nanos(0)); PLACES as usize];
            for step in 0..300 {
                let now = Nanos(step);
                let (port, place) = (rng.u16(0..PORTS), rng.u32(0..PLACES));
                match rng.u8(0..10) {
                    0..4 => {
                        records.add(port, place, now);
                        model.retain(|(_, other, _)| *other != place);
                        model.push((port, place, now));
                        used[place as usize] = Some(now);
                    }
                    4..7 => used[place as usize] = Some(now),
                    7 => used[place as usize] = None,
                    8 => {
                        records.remove(place);
                        model.retain(|(_, other, _)| *other != place);
                    }
                    _ => {
                        let victim = records.take_victim(port, policy, |place| used[place as usize]);
                        assert_eq!(victim, naive_victim(&mut model, port, policy, &used));
                        victims += usize::from(victim.is_some());
                        none += usize::from(victim.is_none());
                    }
                }
                for port in 0..PORTS {
                    let listed: Vec<u32> = records.places(port).collect();
                    let expected = model.iter().filter(|(of, ..)| *of == port).map(|(_, place, _)| *place);
                    assert_eq!(listed, expected.collect::<Vec<_>>());
                    assert_eq!(records.count(port) as usize, listed.len());
                }
            }
            records.clear();
            assert!((0..PORTS).all(|port| records.count(port) == 0 && records.places(port).count() == 0));
        }
        assert!(victims > 2_000 && none > 100, "{victims} {none}");
    }

    #[test]
    fn a_victim_is_found_in_a_bounded_number_of_steps() {
        let mut records = ActiveRecords::new(1, 1_000);
        (0..1_000).for_each(|place| records.add(0, place, Nanos(0)));
        let examined = std::cell::Cell::new(0);
        let use_of = |place: u32| {
            examined.set(examined.get() + 1);
            (place >= 10).then_some(Nanos(9))
        };
        assert_eq!(records.take_victim(0, Victim::Clock, use_of), Some(10), "records 0 to 9 must stay");
        assert_eq!((examined.get(), records.count(0)), (64, 999));
        assert_eq!(records.take_victim(0, Victim::Clock, |_| None), None);
    }

    #[test]
    fn a_hit_gives_a_record_another_chance() {
        let mut records = ActiveRecords::new(1, 4);
        (0..4).for_each(|place| records.add(0, place, Nanos(place.into())));
        let used = [Nanos(9), Nanos(1), Nanos(8), Nanos(7)];
        let use_of = |place: u32| Some(used[place as usize]);
        assert_eq!(records.take_victim(0, Victim::Clock, use_of), Some(1));
        let victims: Vec<_> = std::iter::from_fn(|| records.take_victim(0, Victim::Clock, use_of)).collect();
        assert_eq!(victims, [0, 2, 3], "each of them has had its chance, in order");
        assert_eq!(records.take_victim(0, Victim::Clock, use_of), None);
        (0..4).for_each(|place| records.add(0, place, Nanos(0)));
        assert_eq!(records.take_victim(0, Victim::LeastRecentlyUsed, use_of), Some(1));
        assert_eq!(records.take_victim(0, Victim::LeastRecentlyUsed, use_of), Some(3));
    }
}
