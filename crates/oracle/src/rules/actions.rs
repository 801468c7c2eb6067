// SPDX-License-Identifier: Apache-2.0
//! Random instructions. Most actions are applicable to the entry's packets; some fail.

use super::matching::slice;
use super::{PLACES, Reach, Scope, Style, TAGGED};
use crate::templates::{ipv4, ipv6, mac};
use fastrand::Rng;
use flow::action::{KeyHeader, PolkaHeader, SetField, TfHeader};
use flow::{
    Action, Field, GroupId, Instructions, MeterId, Next, PortNo, QueueId, SliceBase, TableId, port_no,
};
use wire::layers::header;

/// Headers of the upper layer.
const UPPER: u32 = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;

/// EtherTypes of MPLS.
const MPLS: [u16; 2] = [0x8847, 0x8848];

impl Style {
    /// Returns random instructions for an entry of this table.
    pub fn instructions(&self, rng: &mut Rng, table: TableId, scope: Scope<'_>) -> Instructions {
        let next = self.next(rng, table);
        if rng.u8(0..16) < self.routing && (next.is_some() || rng.bool()) {
            return self.route(rng, table, next, scope);
        }
        let (apply, scope) = self.actions(rng, scope);
        let mut made = Instructions { apply, ..Instructions::default() };
        if rng.u8(0..4) == 0 {
            made.write = self.actions(rng, scope).0;
            made.write.retain(|action| !matches!(action, Action::Edit(_)));
            made.clear = rng.u8(0..4) == 0;
        }
        if rng.u8(0..4) == 0 {
            made.metadata = Some((rng.u64(0..4), 3));
        }
        if self.meters > 0 && rng.u8(0..8) == 0 {
            made.meter = Some(MeterId(rng.u32(1..=self.meters)));
        }
        made.next = next;
        let step = next.and_then(|next| self.step(rng, table, next.table()));
        if made.next.is_none() {
            made.apply.extend(self.sent_part(rng));
        }
        // Most entries without a next table get an output.
        if rng.u8(0..32) < if made.next.is_some() { 10 } else { 31 } {
            let output = self.output(rng, scope);
            let later = made.next.is_some() || rng.u8(0..4) == 0;
            if later && rng.u8(0..8) > 0 {
                made.write.push(output);
            } else {
                made.apply.push(output);
                // A second output port reduces drops of packets whose first output is their ingress port.
                let more = (rng.u8(0..3) == 0).then(|| self.output(rng, scope));
                made.apply.extend(more);
            }
        }
        // An entry that outputs and then continues with another table cannot be low-latency. Most such
        // outputs are therefore moved to the action set.
        if !made.may_be_low_latency() && (self.calm || rng.u8(0..10) > 0) {
            let sends = |action: &Action| matches!(action, Action::Output { .. } | Action::Group(_));
            let (sent, done): (Vec<_>, Vec<_>) = made.apply.into_iter().partition(sends);
            (made.apply, made.write) = (done, [made.write, sent].concat());
        }
        made.apply.extend(step);
        made
    }

    /// Returns instructions of a router: rewrites of MAC addresses and the TTL, then the next table, or an
    /// output or a group.
    fn route(&self, rng: &mut Rng, table: TableId, next: Option<Next>, scope: Scope<'_>) -> Instructions {
        let mut apply = Vec::new();
        if rng.u8(0..8) < if self.bridges { 1 } else { 4 } {
            apply.push(Action::set(Field::EthDst, mac_value(rng)));
            apply.push(Action::set(Field::EthSrc, mac_value(rng)));
            if scope.known & header::IP != 0 && rng.bool() {
                apply.push(Action::DecNwTtl);
            }
        }
        apply.extend(next.and_then(|next| self.step(rng, table, next.table())));
        if let Some(mut edits) = self.edited_route(rng, table, scope).filter(|_| next.is_none()) {
            edits.push(self.output(rng, scope));
            let meter = (self.meters > 0 && rng.bool()).then(|| MeterId(rng.u32(1..=self.meters)));
            return Instructions { meter, ..Instructions::apply(edits) };
        }
        let mut made = Instructions { apply, next, ..Instructions::default() };
        if next.is_none() {
            made.apply.extend(self.sent_part(rng));
            let to_group = self.groups > 0 && rng.u8(0..3) == 0;
            let group = to_group.then(|| Action::Group(GroupId(rng.u32(1..=self.groups))));
            made.apply.push(group.unwrap_or_else(|| self.output(rng, scope)));
            // A second output port reduces drops of packets whose first output is their ingress port.
            let more = (rng.u8(0..3) == 0).then(|| self.output(rng, scope));
            made.apply.extend(more);
            made.meter = (self.meters > 0 && rng.u8(0..3) == 0).then(|| MeterId(rng.u32(1..=self.meters)));
        }
        made
    }

