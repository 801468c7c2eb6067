// SPDX-License-Identifier: Apache-2.0
//! Outcome of a packet. The number of received packets equals the sum of forwarded, consumed, dropped (by
//! reason) and held packets. Dropped copies of other packets are counted separately, under the same reasons.

/// Reason why a packet was sent to the controller (OFPR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketInReason {
    /// The packet was sent by a table-miss entry (priority 0, matches everything).
    NoMatch,
    /// The packet was sent by an output action of another entry.
    Action,
    /// A TTL of 0 or 1 was to be decremented; see [`crate::Settings`].
    InvalidTtl,
}

/// Outcome of a packet as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// At least one copy went to a port.
    Forwarded,
    /// No copy went to a port, but at least one went to the controller.
    Consumed,
    /// No copy went to a port or to the controller.
    Dropped(DropReason),
}

macro_rules! reasons {
    ($(#[doc = $doc:literal] $name:ident = $text:literal;)*) => {
        /// Reason for which a packet, or a copy of it, was dropped. A packet whose copies were all dropped is
        /// counted under the last reason.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum DropReason { $(#[doc = $doc] $name,)* }

        impl DropReason {
            /// All reasons, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the reason's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the description of the reason, for users.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }.trim_ascii()
            }
        }
    };
}

reasons! {
    /// The frame is shorter than an Ethernet header (14 bytes).
    Runt = "runt";
    /// The ingress port is unknown, down or does not receive (NO_RECV).
    PortNotReceiving = "port_not_receiving";
    /// An IP fragment arrived while fragments are dropped.
    Fragment = "fragment";
    /// No entry matched, and the table has no table-miss entry.
    TableMiss = "table_miss";
    /// The action set held no output, and no action sent the packet anywhere.
    NoOutput = "no_output";
    /// The packet was output to a port that does not exist.
    NoSuchPort = "no_such_port";
    /// The packet was output to a port that is down.
    PortDown = "port_down";
    /// The packet was output to a port that does not forward (NO_FWD).
    PortNotForwarding = "port_not_forwarding";
    /// The packet was output to its ingress port by number instead of IN_PORT, or NORMAL chose that port.
    IngressPort = "ingress_port";
    /// FLOOD, ALL or NORMAL found no port to send to.
    NoFloodPort = "no_flood_port";
    /// NORMAL was applied to an address that bridges do not forward (01:80:c2:00:00:00 to 0f).
    ReservedMulticast = "reserved_multicast";
    /// NORMAL got a frame of a VLAN that the ingress port, or the port of the address, does not carry.
    WrongVlan = "wrong_vlan";
    /// A broadcast exceeded the storm limit of its ingress port.
    StormBroadcast = "storm_broadcast";
    /// A packet to a group address exceeded the storm limit of its ingress port.
    StormMulticast = "storm_multicast";
    /// A packet to an address that is not learned exceeded the storm limit of its ingress port.
    StormUnknownUnicast = "storm_unknown_unicast";
    /// The ingress port sends no packet-ins to the controller (NO_PACKET_IN).
    NoPacketIn = "no_packet_in";
    /// An action needs a VLAN tag and the packet has none.
    MissingVlan = "missing_vlan";
    /// An action needs an MPLS shim and the packet has none.
    MissingMpls = "missing_mpls";
    /// An action needs another header that the packet lacks or that is cut short.
    MissingHeader = "missing_header";
    /// A TTL of 0 or 1 was to be decremented.
    TtlExpired = "ttl_expired";
    /// A pushed header does not fit into the frame's headroom.
    NoHeadroom = "no_headroom";
    /// The packet's action set has more set-field actions than it can hold.
    ActionSetFull = "action_set_full";
    /// The packet exceeds the rate of a meter's drop band.
    MeterBand = "meter_band";
    /// The packet was sent to a group that does not exist.
    NoSuchGroup = "no_such_group";
    /// The packet was sent to a group that has no usable bucket.
    NoLiveBucket = "no_live_bucket";
    /// An action is not supported by this data plane.
    UnsupportedAction = "unsupported_action";
    /// A tagged packet (KeyFlow, PolKA, Tag-and-Forward) arrived on a port that is not trusted.
    UntrustedTag = "untrusted_tag";
    /// The header of a tagged packet is cut short, or its version or length is invalid.
    MalformedTag = "malformed_tag";
    /// The residue of the packet's key is not a label of this switch.
    NoLabel = "no_label";
    /// The hop limit of a tagged packet is exhausted.
    HopLimit = "hop_limit";
    /// A tag leads to no gate of this switch, or back to the gate of arrival.
    NoGate = "no_gate";
    /// A tagged packet is longer than the MTU of its output port.
    OverMtu = "over_mtu";
    /// No free frame was available for a copy.
    NoBuffer = "no_buffer";
    /// The path to the controller is full.
    PacketInFull = "packet_in_full";
    /// A packet-in of a table-miss entry exceeded its rate limit.
    PacketInRateNoMatch = "packet_in_rate_no_match";
    /// A packet-in of another entry exceeded its rate limit.
    PacketInRateAction = "packet_in_rate_action";
    /// A packet-in for an expired TTL exceeded its rate limit.
    PacketInRateInvalidTtl = "packet_in_rate_invalid_ttl";
    /// The controller was asked about the flow before, and the packet cannot wait, because it was changed.
    PacketInQuenched = "packet_in_quenched";
    /// The path to the output port is full.
    TransmitFull = "transmit_full";
    /// An egress queue of the port is full, or frames became scarce while the packet waited in it.
    QueueFull = "queue_full";
    /// The backlog has reached its limit for packets known to be normal, or frames are scarce.
    BacklogNormal = "backlog_normal";
    /// The backlog has reached its limit for packets of unknown flows from this port, or frames are scarce.
    BacklogUnknown = "backlog_unknown";
    /// The port has too many packets in the port cache, or there is no memory for them.
    MissQueueFull = "miss_queue_full";
    /// The packet waited in the port cache, and the search for its flow got no answer in time.
    MissTimeout = "miss_timeout";
    /// The controller sent the packet from a datapath without workers, whose ports have no devices.
    NoWorker = "no_worker";
    /// The packet was queued in the switch when it shut down.
    Shutdown = "shutdown";
}

impl DropReason {
    /// Reasons that report a lack of space or buffers.
    pub const SCARCITY: &'static [Self] = &[
        Self::NoBuffer,
        Self::PacketInFull,
        Self::PacketInRateNoMatch,
        Self::PacketInRateAction,
        Self::PacketInRateInvalidTtl,
        Self::PacketInQuenched,
        Self::TransmitFull,
        Self::QueueFull,
        Self::BacklogNormal,
        Self::BacklogUnknown,
        Self::MissQueueFull,
        Self::MissTimeout,
    ];

    /// Returns whether the reason is in [`Self::SCARCITY`].
    #[must_use]
    pub fn is_scarcity(self) -> bool {
        Self::SCARCITY.contains(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_different_name() {
        let mut names: Vec<_> = DropReason::ALL.iter().map(|r| r.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), DropReason::ALL.len());
        for (at, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, at);
        }
    }
}
