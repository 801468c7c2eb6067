// SPDX-License-Identifier: Apache-2.0
//! Packs commands as `command_t` of `rtl/pkg/pipeline_pkg.sv`.

use device::action::ACTION_BYTES;
use device::key::{KEY_BYTES, KEY_SLICES};
use device::{KeySlice, PpuCommand, TernaryKey};

/// Words of a packed command, the least significant one first.
pub type PackedCommand = [u32; 16];

/// Bits that are appended at the least significant end.
#[derive(Default)]
struct Packer(PackedCommand);

impl Packer {
    fn push(&mut self, value: u64, width: u32) {
        for bit in (0..width).rev() {
            let mut carry = (value >> bit & 1) as u32;
            for word in &mut self.0 {
                let next = *word >> 31;
                *word = *word << 1 | carry;
                carry = next;
            }
        }
    }

    fn push_bytes(&mut self, bytes: &[u8], width: usize) {
        for (at, byte) in bytes.iter().enumerate() {
            let rest = (width - at * 8).min(8) as u32;
            self.push(u64::from(byte >> (8 - rest)), rest);
        }
    }
}

/// Packs a command for a PPU, with an index that need not be the command's.
pub fn pack(ppu: u8, command: &PpuCommand, index: u16) -> PackedCommand {
    let mut packer = Packer::default();
    let none = TernaryKey { value: [0; KEY_BYTES], mask: [0; KEY_BYTES] };
    let empty = [KeySlice::default(); KEY_SLICES];
    let no_action = [0; ACTION_BYTES];
    let (code, key, action, slices) = match command {
        PpuCommand::Select { slices } => (0, &none, no_action, slices),
        PpuCommand::Write { key, action, .. } => (1, key, action.to_bytes(), &empty),
        PpuCommand::Remove { .. } => (2, &none, no_action, &empty),
        PpuCommand::Act { action, .. } => (3, &none, action.to_bytes(), &empty),
    };
    packer.push(code, 2);
    packer.push(ppu.into(), 8);
    packer.push(index.into(), 16);
    packer.push_bytes(&key.value, device::key::KEY_BITS);
    packer.push_bytes(&key.mask, device::key::KEY_BITS);
    packer.push_bytes(&action, ACTION_BYTES * 8);
    for slice in slices {
        packer.push(slice.base as u64, 2);
        packer.push(slice.offset.into(), 8);
        packer.push(slice.bytes.into(), 3);
    }
    packer.0
}
