// SPDX-License-Identifier: Apache-2.0
//! The compiled stateless forwarder: chooses the output port of a frame by its tag, and edits the frame
//! before it is sent.

use crate::residue::{Divisor, Keys, Residue};
use actions::FRAME_BYTES_MIN;
use actions::stateless::{self, HOPS_AT, POLKA_BANK, StatelessTag};
use dataplane::PortTable;
use flow::stateless::{Bank, GateFlag, Gates, Label, StatelessConfig, TagTypes};
use flow::{DropReason, Limits, PortNo, QueueId};
use frame::Frame;
use wire::ethernet::ETHERNET_BYTES;

/// Number of frames whose headers are parsed together. The residues of at least `KEYS_MIN` 16-byte keys of
/// the same bank are computed together.
pub const TOGETHER: usize = 8;
const KEYS_MIN: usize = 3;

/// Minimum hop limit of KeyFlow and minimum TTL of PolKA. Packets with lower values are dropped.
const KEYFLOW_HOPS_MIN: u8 = 1;
const POLKA_TTL_MIN: u8 = 2;

/// Compiled stateless forwarder of one switch.
#[derive(Debug)]
pub struct StatelessForwarder {
    types: TagTypes,
    /// Properties of ports, by ascending number.
    ports: Box<[PortRow]>,
    /// KeyFlow's banks by epoch, then PolKA's bank.
    banks: [Option<KeyBank>; POLKA_BANK + 1],
    gates: Option<GateRule>,
}

/// Properties of one port.
#[derive(Clone, Copy, Debug)]
struct PortRow {
    number: PortNo,
    is_trusted: bool,
    /// Whether packets received at the port may follow the upward gate in their tag.
    assists: bool,
    mtu_bytes: u32,
}

/// Labels of one switch for one bank of keys.
#[derive(Debug)]
struct KeyBank {
    residue: Residue,
    /// Targets, by label.
    targets: Box<[Target]>,
}

/// Meaning of a label.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// The label is unused.
    None,
    /// The packet goes to the switch's own tables.
    Tables,
    /// An output port, and its backup port if there is one.
    Port(PortNo, Option<PortNo>),
}

/// Gates of a switch.
#[derive(Debug)]
struct GateRule {
    down: Option<Divisor>,
    up: Option<Divisor>,
    /// Divisor for external destinations, and the greatest gate number of a server.
    external: Option<(Divisor, u32)>,
    /// Gates, by ascending number.
    gates: Box<[GateRow]>,
}

/// A gate: its number and its port.
#[derive(Clone, Copy, Debug)]
struct GateRow {
    number: u32,
    port: PortNo,
    /// Whether the tag is popped.
    pops: bool,
}

/// Parsed tag of a frame, and its label: the tag's key modulo the node ID of the switch.
#[derive(Clone, Copy, Debug)]
pub struct HeaderFacts {
    /// The tag, or the reason why the frame is dropped. `None` for a frame without a tag.
    pub tag: Option<Result<StatelessTag, DropReason>>,
    /// The label, or 0 for a frame without a key.
    pub label: u32,
}

/// Decision about a frame.
#[derive(Clone, Copy, Debug)]
pub enum TagVerdict {
    /// The frame continues unchanged to the tables.
    Tables,
    /// The frame leaves by a port, in this queue, after an edit.
    Send(PortNo, QueueId, TagEdit),
    /// The frame is dropped.
    Drop(DropReason),
}

/// Change to a frame that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagEdit {
    /// The frame is sent unchanged.
    None,
    /// Decrements the hop limit or TTL.
    TakeHop,
    /// Removes the Tag-and-Forward tag.
    PopTf,
}

/// Result of a step of the decision. An error ends the decision early: the frame goes to the tables or is
/// dropped.
type Step<T> = Result<T, TagVerdict>;

impl From<DropReason> for TagVerdict {
    fn from(reason: DropReason) -> Self {
        Self::Drop(reason)
    }
}

impl StatelessForwarder {
    /// Compiles a configuration. Labels above [`Limits::LABEL_MAX`] are unused.
    #[must_use]
    pub fn compile(forwarder: &StatelessConfig) -> Self {
        let gates = forwarder.gates.as_ref();
        let mut numbers: Vec<PortNo> = forwarder.trusted.iter().copied().collect();
        numbers.extend(forwarder.mtu_bytes.keys());
        numbers.extend(gates.iter().flat_map(|gates| gates.ports.keys()));
        numbers.sort_unstable();
        numbers.dedup();
        let row = |number: PortNo| PortRow {
            number,
            is_trusted: forwarder.trusted.contains(&number),
            assists: gates
                .and_then(|gates| gates.ports.get(&number))
                .is_some_and(|gate| gate.flag == GateFlag::Assists),
            mtu_bytes: forwarder
                .mtu_bytes
                .get(&number)
                .map_or(u32::MAX, |mtu| (*mtu).try_into().unwrap_or(u32::MAX)),
        };
        Self {
            types: forwarder.types,
            ports: numbers.into_iter().map(row).collect(),
            banks: {
                let [first, second] = &forwarder.banks;
                [first, second, &forwarder.polka].map(|bank| bank.as_ref().map(KeyBank::compile))
            },
            gates: gates.map(GateRule::compile),
        }
    }

