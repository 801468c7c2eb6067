// SPDX-License-Identifier: Apache-2.0
//! Random programs. Keys are made from frames, so that many frames hit.

use device::emulator::PacketHeader;
use device::key::{KEY_BITS, KEY_BYTES, KEY_SLICES};
use device::{ActionWord, EditBase, KeySlice, OutputKind, PpuCommand, SelectorBase, TernaryKey};
use fastrand::Rng;

use crate::FORMS;

fn pick<T: Copy>(chance: &mut Rng, list: &[T]) -> T {
    list[chance.usize(..list.len())]
}

fn slice(chance: &mut Rng) -> KeySlice {
    let base = pick(chance, &SelectorBase::ALL);
    let offset = match base {
        SelectorBase::Extended => pick(chance, &[0, 8, 12, 24, 25, 26, 28, 29, 32]),
        _ => pick(chance, &[0, 1, 2, 5, 8, 11, 12, 13, 16, 30, 63, 110, 126]),
    };
    KeySlice { base, offset, bytes: pick(chance, &[0, 1, 2, 3, 4, 4]) }
}

fn action(chance: &mut Rng) -> ActionWord {
    let mut data = [0; 12];
    data.fill_with(|| chance.u8(..));
    let base = pick(chance, &EditBase::ALL);
    let mut word = ActionWord { data, base, ..ActionWord::default() };
    // Packets that are not IP are dropped.
    let ttl = chance.u8(..3) == 0;
    match chance.u8(..FORMS) {
        0 => {
            (word.insert, word.remove) = (chance.u8(..13), chance.u8(..17));
            word.offset = pick(chance, &[0, 1, 12, 17, 40]);
        }
        // A change within a header, with checksums.
        1 => {
            let count = chance.u8(1..13);
            (word.insert, word.remove) = (count, count);
            word.offset = pick(chance, &[0, 1, 2, 12, 14]);
            match base {
                EditBase::L3 => (word.fix_ip, word.fix_l4) = (chance.bool(), chance.bool()),
                EditBase::L4 => {
                    let count = chance.u8(1..3);
                    (word.fix_l4, word.insert, word.remove) = (true, count, count);
                    word.offset = pick(chance, &[0, 1, 2]);
                }
                EditBase::Frame => {}
            }
        }
        // Both MAC addresses and the TTL.
        2 => (word.base, word.insert, word.remove, word.dec_ttl) = (EditBase::Frame, 12, 12, ttl),
        // A VLAN tag is inserted, or removed, and the TTL is decremented.
        3 => {
            (word.base, word.offset, word.dec_ttl) = (EditBase::Frame, 12, ttl);
            (word.insert, word.remove) = pick(chance, &[(4, 0), (0, 4), (3, 0)]);
        }
        // Any edit, also over borders of headers.
        4 => {
            (word.insert, word.remove) = (chance.u8(..13), chance.u8(..17));
            word.offset = if chance.bool() { chance.u8(..24) } else { chance.u8(..150) };
            (word.fix_ip, word.fix_l4, word.dec_ttl) = (chance.bool(), chance.bool(), ttl);
        }
        _ => {}
    }
    word.metadata = chance.bool().then(|| chance.u16(..));
    word.output = pick(
        chance,
        &[
            OutputKind::Keep,
            OutputKind::Keep,
            OutputKind::Discard,
            OutputKind::Port,
            OutputKind::Port,
            OutputKind::Port,
            OutputKind::Controller,
        ],
    );
    word.port = chance.u8(..);
    word.to_ingress = word.output == OutputKind::Port && chance.u8(..8) == 0;
    word.last = chance.f32() < 0.2;
    word
}

/// Returns a ternary key with a random mask. The frame matches it, or differs from it in one bit.
fn key(chance: &mut Rng, slices: &[KeySlice; KEY_SLICES], port: u8, frame: &[u8]) -> TernaryKey {
    let mut value = PacketHeader::parse(port, frame).key(slices);
    let mut mask = [0; KEY_BYTES];
    for part in mask.as_chunks_mut::<4>().0 {
        let all = chance.u32(..);
        *part = pick(chance, &[0, 0, 0xff, u32::MAX, 0xff00_0000, all]).to_be_bytes();
    }
    let flags = chance.u8(..16);
    mask[KEY_BYTES - 1] = pick(chance, &[0, 0, flags]) << 4;
    if chance.u8(..4) == 0 {
        let bit = chance.usize(..KEY_BITS);
        let one = 0x80 >> (bit % 8);
        value[bit / 8] ^= one;
        mask[bit / 8] |= one;
    }
    TernaryKey { value: std::array::from_fn(|at| value[at] & mask[at]), mask }
}

/// Returns a command that writes an entry.
pub fn write(
    chance: &mut Rng,
    index: u16,
    slices: &[KeySlice; KEY_SLICES],
    port: u8,
    frames: &[Vec<u8>],
) -> PpuCommand {
    let frame = &frames[chance.usize(..frames.len())];
    PpuCommand::Write { index, key: key(chance, slices, port, frame), action: action(chance) }
}

/// Commands that replace the whole program by a random one. Each is for the PPU of this number.
pub fn random(
    chance: &mut Rng,
    (ppus, entries): (u8, u16),
    port: u8,
    frames: &[Vec<u8>],
) -> Vec<(u8, PpuCommand)> {
    let mut commands = Vec::new();
    for ppu in 0..ppus {
        let slices = std::array::from_fn(|_| slice(chance));
        commands.push((ppu, PpuCommand::Select { slices }));
        let share = chance.f32() * chance.f32();
        for index in 0..entries {
            let command = match chance.f32() < share {
                true => write(chance, index, &slices, port, frames),
                false => PpuCommand::Remove { index },
            };
            commands.push((ppu, command));
        }
    }
    commands
}

/// A random change of the entry with this index: it is written, removed, or gets another action.
pub fn change(
    chance: &mut Rng,
    index: u16,
    slices: &[KeySlice; KEY_SLICES],
    port: u8,
    frames: &[Vec<u8>],
) -> PpuCommand {
    match chance.u8(..4) {
        0 => PpuCommand::Remove { index },
        1 => PpuCommand::Act { index, action: action(chance) },
        _ => write(chance, index, slices, port, frames),
    }
}
