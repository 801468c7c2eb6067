// SPDX-License-Identifier: Apache-2.0
//! Port numbers and the reserved ones of OpenFlow 1.3 (OFPP_*).

/// A port number: 1 to [`MAX`] are real ports.
pub type PortNo = u32;

/// Highest number of a real port.
pub const MAX: PortNo = 0xffff_ff00;
/// The port the packet came in by.
pub const IN_PORT: PortNo = 0xffff_fff8;
/// Start of the pipeline (packet-out only).
pub const TABLE: PortNo = 0xffff_fff9;
/// Learning-bridge forwarding.
pub const NORMAL: PortNo = 0xffff_fffa;
/// All ports but the incoming and those with flooding off.
pub const FLOOD: PortNo = 0xffff_fffb;
/// All ports but the incoming.
pub const ALL: PortNo = 0xffff_fffc;
/// The controller.
pub const CONTROLLER: PortNo = 0xffff_fffd;
/// The switch's own network stack.
pub const LOCAL: PortNo = 0xffff_fffe;
/// No port, or any port.
pub const ANY: PortNo = 0xffff_ffff;

/// The reserved port's name as ovs-ofctl writes it, if it has one.
#[must_use]
pub fn reserved_name(port: PortNo) -> Option<&'static str> {
    Some(match port {
        IN_PORT => "IN_PORT",
        TABLE => "TABLE",
        NORMAL => "NORMAL",
        FLOOD => "FLOOD",
        ALL => "ALL",
        CONTROLLER => "CONTROLLER",
        LOCAL => "LOCAL",
        ANY => "ANY",
        _ => return None,
    })
}

/// True for the number of a real port.
#[must_use]
pub fn is_real(port: PortNo) -> bool {
    (1..=MAX).contains(&port)
}

/// Whether a controller says by this ingress port that its packet came in by no port of the switch. OpenFlow 1.3 asks for
/// CONTROLLER; Open vSwitch takes these as well, and its tools send ANY.
#[must_use]
pub fn is_none(in_port: PortNo) -> bool {
    matches!(in_port, 0 | CONTROLLER | LOCAL | ANY)
}