    /// Returns the EtherTypes of stateless forwarding.
    #[must_use]
    #[inline]
    pub fn types(&self) -> &TagTypes {
        &self.types
    }

    /// Parses the headers and computes the labels of at most [`TOGETHER`] frames.
    #[must_use]
    #[inline(always)]
    pub fn facts(&self, frames: &[Frame]) -> [HeaderFacts; TOGETHER] {
        let mut facts = [HeaderFacts { tag: None, label: 0 }; TOGETHER];
        for (facts, frame) in facts.iter_mut().zip(frames) {
            facts.tag = stateless::parse(frame.bytes(), &self.types);
        }
        for (number, bank) in self.banks.iter().enumerate() {
            if let Some(bank) = bank {
                bank.label(number, frames, &mut facts);
            }
        }
        facts
    }

    #[inline]
    fn port(&self, number: PortNo) -> Option<&PortRow> {
        match self.ports.get((number.0 as usize).wrapping_sub(1)) {
            Some(row) if row.number == number => Some(row),
            _ => self.ports.binary_search_by_key(&number, |row| row.number).ok().map(|at| &self.ports[at]),
        }
    }

    /// Decides about a tagged frame.
    #[must_use]
    #[inline(always)]
    pub fn forward_by_tag(
        &self,
        ports: &PortTable,
        frame: &Frame,
        tag: Result<StatelessTag, DropReason>,
        label: u32,
    ) -> TagVerdict {
        self.step(ports, frame, tag, label).unwrap_or_else(|end| end)
    }

    #[inline(always)]
    fn step(
        &self,
        ports: &PortTable,
        frame: &Frame,
        tag: Result<StatelessTag, DropReason>,
        label: u32,
    ) -> Step<TagVerdict> {
        let in_port = PortNo(frame.meta.in_port);
        if !ports.get(in_port).is_some_and(|port| port.up && !port.no_recv) {
            // Reception on the port is disabled, or its link is down. The pipeline drops the frame.
            return Err(TagVerdict::Tables);
        }
        let Some(row) = self.port(in_port).filter(|row| row.is_trusted) else {
            return Err(DropReason::UntrustedTag.into());
        };
        let (port, queue, edit) = match tag? {
            StatelessTag::Key { bank, .. } => {
                let hops_min = if bank == POLKA_BANK { POLKA_TTL_MIN } else { KEYFLOW_HOPS_MIN };
                let bank = self.banks[bank].as_ref().ok_or(TagVerdict::Tables)?;
                (bank.port(ports, frame, label, hops_min)?, 0, TagEdit::TakeHop)
            }
            StatelessTag::Tf { qid, up, down } => {
                let gates = self.gates.as_ref().ok_or(TagVerdict::Tables)?;
                let gate = gates.gate(row.assists, up, down).filter(|gate| gate.port != in_port);
                let gate = gate.ok_or(DropReason::NoGate)?;
                if !can_send(ports, gate.port) {
                    return Err(DropReason::PortDown.into());
                }
                (gate.port, qid.into(), if gate.pops { TagEdit::PopTf } else { TagEdit::None })
            }
        };
        if self.port(port).is_some_and(|row| bytes_sent(frame, edit) > row.mtu_bytes as usize) {
            return Err(DropReason::OverMtu.into());
        }
        Ok(TagVerdict::Send(port, QueueId(queue), edit))
    }
}

/// Returns the length in bytes that is compared with the MTU. It is the length of the frame as sent, or of
/// its longest segment, without the Ethernet header.
#[inline(always)]
fn bytes_sent(frame: &Frame, edit: TagEdit) -> usize {
    let segment =
        frame.meta.gso.map_or(usize::MAX, |gso| usize::from(gso.header_len) + usize::from(gso.size));
    let len = frame.len().min(segment);
    let len = if edit == TagEdit::PopTf {
        len.saturating_sub(stateless::TF_BYTES).max(FRAME_BYTES_MIN)
    } else {
        len
    };
    len.saturating_sub(ETHERNET_BYTES)
}

