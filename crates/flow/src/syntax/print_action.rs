// SPDX-License-Identifier: Apache-2.0
//! Prints actions and instructions as ovs-ofctl does.

use super::print_match::MaskedValue;
use super::value::{Form, form};
use crate::action::{KeyHeader, PolkaHeader, SetField, TfHeader};
use crate::{Action, Field, FieldMatch, Instructions, Next, port_no};
use std::fmt::{self, Display, Formatter};

/// Returns the name that ovs-ofctl prints for a field that a set-field writes.
fn target(field: Field) -> &'static str {
    match field {
        Field::EthDst => "eth_dst",
        Field::EthSrc => "eth_src",
        Field::EthType => "eth_type",
        Field::Ipv4Src => "ip_src",
        Field::Ipv4Dst => "ip_dst",
        named => named.name(),
    }
}

impl Display for SetField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let form = match form(self.field) {
            Form::Hex { .. } => Form::Hex { digits: 1 },
            other => other,
        };
        let condition = FieldMatch { field: self.field, value: self.value, mask: self.mask };
        write!(f, "set_field:{}->", MaskedValue { form, condition })?;
        match self.field {
            Field::Slice(_) => write!(f, "{}", self.field),
            named => f.write_str(target(named)),
        }
    }
}

impl Display for KeyHeader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("push_key(key=0x")?;
        for byte in &self.key {
            write!(f, "{byte:02x}")?;
        }
        write!(f, ",width={},hops={},epoch={})", 8 * self.key.len(), self.hops, self.epoch)
    }
}

impl Display for PolkaHeader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "push_polka(key=0x{:x},ttl={})", self.key, self.ttl)
    }
}

impl Display for TfHeader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "({},0x{:x},0x{:x})", self.qid, self.up, self.down)
    }
}

impl Display for Action {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output { port: port_no::CONTROLLER, max_len } => write!(f, "CONTROLLER:{max_len}"),
            Self::Output { port, .. } => match port_no::reserved_name(*port) {
                Some(name) => f.write_str(name),
                None => write!(f, "output:{port}"),
            },
            Self::Group(group) => write!(f, "group:{group}"),
            Self::SetQueue(queue) => write!(f, "set_queue:{queue}"),
            Self::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl({ttl})"),
            Self::DecMplsTtl => f.write_str("dec_mpls_ttl"),
            Self::SetNwTtl(ttl) => write!(f, "mod_nw_ttl:{ttl}"),
            Self::DecNwTtl => f.write_str("dec_ttl"),
            Self::CopyTtlOut => f.write_str("copy_ttl_out"),
            Self::CopyTtlIn => f.write_str("copy_ttl_in"),
            Self::PushVlan(tpid) => write!(f, "push_vlan:0x{tpid:04x}"),
            Self::PopVlan => f.write_str("pop_vlan"),
            Self::PushMpls(eth_type) => write!(f, "push_mpls:0x{eth_type:04x}"),
            Self::PopMpls(eth_type) => write!(f, "pop_mpls:0x{eth_type:04x}"),
            Self::PushPbb(eth_type) => write!(f, "push_pbb:0x{eth_type:04x}"),
            Self::PopPbb => f.write_str("pop_pbb"),
            Self::SetField(set) => write!(f, "{set}"),
            Self::PushKey(header) => write!(f, "{header}"),
            Self::PushPolka(header) => write!(f, "{header}"),
            Self::PopKey => f.write_str("pop_key"),
            Self::PushTf(header) => write!(f, "push_tf{header}"),
            Self::PushTfWide(header) => write!(f, "push_tf_wide{header}"),
            Self::PopTf => f.write_str("pop_tf"),
            Self::Edit(edit) => write!(f, "{edit}"),
        }
    }
}

/// Prints actions separated by commas.
struct List<'a>(&'a [Action]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, action) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{action}")?;
        }
        Ok(())
    }
}

impl Display for Instructions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("drop");
        }
        let mut any = false;
        let mut part = |text: fmt::Arguments<'_>| {
            if std::mem::replace(&mut any, true) {
                f.write_str(",")?;
            }
            f.write_fmt(text)
        };
        if let Some(meter) = self.meter {
            part(format_args!("meter:{meter}"))?;
        }
        if !self.apply.is_empty() {
            part(format_args!("{}", List(&self.apply)))?;
        }
        if self.clear {
            part(format_args!("clear_actions"))?;
        }
        if !self.write.is_empty() {
            part(format_args!("write_actions({})", List(&self.write)))?;
        }
        match self.metadata {
            Some((value, u64::MAX)) => part(format_args!("write_metadata:0x{value:x}"))?,
            Some((value, mask)) => part(format_args!("write_metadata:0x{value:x}/0x{mask:x}"))?,
            None => {}
        }
        match self.next {
            Some(Next::Table(table)) => part(format_args!("goto_table:{table}"))?,
            Some(Next::Direct { table, index }) => part(format_args!("goto_direct({table},{index})"))?,
            None => {}
        }
        Ok(())
    }
}
