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

/// Counters of the data plane, in the order of their registers from [`COUNTER_FIRST`] on. Each frame that
/// enters the data plane is counted in `received`, and in exactly one of the others.
///
/// The registers continue with [`SHELL_COUNTERS`], [`CONTROL_COUNTERS`], and [`CHANNEL_COUNTERS`] of each
/// channel. A Stats_reply has all of them in this order, so its length gives the number of channels.
pub const COUNTERS: [(&str, &str); 9] = [
    ("received", "frames that arrived, whole or not"),
    ("to_port", "frames sent to a port"),
    ("to_controller", "frames sent to the control plane"),
    ("discarded", "frames without an output"),
    ("bad_edit", "frames dropped because an action did not fit the packet"),
    ("ttl_expired", "frames dropped because of TTL or hop limit"),
    ("runt", "frames shorter than an Ethernet header"),
    ("bad_frame", "frames longer than the maximum, malformed, aborted, or with a bad FCS"),
    ("no_room", "frames dropped because the ingress buffer was full"),
];

/// Counters of the NIC shell.
pub const SHELL_COUNTERS: [(&str, &str); 2] = [
    ("no_channel", "frames for a port that has no channel"),
    ("controller_full", "frames for the control plane dropped because its FIFO was full"),
];

/// Counters of the controller processing logic. Each frame from the control plane's channel is counted in
/// `control_received`, and is then counted in exactly one counter from `control_bad_frame` to
/// `control_packet_out`.
pub const CONTROL_COUNTERS: [(&str, &str); 18] = [
    ("control_received", "frames from the control plane's channel, whole or not"),
    ("control_bad_frame", "frames that are aborted, longer than a message, or shorter than its headers"),
    ("control_foreign", "frames that are no UDP datagram to the device's addresses"),
    ("control_spoofed", "datagrams whose source is not the daemon's addresses"),
    ("control_checksum", "datagrams with a wrong or missing checksum"),
    ("control_length", "datagrams whose lengths contradict each other or the message's type"),
    ("control_version", "messages of another version"),
    ("control_type", "messages of a type that the device does not accept"),
    ("control_value", "messages with a value that is not allowed"),
    ("control_no_room", "messages dropped because the message buffer was full"),
    ("control_stale", "Flow_mods and Packet_outs outside the window of transaction IDs"),
    ("control_duplicate", "duplicates, of which a Flow_mod was answered again"),
    ("control_late", "Flow_mods refused because a newer one had been executed"),
    ("control_flow_mod", "Flow_mods executed, or refused because PPU or index does not exist"),
    ("control_request", "other requests answered"),
    ("control_packet_out", "Packet_outs sent on"),
    ("control_packet_in", "Packet_ins sent"),
    ("control_too_long", "frames for the control plane dropped because a Packet_in cannot hold them"),
];

/// Counters of each channel.
pub const CHANNEL_COUNTERS: [(&str, &str); 6] = [
    ("rx_frames", "frames received, without those in rx_dropped"),
    ("rx_bytes", "their bytes"),
    ("rx_dropped", "frames dropped because the channel's ingress FIFO was full"),
    ("tx_frames", "frames accepted for sending"),
    ("tx_bytes", "their bytes"),
    ("tx_dropped", "frames dropped because the channel's egress FIFO was full"),
];
