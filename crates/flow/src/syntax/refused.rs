// SPDX-License-Identifier: Apache-2.0
//! Keys and actions of ovs-ofctl that OpenFlow 1.3 or Shunt does not have, each with a replacement.

/// Returns why this match key or setting is refused, or `None` if Open vSwitch has no such key.
pub(super) fn refused_key(key: &str) -> Option<String> {
    let is_register = |prefix: &str| {
        key.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let reason = match key {
        "ip_frag" | "nw_frag" => {
            "matches fragments, which is not in OpenFlow 1.3's basic class; match the bits of the IPv4 header with \
             slice(l3,50,14)=value/mask"
        }
        "nw_ttl" | "ip_ttl" => {
            "matches the TTL, which is not in OpenFlow 1.3's basic class; use slice(l3,64,8) for IPv4, \
             slice(l3,56,8) for IPv6"
        }
        "tcp_flags" => {
            "matches TCP flags, which is not in OpenFlow 1.3's basic class; use slice(l4,103,9)=value/mask"
        }
        "mpls_ttl" => "matches the MPLS TTL, which is not in OpenFlow 1.3's basic class; use slice(l3,24,8)",
        "importance" => "belongs to OpenFlow 1.4; OpenFlow 1.3 has no eviction, so leave it out",
        "fragment" | "frag" => "is not a field of OpenFlow 1.3; use slice(l3,50,14)=value/mask",
        "packet_type" => {
            "belongs to OpenFlow 1.5; all packets here begin with an Ethernet header, so leave it out"
        }
        "actset_output" => "belongs to OpenFlow 1.5; OpenFlow 1.3 has no such field",
        "conj_id" | "recirc_id" | "dp_hash" | "pkt_mark" | "skb_mark" | "skb_priority" | "vlan_tci1" => {
            "is internal to Open vSwitch and has no meaning here; leave it out"
        }
        "nd_options_type" | "nd_reserved" => {
            "is Open vSwitch's extension; use slice(l4,offset,length) for bits of the ICMPv6 message"
        }
        _ if is_register("reg") || is_register("xreg") || is_register("xxreg") => {
            "is a register of Open vSwitch; use the 64 bits of metadata (written with write_metadata)"
        }
        _ if key.starts_with("ct_") => {
            "belongs to Open vSwitch's connection tracker, which this switch lacks"
        }
        _ if key.starts_with("nsh_") => "is a field of NSH; use slice(l3,offset,length)",
        _ if key.starts_with("tun_") || key.starts_with("tunnel_") || key.starts_with("gtpu_") => {
            "is Open vSwitch's tunnel field; OpenFlow 1.3 has tun_id only"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}

/// Returns why this action is refused, or `None` if Open vSwitch has no such action.
pub(super) fn refused_action(name: &str) -> Option<&'static str> {
    const METADATA: &str = "moves bits between fields, which OpenFlow 1.3 cannot do; write constants with set_field or \
                            write_metadata";
    Some(match name {
        "resubmit" => {
            "is Open vSwitch's action; continue in a higher table with goto_table:N (or goto_direct(table,index))"
        }
        "learn" => {
            "is Open vSwitch's action; let the controller add entries, or use NORMAL, which learns MAC addresses"
        }
        "move" | "push" | "pop" | "stack_push" | "stack_pop" => METADATA,
        "load" => "is Open vSwitch's action; use set_field:value/mask->field (write_metadata for registers)",
        "ct" | "ct_clear" | "nat" => "belongs to Open vSwitch's connection tracker, which this switch lacks",
        "conjunction" => {
            "is Open vSwitch's action; write the entries out, or match in two tables with metadata"
        }
        "bundle" | "bundle_load" | "multipath" => {
            "is Open vSwitch's action; use a group of type select with group:N"
        }
        "note" => "is Open vSwitch's action; put the mark into the cookie, or after # in the file",
        "sample" => "is Open vSwitch's action; use a meter (meter:N), or output to the controller",
        "output_trunc" => "truncates packets, which OpenFlow 1.3 cannot do",
        "clone" => "is Open vSwitch's action; use a group of type all with group:N",
        "exit" => "is Open vSwitch's action; without goto_table the pipeline ends by itself, so leave it out",
        "fin_timeout" => "is Open vSwitch's action; use idle_timeout",
        "set_tunnel64" => "is Open vSwitch's name; use set_tunnel:N (64 bits here)",
        "pop_queue" => "is Open vSwitch's action; choose another queue with set_queue:N",
        "check_pkt_larger" | "encap" | "decap" | "delete_field" | "delete_learned" | "dec_nsh_ttl"
        | "unroll_xlate" | "debug_recirc" | "debug_slow" => {
            "is Open vSwitch's action and has no counterpart in OpenFlow 1.3"
        }
        "table" => "is a port for packet-outs only; in a flow, continue with goto_table:N",
        "none" | "any" => "is not an output port; use drop to output nowhere",
        _ => return None,
    })
}
