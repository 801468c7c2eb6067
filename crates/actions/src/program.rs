// SPDX-License-Identifier: Apache-2.0
//! Programs: instructions compiled for execution. Entries with equal instructions share one program.

use crate::field_write::FieldWrite;
use crate::header_change::HeaderChange;
use crate::mac_write::MacWrite;
use crate::packet_data::PacketData;
use crate::path_edits::PathEdits;
use crate::shift::Shift;
use crate::stateless::{self, KeyPush, PolkaPush, TfPush};
use crate::{edit, tags, ttl};
use flow::stateless::TagTypes;
use flow::{Action, DropReason, Edit, GroupId, Instructions, MeterId, Next, PortNo, QueueId, port_no};
use wire::tf::Form;

/// One compiled action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramStep {
    /// Sends the packet to a real or reserved port.
    Output {
        /// Number of the port.
        port: PortNo,
        /// Bytes of the packet to send to the controller, or 0 for other ports.
        max_len: u16,
    },
    /// Processes the packet by the group with this number.
    Group(GroupId),
    /// Sets the egress queue of later outputs.
    Queue(QueueId),
    /// Writes a field.
    Write(FieldWrite),
    /// Writes MAC addresses. Not used in action sets.
    WriteMacs(MacWrite),
    /// Pushes a VLAN tag of this TPID.
    PushVlan(u16),
    /// Pops the outermost VLAN tag.
    PopVlan,
    /// Pushes an MPLS shim of this EtherType.
    PushMpls(u16),
    /// Pops the outermost MPLS shim and writes this EtherType.
    PopMpls(u16),
    /// Pushes a PBB I-tag of this EtherType.
    PushPbb(u16),
    /// Pops the PBB I-tag.
    PopPbb,
    /// Writes the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrements the MPLS TTL.
    DecMplsTtl,
    /// Writes the IP TTL.
    SetNwTtl(u8),
    /// Decrements the IP TTL.
    DecNwTtl,
    /// Copies the TTL from the next-to-outermost header to the outermost header.
    CopyTtlOut,
    /// Copies the TTL from the outermost header to the next-to-outermost header.
    CopyTtlIn,
    /// Pushes a KeyFlow header.
    PushKey(KeyPush),
    /// Pushes a PolKA header.
    PushPolka(PolkaPush),
    /// Pops a KeyFlow or PolKA header.
    PopKey,
    /// Pushes a Tag-and-Forward tag.
    PushTf(TfPush),
    /// Pushes a wide Tag-and-Forward tag.
    PushTfWide(TfPush),
    /// Pops a Tag-and-Forward tag of either form.
    PopTf,
    /// Edits bytes or moves the base. Not used in action sets.
    Edit(Edit),
}

impl ProgramStep {
    /// Compiles the actions of an apply-actions instruction, in order. Successive MAC writes become one step.
    #[must_use]
    pub fn applied(actions: &[Action]) -> Box<[Self]> {
        let mut steps: Vec<Self> = Vec::with_capacity(actions.len());
        for action in actions {
            let macs = if let Action::SetField(set) = action { MacWrite::compile(set) } else { None };
            match (steps.last_mut(), macs) {
                (Some(Self::WriteMacs(before)), Some(macs)) => *before = before.then(macs),
                (_, Some(macs)) => steps.push(Self::WriteMacs(macs)),
                (_, None) => steps.push(Self::compile(action)),
            }
        }
        steps.into()
    }

    /// Compiles one action.
    #[must_use]
    pub fn compile(action: &Action) -> Self {
        match action {
            Action::Output { port: port_no::CONTROLLER, max_len } => {
                Self::Output { port: port_no::CONTROLLER, max_len: *max_len }
            }
            // `max_len` has no effect for other ports. Without it, more entries share a program.
            Action::Output { port, .. } => Self::Output { port: *port, max_len: 0 },
            Action::Group(group) => Self::Group(*group),
            Action::SetQueue(queue) => Self::Queue(*queue),
            Action::SetMplsTtl(ttl) => Self::SetMplsTtl(*ttl),
            Action::DecMplsTtl => Self::DecMplsTtl,
            Action::SetNwTtl(ttl) => Self::SetNwTtl(*ttl),
            Action::DecNwTtl => Self::DecNwTtl,
            Action::CopyTtlOut => Self::CopyTtlOut,
            Action::CopyTtlIn => Self::CopyTtlIn,
            Action::PushVlan(tpid) => Self::PushVlan(*tpid),
            Action::PopVlan => Self::PopVlan,
            Action::PushMpls(eth_type) => Self::PushMpls(*eth_type),
            Action::PopMpls(eth_type) => Self::PopMpls(*eth_type),
            Action::SetField(set) => Self::Write(FieldWrite::compile(set)),
            Action::PushPbb(eth_type) => Self::PushPbb(*eth_type),
            Action::PopPbb => Self::PopPbb,
            Action::PushKey(header) => Self::PushKey(KeyPush::compile(header)),
            Action::PushPolka(header) => Self::PushPolka(PolkaPush::compile(*header)),
            Action::PopKey => Self::PopKey,
            Action::PushTf(header) => Self::PushTf(TfPush::compile(header, Form::Paper)),
            Action::PushTfWide(header) => Self::PushTfWide(TfPush::compile(header, Form::Wide)),
            Action::PopTf => Self::PopTf,
            Action::Edit(edit) => Self::Edit(*edit),
        }
    }

