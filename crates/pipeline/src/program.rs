// SPDX-License-Identifier: Apache-2.0
//! Programs: instructions compiled for execution. Entries with equal instructions share one.

use crate::field_write::FieldWrite;
use crate::mac_write::MacWrite;
use crate::packet::State;
use crate::stateless::{KeyPush, PolkaPush, TfPush};
use flow::{Action, Instructions, Next, PortNo, port_no};
use wire::tf::Form;

/// One compiled action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send by a real or reserved port.
    Output {
        /// The port.
        port: PortNo,
        /// Bytes for the controller.
        max_len: u16,
    },
    /// Process by a group.
    Group(u32),
    /// Choose the egress queue.
    Queue(u32),
    /// Write a field.
    Write(FieldWrite),
    /// Write MAC addresses. Never in an action set, which keeps one write a field.
    WriteMacs(MacWrite),
    /// Push a VLAN tag of this TPID.
    PushVlan(u16),
    /// Pop the outermost VLAN tag.
    PopVlan,
    /// Push an MPLS shim of this EtherType.
    PushMpls(u16),
    /// Pop the outermost MPLS shim, leaving this EtherType.
    PopMpls(u16),
    /// Push a PBB I-tag of this EtherType.
    PushPbb(u16),
    /// Pop the PBB I-tag.
    PopPbb,
    /// Write the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrement the MPLS TTL.
    DecMplsTtl,
    /// Write the IP TTL.
    SetNwTtl(u8),
    /// Decrement the IP TTL.
    DecNwTtl,
    /// Copy the TTL outwards.
    CopyTtlOut,
    /// Copy the TTL inwards.
    CopyTtlIn,
    /// Push a KeyFlow header.
    PushKey(KeyPush),
    /// Push a PolKA header.
    PushPolka(PolkaPush),
    /// Pop a KeyFlow or PolKA header.
    PopKey,
    /// Push a Tag-and-Forward tag.
    PushTf(TfPush),
    /// Push a wide Tag-and-Forward tag.
    PushTfWide(TfPush),
    /// Pop a Tag-and-Forward tag of either form.
    PopTf,
}

impl Step {
    /// Compiles actions that are done at once, in order.
    pub(crate) fn applied(actions: &[Action]) -> Box<[Self]> {
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

    pub(crate) fn compile(action: &Action) -> Self {
        match action {
            Action::Output { port: port_no::CONTROLLER, max_len } => {
                Self::Output { port: port_no::CONTROLLER, max_len: *max_len }
            }
            // What is not heeded shall not keep entries from sharing a program.
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
        }
    }
}

/// An entry's instructions, compiled.
#[derive(Debug, Default)]
pub struct Program {
    /// The meter that comes first.
    pub meter: Option<u32>,
    /// Actions done at once.
    pub apply: Box<[Step]>,
    /// Empty the action set.
    pub clear: bool,
    /// Actions for the action set.
    pub write: Box<[Step]>,
    /// Metadata bits to write: value and mask.
    pub metadata: Option<(u64, u64)>,
    /// Where to go on.
    pub next: Option<Next>,
    /// The entry is low-latency.
    pub low_latency: bool,
    /// The entry is its table's table-miss entry.
    pub miss_entry: bool,
    /// Actions done at once and a next table are all there is: most entries.
    pub(crate) plain: bool,
    /// Where to go on, for entries that do nothing else.
    pub(crate) passage: Option<State>,
}

impl Program {
    /// Compiles an entry's instructions.
    #[must_use]
    pub fn compile(instructions: &Instructions, low_latency: bool, miss_entry: bool) -> Self {
        let plain = instructions.meter.is_none()
            && !instructions.clear
            && instructions.write.is_empty()
            && instructions.metadata.is_none();
        let passage = instructions.next.map(State::of).filter(|_| plain && instructions.apply.is_empty());
        Self {
            meter: instructions.meter,
            apply: Step::applied(&instructions.apply),
            clear: instructions.clear,
            write: instructions.write.iter().map(Step::compile).collect(),
            metadata: instructions.metadata,
            next: instructions.next,
            low_latency,
            miss_entry,
            plain,
            passage,
        }
    }

    /// The port of a learned MAC's entry: its only action.
    #[must_use]
    pub fn learned_port(&self) -> Option<PortNo> {
        match self.apply[..] {
            [Step::Output { port, .. }] => Some(port),
            _ => None,
        }
    }
}
