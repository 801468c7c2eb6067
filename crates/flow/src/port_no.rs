// SPDX-License-Identifier: Apache-2.0
//! Port numbers, and the reserved ports of OpenFlow 1.3 (OFPP_*).

use crate::PortNo;

/// Highest number of a real port.
pub const MAX: PortNo = PortNo(0xffff_ff00);
/// Ingress port of the packet.
pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
/// The first table of the pipeline. Allowed in packet-outs only.
pub const TABLE: PortNo = PortNo(0xffff_fff9);
/// Forwarding as a learning bridge.
pub const NORMAL: PortNo = PortNo(0xffff_fffa);
/// Every port except the ingress port and ports with flooding disabled.
pub const FLOOD: PortNo = PortNo(0xffff_fffb);
/// Every port except the ingress port.
pub const ALL: PortNo = PortNo(0xffff_fffc);
/// The controller.
pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
/// Network stack of the switch itself.
pub const LOCAL: PortNo = PortNo(0xffff_fffe);
/// No port, or any port.
pub const ANY: PortNo = PortNo(0xffff_ffff);

/// Returns the name of a reserved port as ovs-ofctl writes it.
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

/// Returns whether `port` is the number of a real port.
#[must_use]
pub fn is_real(port: PortNo) -> bool {
    (PortNo(1)..=MAX).contains(&port)
}

/// Returns whether this ingress port of a packet-out means that the packet was not received on a port.
/// OpenFlow 1.3 requires CONTROLLER. Open vSwitch also accepts the other values, and its tools send ANY.
#[must_use]
pub fn is_none(in_port: PortNo) -> bool {
    matches!(in_port, PortNo(0) | CONTROLLER | LOCAL | ANY)
}
