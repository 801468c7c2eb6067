// SPDX-License-Identifier: Apache-2.0
//! Prints matches in the order and notation of ovs-ofctl.

use super::value::{Form, form};
use crate::{Field, FieldMatch, Match, PortNo, port_no};
use std::fmt::{self, Display, Formatter};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Value of a field with its notation.
pub(super) struct Value {
    pub form: Form,
    pub value: u128,
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = self.value;
        match self.form {
            Form::Decimal => write!(f, "{value}"),
            Form::Hex { digits } => write!(f, "0x{value:0digits$x}"),
            Form::Ipv4 => write!(f, "{}", Ipv4Addr::from(value as u32)),
            Form::Ipv6 => write!(f, "{}", Ipv6Addr::from(value)),
            Form::Port => match port_no::reserved_name(PortNo(value as u32)) {
                // The text `ANY` would mean that there is no condition.
                Some(name) if value as u32 != port_no::ANY.0 => f.write_str(name),
                _ => write!(f, "{value}"),
            },
            Form::Mac => {
                for byte in (0..6).rev() {
                    write!(f, "{:02x}", value >> (8 * byte) & 0xff)?;
                    if byte > 0 {
                        f.write_str(":")?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Prints `VALUE`, `VALUE/PREFIX` or `VALUE/MASK`.
pub(super) struct MaskedValue {
    pub form: Form,
    pub condition: FieldMatch,
}

impl Display for MaskedValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (form, condition) = (self.form, self.condition);
        if condition.is_exact() {
            return write!(f, "{}", Value { form, value: condition.value });
        }
        // Masks are easier to compare in hexadecimal.
        let form = if matches!(form, Form::Decimal) { Form::Hex { digits: 1 } } else { form };
        write!(f, "{}", Value { form, value: condition.value })?;
        match condition.prefix_len() {
            Some(prefix) if matches!(form, Form::Ipv4 | Form::Ipv6) => write!(f, "/{prefix}"),
            _ => write!(f, "/{}", Value { form, value: condition.mask }),
        }
    }
}

/// Fields that are printed without conversion, in the groups of ovs-ofctl: before the VLAN, after the VLAN,
/// and after the protocol.
const BEFORE_VLAN: &[Field] = &[Field::TunnelId, Field::Metadata, Field::InPort, Field::InPhyPort];
const BEHIND_VLAN: &[Field] = &[Field::EthSrc, Field::EthDst];
const BEHIND_PROTOCOL: &[Field] = &[
    Field::Ipv6Src,
    Field::Ipv6Dst,
    Field::Ipv6Flabel,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::ArpSpa,
    Field::ArpTpa,
    Field::ArpOp,
    Field::ArpSha,
    Field::ArpTha,
    Field::IpProto,
    Field::IpDscp,
    Field::IpEcn,
    Field::MplsLabel,
    Field::MplsTc,
    Field::MplsBos,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
    Field::Icmpv6Type,
    Field::Icmpv6Code,
    Field::NdTarget,
    Field::NdSll,
    Field::NdTll,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::PbbIsid,
    Field::Ipv6Exthdr,
];

/// Returns the protocol's name, and whether it implies the upper-layer protocol.
fn protocol_name(matching: &Match) -> Option<(&'static str, bool)> {
    let exact = |field| matching.get(field).filter(|c| c.is_exact()).map(|c| c.value);
    Some(match (exact(Field::EthType)?, exact(Field::IpProto)) {
        (0x0800, Some(1)) => ("icmp", true),
        (0x0800, Some(6)) => ("tcp", true),
        (0x0800, Some(17)) => ("udp", true),
        (0x0800, Some(132)) => ("sctp", true),
        (0x0800, _) => ("ip", false),
        (0x86dd, Some(58)) => ("icmp6", true),
        (0x86dd, Some(6)) => ("tcp6", true),
        (0x86dd, Some(17)) => ("udp6", true),
        (0x86dd, Some(132)) => ("sctp6", true),
        (0x86dd, _) => ("ipv6", false),
        (0x0806, _) => ("arp", false),
        (0x8035, _) => ("rarp", false),
        (0x8847, _) => ("mpls", false),
        (0x8848, _) => ("mplsm", false),
        _ => return None,
    })
}

/// Returns the name that ovs-ofctl prints for the field next to its protocol.
fn name_in_match(field: Field) -> &'static str {
    match field {
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => "tp_src",
        Field::TcpDst | Field::UdpDst | Field::SctpDst => "tp_dst",
        Field::Icmpv6Type => "icmp_type",
        Field::Icmpv6Code => "icmp_code",
        named => named.name(),
    }
}

/// Writer that separates parts by commas.
struct Parts<'a, 'b> {
    f: &'a mut Formatter<'b>,
    any: bool,
}

impl Parts<'_, '_> {
    fn part(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        if self.any {
            self.f.write_str(",")?;
        }
        self.any = true;
        self.f.write_fmt(text)
    }

    fn fields(&mut self, matching: &Match, fields: &[Field]) -> fmt::Result {
        for &field in fields {
            if let Some(condition) = matching.get(field) {
                if field == Field::IpDscp {
                    // The field is printed as a complete ToS byte.
                    self.part(format_args!("nw_tos={}", condition.value << 2))?;
                    continue;
                }
                let value = MaskedValue { form: form(field), condition };
                self.part(format_args!("{}={value}", name_in_match(field)))?;
            }
        }
        Ok(())
    }

    fn vlan_pcp(&mut self, condition: Option<FieldMatch>) -> fmt::Result {
        let Some(condition) = condition else { return Ok(()) };
        self.part(format_args!("dl_vlan_pcp={}", MaskedValue { form: form(Field::VlanPcp), condition }))
    }

    fn vlan(&mut self, matching: &Match) -> fmt::Result {
        let vid = matching.get(Field::VlanVid);
        let pcp = matching.get(Field::VlanPcp);
        let Some(vid) = vid else { return self.fields(matching, &[Field::VlanPcp]) };
        match pcp {
            _ if vid.is_exact() && vid.value >= 0x1000 => {
                self.part(format_args!("dl_vlan={}", vid.value & 0xfff))?;
                self.vlan_pcp(pcp)
            }
            Some(_) if vid.mask == 0x1000 && vid.value == 0x1000 => self.vlan_pcp(pcp),
            _ => {
                let value = vid.value | pcp.map_or(0, |p| p.value << 13);
                let mask = vid.mask | pcp.map_or(0, |p| p.mask << 13);
                self.part(format_args!("vlan_tci=0x{value:04x}/0x{mask:04x}"))
            }
        }
    }
}

impl Display for Match {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = Parts { f, any: false };
        if let Some(index) = self.index() {
            return parts.part(format_args!("index={index}"));
        }
        let protocol = protocol_name(self);
        if let Some((name, _)) = protocol {
            parts.part(format_args!("{name}"))?;
        }
        parts.fields(self, BEFORE_VLAN)?;
        parts.vlan(self)?;
        parts.fields(self, BEHIND_VLAN)?;
        if protocol.is_none() {
            parts.fields(self, &[Field::EthType])?;
        }
        for field in BEHIND_PROTOCOL {
            if *field != Field::IpProto || !protocol.is_some_and(|(_, says_upper)| says_upper) {
                parts.fields(self, std::slice::from_ref(field))?;
            }
        }
        for condition in self.fields() {
            if let Field::Slice(_) = condition.field {
                let value = MaskedValue { form: form(condition.field), condition };
                parts.part(format_args!("{}={value}", condition.field))?;
            }
        }
        Ok(())
    }
}
