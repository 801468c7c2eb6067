// SPDX-License-Identifier: Apache-2.0
//! Names of the keys that may precede `actions=`.

use crate::Field;

/// Meaning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A match field.
    Field(Field),
    /// A field whose meaning depends on the protocol: IPv4 or ARP, ICMP or ICMPv6, or TCP, UDP or SCTP. The
    /// value is the first of these fields.
    Generic(Field),
    /// A protocol name: the EtherType and, for some protocols, the upper-layer protocol.
    Protocol(u16, Option<u8>),
    DlVlan,
    VlanTci,
    VlanPcp,
    NwTos,
    Slice,
    Index,
    Table,
    Priority,
    Cookie,
    IdleTimeout,
    HardTimeout,
    OutPort,
    OutGroup,
    SendFlowRem,
    CheckOverlap,
    ResetCounts,
    NoPacketCounts,
    NoByteCounts,
    LowLatency,
    /// A statistic that `dump-flows` prints, ignored so that a dump can be loaded.
    Statistic,
    Actions,
}

macro_rules! keys {
    ($($($name:literal)|+ => $key:expr;)*) => {
        /// Finds a key by its name.
        pub(super) fn key(name: &str) -> Option<Key> {
            Some(match name {
                $($($name)|+ => $key,)*
                _ => return None,
            })
        }

        /// Names of all keys.
        pub(super) const KEY_NAMES: &[&str] = &[$($($name),+),*];
    };
}

keys! {
    "in_port" => Key::Field(Field::InPort);
    "in_phy_port" => Key::Field(Field::InPhyPort);
    "metadata" => Key::Field(Field::Metadata);
    "dl_dst" | "eth_dst" => Key::Field(Field::EthDst);
    "dl_src" | "eth_src" => Key::Field(Field::EthSrc);
    "dl_type" | "eth_type" => Key::Field(Field::EthType);
    "vlan_vid" => Key::Field(Field::VlanVid);
    "dl_vlan" => Key::DlVlan;
    "vlan_tci" => Key::VlanTci;
    "dl_vlan_pcp" | "vlan_pcp" => Key::VlanPcp;
    "ip_dscp" => Key::Field(Field::IpDscp);
    "nw_tos" => Key::NwTos;
    "nw_ecn" | "ip_ecn" => Key::Field(Field::IpEcn);
    "nw_proto" | "ip_proto" => Key::Generic(Field::IpProto);
    "nw_src" | "ip_src" => Key::Generic(Field::Ipv4Src);
    "nw_dst" | "ip_dst" => Key::Generic(Field::Ipv4Dst);
    "tp_src" => Key::Generic(Field::TcpSrc);
    "tp_dst" => Key::Generic(Field::TcpDst);
    "tcp_src" => Key::Field(Field::TcpSrc);
    "tcp_dst" => Key::Field(Field::TcpDst);
    "udp_src" => Key::Field(Field::UdpSrc);
    "udp_dst" => Key::Field(Field::UdpDst);
    "sctp_src" => Key::Field(Field::SctpSrc);
    "sctp_dst" => Key::Field(Field::SctpDst);
    "icmp_type" => Key::Generic(Field::Icmpv4Type);
    "icmp_code" => Key::Generic(Field::Icmpv4Code);
    "icmpv6_type" => Key::Field(Field::Icmpv6Type);
    "icmpv6_code" => Key::Field(Field::Icmpv6Code);
    "arp_op" => Key::Field(Field::ArpOp);
    "arp_spa" => Key::Field(Field::ArpSpa);
    "arp_tpa" => Key::Field(Field::ArpTpa);
    "arp_sha" => Key::Field(Field::ArpSha);
    "arp_tha" => Key::Field(Field::ArpTha);
    "ipv6_src" => Key::Field(Field::Ipv6Src);
    "ipv6_dst" => Key::Field(Field::Ipv6Dst);
    "ipv6_label" => Key::Field(Field::Ipv6Flabel);
    "nd_target" => Key::Field(Field::NdTarget);
    "nd_sll" => Key::Field(Field::NdSll);
    "nd_tll" => Key::Field(Field::NdTll);
    "mpls_label" => Key::Field(Field::MplsLabel);
    "mpls_tc" => Key::Field(Field::MplsTc);
    "mpls_bos" => Key::Field(Field::MplsBos);
    "pbb_isid" => Key::Field(Field::PbbIsid);
    "tun_id" | "tunnel_id" => Key::Field(Field::TunnelId);
    "ipv6_exthdr" => Key::Field(Field::Ipv6Exthdr);
    "ip" => Key::Protocol(0x0800, None);
    "icmp" => Key::Protocol(0x0800, Some(1));
    "tcp" => Key::Protocol(0x0800, Some(6));
    "udp" => Key::Protocol(0x0800, Some(17));
    "sctp" => Key::Protocol(0x0800, Some(132));
    "ipv6" | "ip6" => Key::Protocol(0x86dd, None);
    "icmp6" => Key::Protocol(0x86dd, Some(58));
    "tcp6" => Key::Protocol(0x86dd, Some(6));
    "udp6" => Key::Protocol(0x86dd, Some(17));
    "sctp6" => Key::Protocol(0x86dd, Some(132));
    "arp" => Key::Protocol(0x0806, None);
    "rarp" => Key::Protocol(0x8035, None);
    "mpls" => Key::Protocol(0x8847, None);
    "mplsm" => Key::Protocol(0x8848, None);
    "slice" => Key::Slice;
    "index" => Key::Index;
    "table" => Key::Table;
    "priority" => Key::Priority;
    "cookie" => Key::Cookie;
    "idle_timeout" => Key::IdleTimeout;
    "hard_timeout" => Key::HardTimeout;
    "out_port" => Key::OutPort;
    "out_group" => Key::OutGroup;
    "send_flow_rem" => Key::SendFlowRem;
    "check_overlap" => Key::CheckOverlap;
    "reset_counts" => Key::ResetCounts;
    "no_packet_counts" => Key::NoPacketCounts;
    "no_byte_counts" => Key::NoByteCounts;
    "low_latency" => Key::LowLatency;
    "duration" | "n_packets" | "n_bytes" | "idle_age" | "hard_age" => Key::Statistic;
    "actions" | "action" => Key::Actions;
}

/// Returns the match field with this name, as the target of a set-field.
pub(super) fn field_named(name: &str) -> Option<Field> {
    match key(name)? {
        Key::Field(field) => Some(field),
        Key::VlanPcp => Some(Field::VlanPcp),
        Key::Generic(
            field
            @ (Field::IpProto | Field::Ipv4Src | Field::Ipv4Dst | Field::Icmpv4Type | Field::Icmpv4Code),
        ) => Some(field),
        _ => None,
    }
}