/// Returns whether a port exists, has a link and forwards.
#[inline(always)]
fn can_send(ports: &PortTable, port: PortNo) -> bool {
    ports.get(port).is_some_and(|port| port.up && !port.no_fwd)
}

impl KeyBank {
    fn compile(bank: &Bank) -> Self {
        let labels = bank.labels.range(..=Limits::LABEL_MAX);
        let count = labels.clone().next_back().map_or(0, |(label, _)| *label as usize + 1);
        let mut targets = vec![Target::None; count];
        for (label, what) in labels {
            targets[*label as usize] = match what {
                Label::Tables => Target::Tables,
                Label::Port(port) => Target::Port(*port, bank.backups.get(port).copied()),
            };
        }
        Self { residue: Residue::by(bank.id), targets: targets.into() }
    }

    /// Computes the labels of the frames whose keys belong to this bank. `number` is the number of the bank.
    #[inline(always)]
    fn label(&self, number: usize, frames: &[Frame], facts: &mut [HeaderFacts; TOGETHER]) {
        let (mut keys, mut whose, mut count) = (Keys::default(), [0; TOGETHER], 0);
        for (at, (facts, frame)) in facts.iter_mut().zip(frames).enumerate() {
            let Some(Ok(StatelessTag::Key { bank, from, to })) = facts.tag else { continue };
            if bank != number {
                continue;
            }
            let key = frame.bytes().get(from..to).unwrap_or_default();
            if let Ok(key) = <[u8; 16]>::try_from(key) {
                keys[count] = key;
                whose[count] = at;
                count += 1;
            } else {
                facts.label = self.residue.of(key);
            }
        }
        let labels = if count < KEYS_MIN {
            [0, 1, 2, 3, 4, 5, 6, 7].map(|at| if at < count { self.residue.of(&keys[at]) } else { 0 })
        } else {
            self.residue.of_all(&keys)
        };
        whose[..count].iter().zip(labels).for_each(|(at, label)| facts[*at].label = label);
    }

    /// Returns the output port of a frame's label.
    #[inline(always)]
    fn port(&self, ports: &PortTable, frame: &Frame, label: u32, hops_min: u8) -> Step<PortNo> {
        let in_port = PortNo(frame.meta.in_port);
        let (out, backup) = match self.targets.get(label as usize) {
            None | Some(Target::None) => return Err(DropReason::NoLabel.into()),
            Some(Target::Tables) => return Err(TagVerdict::Tables),
            Some(Target::Port(port, backup)) => (*port, *backup),
        };
        if frame.bytes().get(HOPS_AT).is_none_or(|hops| *hops < hops_min) {
            return Err(DropReason::HopLimit.into());
        }
        if out != in_port && can_send(ports, out) {
            return Ok(out);
        }
        backup.filter(|backup| can_send(ports, *backup)).ok_or(DropReason::PortDown.into())
    }
}

impl GateRule {
    fn compile(gates: &Gates) -> Self {
        let row = |(port, gate): (&PortNo, &flow::stateless::Gate)| GateRow {
            number: gate.number.get(),
            port: *port,
            pops: matches!(gate.flag, GateFlag::Server | GateFlag::External),
        };
        let mut rows: Vec<GateRow> = gates.ports.iter().map(row).collect();
        // The sort is stable, so among gates with the same number, the gate with the lowest port is kept.
        rows.sort_by_key(|row| row.number);
        rows.dedup_by_key(|row| row.number);
        Self {
            down: Divisor::new(gates.down_d),
            up: Divisor::new(gates.up_d),
            external: Divisor::new(gates.external_d).map(|d| (d, gates.server_gate_max)),
            gates: rows.into(),
        }
    }

    /// Returns the gate that a tag leads to.
    #[inline(always)]
    fn gate(&self, assists: bool, up: u32, down: u32) -> Option<GateRow> {
        let (d, from) = match self.external {
            _ if assists && up != 0 && down != 0 => (self.up, up),
            Some((d, server_gate_max)) if down > server_gate_max => (Some(d), down),
            _ => (self.down, down),
        };
        let number = u32::try_from(d?.multiple_from(from)).ok()?;
        self.gates.binary_search_by_key(&number, |row| row.number).ok().map(|at| self.gates[at])
    }
}

impl TagEdit {
    /// Applies the edit to a frame.
    #[inline(always)]
    pub fn make(self, frame: &mut Frame) -> Result<(), DropReason> {
        match self {
            Self::None => Ok(()),
            Self::TakeHop => {
                if let Some(hops) = frame.bytes_mut().get_mut(HOPS_AT) {
                    *hops = hops.wrapping_sub(1);
                }
                Ok(())
            }
            Self::PopTf => stateless::take_tf(frame),
        }
    }
}
