// SPDX-License-Identifier: Apache-2.0
//! Register map of the device. Registers have 64 bits, at consecutive numbers.

/// Access of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    ReadWrite,
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name in the generated files.
    pub name: &'static str,
    /// Number of the register.
    pub number: u8,
    /// Access.
    pub access: Access,
    /// Meaning, for the generated files.
    pub meaning: &'static str,
}

const fn register(name: &'static str, number: u8, access: Access, meaning: &'static str) -> Register {
    Register { name, number, access, meaning }
}

/// Settings and properties, in ascending order.
pub const REGISTERS: [Register; 4] = [
    register("version", 0, Access::Read, "version of the message protocol"),
    register("ppus", 1, Access::Read, "number of PPUs"),
    register("entries", 2, Access::Read, "entries of each PPU"),
    register("miss_output", 3, Access::ReadWrite, "OUTPUT_* of packets for which no PPU set an output"),
];

/// Number of the first counter.
pub const COUNTER_FIRST: u8 = 16;

/// Counters of frames, in the order of their registers from [`COUNTER_FIRST`] on. Each frame that arrives is
/// counted in `received`, and in exactly one of the others.
pub const COUNTERS: [(&str, &str); 9] = [
    ("received", "frames that arrived, whole or not"),
    ("to_port", "frames sent to a port"),
    ("to_controller", "frames sent to the control plane"),
    ("discarded", "frames without an output"),
    ("bad_edit", "frames dropped because an edit did not fit into the frame's copied part"),
    ("ttl_expired", "frames dropped because of TTL or hop limit"),
    ("runt", "frames shorter than an Ethernet header"),
    ("bad_frame", "frames longer than the maximum, aborted, or with a bad FCS"),
    ("no_room", "frames dropped because the ingress buffer was full"),
];