    /// Returns where the packet continues: usually in the table that follows this one, sometimes in a later
    /// or a linear table. `None` ends the pipeline.
    fn next(&self, rng: &mut Rng, table: TableId) -> Option<Next> {
        // In a calm case, enough packets must hit entries of the linear table to check its use of the path.
        let (one_in, places) = if self.calm { (5, PLACES) } else { (12, PLACES + 1) };
        if table < self.linear && rng.u8(0..one_in) == 0 {
            return Some(Next::Direct { table: self.linear, index: rng.u32(0..places) });
        }
        let later: Vec<TableId> = self.tables.iter().map(|t| t.number).filter(|n| *n > table).collect();
        if later.is_empty() || rng.u8(0..16) < 3 {
            return None;
        }
        let number = if rng.u8(0..3) == 0 { rng.usize(0..later.len()) } else { 0 };
        Some(Next::Table(later[number]))
    }

    /// Returns a list of actions, usually short, and the properties of packets after these actions.
    fn actions<'a>(&self, rng: &mut Rng, mut scope: Scope<'a>) -> (Vec<Action>, Scope<'a>) {
        let count = [0, 0, 0, 0, 1, 1, 2, 3][rng.usize(0..8)];
        let mut made = Vec::new();
        for _ in 0..count {
            let action = self.action(rng, scope);
            scope.known = known_after(&action, scope.known);
            made.push(action);
        }
        if rng.u8(0..20) == 0 {
            // Pushes a label onto another label, and then pops the outermost label.
            let inner = if scope.known & header::MPLS != 0 { None } else { Some(Action::PushMpls(MPLS[0])) };
            let [outer, left] = [MPLS[rng.usize(0..2)], MPLS[rng.usize(0..2)]];
            made.extend(inner.into_iter().chain([Action::PushMpls(outer), Action::PopMpls(left)]));
            scope.known = header::MPLS;
        }
        (made, scope)
    }

    /// Returns an output action. Its port is rarely the packets' ingress port.
    pub(super) fn output(&self, rng: &mut Rng, scope: Scope<'_>) -> Action {
        Action::output(match rng.u8(0..32) {
            _ if self.bridges && rng.bool() => port_no::NORMAL,
            0 => port_no::IN_PORT,
            1 => port_no::ALL,
            2 => port_no::FLOOD,
            // NORMAL examines the VLAN ID, so packets have keys that need headers.
            3 | 4 if self.reach != Reach::Distant => port_no::NORMAL,
            6 => port_no::CONTROLLER,
            // This port does not exist.
            7 if rng.u8(0..4) == 0 => PortNo(self.ports + 1),
            8 => self.any_port(rng),
            _ => self.other_port(rng, scope.in_port),
        })
    }

    fn other_port(&self, rng: &mut Rng, in_port: PortNo) -> PortNo {
        let port = rng.u32(1..self.ports);
        PortNo(if port >= in_port.0 { port + 1 } else { port })
    }

    /// Returns an action that is applicable to most of the packets.
    pub(super) fn action(&self, rng: &mut Rng, scope: Scope<'_>) -> Action {
        for _ in 0..8 {
            let action = self.any_action(rng, scope);
            if suits(&action, scope) || rng.u8(0..60) == 0 {
                return action;
            }
        }
        Action::set(Field::EthSrc, mac_value(rng))
    }

    fn any_action(&self, rng: &mut Rng, scope: Scope<'_>) -> Action {
        if self.moving && rng.u8(0..5) == 0 {
            return self.edit(rng);
        }
        match rng.u8(0..32) {
            0 => Action::PushVlan(if rng.bool() { 0x8100 } else { 0x88a8 }),
            1 | 2 => Action::PopVlan,
            3 => Action::PushMpls(MPLS[rng.usize(0..2)]),
            4 | 5 => Action::PopMpls(under_label(rng, scope)),
            6 => Action::SetMplsTtl(rng.u8(..)),
            7 => Action::DecMplsTtl,
            8 => Action::SetNwTtl(rng.u8(..)),
            9 | 10 => Action::DecNwTtl,
            11 => Action::CopyTtlOut,
            12 => Action::CopyTtlIn,
            13 => Action::SetQueue(QueueId(rng.u32(0..3))),
            14 => Action::PushPbb(0x88e7),
            15 => Action::PopPbb,
            16 => Action::PushKey(KeyHeader {
                key: (0..8 * rng.usize(1..=4)).map(|_| rng.u8(..)).collect(),
                hops: rng.u8(0..4),
                epoch: rng.u8(0..2),
            }),
            17 => Action::PopKey,
            18 => Action::PushPolka(PolkaHeader { key: rng.u128(..), ttl: rng.u8(0..4) }),
            19 => Action::PopTf,
            20 => {
                let tag = TfHeader { qid: rng.u8(0..3), up: rng.u32(0..9), down: rng.u16(0..9) };
                if rng.bool() { Action::PushTf(tag) } else { Action::PushTfWide(tag) }
            }
            21 | 22 if self.groups > 0 => Action::Group(GroupId(rng.u32(1..=self.groups))),
            23..30 => self.set_field(rng),
            _ => self.output(rng, scope),
        }
    }

    fn set_field(&self, rng: &mut Rng) -> Action {
        let field = loop {
            let field =
                if rng.u8(0..5) == 0 { slice(rng, self.reach) } else { Field::NAMED[rng.usize(3..39)] };
            if field.settable() {
                break field;
            }
        };
        let full = field.full_mask();
        let value = match field {
            Field::EthDst | Field::EthSrc => mac_value(rng),
            Field::Ipv4Src | Field::Ipv4Dst => u32::from_be_bytes(ipv4(rng)).into(),
            Field::Ipv6Src | Field::Ipv6Dst => u128::from_be_bytes(ipv6(rng)),
            Field::EthType => [0x0800, 0x86dd, 0x8847, 0x88e7, 0x9999][rng.usize(0..5)],
            Field::IpProto if rng.bool() => [1, 6, 17, 58, 132][rng.usize(0..5)],
            Field::VlanVid => 0x1000 | rng.u128(0..4),
            _ => rng.u128(..) & full,
        };
        let mask = if rng.u8(0..4) == 0 { rng.u128(..) & full } else { full };
        if mask == 0 || field == Field::VlanVid {
            return Action::set(field, value);
        }
        Action::SetField(SetField { field, value: value & mask, mask })
    }
}

