// SPDX-License-Identifier: Apache-2.0
//! Stateless forwarding: the processing of a tagged packet before the tables, as in the pseudocode of
//! docs/planning.md.

use crate::headers::{self, Tag};
use crate::packet::ReferencePacket;
use crate::residue::{output_gate, residue};
use crate::{Sent, Unfinished};
use flow::stateless::{Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessConfig};
use flow::{DropReason, PortNo, PortState, QueueId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Decision of stateless forwarding about a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatelessOutcome {
    /// Stateless forwarding does not apply. The packet enters the tables unchanged.
    Tables,
    /// The packet is sent to a port. KeyFlow and PolKA use queue 0.
    Sent(Sent),
    /// The packet is dropped.
    Dropped(DropReason),
}

/// A value computed from a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worked {
    /// Residue of a key modulo a node ID (the label), and the meaning of the label if it has one.
    Label(NodeId, u32, Option<Label>),
    /// Gate to which a tag leads, and the port with this gate if there is one.
    Gate(u64, Option<PortNo>),
}

/// Returns the label or gate that is computed from a frame's header, or `None` if processing ends before.
#[must_use]
pub fn worked(stateless_config: &StatelessConfig, in_port: PortNo, frame: &[u8]) -> Option<Worked> {
    let label = |bank: &Option<Bank>, key: Range<usize>| {
        let Bank { id, labels, .. } = bank.as_ref()?;
        let label = residue(&frame[key], *id);
        Some(Worked::Label(*id, label, labels.get(&label).copied()))
    };
    let header = headers::tag(frame, &stateless_config.types)
        .filter(|_| stateless_config.trusted.contains(&in_port))?;
    match header.ok()? {
        Tag::KeyFlow { epoch, key } => label(&stateless_config.banks[epoch], key),
        Tag::Polka { key } => label(&stateless_config.polka, key),
        Tag::Tf { up, down, .. } => {
            let gates = stateless_config.gates.as_ref()?;
            let number = gate(gates, in_port, up, down);
            Some(Worked::Gate(number, port_of(gates, number).map(|(port, _)| port)))
        }
    }
}

/// Returns the gate to which a tag leads for packets from a port.
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

/// Returns the first port with a gate of this number.
fn port_of(gates: &Gates, number: u64) -> Option<(PortNo, Gate)> {
    let is_it = |(_, gate): &(&PortNo, &Gate)| u64::from(gate.number.get()) == number;
    gates.ports.iter().find(is_it).map(|(port, gate)| (*port, *gate))
}

/// Processes a frame received on `in_port` of a switch with these ports.
#[must_use]
pub fn stateless(
    stateless_config: &StatelessConfig,
    ports: &BTreeMap<PortNo, PortState>,
    in_port: PortNo,
    frame: &[u8],
) -> StatelessOutcome {
    let node = Node { stateless_config, ports, in_port };
    match node.step(frame) {
        Ok(None) => StatelessOutcome::Tables,
        Ok(Some(sent)) => StatelessOutcome::Sent(sent),
        Err(reason) => StatelessOutcome::Dropped(reason),
    }
}

/// State of a switch while it processes one packet.
struct Node<'a> {
    stateless_config: &'a StatelessConfig,
    ports: &'a BTreeMap<PortNo, PortState>,
    in_port: PortNo,
}

/// Result of the processing: the frame to send, `None` if the packet enters the tables, or a drop reason.
type Step = Result<Option<Sent>, DropReason>;

impl Node<'_> {
    fn step(&self, frame: &[u8]) -> Step {
        let types = &self.stateless_config.types;
        let Some(header) = headers::tag(frame, types) else { return Ok(None) };
        if !self.stateless_config.trusted.contains(&self.in_port) {
            return Err(DropReason::UntrustedTag);
        }
        match header? {
            Tag::KeyFlow { epoch, key } => match &self.stateless_config.banks[epoch] {
                Some(bank) => self.by_key(bank, &frame[key], frame, 1),
                None => Ok(None),
            },
            // A PolKA router that receives a TTL of 1 decrements it to 0 and drops the packet.
            Tag::Polka { key } => match &self.stateless_config.polka {
                Some(bank) => self.by_key(bank, &frame[key], frame, 2),
                None => Ok(None),
            },
            Tag::Tf { qid, up, down } => self.by_gate(frame, qid, up, down),
        }
    }

    /// Processes a packet with a KeyFlow or PolKA header. Both headers have the hop limit or TTL at byte 15
    /// of the frame. Packets with a value below `hops_min` are dropped.
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
        self.send(port, QueueId(0), bytes)
    }

    /// Processes a packet with a Tag-and-Forward tag.
    fn by_gate(&self, frame: &[u8], qid: u8, up: u32, down: u32) -> Step {
        let Some(gates) = &self.stateless_config.gates else { return Ok(None) };
        let number = gate(gates, self.in_port, up, down);
        let (port, gate) = port_of(gates, number).ok_or(DropReason::NoGate)?;
        if port == self.in_port {
            return Err(DropReason::NoGate);
        }
        if !self.is_up(port) {
            return Err(DropReason::PortDown);
        }
        let mut packet = ReferencePacket::arriving(self.in_port, frame);
        if matches!(gate.flag, GateFlag::Server | GateFlag::External) {
            headers::pop_tf(&mut packet, &self.stateless_config.types)?;
        }
        self.send(port, QueueId(qid.into()), packet.bytes)
    }

    /// Returns whether a port exists, has a link and forwards.
    fn is_up(&self, port: PortNo) -> bool {
        self.ports.get(&port).is_some_and(|state| state.up && !state.no_fwd)
    }

    /// Sends a frame, unless the bytes after its first 14 exceed the port's MTU.
    fn send(&self, port: PortNo, queue: QueueId, bytes: Vec<u8>) -> Step {
        match self.stateless_config.mtu_bytes.get(&port) {
            Some(mtu) if bytes.len() - 14 > *mtu => Err(DropReason::OverMtu),
            _ => Ok(Some(Sent { port, bytes, queue, unfinished: Unfinished::default() })),
        }
    }
}
