// SPDX-License-Identifier: Apache-2.0
//! The stateless lane: what a switch does with a tagged packet before its tables. The pseudocode of docs/planning.md, and
//! what is said of it in this crate's documentation.

use crate::Sent;
use crate::headers::{self, Tag};
use crate::packet::Packet;
use crate::residue::{output_gate, residue};
use flow::stateless::{Bank, Gate, GateFlag, Label, Stateless};
use flow::{DropReason, PortNo, PortState};
use std::collections::BTreeMap;

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
        let assists = gates.ports.get(&self.in_port).is_some_and(|gate| gate.flag == GateFlag::Assists);
        let number = if assists && up != 0 && down != 0 {
            output_gate(up, gates.up_d)
        } else if gates.external_d != 0 && down > gates.server_gate_max {
            output_gate(down, gates.external_d)
        } else {
            output_gate(down, gates.down_d)
        };
        let is_out = |gate: &Gate| u64::from(gate.number.get()) == number;
        let (port, gate) = gates.ports.iter().find(|(_, gate)| is_out(gate)).ok_or(DropReason::NoGate)?;
        if *port == self.in_port {
            return Err(DropReason::NoGate);
        }
        if !self.is_up(*port) {
            return Err(DropReason::PortDown);
        }
        let mut packet = Packet::arriving(self.in_port, frame);
        if matches!(gate.flag, GateFlag::Server | GateFlag::External) {
            headers::pop_tf(&mut packet, &self.lane.types)?;
        }
        self.send(*port, qid.into(), packet.bytes)
    }

    /// Whether a port is there, has a link and forwards.
    fn is_up(&self, port: PortNo) -> bool {
        self.ports.get(&port).is_some_and(|state| state.up && !state.no_fwd)
    }

    /// Sends what the port can carry behind an Ethernet header of 14 bytes.
    fn send(&self, port: PortNo, queue: u32, bytes: Vec<u8>) -> Step {
        match self.lane.mtu_bytes.get(&port) {
            Some(mtu) if bytes.len() - 14 > *mtu => Err(DropReason::OverMtu),
            _ => Ok(Some(Sent { port, bytes, queue })),
        }
    }
}