fn mac_value(rng: &mut Rng) -> u128 {
    mac(rng).iter().fold(0, |value, byte| value << 8 | u128::from(*byte))
}

/// Returns an EtherType for the data after the outermost label: another label or IP.
fn under_label(rng: &mut Rng, scope: Scope<'_>) -> u16 {
    let stacked = scope.template.value(Field::MplsBos, scope.in_port) == Some(0);
    match rng.u8(0..8) {
        0 => 0x86dd,
        1 => MPLS[1],
        _ if stacked => MPLS[0],
        _ => 0x0800,
    }
}

/// Returns the headers that packets certainly have after an action.
fn known_after(action: &Action, known: u32) -> u32 {
    match action {
        Action::PushVlan(_) => known | header::VLAN,
        Action::PopVlan => known & !header::VLAN,
        Action::PushMpls(_) | Action::PopMpls(0x8847 | 0x8848) => known & header::VLAN | header::MPLS,
        Action::PopMpls(0x0800) => known & header::VLAN | header::IP | header::IPV4,
        Action::PushPbb(_) => header::PBB,
        Action::PushKey(_) | Action::PushPolka(_) | Action::PushTf(_) | Action::PushTfWide(_) => TAGGED,
        Action::PopMpls(_)
        | Action::PopPbb
        | Action::PopKey
        | Action::PopTf
        | Action::Edit(_)
        | Action::SetField(SetField { field: Field::EthType | Field::Slice(_), .. }) => 0,
        Action::SetField(SetField { field: Field::IpProto, .. }) => known & !UPPER,
        _ => known,
    }
}

/// Returns whether the packets have the headers that the action needs.
fn suits(action: &Action, scope: Scope<'_>) -> bool {
    let needs = match action {
        Action::PopVlan => header::VLAN,
        Action::PopMpls(_) | Action::SetMplsTtl(_) | Action::DecMplsTtl => header::MPLS,
        Action::SetNwTtl(_) | Action::DecNwTtl => header::IP,
        Action::PopPbb => header::PBB,
        Action::SetField(SetField { field: Field::VlanVid, .. }) => header::VLAN,
        Action::SetField(SetField { field: Field::Slice(slice), .. }) if slice.base == SliceBase::L4 => {
            return scope.known & UPPER != 0;
        }
        Action::SetField(set) => set.field.location().needs,
        Action::PopKey | Action::PopTf => TAGGED,
        _ => 0,
    };
    scope.known & needs == needs
}
