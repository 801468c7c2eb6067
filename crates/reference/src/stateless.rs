// SPDX-License-Identifier: Apache-2.0
//! The stateless lane: what a switch does with a tagged packet before its tables. The pseudocode of docs/planning.md, and
//! what is said of it in this crate's documentation.

use crate::headers::{self, Tag};
use crate::packet::Packet;
use crate::residue::{output_gate, residue};
use crate::{Sent, Unfinished};
use flow::stateless::{Bank, Gate, GateFlag, Gates, Label, NodeId, Stateless};
use flow::{DropReason, PortNo, PortState};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the lane makes of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing: it goes to the tables as it came.
    Tables,
    /// It is sent by a port. KeyFlow and PolKA leave it in queue 0.
    Sent(Sent),
    /// It is dropped.
    Dropped(DropReason),
}

/// What the lane works out of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// What a key leaves by an ID, and what that stands for, if for anything.
    Label(NodeId, u32, Option<Label>),
    /// The gate that a tag leads to, and the port that has it, if one does.
    Gate(u64, Option<PortNo>),
}

/// What the lane works out of a frame's header, for those who ask why; nothing if it does not come to that.
#[must_use]
pub fn worked(lane: &Stateless, in_port: PortNo, frame: &[u8]) -> Option<Worked> {
    let label = |bank: &Option<Bank>, key: Range<usize>| {
        let Bank { id, labels, .. } = bank.as_ref()?;
        let label = residue(&frame[key], *id);
        Some(Worked::Label(*id, label, labels.get(&label).copied()))
    };
    let header = headers::tag(frame, &lane.types).filter(|_| lane.trusted.contains(&in_port))?;
    match header.ok()? {
        Tag::KeyFlow { epoch, key } => label(&lane.banks[epoch], key),
        Tag::Polka { key } => label(&lane.polka, key),
        Tag::Tf { up, down, .. } => {
            let gates = lane.gates.as_ref()?;
            let number = gate(gates, in_port, up, down);
            Some(Worked::Gate(number, port_of(gates, number).map(|(port, _)| port)))
        }
    }
}

/// The gate that a tag leads to from a port.
fn gate(gates: &Gates, in_port: PortNo, up: u32, down: u32) -> u64 {
    let assists = gates.ports.get(&in_port).is_some_and(|gate| gate.flag == GateFlag::Assists);
    if assists && up != 0 && down != 0 {
        output_gate(up, gates.up_d)
    } else if gates.external_d != 0 && down > gates.server_gate_max {
        output_gate(down, gates.external_d)
    } else {
        output_gate(down, gates.down_d)
    }
}

/// The first port with a gate of this number.
fn port_of(gates: &Gates, number: u64) -> Option<(PortNo, Gate)> {
    let is_it = |(_, gate): &(&PortNo, &Gate)| u64::from(gate.number.get()) == number;
    gates.ports.iter().find(is_it).map(|(port, gate)| (*port, *gate))
}

/// What becomes of a frame that was received by `in_port`, at a switch with these ports.
#[must_use]
pub fn stateless(
    lane: &Stateless,
    ports: &BTreeMap<PortNo, PortState>,
    in_port: PortNo,
    frame: &[u8],
) -> Verdict {
    let node = Node { lane, ports, in_port };
    match node.step(frame) {
        Ok(None) => Verdict::Tables,
        Ok(Some(sent)) => Verdict::Sent(sent),
        Err(reason) => Verdict::Dropped(reason),
    }
}

/// A switch as a packet finds it.
struct Node<'a> {
    lane: &'a Stateless,
    ports: &'a BTreeMap<PortNo, PortState>,
    in_port: PortNo,
}

/// What is sent; nothing if the tables are to have the packet; or why it is dropped.
type Step = Result<Option<Sent>, DropReason>;

impl Node<'_> {
    fn step(&self, frame: &[u8]) -> Step {
        let types = &self.lane.types;
        let Some(header) = headers::tag(frame, types) else { return Ok(None) };
        if !self.lane.trusted.contains(&self.in_port) {
            return Err(DropReason::UntrustedTag);
        }
        match header? {
            Tag::KeyFlow { epoch, key } => match &self.lane.banks[epoch] {
                Some(bank) => self.by_key(bank, &frame[key], frame, 1),
                None => Ok(None),
            },
            // A router that gets a TTL of 1 decrements it and drops the packet.
            Tag::Polka { key } => match &self.lane.polka {
                Some(bank) => self.by_key(bank, &frame[key], frame, 2),
                None => Ok(None),
            },
            Tag::Tf { qid, up, down } => self.by_gate(frame, qid, up, down),
        }
    }

    /// KeyFlow and PolKA. Both have what counts hops at byte 15; below `hops_min` it has been used up.
    fn by_key(&self, bank: &Bank, key: &[u8], frame: &[u8], hops_min: u8) -> Step {
        let label = residue(key, bank.id);
        let out = match bank.labels.get(&label) {
            None => return Err(DropReason::NoLabel),
            Some(Label::Tables) => return Ok(None),
            Some(Label::Port(port)) => *port,
        };
        let mut bytes = frame.to_vec();
        if bytes[15] < hops_min {
            return Err(DropReason::HopLimit);
        }
        bytes[15] -= 1;
        let port = if out != self.in_port && self.is_up(out) {
            out
        } else {
            *bank.backups.get(&out).filter(|backup| self.is_up(**backup)).ok_or(DropReason::PortDown)?
        };
        self.send(port, 0, bytes)
    }

    /// Tag-and-Forward.
    fn by_gate(&self, frame: &[u8], qid: u8, up: u32, down: u32) -> Step {
        let Some(gates) = &self.lane.gates else { return Ok(None) };
        let number = gate(gates, self.in_port, up, down);
        let (port, gate) = port_of(gates, number).ok_or(DropReason::NoGate)?;
        if port == self.in_port {
            return Err(DropReason::NoGate);
        }
        if !self.is_up(port) {
            return Err(DropReason::PortDown);
        }
        let mut packet = Packet::arriving(self.in_port, frame);
        if matches!(gate.flag, GateFlag::Server | GateFlag::External) {
            headers::pop_tf(&mut packet, &self.lane.types)?;
        }
        self.send(port, qid.into(), packet.bytes)
    }

    /// Whether a port is there, has a link and forwards.
    fn is_up(&self, port: PortNo) -> bool {
        self.ports.get(&port).is_some_and(|state| state.up && !state.no_fwd)
    }

    /// Sends what the port can carry behind an Ethernet header of 14 bytes.
    fn send(&self, port: PortNo, queue: u32, bytes: Vec<u8>) -> Step {
        match self.lane.mtu_bytes.get(&port) {
            Some(mtu) if bytes.len() - 14 > *mtu => Err(DropReason::OverMtu),
            _ => Ok(Some(Sent { port, bytes, queue, unfinished: Unfinished::default() })),
        }
    }
}
