// SPDX-License-Identifier: Apache-2.0
//! OpenFlow 1.0 actions, translated to OpenFlow 1.3 like `ovs-ofctl -O OpenFlow13`. The translation depends
//! on the headers that the match and the preceding actions imply.

use super::ParseOptions;
use super::action_list::argument;
use super::action_names::Name;
use super::error::{Fault, Parsed};
use super::match_list::transport_field;
use super::scan::Item;
use super::value::{integer, ipv4, number_to, port};
use crate::ext::VID_PRESENT;
use crate::{Action, Field, Match, PortNo, QueueId};

/// TPID of the tags that `mod_vlan_vid` and `mod_vlan_pcp` push.
const TPID: u16 = 0x8100;

/// Headers that are known to be present at a position of the action list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    eth_type: Option<u128>,
    ip_proto: Option<u128>,
    vlan: bool,
}

impl Headers {
    /// Returns the headers that the match requires.
    pub fn of(matching: &Match) -> Self {
        let exact = |field| matching.get(field).filter(|c| c.is_exact()).map(|c| c.value);
        let present = u128::from(VID_PRESENT);
        Self {
            eth_type: exact(Field::EthType),
            ip_proto: exact(Field::IpProto),
            vlan: matching.get(Field::VlanVid).is_some_and(|c| c.value & present != 0),
        }
    }

    /// Updates the known headers after an action.
    pub fn note(&mut self, action: &Action) {
        match *action {
            Action::PushVlan(_) => self.vlan = true,
            // A second tag is possible, but not certain.
            Action::PopVlan => self.vlan = false,
            Action::PushMpls(eth_type) | Action::PopMpls(eth_type) => {
                *self = Self { eth_type: Some(u128::from(eth_type)), ip_proto: None, ..*self };
            }
            Action::PushPbb(eth_type) => {
                *self = Self { eth_type: Some(u128::from(eth_type)), ip_proto: None, vlan: false };
            }
            Action::PopPbb
            | Action::PushKey(_)
            | Action::PushPolka(_)
            | Action::PopKey
            | Action::PushTf(_)
            | Action::PushTfWide(_)
            | Action::PopTf
            | Action::Edit(_) => *self = Self { eth_type: None, ip_proto: None, vlan: false },
            _ => {}
        }
    }

    fn is_ipv4(self) -> bool {
        self.eth_type == Some(0x0800)
    }

    fn is_ip(self) -> bool {
        matches!(self.eth_type, Some(0x0800 | 0x86dd))
    }
}

fn demand<'t>(met: bool, item: &Item<'t>, wanted: &str) -> Parsed<'t, ()> {
    if met { Ok(()) } else { Err(item.refuse(format!("needs {wanted} in the match"))) }
}

/// Parses an OpenFlow 1.0 action, whose name is `name`.
pub(super) fn parse<'t>(
    name: Name,
    item: &Item<'t>,
    list: &mut Vec<Action>,
    headers: &mut Headers,
) -> Parsed<'t, ()> {
    let text = if name == Name::StripVlan { "" } else { argument(item)? };
    let action = match name {
        Name::ModNwSrc | Name::ModNwDst => {
            demand(headers.is_ipv4(), item, "ip (for ARP, use set_field:ADDRESS->arp_spa or arp_tpa)")?;
            let value =
                ipv4(text).ok_or_else(|| Fault::new(text, "is not an IPv4 address; write 10.0.0.1"))?;
            Action::set(if name == Name::ModNwSrc { Field::Ipv4Src } else { Field::Ipv4Dst }, value)
        }
        Name::ModNwTos => {
            demand(headers.is_ip(), item, "ip or ipv6")?;
            let tos = number_to(text, 0xff)?;
            if tos & 3 != 0 {
                return Err(Fault::new(text, "has ECN bits set; give a multiple of 4, and use mod_nw_ecn"));
            }
            Action::set(Field::IpDscp, tos >> 2)
        }
        Name::ModNwEcn => {
            demand(headers.is_ip(), item, "ip or ipv6")?;
            Action::set(Field::IpEcn, number_to(text, 3)?)
        }
        Name::ModTpSrc | Name::ModTpDst => {
            let field = transport_field(headers.ip_proto, item.whole, name == Name::ModTpSrc)?;
            Action::set(field, number_to(text, 0xffff)?)
        }
        Name::ModVlanVid => {
            let vid = number_to(text, 0xfff)?;
            push_missing_tag(list, headers);
            Action::set(Field::VlanVid, vid | u128::from(VID_PRESENT))
        }
        Name::ModVlanPcp => {
            let pcp = number_to(text, 7)?;
            push_missing_tag(list, headers);
            Action::set(Field::VlanPcp, pcp)
        }
        Name::StripVlan => {
            if item.argument().is_some() {
                return Err(item.refuse("takes no argument; write strip_vlan alone"));
            }
            demand(
                headers.vlan,
                item,
                "a VLAN tag (dl_vlan=N or vlan_tci=0x1000/0x1000; or use pop_vlan, which drops packets without a tag)",
            )?;
            Action::PopVlan
        }
        _ => return Err(item.refuse("is not an action")),
    };
    headers.note(&action);
    list.push(action);
    Ok(())
}

fn push_missing_tag(list: &mut Vec<Action>, headers: &mut Headers) {
    if !headers.vlan {
        list.push(Action::PushVlan(TPID));
        headers.vlan = true;
    }
}

/// Parses `enqueue:PORT:QUEUE` or `enqueue(PORT,QUEUE)`.
pub(super) fn enqueue<'t>(item: &Item<'t>, options: ParseOptions<'_>) -> Parsed<'t, (PortNo, QueueId)> {
    let text = argument(item)?;
    let (port_text, queue) =
        text.split_once([':', ',']).ok_or_else(|| item.refuse("has no queue; write enqueue:PORT:QUEUE"))?;
    Ok((port(port_text.trim_ascii(), options)?, QueueId(integer(queue.trim_ascii())?)))
}
