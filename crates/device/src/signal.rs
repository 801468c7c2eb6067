// SPDX-License-Identifier: Apache-2.0
//! Packed signals between modules of the RTL, for which the test benches need the same layout.
//!
//! They never leave the device. Fields are listed from the most significant bit on.

use crate::action::ACTION_BYTES;
use crate::key::{KEY_BITS, KEY_SLICES};

/// Field of a packed signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalField {
    /// Name in the generated files.
    pub name: &'static str,
    /// Number of bits.
    pub width: u16,
    /// Type in SystemVerilog, or an empty string for plain bits.
    pub kind: &'static str,
    /// Meaning, for the generated files.
    pub meaning: &'static str,
}

const fn field(name: &'static str, width: u16, meaning: &'static str) -> SignalField {
    SignalField { name, width, kind: "", meaning }
}

const fn typed(name: &'static str, width: u16, kind: &'static str, meaning: &'static str) -> SignalField {
    SignalField { name, width, kind, meaning }
}

const ACTION_BITS: u16 = ACTION_BYTES as u16 * 8;

/// Fields of the configuration of one slice.
pub const SLICE_FIELDS: [SignalField; 3] =
    [field("base", 2, "BASE_*"), field("offset", 8, "offset in bytes"), field("bytes", 3, "bytes, 0 to 4")];

/// Bits of the configuration of all slices.
const SLICES_BITS: u16 =
    (SLICE_FIELDS[0].width + SLICE_FIELDS[1].width + SLICE_FIELDS[2].width) * KEY_SLICES as u16;

/// Fields of a command for the table writer.
pub const COMMAND_FIELDS: [SignalField; 7] = [
    field("code", 2, "COMMAND_*"),
    field("ppu", 8, "number of the PPU"),
    field("index", 16, "index of the entry"),
    field("value", KEY_BITS as u16, "value of the key"),
    field("mask", KEY_BITS as u16, "bits of the key that are compared"),
    typed("action", ACTION_BITS, "action_t", "what the entry does"),
    typed("slices", SLICES_BITS, "key_slice_t [KEY_SLICES-1:0]", "the last element is the key's first slice"),
];

/// Fields of the word that states where a frame goes.
pub const EGRESS_FIELDS: [SignalField; 4] = [
    field("output_kind", 2, "OUTPUT_PORT or OUTPUT_CONTROLLER"),
    field("port", 8, "output port of OUTPUT_PORT"),
    field("in_port", 8, "ingress port"),
    field("ppu", 8, "PPU that set the output, 255 if none did"),
];

/// Fields of the addresses that the device's messages use.
pub const ADDRESS_FIELDS: [SignalField; 6] = [
    field("device_mac", 48, "MAC address of the device"),
    field("device_ip", 32, "IPv4 address of the device"),
    field("device_port", 16, "UDP port of the device"),
    field("daemon_mac", 48, "MAC address of the daemon"),
    field("daemon_ip", 32, "IPv4 address of the daemon"),
    field("daemon_port", 16, "UDP port of the daemon"),
];
