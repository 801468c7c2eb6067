// SPDX-License-Identifier: Apache-2.0
//! Random requests, packets and times, compared with a reference model. The reference is a plain list.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use flow::{
    Action, EntryChange, EntryFlags, EntryId, FlowMod, FlowModCommand, Instructions, Match, Nanos, Operation,
    PortNo, TableId,
};
use model::{AsyncMessage, Changed, CookieMask, ModelConfig, ModelError, ModelLimits, RemovedReason};
use std::collections::HashMap;

const LIMIT: usize = 24;

/// Entry of the reference list, with the number (`uid`) under which its packets are counted. A replacement
/// that continues the counts keeps the uid.
#[derive(Clone, Debug)]
struct Plain {
    uid: usize,
    m: FlowMod,
    low_latency: bool,
    created: Nanos,
    used: Nanos,
    /// ID of the entry in the data plane.
    id: Option<EntryId>,
}

#[derive(Clone, Debug, Default)]
struct List {
    entries: Vec<Plain>,
    /// Packets by uid.
    packets: Vec<u64>,
    /// Uids of the entries that the current request added, in order.
    added: Vec<usize>,
    /// Entries whose counts a modify command has reset, with their new uids. Packets that hit a predecessor
    /// of the entry still count for the previous uid.
    renamed: Vec<(EntryId, usize)>,
    /// Expected flow-removed messages: uid, match, reason, duration.
    removed: Vec<(usize, Match, RemovedReason, Nanos)>,
}

impl List {
    fn new_uid(&mut self) -> usize {
        self.packets.push(0);
        self.packets.len() - 1
    }

    fn remove(&mut self, now: Nanos, reason: RemovedReason, which: impl Fn(&Plain) -> bool) -> usize {
        let (gone, kept) = self.entries.drain(..).partition::<Vec<_>, _>(|e| which(e));
        self.entries = kept;
        for e in gone.iter().filter(|e| e.m.flags.send_flow_removed) {
            self.removed.push((e.uid, e.m.matching.clone(), reason, now - e.created));
        }
        gone.len()
    }

    fn apply(&mut self, now: Nanos, m: &FlowMod) -> Result<Changed, ModelError> {
        let mut changed = Changed::default();
        let identical =
            |e: &Plain| e.m.table == m.table && e.m.priority == m.priority && e.m.matching == m.matching;
        let cookie = |e: &Plain| (e.m.cookie ^ m.cookie) & m.cookie_mask == 0;
        let meant = |e: &Plain, strict: bool| {
            m.table.is_none_or(|t| e.m.table == Some(t))
                && if strict {
                    e.m.priority == m.priority && e.m.matching == m.matching
                } else {
                    m.matching.covers(&e.m.matching)
                }
        };
        match m.command {
            FlowModCommand::Add => {
                let overlapping = |e: &&Plain| {
                    e.m.table == m.table && e.m.priority == m.priority && e.m.matching.overlaps(&m.matching)
                };
                if m.flags.check_overlap && self.entries.iter().any(|e| overlapping(&e)) {
                    return Err(ModelError::Overlap { table: m.table.unwrap(), priority: m.priority });
                }
                let old = self.entries.iter().position(identical).map(|at| self.entries.remove(at));
                if self.entries.len() >= LIMIT {
                    return Err(ModelError::TableFull { in_use: self.entries.len(), limit: LIMIT });
                }
                changed = Changed { added: 1, modified: 0, removed: usize::from(old.is_some()) };
                let kept = old.filter(|_| !m.flags.reset_counts).map(|o| o.uid);
                let uid = kept.unwrap_or_else(|| self.new_uid());
                self.added.push(uid);
                self.entries.push(Plain {
                    uid,
                    m: m.clone(),
                    low_latency: m.cookie & 8 != 0,
                    created: now,
                    used: now,
                    id: None,
                });
            }
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                for e in &mut self.entries {
                    if meant(e, m.command == FlowModCommand::ModifyStrict) && cookie(e) {
                        e.m.instructions = m.instructions.clone();
                        changed.modified += 1;
                        if m.flags.reset_counts {
                            let old = std::mem::replace(&mut e.uid, self.packets.len());
                            self.packets.push(0);
                            self.added.iter_mut().filter(|a| **a == old).for_each(|a| *a = e.uid);
                            self.renamed.extend(e.id.map(|id| (id, e.uid)));
                        }
                    }
                }
            }
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                let outputs = |e: &Plain| {
                    m.out_port.is_none_or(|p| e.m.instructions.apply.contains(&Action::output(p)))
                };
                changed.removed = self.remove(now, RemovedReason::Delete, |e| {
                    meant(e, m.command == FlowModCommand::DeleteStrict) && cookie(e) && outputs(e)
                });
            }
        }
        Ok(changed)
    }

    fn expire(&mut self, now: Nanos) {
        let at = |from: Nanos, s: u16| if s == 0 { Nanos::MAX } else { from + u64::from(s) * SECOND };
        let idle = |e: &Plain| at(e.used, e.m.idle_timeout_s);
        let hard = |e: &Plain| at(e.created, e.m.hard_timeout_s);
        self.remove(now, RemovedReason::HardTimeout, |e| hard(e) <= now && hard(e) <= idle(e));
        self.remove(now, RemovedReason::IdleTimeout, |e| idle(e) <= now);
    }
}

