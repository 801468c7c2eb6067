// SPDX-License-Identifier: Apache-2.0
//! Packets of the controller. The edits of a packet-out are executed by a program for a scratch device.

use std::sync::Arc;

use dataplane::PacketInEvent;
use flow::operation::PacketOut;
use flow::{
    Action, DropReason, EntryChange, EntryFlags, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match,
    PacketInReason, PortNo, TableId, port_no,
};

use crate::compile::{Compiler, PpuLayout};
use crate::emulator::{Emulator, Fate, PacketHeader};
use crate::key::{KeySlice, SelectorBase};
use crate::message::FRAME_BYTES_MAX;
use crate::plane::sync::Sync;
use crate::plane::{DeviceLink, DevicePlane};

/// PPUs and entries of the scratch device.
const PPUS: u8 = 8;
const ENTRIES: u16 = 32;
/// Length of an Ethernet header.
const HEADER_BYTES: usize = 14;

/// Returns the frame behind these edits, or `None` if the packet is dropped or the device has no such edit.
fn edited(edits: &[Action], bytes: &[u8]) -> Option<Vec<u8>> {
    if edits.is_empty() {
        return Some(bytes.to_vec());
    }
    // The match compares what the edits must know of the frame.
    let slice = KeySlice { base: SelectorBase::Extended, offset: 24, bytes: 4 };
    let key = PacketHeader::parse(0, bytes).key(&[slice; 4]);
    let [eth_type, vlan] = [0, 2].map(|at| u128::from(key[at]) << 8 | u128::from(key[at + 1]));
    let mut fields = vec![FieldMatch::exact(Field::EthType, eth_type)];
    fields.push(FieldMatch::exact(Field::VlanVid, vlan & 0x1fff));
    if vlan & 0x1000 != 0 {
        fields.push(FieldMatch::exact(Field::VlanPcp, vlan >> 13));
    }
    let apply = edits.iter().cloned().chain([Action::output(port_no::CONTROLLER)]).collect();
    let entry = FlowEntry {
        id: EntryId(0),
        table: TableId(0),
        priority: 1,
        matching: Match::new(fields).ok()?,
        instructions: Arc::new(Instructions::apply(apply)),
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        cookie: 0,
        flags: EntryFlags::default(),
        low_latency: false,
    };
    let mut compiler = Compiler::new(PpuLayout::new(PPUS, ENTRIES, &[PPUS])?);
    compiler.apply(&[EntryChange::Add(Arc::new(entry))]).ok()?;
    let mut device = Emulator::new(PPUS, ENTRIES);
    for (ppu, command) in compiler.take_commands() {
        device.execute(ppu, &command);
    }
    match device.process(0, bytes) {
        Fate::Controller { frame, .. } => Some(frame),
        _ => None,
    }
}

impl<L: DeviceLink> DevicePlane<L> {
    /// Executes a packet-out.
    pub(super) fn packet_out(&mut self, packet: &PacketOut) {
        let in_port = packet.in_port;
        if packet.bytes.len() < HEADER_BYTES {
            return self.lose_packet(DropReason::Runt);
        }
        if packet.bytes.len() > FRAME_BYTES_MAX {
            return self.lose_packet(DropReason::OverMtu);
        }
        let mut edits = Vec::new();
        for action in &packet.actions {
            let Action::Output { port, max_len } = *action else {
                edits.push(action.clone());
                continue;
            };
            let Some(frame) = edited(&edits, &packet.bytes) else {
                return self.lose_packet(DropReason::UnsupportedAction);
            };
            if port == port_no::CONTROLLER {
                self.send_to_controller(in_port, &frame, max_len);
            } else {
                self.output(port, in_port, frame);
            }
        }
    }

    /// Sends a packet-out back to the controller as a packet-in of no entry, as the workers do. The device
    /// takes no part.
    fn send_to_controller(&mut self, in_port: PortNo, frame: &[u8], max_len: u16) {
        self.report(frame, in_port, |frame| PacketInEvent {
            frame,
            table: TableId(0),
            entry: EntryId::NONE,
            reason: PacketInReason::Action,
            max_len,
            metadata: 0,
            tunnel_id: 0,
            question: None,
        });
    }

    fn output(&mut self, port: PortNo, in_port: PortNo, frame: Vec<u8>) {
        let open = |plane: &Self, flood: bool| -> Vec<PortNo> {
            let wanted =
                plane.ports.values().filter(|state| state.up && !state.no_fwd && !(flood && state.no_flood));
            wanted.map(|state| state.number).filter(|number| *number != in_port).collect()
        };
        let targets = match port {
            port_no::TABLE => {
                // The controller enters the pipeline as port 0.
                let from = if port_no::is_real(in_port) { in_port } else { PortNo(0) };
                return self.send_packet(from, true, frame);
            }
            port_no::IN_PORT => vec![in_port],
            port_no::ALL | port_no::FLOOD | port_no::NORMAL => {
                let targets = open(self, port != port_no::ALL);
                if targets.is_empty() {
                    self.lose_packet(DropReason::NoFloodPort);
                }
                targets
            }
            number if number == in_port => return self.lose_packet(DropReason::IngressPort),
            number => vec![number],
        };
        for target in targets {
            match self.ports.get(&target) {
                None => self.lose_packet(DropReason::NoSuchPort),
                Some(state) if !state.up => self.lose_packet(DropReason::PortDown),
                Some(state) if state.no_fwd => self.lose_packet(DropReason::PortNotForwarding),
                Some(_) => self.send_packet(target, false, frame.clone()),
            }
        }
    }

    fn send_packet(&mut self, port: PortNo, pipeline: bool, frame: Vec<u8>) {
        match u8::try_from(port.0) {
            Err(_) => self.lose_packet(DropReason::NoSuchPort),
            Ok(_) if frame.len() > FRAME_BYTES_MAX => self.lose_packet(DropReason::OverMtu),
            Ok(port) if matches!(self.sync, Sync::Ready) => self.session.packet_out(port, pipeline, frame),
            Ok(_) => self.lose_packet(DropReason::TransmitFull),
        }
    }

    fn lose_packet(&mut self, reason: DropReason) {
        *self.lost.entry(reason).or_default() += 1;
    }
}