    /// Runs an action that sends nothing. Outputs and groups do nothing here.
    ///
    /// # Errors
    /// Returns the drop reason if the action cannot be executed on the packet.
    #[inline(always)]
    pub fn rewrite(&self, packet: &mut PacketData, types: &TagTypes) -> Result<(), DropReason> {
        // Inlined, because routers decrement the TTL of every packet.
        if matches!(self, Self::DecNwTtl) { ttl::dec_nw(packet) } else { self.rewrite_other(packet, types) }
    }

    #[inline(never)]
    fn rewrite_other(&self, packet: &mut PacketData, types: &TagTypes) -> Result<(), DropReason> {
        match *self {
            Self::Output { .. } | Self::Group(_) => {}
            Self::WriteMacs(macs) => macs.run(packet),
            Self::Queue(queue) => packet.queue = queue,
            Self::Write(write) => write.run(packet)?,
            Self::PushVlan(tpid) => tags::push_vlan(packet, tpid)?,
            Self::PopVlan => tags::pop_vlan(packet)?,
            Self::PushMpls(eth_type) => tags::push_mpls(packet, eth_type)?,
            Self::PopMpls(eth_type) => tags::pop_mpls(packet, eth_type)?,
            Self::PushPbb(eth_type) => tags::push_pbb(packet, eth_type)?,
            Self::PopPbb => tags::pop_pbb(packet)?,
            Self::SetMplsTtl(to) => ttl::set_mpls(packet, to)?,
            Self::DecMplsTtl => ttl::dec_mpls(packet)?,
            Self::SetNwTtl(to) => ttl::set_nw(packet, to)?,
            Self::DecNwTtl => ttl::dec_nw(packet)?,
            Self::CopyTtlOut => ttl::copy_out(packet),
            Self::CopyTtlIn => ttl::copy_in(packet),
            Self::PushKey(key) => key.run(packet, types)?,
            Self::PushPolka(key) => key.run(packet, types)?,
            Self::PopKey => stateless::pop_key(packet, types)?,
            Self::PushTf(tag) => tag.run(packet, types.tf)?,
            Self::PushTfWide(tag) => tag.run(packet, types.tf_wide)?,
            Self::PopTf => stateless::pop_tf(packet, types)?,
            Self::Edit(ref change) => edit::run(change, packet)?,
        }
        Ok(())
    }
}

/// Compiled instructions of an entry.
#[derive(Debug, Default)]
pub struct Program {
    /// Number of the meter that runs before all other instructions.
    pub meter: Option<MeterId>,
    /// Steps of the apply-actions instruction.
    pub apply: Box<[ProgramStep]>,
    /// Whether the action set is cleared.
    pub clear: bool,
    /// Steps written into the action set.
    pub write: Box<[ProgramStep]>,
    /// Value and mask of the metadata bits to write.
    pub metadata: Option<(u64, u64)>,
    /// Table to continue with, or `None` at the end of the pipeline.
    pub next: Option<Next>,
    /// Whether the entry is low-latency.
    pub low_latency: bool,
    /// Whether the entry is its table's table-miss entry.
    pub miss_entry: bool,
    /// Whether the entry has no instructions except apply-actions and goto-table.
    pub plain: bool,
    /// What the entry changes in the packet before the next table.
    pub change: HeaderChange,
    /// What the entry shifts, if it changes nothing more than MAC addresses besides.
    pub shift: Shift,
    /// Whether the entry only writes metadata and continues with a table.
    pub only_marks: bool,
    /// MAC writes and TTL decrement that run before `passage` or `output`.
    pub route: Option<Route>,
    /// Next table of an entry that only executes `route` and continues with that table.
    pub passage: Option<Next>,
    /// Real port of an entry that only executes `route` and sends the packet to that port.
    pub output: Option<PortNo>,
    /// Whether the entry only sends the packet to NORMAL.
    pub only_normal: bool,
}