fn random_match(r: &mut Random) -> Match {
    match r.below(5) {
        0 => Match::any(),
        1 => Match::at_index(r.below(2) as u32),
        2 => dst(r.below(4).into(), 3),
        _ => mac(r.below(8).into()),
    }
}

fn random_mod(r: &mut Random) -> FlowMod {
    use FlowModCommand as C;
    let command = [C::Add, C::Add, C::Add, C::Add, C::Modify, C::ModifyStrict, C::Delete, C::DeleteStrict]
        [r.below(8) as usize];
    let deletes = matches!(command, C::Delete | C::DeleteStrict);
    let matching = random_match(r);
    // An index identifies at most one entry, of any priority.
    let priority = if matching.index().is_some() { 1 } else { r.below(2) as u16 };
    FlowMod {
        command,
        table: if deletes && r.one_in(3) { None } else { Some(TableId(r.below(2) as u8)) },
        priority,
        matching,
        instructions: Instructions::apply(vec![Action::output(PortNo(1 + r.below(3) as u32))]),
        idle_timeout_s: if r.one_in(3) { 1 + r.below(4) as u16 } else { 0 },
        hard_timeout_s: if r.one_in(3) { 1 + r.below(6) as u16 } else { 0 },
        cookie: r.below(16),
        cookie_mask: if command != C::Add && r.one_in(3) { 1 } else { 0 },
        flags: EntryFlags {
            send_flow_removed: r.one_in(2),
            check_overlap: r.one_in(4),
            reset_counts: r.one_in(4),
            ..EntryFlags::default()
        },
        out_port: if deletes && r.one_in(3) { Some(PortNo(1 + r.below(3) as u32)) } else { None },
        ..FlowMod::default()
    }
}

/// A test run: the model under test, the reference list, and for each entry the uid under which its packets
/// are counted.
struct Run {
    model: Fake,
    list: List,
    uids: HashMap<EntryId, usize>,
    operations_seen: usize,
    reported: Vec<(Match, RemovedReason, Nanos, u64)>,
    now: Nanos,
}

impl Run {
    /// Follows the operations to learn which entry ID belongs to which uid.
    fn follow(&mut self) {
        self.uids.extend(self.list.renamed.drain(..));
        let mut added = std::mem::take(&mut self.list.added).into_iter();
        for operation in &self.model.plane_mut().operations[self.operations_seen..] {
            let Operation::Entries(changes) = operation else { continue };
            for change in changes {
                if let EntryChange::Add(entry) = change {
                    let uid = added.next().unwrap();
                    self.uids.insert(entry.id, uid);
                    if let Some(e) = self.list.entries.iter_mut().find(|e| e.uid == uid) {
                        e.id = Some(entry.id);
                    }
                }
            }
        }
        assert_eq!(added.next(), None);
        self.operations_seen = self.model.plane_mut().operations.len();
    }

    fn request(&mut self, r: &mut Random) {
        let mods: Vec<_> = (0..if r.one_in(4) { 1 + r.below(6) } else { 1 }).map(|_| random_mod(r)).collect();
        let before = self.list.clone();
        let mut sum = Changed::default();
        let mut expected = Ok(());
        for (at, m) in mods.iter().enumerate() {
            match self.list.apply(self.now, m) {
                Ok(c) => {
                    sum.added += c.added;
                    sum.modified += c.modified;
                    sum.removed += c.removed;
                }
                Err(error) => {
                    expected = Err((at, error));
                    self.list = before;
                    break;
                }
            }
        }
        let got = if mods.len() == 1 {
            self.model.flow_mod(self.now, mods[0].clone()).map_err(|e| (0, e))
        } else {
            self.model.bundle(self.now, mods.clone())
        };
        assert_eq!(got, expected.map(|()| sum), "{mods:#?}");
        self.follow();
    }

