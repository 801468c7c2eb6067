// SPDX-License-Identifier: Apache-2.0
//! Parser of the conditions of a match.

use super::ParseOptions;
use super::arguments::Arguments;
use super::error::{Fault, Parsed};
use super::key_names::Key;
use super::scan::Item;
use super::value::{field_value, integer, number_to};
use crate::ext::VID_PRESENT;
use crate::{Field, FieldMatch, Match, MatchError, Slice, SliceBase};

/// VLAN ID that OpenFlow 1.0 uses for untagged packets.
const NO_VLAN: u128 = 0xffff;

struct Condition<'t> {
    of: FieldMatch,
    /// Whether the field's protocol is not known yet.
    generic: bool,
    at: &'t str,
}

/// Collects all conditions, because a field may precede its protocol.
#[derive(Default)]
pub(super) struct Conditions<'t> {
    list: Vec<Condition<'t>>,
    index: Option<(u32, &'t str)>,
}

impl<'t> Conditions<'t> {
    pub fn new() -> Self {
        Self { list: Vec::with_capacity(8), index: None }
    }

    fn push(&mut self, at: &'t str, field: Field, value: u128, mask: u128) {
        self.list.push(Condition { of: FieldMatch { field, value, mask }, generic: false, at });
    }

    fn push_exact(&mut self, at: &'t str, field: Field, value: u128) {
        self.push(at, field, value, field.full_mask());
    }

    /// Adds the condition that an item states. Returns false if `key` is not a condition.
    pub fn take(&mut self, key: Key, item: &Item<'t>, options: ParseOptions<'_>) -> Parsed<'t, bool> {
        let at = item.whole;
        let value =
            || item.value.ok_or_else(|| item.refuse(format!("has no value; write {}=VALUE", item.key)));
        match key {
            Key::Field(field) => {
                let (value, mask) = field_value(field, value()?, options)?;
                self.push(at, field, value, mask);
            }
            Key::Generic(field) => {
                let (value, mask) = field_value(field, value()?, options)?;
                self.list.push(Condition { of: FieldMatch { field, value, mask }, generic: true, at });
            }
            Key::Protocol(eth_type, ip_proto) => {
                if item.argument().is_some() {
                    return Err(item.refuse(format!("takes no value; write {} alone", item.key)));
                }
                self.push_exact(at, Field::EthType, u128::from(eth_type));
                if let Some(proto) = ip_proto {
                    self.push_exact(at, Field::IpProto, u128::from(proto));
                }
            }
            Key::DlVlan => self.take_dl_vlan(at, value()?)?,
            Key::VlanTci => self.take_vlan_tci(item, value()?)?,
            Key::VlanPcp => {
                let (value, mask) = field_value(Field::VlanPcp, value()?, options)?;
                self.push(at, Field::VlanPcp, value, mask);
            }
            Key::NwTos => self.take_nw_tos(at, value()?)?,
            Key::Slice => {
                let field = slice(item.whole, item.arguments)?;
                let (value, mask) = field_value(field, value()?, options)?;
                self.push(at, field, value, mask);
            }
            Key::Index => {
                if self.index.is_some() {
                    return Err(item.refuse("is given twice; give one index"));
                }
                self.index = Some((integer(value()?)?, at));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_dl_vlan(&mut self, at: &'t str, value: &'t str) -> Parsed<'t, ()> {
        if value == "*" || value.eq_ignore_ascii_case("any") {
            return Ok(());
        }
        match number_to(value, NO_VLAN)? {
            NO_VLAN => self.push_exact(at, Field::VlanVid, 0),
            vid if vid < 0x1000 => self.push_exact(at, Field::VlanVid, vid | u128::from(VID_PRESENT)),
            _ => {
                return Err(Fault::new(
                    value,
                    "is not a VLAN ID; write 0 to 4095, or 0xffff for packets without a tag",
                ));
            }
        }
        Ok(())
    }

    /// Parses the 16 bits of a VLAN tag (`vlan_tci`), with the present bit in place of the DEI. 0 matches
    /// untagged packets.
    fn take_vlan_tci(&mut self, item: &Item<'t>, text: &'t str) -> Parsed<'t, ()> {
        if text == "*" || text.eq_ignore_ascii_case("any") {
            return Ok(());
        }
        let (value_text, mask_text) = text.split_once('/').map_or((text, None), |(v, m)| (v, Some(m)));
        let mask = mask_text.map_or(Ok(0xffff), |m| number_to(m, 0xffff))?;
        let value = number_to(value_text, 0xffff)? & mask;
        let (vid_mask, pcp_mask) = (mask & 0x1fff, mask >> 13);
        let (vid, pcp) = (value & 0x1fff, value >> 13);
        let present = u128::from(VID_PRESENT);
        let asks_for_tag = vid_mask & present != 0;
        let (vid, vid_mask) = match pcp_mask {
            0 => (vid, vid_mask),
            // An untagged packet has no PCP to compare.
            _ if asks_for_tag && vid & present == 0 && pcp == 0 => (vid, vid_mask),
            // A PCP other than 0 implies a tag.
            _ if asks_for_tag || pcp != 0 => {
                self.push(item.whole, Field::VlanPcp, pcp, pcp_mask);
                if asks_for_tag { (vid, vid_mask) } else { (vid | present, vid_mask | present) }
            }
            _ => {
                return Err(item.refuse(
                    "matches PCP 0 and packets without a tag, which one entry of OpenFlow 1.3 cannot do; add the present bit 0x1000 to the mask (and to the value, for tagged packets)",
                ));
            }
        };
        if vid_mask != 0 {
            self.push(item.whole, Field::VlanVid, vid, vid_mask);
        }
        Ok(())
    }