/// The rewrites of a router: writes MAC addresses and decrements the TTL.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// MAC addresses to write.
    pub macs: MacWrite,
    /// Whether the TTL is decremented.
    pub dec_ttl: bool,
    /// Whether MAC addresses are written only if the TTL could be decremented.
    pub ttl_first: bool,
}

impl Route {
    /// Recognises the rewrites of a router in the steps of a program.
    fn of(steps: &[ProgramStep]) -> Option<Self> {
        match *steps {
            [ProgramStep::WriteMacs(macs)] => Some(Self { macs, ..Self::NONE }),
            [ProgramStep::DecNwTtl] => Some(Self { dec_ttl: true, ..Self::NONE }),
            [ProgramStep::WriteMacs(macs), ProgramStep::DecNwTtl] => {
                Some(Self { macs, dec_ttl: true, ttl_first: false })
            }
            [ProgramStep::DecNwTtl, ProgramStep::WriteMacs(macs)] => {
                Some(Self { macs, dec_ttl: true, ttl_first: true })
            }
            _ => None,
        }
    }

    /// A route that changes nothing.
    pub const NONE: Self = Self { macs: MacWrite::NONE, dec_ttl: false, ttl_first: false };

    /// Returns one route that has the effect of `self`, then `next`, on packets whose TTL does not expire.
    /// Returns `None` if both decrement the TTL.
    #[must_use]
    pub fn then(&self, next: &Self) -> Option<Self> {
        let both = self.dec_ttl && next.dec_ttl;
        let dec_ttl = self.dec_ttl || next.dec_ttl;
        let ttl_first = self.ttl_first || next.ttl_first;
        (!both).then(|| Self { macs: self.macs.then(next.macs), dec_ttl, ttl_first })
    }

    /// Returns whether the route changes nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.macs == MacWrite::NONE && !self.dec_ttl
    }

    /// Runs the rewrites.
    ///
    /// # Errors
    /// Returns the drop reason if the packet is not IP or its TTL has expired.
    #[inline(always)]
    pub fn run(&self, packet: &mut PacketData) -> Result<(), DropReason> {
        if self.ttl_first {
            ttl::dec_nw(packet)?;
        }
        self.macs.run(packet);
        if self.dec_ttl && !self.ttl_first { ttl::dec_nw(packet) } else { Ok(()) }
    }
}

impl Program {
    /// Compiles an entry's instructions.
    #[must_use]
    pub fn compile(instructions: &Instructions, low_latency: bool, miss_entry: bool) -> Self {
        let plain = instructions.meter.is_none()
            && !instructions.clear
            && instructions.write.is_empty()
            && instructions.metadata.is_none();
        let apply = ProgramStep::applied(&instructions.apply);
        let (rewrites, output) = split_output(instructions.next, &apply);
        let route = Route::of(rewrites);
        let only_routes = plain && (rewrites.is_empty() || route.is_some());
        let passage = instructions.next.filter(|_| only_routes);
        let output = output.filter(|_| only_routes);
        let route = route.filter(|_| passage.is_some() || output.is_some());
        let is_normal = matches!(apply[..], [ProgramStep::Output { port: port_no::NORMAL, .. }]);
        let only_normal = plain && is_normal && instructions.next.is_none();
        let only_marks = Instructions { metadata: None, ..instructions.clone() }
            == Instructions { next: instructions.next, ..Instructions::default() };
        Self {
            meter: instructions.meter,
            apply,
            clear: instructions.clear,
            write: instructions.write.iter().map(ProgramStep::compile).collect(),
            metadata: instructions.metadata,
            next: instructions.next,
            low_latency,
            miss_entry,
            plain,
            change: HeaderChange::of(instructions),
            shift: Shift::of(instructions),
            only_marks,
            route,
            passage,
            output,
            only_normal,
        }
    }

    /// Adds the edits of an entry that only edits packets, and then continues with a table or sends them to a
    /// real port. Returns this port, or `None` if the entry does anything else.
    pub fn add_edits(&self, edits: &mut PathEdits) -> Option<Option<PortNo>> {
        let (steps, output) = split_output(self.next, &self.apply);
        let is_simple = self.plain && self.next.is_some() != output.is_some();
        (is_simple && steps.iter().all(|step| edits.add(step))).then_some(output)
    }

    /// Returns the port of an entry for a learned MAC address, whose only action is an output.
    #[must_use]
    pub fn learned_port(&self) -> Option<PortNo> {
        match self.apply[..] {
            [ProgramStep::Output { port, .. }] => Some(port),
            _ => None,
        }
    }
}