    fn packets(&mut self, r: &mut Random) {
        let mut ids: Vec<_> =
            self.uids.keys().copied().filter(|id| self.model.plane_mut().knows(*id)).collect();
        ids.sort_unstable();
        if ids.is_empty() {
            return;
        }
        let id = ids[r.below(ids.len() as u64) as usize];
        let uid = self.uids[&id];
        self.model.plane_mut().hit(id, 1, self.now);
        self.list.packets[uid] += 1;
        if let Some(e) = self.list.entries.iter_mut().find(|e| e.id == Some(id)) {
            e.used = self.now;
        }
    }

    fn poll(&mut self) {
        self.list.expire(self.now);
        for async_message in poll_all(&mut self.model, self.now) {
            let AsyncMessage::FlowRemoved(f) = async_message else { panic!("{async_message:?}") };
            assert_eq!(f.bytes, 100 * f.packets);
            self.reported.push((f.entry.matching.clone(), f.reason, f.duration_ns, f.packets));
        }
        self.follow();
    }

    fn compare(&mut self) {
        let got: Vec<_> = dump(&mut self.model, self.now)
            .into_iter()
            .map(|f| {
                let e = &f.entry;
                let key = (e.table, e.priority, e.matching.clone(), e.cookie, e.low_latency);
                (key, Instructions::clone(&e.instructions), f.packets, f.duration_ns)
            })
            .collect();
        let mut entries: Vec<_> = self.list.entries.iter().collect();
        entries.sort_by_key(|e| e.m.table);
        let want: Vec<_> = entries
            .into_iter()
            .map(|e| {
                let key = (e.m.table.unwrap(), e.m.priority, e.m.matching.clone(), e.m.cookie, e.low_latency);
                (key, e.m.instructions.clone(), self.list.packets[e.uid], self.now - e.created)
            })
            .collect();
        assert_eq!(got, want);
    }
}

fn run(seed: u64) -> (usize, usize) {
    let mut r = Random::new(seed);
    // With small limits, bounded work has to be continued in later calls.
    let limits = ModelLimits {
        entries: LIMIT,
        async_messages: 3,
        events_per_poll: 2,
        timers_per_poll: 2,
        removals_per_poll: 2,
    };
    let config = ModelConfig {
        low_latency_cookie: Some(CookieMask { value: 8, mask: 8 }),
        limits,
        ..ModelConfig::default()
    };
    let mut run = Run {
        model: with(config),
        list: List::default(),
        uids: HashMap::new(),
        operations_seen: 0,
        reported: Vec::new(),
        now: SECOND,
    };
    for _ in 0..300 {
        match r.below(10) {
            0..4 => run.request(&mut r),
            4..7 => run.packets(&mut r),
            7 => {
                run.now += Nanos(r.below((2 * SECOND).0));
                run.poll();
            }
            8 => run.model.plane_mut().held = r.one_in(2),
            _ => run.model.plane_mut().apply_all(),
        }
        // The test stays below the limit of entries that wait for their release.
        if run.model.pending_removals() > LIMIT / 2 {
            run.model.plane_mut().apply_all();
            run.poll();
        }
        run.compare();
    }
    run.model.plane_mut().apply_all();
    run.poll();
    assert_eq!(run.model.pending_removals(), 0);
    assert_eq!(run.model.plane_mut().known_ids(), run.list.entries.len());
    let packets = &run.list.packets;
    let mut want: Vec<_> =
        run.list.removed.into_iter().map(|(uid, m, why, age)| (m, why, age, packets[uid])).collect();
    want.sort();
    run.reported.sort();
    assert_eq!(run.reported, want);
    (run.reported.len(), run.list.entries.len())
}

#[test]
fn the_model_agrees_with_the_list() {
    let (mut reported, mut left) = (0, 0);
    for seed in 1..=400 {
        let (t, l) = run(seed);
        reported += t;
        left += l;
    }
    println!("{reported} flow-removed messages, {left} entries left after the runs");
    assert!(reported > 4_000 && left > 1_000, "the runs report or keep too few entries");
}
