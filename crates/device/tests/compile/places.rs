// SPDX-License-Identifier: Apache-2.0
//! Places of rows in tables of 512 entries. During each addition, every packet hits the row of the smallest
//! rank, without the new row or with it.

use device::action::ActionWord;
use device::command::PpuCommand;
use device::compile::positions::{Positions, Rank, TcamRow};
use device::key::{KEY_BYTES, TernaryKey};
use fastrand::Rng;

const ENTRIES: u16 = 512;

/// Packets that are compared.
const PROBES: usize = 24;

fn is_hit(key: &TernaryKey, packet: &[u8; KEY_BYTES]) -> bool {
    (0..KEY_BYTES).all(|at| (key.value[at] ^ packet[at]) & key.mask[at] == 0)
}

/// Returns a key of a prefix of the first bytes.
fn prefix(length: u32, bits: u32) -> TernaryKey {
    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
    let mut key = TernaryKey::default();
    key.value[..4].copy_from_slice(&(bits & mask).to_be_bytes());
    key.mask[..4].copy_from_slice(&mask.to_be_bytes());
    key
}

/// Positions with the entries of the device.
struct Table {
    positions: Positions,
    entries: Vec<Option<(TernaryKey, ActionWord)>>,
    live: Vec<TcamRow>,
    probes: Vec<[u8; KEY_BYTES]>,
    sequence: u64,
    /// Number of commands of each addition.
    commands: Vec<usize>,
}

impl Table {
    fn new(rng: &mut Rng) -> Self {
        let rank = Rank { class: 2, priority: 0, sequence: 0, version: 0, part: 0 };
        let miss = TcamRow { rank, owner: None, key: TernaryKey::default(), action: ActionWord::default() };
        let mut positions = Positions::new(ENTRIES);
        let mut entries = vec![None; ENTRIES.into()];
        assert!(positions.insert_last(miss).is_some());
        entries[usize::from(ENTRIES) - 1] = Some((miss.key, miss.action));
        let mut probe = || {
            let mut packet = [0; KEY_BYTES];
            packet[..4].copy_from_slice(&rng.u32(..).to_be_bytes());
            packet
        };
        let probes = (0..PROBES).map(|_| probe()).collect();
        Self { positions, entries, live: vec![miss], probes, sequence: 0, commands: Vec::new() }
    }

    /// Returns the row that each packet hits by the ranks.
    fn wanted(&self) -> Vec<Option<ActionWord>> {
        let best = |packet| {
            let rows = self.live.iter().filter(|row| is_hit(&row.key, packet));
            rows.min_by_key(|row| row.rank).map(|row| row.action)
        };
        self.probes.iter().map(best).collect()
    }

    /// Returns the row that each packet hits in the device.
    fn hits(&self) -> Vec<Option<ActionWord>> {
        let first = |packet| {
            let mut entries = self.entries.iter().flatten();
            entries.find(|(key, _)| is_hit(key, packet)).map(|(_, action)| *action)
        };
        self.probes.iter().map(first).collect()
    }

    fn execute(&mut self, command: &PpuCommand) {
        match *command {
            PpuCommand::Write { index, key, action } => {
                self.entries[usize::from(index)] = Some((key, action));
            }
            PpuCommand::Remove { index } => {
                assert!(self.entries[usize::from(index)].take().is_some(), "{index}");
            }
            ref other => panic!("{other:?}"),
        }
    }

    fn add(&mut self, priority: u16, key: TernaryKey) {
        self.sequence += 1;
        let sequence = self.sequence;
        let rank = Rank { class: 1, priority: !priority, sequence, version: 0, part: 0 };
        let mut action = ActionWord::default();
        action.data[..8].copy_from_slice(&sequence.to_be_bytes());
        let row = TcamRow { rank, owner: None, key, action };
        let old = self.wanted();
        self.live.push(row);
        let new = self.wanted();
        let commands = self.positions.insert(row).unwrap();
        self.commands.push(commands.len());
        for command in &commands {
            self.execute(command);
            for (at, hit) in self.hits().iter().enumerate() {
                assert!(*hit == old[at] || *hit == new[at], "{command:?} {commands:?}");
            }
        }
        assert_eq!(self.hits(), new);
        self.check();
    }

    fn remove(&mut self, at: usize) {
        let row = self.live.swap_remove(at);
        let command = self.positions.remove(row.rank).unwrap();
        self.execute(&command);
        assert_eq!(self.hits(), self.wanted());
        self.check();
    }

    /// The device has the rows of the positions, and no others.
    fn check(&self) {
        for (index, entry) in self.entries.iter().enumerate() {
            let row = self.positions.row(index as u16).map(|row| (row.key, row.action));
            assert_eq!(*entry, row, "{index}");
        }
        assert_eq!(self.positions.free() + self.live.len(), usize::from(ENTRIES));
    }

    /// Returns the mean and the maximum of commands of an addition among the first `count`.
    fn cost(&self, count: usize) -> (f64, usize) {
        let commands = &self.commands[..count];
        (commands.iter().sum::<usize>() as f64 / count as f64, commands.iter().copied().max().unwrap())
    }
}

/// Adds rows of distinct priorities until the table is full. Returns the commands of the first 450 additions.
fn fill(priorities: impl Iterator<Item = u16>) -> (f64, usize) {
    let mut rng = Rng::with_seed(1);
    let mut table = Table::new(&mut rng);
    for priority in priorities {
        let bits = rng.u32(..);
        table.add(priority, prefix([0, 1, 1, 2, 3][rng.usize(0..5)], bits));
    }
    assert_eq!(table.positions.free(), 0);
    table.cost(450)
}

#[test]
fn rows_in_an_order_of_priorities_need_few_commands() {
    let inwards = (1..=256).flat_map(|number: u16| [number, 2000 - number]).take(511);
    let outwards = (1..=256).flat_map(|number: u16| [1000 + number, 1000 - number]).take(511);
    let all: [Vec<u16>; 4] =
        [(1..=511).collect(), (1..=511).rev().collect(), inwards.collect(), outwards.collect()];
    for (number, order) in all.into_iter().enumerate() {
        let (mean, max) = fill(order.into_iter());
        assert!(mean < 3.0 && max <= 64, "order {number}: {mean} {max}");
    }
}

#[test]
fn rows_of_random_priorities_need_few_commands_up_to_nine_tenths() {
    let mut priorities: Vec<u16> = (1..=511).collect();
    Rng::with_seed(2).shuffle(&mut priorities);
    let (mean, max) = fill(priorities.into_iter());
    assert!(mean < 12.0 && max <= 128, "{mean} {max}");
}

#[test]
fn prefixes_keep_their_precedence_while_a_full_table_changes() {
    let mut rng = Rng::with_seed(3);
    let mut table = Table::new(&mut rng);
    let lengths = [0, 2, 4, 6, 8, 12, 16, 16, 20, 24, 24, 24, 24, 24, 32, 32];
    for number in 0..1000 {
        let length = lengths[rng.usize(0..lengths.len())];
        let bits = table.probes[rng.usize(0..PROBES)].first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
        table.add(length as u16, prefix(length, bits ^ rng.u32(0..256)));
        if number >= 510 {
            table.remove(rng.usize(1..table.live.len()));
        }
    }
    let (mean, _) = table.cost(500);
    assert!(mean < 8.0, "{mean}");
}
