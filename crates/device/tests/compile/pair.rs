// SPDX-License-Identifier: Apache-2.0
//! A compiler with its device, beside the reference.

use std::collections::BTreeMap;
use std::sync::Arc;

use device::compile::{CompileError, Compiler, DeviceCommand, PpuLayout, Transition};
use device::emulator::{Emulator, Fate};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{EntryChange, EntryId, FlowEntry, FlowModCommand, Operation, PortNo, PortState, TableId};
use reference::Reference;

/// What leaves: an egress port, or the entry that sent to the controller; and the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    Port(u32, Vec<u8>),
    Controller(TableId, EntryId, Vec<u8>),
    Nothing,
}

/// Forgets the entry that sent to the controller.
pub fn coarse(left: Left) -> Left {
    match left {
        Left::Controller(_, _, frame) => Left::Controller(TableId(0), EntryId::NONE, frame),
        other => other,
    }
}

/// Ports of the switch.
pub const PORTS: u32 = 6;

#[derive(Clone)]
pub struct Pair {
    pub compiler: Compiler,
    pub device: Emulator,
    pub entries: BTreeMap<EntryId, Arc<FlowEntry>>,
    next: u32,
}

/// Pads as the device does. The reference pads only after a pop.
fn padded(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.len() < 60 {
        frame.resize(60, 0);
    }
    frame
}

pub fn reference(entries: &BTreeMap<EntryId, Arc<FlowEntry>>) -> Reference {
    let mut reference = Reference::new();
    for number in 1..=PORTS {
        reference.apply(&Operation::Port(PortState::up(PortNo(number)))).unwrap();
    }
    let changes = entries.values().map(|entry| EntryChange::Add(Arc::clone(entry))).collect();
    reference.apply(&Operation::Entries(changes)).unwrap();
    reference
}

pub fn expected(reference: &mut Reference, port: u8, frame: &[u8]) -> Left {
    let mut result = reference.process(PortNo(port.into()), frame);
    match (result.sent.pop(), result.packet_ins.pop()) {
        (Some(sent), None) => Left::Port(sent.port.0, padded(sent.bytes)),
        (None, Some(copy)) => Left::Controller(copy.table, copy.entry, padded(copy.bytes)),
        (None, None) => Left::Nothing,
        both => panic!("the device cannot send two copies: {both:?}"),
    }
}

impl Pair {
    pub fn new(layout: PpuLayout) -> Self {
        let (ppus, entries) = (layout.ppus() as u8, layout.entries());
        let device = Emulator::new(ppus, entries);
        let mut made = Self { compiler: Compiler::new(layout), device, entries: BTreeMap::new(), next: 1 };
        made.execute();
        made
    }

    /// Executes the compiler's commands.
    pub fn execute(&mut self) {
        for (ppu, command) in self.compiler.take_commands() {
            assert!(self.device.execute(ppu, &command), "{ppu} {command:?}");
        }
    }

    /// Makes an entry of a flow.
    pub fn entry(&mut self, text: &str) -> FlowEntry {
        let made = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        self.next += 1;
        FlowEntry {
            id: EntryId(self.next),
            table: made.table.unwrap(),
            priority: made.priority,
            matching: made.matching,
            instructions: Arc::new(made.instructions),
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            cookie: 0,
            flags: made.flags,
            low_latency: false,
        }
    }

    /// Applies changes to the list of entries and to the compiler, but not to the device.
    pub fn apply(
        &mut self,
        changes: &[EntryChange],
    ) -> Result<(Transition, Vec<DeviceCommand>), CompileError> {
        let transition = self.compiler.apply(changes)?;
        for change in changes {
            match change {
                EntryChange::Add(entry) => _ = self.entries.insert(entry.id, Arc::clone(entry)),
                EntryChange::Remove { id, .. } => _ = self.entries.remove(id),
                EntryChange::Modify { id, instructions, .. } => {
                    let old = self.entries[id].as_ref().clone();
                    let entry = FlowEntry { instructions: Arc::clone(instructions), ..old };
                    self.entries.insert(*id, Arc::new(entry));
                }
            }
        }
        Ok((transition, self.compiler.take_commands()))
    }

    /// Adds a flow.
    pub fn add(&mut self, text: &str) -> Result<EntryId, CompileError> {
        let entry = self.entry(text);
        let id = entry.id;
        let (_, commands) = self.apply(&[EntryChange::Add(Arc::new(entry))])?;
        for (ppu, command) in commands {
            assert!(self.device.execute(ppu, &command));
        }
        Ok(id)
    }

    /// Adds all flows, each on a line.
    pub fn add_all(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            self.add(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
        }
    }

    /// Returns what the device sends.
    pub fn forward(&mut self, port: u8, frame: &[u8]) -> Left {
        match self.device.process(port, frame) {
            Fate::Port { port, frame } => Left::Port(port.into(), frame),
            Fate::Controller { ppu, code, frame } => {
                let sender = self.compiler.sender(ppu, code).unwrap();
                Left::Controller(sender.table, sender.entry, frame)
            }
            Fate::Dropped(_) => Left::Nothing,
        }
    }

    /// Returns what the device sends, without the entry that sent to the controller.
    pub fn forward_coarsely(&mut self, port: u8, frame: &[u8]) -> Left {
        match self.device.process(port, frame) {
            Fate::Port { port, frame } => Left::Port(port.into(), frame),
            Fate::Controller { frame, .. } => coarse(Left::Controller(TableId(0), EntryId::NONE, frame)),
            Fate::Dropped(_) => Left::Nothing,
        }
    }

    /// Compares frames with the reference. Returns the number of frames that left.
    pub fn compare(&mut self, frames: &[(u8, Vec<u8>)]) -> usize {
        let mut reference = reference(&self.entries);
        let mut left = 0;
        for (port, frame) in frames {
            let wanted = expected(&mut reference, *port, frame);
            let got = self.forward(*port, frame);
            assert_eq!(got, wanted, "from port {port}: {frame:02x?}\n{:#?}", self.entries);
            left += usize::from(wanted != Left::Nothing);
        }
        for id in self.entries.keys() {
            let hits: u64 = self
                .compiler
                .places(*id)
                .into_iter()
                .map(|(ppu, index)| self.device.entry(ppu, index).unwrap().packets)
                .sum();
            let counted = reference.entry_counters(*id).map_or(0, |(packets, _)| packets);
            assert!(hits >= counted, "{id:?}: {hits} {counted}");
        }
        left
    }
}