/// Splits the steps of an entry without a next table before an output to a real port at their end.
fn split_output(next: Option<Next>, apply: &[ProgramStep]) -> (&[ProgramStep], Option<PortNo>) {
    match (next, apply) {
        (None, [rewrites @ .., ProgramStep::Output { port, .. }]) if port_no::is_real(*port) => {
            (rewrites, Some(*port))
        }
        (_, rewrites) => (rewrites, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::action::SetField;
    use flow::{Field, TableId};
    use std::slice::from_ref;

    fn program(apply: &[Action], next: Option<Next>) -> Program {
        let instructions = Instructions { apply: apply.to_vec(), next, ..Instructions::default() };
        Program::compile(&instructions, false, false)
    }

    #[test]
    fn a_program_that_only_outputs_to_normal_is_recognised() {
        let normal = Action::output(port_no::NORMAL);
        let other = Action::output(PortNo(2));
        let next = Some(Next::Table(TableId(3)));
        assert!(program(from_ref(&normal), None).only_normal);
        assert!(
            !program(from_ref(&normal), next).only_normal && !program(from_ref(&other), None).only_normal
        );
        assert!(
            ![[normal.clone(), other.clone()], [other, normal.clone()], [Action::DecNwTtl, normal]]
                .iter()
                .any(|apply| program(apply, None).only_normal)
        );
    }

    #[test]
    fn an_expired_ttl_keeps_mac_addresses_only_if_it_comes_first() {
        let mac =
            Action::SetField(SetField { field: Field::EthDst, value: 1, mask: Field::EthDst.full_mask() });
        let actions = [mac, Action::DecNwTtl];
        for (ttl_first, written) in [(false, true), (true, false)] {
            let mut apply = actions.to_vec();
            if ttl_first {
                apply.reverse();
            }
            let route = program(&apply, Some(Next::Table(TableId(3)))).route.unwrap();
            let mut bytes = wire::PacketBuilder::ethernet([2; 6], [4; 6])
                .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
                .payload(&[0; 30])
                .build();
            for (ttl, result) in [(9, Ok(())), (1, Err(DropReason::TtlExpired))] {
                bytes[22] = ttl;
                let mut packet = PacketData::empty();
                packet.frame = frame::Frame::from_bytes(&bytes);
                assert_eq!(route.run(&mut packet), result);
                let is_new = packet.frame.bytes()[..6] == [0, 0, 0, 0, 0, 1];
                assert_eq!(is_new, written || result.is_ok(), "{ttl_first}, {ttl}");
            }
        }
    }

    #[test]
    fn short_programs_are_recognised() {
        let mac =
            Action::SetField(SetField { field: Field::EthDst, value: 1, mask: Field::EthDst.full_mask() });
        let ip = Action::SetField(SetField { field: Field::Ipv4Dst, value: 1, mask: 0xffff_ffff });
        let output = |port| Action::Output { port, max_len: 0 };
        let two = output(PortNo(2));
        let next = Some(Next::Table(TableId(3)));
        let kind = |apply: &[Action], next| {
            let made = program(apply, next);
            (made.route.map(|route| route.dec_ttl), made.passage, made.output)
        };
        assert_eq!(kind(&[], next), (None, next, None));
        assert_eq!(kind(&[mac.clone(), mac.clone()], next), (Some(false), next, None));
        assert_eq!(kind(&[mac.clone(), Action::DecNwTtl], next), (Some(true), next, None));
        assert_eq!(kind(&[Action::DecNwTtl, mac.clone()], next), (Some(true), next, None));
        assert_eq!(kind(&[Action::DecNwTtl], next), (Some(true), next, None));
        assert_eq!(kind(from_ref(&two), None), (None, None, Some(PortNo(2))));
        assert_eq!(
            kind(&[mac.clone(), Action::DecNwTtl, two.clone()], None),
            (Some(true), None, Some(PortNo(2)))
        );
        let longer: [(&[Action], _); 8] = [
            (&[], None),
            (from_ref(&mac), None),
            (from_ref(&two), next),
            (&[output(port_no::CONTROLLER)], None),
            (&[two.clone(), two.clone()], None),
            (&[ip, two.clone()], None),
            (&[Action::DecNwTtl, Action::DecNwTtl], next),
            (&[mac.clone(), two.clone(), Action::DecNwTtl], None),
        ];
        for (apply, next) in longer {
            assert_eq!(kind(apply, next), (None, None, None), "{apply:?}");
        }
        let cleared = Instructions { clear: true, apply: vec![two], ..Instructions::default() };
        assert_eq!(Program::compile(&cleared, false, false).output, None);
    }
}