    /// Parses a complete ToS byte, and ignores the ECN bits as ovs-ofctl does.
    fn take_nw_tos(&mut self, at: &'t str, value: &'t str) -> Parsed<'t, ()> {
        if value == "*" || value.eq_ignore_ascii_case("any") {
            return Ok(());
        }
        let tos = number_to(value, 0xff)?;
        self.push_exact(at, Field::IpDscp, tos >> 2);
        Ok(())
    }

    fn exact_value(&self, field: Field) -> Option<u128> {
        self.list.iter().find(|c| c.of.field == field && c.of.is_exact()).map(|c| c.of.value)
    }

    /// Returns the match. Error messages quote `whole`.
    pub fn finish(mut self, whole: &'t str) -> Parsed<'t, Match> {
        if let Some((index, at)) = self.index {
            if !self.list.is_empty() {
                return Err(Fault::new(at, MatchError::IndexWithFields(index).to_string()));
            }
            return Ok(Match::at_index(index));
        }
        self.resolve_generic()?;
        // As in ovs-ofctl, a PCP requires a tag, unless the match has another VLAN condition.
        if let Some(pcp) = self.list.iter().find(|c| c.of.field == Field::VlanPcp && c.of.mask != 0)
            && !self.list.iter().any(|c| c.of.field == Field::VlanVid)
        {
            let present = u128::from(VID_PRESENT);
            let at = pcp.at;
            self.push(at, Field::VlanVid, present, present);
        }
        self.drop_repeated();
        Match::new(self.list.iter().map(|c| c.of)).map_err(|error| {
            let name = match &error {
                MatchError::Duplicate(name)
                | MatchError::ValueTooLarge(name, ..)
                | MatchError::ValueOutsideMask(name, ..)
                | MatchError::MaskNotAllowed(name, ..)
                | MatchError::Prerequisite(name, ..) => name.as_str(),
                MatchError::IndexWithFields(_) => "",
            };
            let at = self.list.iter().rev().find(|c| c.of.field.to_string() == name).map_or(whole, |c| c.at);
            Fault::new(at, error.to_string())
        })
    }

    /// Replaces generic fields by the fields of the match's protocol.
    fn resolve_generic(&mut self) -> Parsed<'t, ()> {
        if !self.list.iter().any(|c| c.generic) {
            return Ok(());
        }
        let eth_type = self.exact_value(Field::EthType);
        let arp = matches!(eth_type, Some(0x0806 | 0x8035));
        let ip_proto = if arp { None } else { self.exact_value(Field::IpProto) };
        for c in self.list.iter_mut().filter(|c| c.generic) {
            let field = match c.of.field {
                Field::IpProto if arp => Field::ArpOp,
                Field::Ipv4Src if arp => Field::ArpSpa,
                Field::Ipv4Dst if arp => Field::ArpTpa,
                Field::TcpSrc => transport_field(ip_proto, c.at, true)?,
                Field::TcpDst => transport_field(ip_proto, c.at, false)?,
                Field::Icmpv4Type if eth_type == Some(0x86dd) => Field::Icmpv6Type,
                Field::Icmpv4Code if eth_type == Some(0x86dd) => Field::Icmpv6Code,
                same => same,
            };
            if field != c.of.field && c.of.is_exact() {
                c.of.mask = field.full_mask();
            }
            c.of.field = field;
        }
        Ok(())
    }

    /// Drops repeated conditions that are equal, such as `tcp` and `nw_proto=6`.
    fn drop_repeated(&mut self) {
        let mut kept = 0;
        for at in 0..self.list.len() {
            let of = self.list[at].of;
            if !self.list[..kept].iter().any(|c| c.of == of) {
                self.list.swap(kept, at);
                kept += 1;
            }
        }
        self.list.truncate(kept);
    }
}

/// Returns the port field of a transport protocol.
pub(super) fn transport_field(ip_proto: Option<u128>, at: &str, source: bool) -> Parsed<'_, Field> {
    Ok(match (ip_proto, source) {
        (Some(6), true) => Field::TcpSrc,
        (Some(6), false) => Field::TcpDst,
        (Some(17), true) => Field::UdpSrc,
        (Some(17), false) => Field::UdpDst,
        (Some(132), true) => Field::SctpSrc,
        (Some(132), false) => Field::SctpDst,
        _ => {
            return Err(Fault::new(
                at,
                "depends on the transport protocol; add tcp, udp or sctp (or tcp6, udp6, sctp6) to the match",
            ));
        }
    })
}

/// Parses `slice(base,offset,length)`.
pub(super) fn slice<'t>(whole: &'t str, arguments: Option<&'t str>) -> Parsed<'t, Field> {
    let form = "write slice(base,offset,length) with offset and length in bits; the base is packet, metadata, l3, l4 or base";
    let mut arguments = Arguments::new(whole, arguments, form)?;
    let base_text = arguments.positional("base")?;
    let base = SliceBase::ALL.into_iter().find(|b| b.name() == base_text).ok_or_else(|| {
        Fault::new(base_text, format!("is not a base of a slice; use {}", SliceBase::NAMES))
    })?;
    let offset = integer(arguments.positional("offset")?)?;
    let length = integer(arguments.positional("length")?)?;
    arguments.end()?;
    Slice::new(base, offset, length).map(Field::Slice).map_err(|e| Fault::new(whole, e.to_string()))
}
