// SPDX-License-Identifier: Apache-2.0
//! Software model of the data plane: executes commands, and forwards frames exactly as the RTL does.
//!
//! Each step follows the module of `rtl/` that its comment names. Tests and the compiler's comparison with
//! `reference` use the model; it is not fast.

mod agent;
mod header;

use crate::action::{ActionWord, OutputKind};
use crate::command::PpuCommand;
use crate::key::{KEY_SLICES, KeySlice, TernaryKey};
use crate::message::EntryState;
use crate::register::COUNTERS;

pub use agent::DeviceAgent;
pub use header::{DeviceDrop, PacketHeader};

/// Maximum length of a frame without FCS (parameter `FRAME_MAX` of the RTL).
pub const FRAME_BYTES_MAX: usize = 1518;
/// Length of an Ethernet header.
const RUNT_BELOW: usize = 14;
/// Value of [`PacketHeader::ppu`] if no PPU set an output.
pub const NO_PPU: u8 = 0xff;

/// Fate of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The frame leaves by a port.
    Port {
        /// Egress port.
        port: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// The frame goes to the control plane.
    Controller {
        /// PPU whose action sent it, or [`NO_PPU`].
        ppu: u8,
        /// The field `port` of the action.
        code: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// The frame is dropped, and counted by the counter of this name.
    Dropped(&'static str),
}

/// One entry of a table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    key: TernaryKey,
    action: ActionWord,
    packets: u64,
}

/// Tables of a PPU.
#[derive(Clone, Debug)]
struct Ppu {
    slices: [KeySlice; KEY_SLICES],
    entries: Vec<Option<Entry>>,
}

/// The data plane.
#[derive(Clone, Debug)]
pub struct Emulator {
    ppus: Vec<Ppu>,
    /// Output of packets for which no PPU set one.
    pub miss_output: OutputKind,
    counters: [u64; COUNTERS.len()],
}

impl Emulator {
    /// Returns a device without entries.
    #[must_use]
    pub fn new(ppus: u8, entries: u16) -> Self {
        let ppu = Ppu { slices: Default::default(), entries: vec![None; entries.into()] };
        Self { ppus: vec![ppu; ppus.into()], miss_output: OutputKind::Discard, counters: [0; COUNTERS.len()] }
    }

    /// Returns the number of PPUs and of the entries of each.
    #[must_use]
    pub fn size(&self) -> (u8, u16) {
        (self.ppus.len() as u8, self.ppus.first().map_or(0, |ppu| ppu.entries.len() as u16))
    }

    /// Executes a command. Returns `false` if the PPU or the index does not exist.
    pub fn execute(&mut self, ppu: u8, command: &PpuCommand) -> bool {
        let Some(ppu) = self.ppus.get_mut(usize::from(ppu)) else { return false };
        if let PpuCommand::Select { slices } = command {
            ppu.slices = *slices;
            return true;
        }
        let Some(place) = ppu.entries.get_mut(usize::from(command.index())) else { return false };
        match *command {
            PpuCommand::Write { key, action, .. } => *place = Some(Entry { key, action, packets: 0 }),
            PpuCommand::Act { action, .. } => {
                if let Some(entry) = place {
                    entry.action = action;
                }
            }
            PpuCommand::Remove { .. } | PpuCommand::Select { .. } => *place = None,
        }
        true
    }

    /// Returns the state of an entry, or `None` if the PPU or the index does not exist.
    #[must_use]
    pub fn entry(&self, ppu: u8, index: u16) -> Option<EntryState> {
        let place = self.ppus.get(usize::from(ppu))?.entries.get(usize::from(index))?;
        let (key, action, packets) =
            place.map_or_else(Default::default, |entry| (entry.key, entry.action, entry.packets));
        Some(EntryState { ppu, index, valid: place.is_some(), key, action, packets })
    }

    /// Returns the slices of a PPU's key.
    #[must_use]
    pub fn slices(&self, ppu: u8) -> Option<[KeySlice; KEY_SLICES]> {
        self.ppus.get(usize::from(ppu)).map(|ppu| ppu.slices)
    }

    /// Returns the counters in the order of [`COUNTERS`].
    #[must_use]
    pub fn counters(&self) -> Vec<u64> {
        self.counters.to_vec()
    }

    /// Forwards a frame. (frame_buffer, datapath, deparser)
    pub fn process(&mut self, in_port: u8, frame: &[u8]) -> Fate {
        self.count("received");
        let fate = if frame.is_empty() || frame.len() > FRAME_BYTES_MAX {
            Fate::Dropped("bad_frame")
        } else if frame.len() < RUNT_BELOW {
            Fate::Dropped("runt")
        } else {
            self.pass(PacketHeader::parse(in_port, frame))
        };
        self.count(match fate {
            Fate::Port { .. } => "to_port",
            Fate::Controller { .. } => "to_controller",
            Fate::Dropped(counter) => counter,
        });
        fate
    }

    fn pass(&mut self, mut header: PacketHeader) -> Fate {
        for (number, ppu) in self.ppus.iter_mut().enumerate() {
            let key = header.key(&ppu.slices);
            // The search takes place for packets that are done, too; their hits are not counted.
            if header.done {
                break;
            }
            let hit = ppu.entries.iter_mut().flatten().find(|entry| entry.key.matches(&key));
            if let Some(entry) = hit {
                entry.packets += 1;
                header.act(number as u8, &entry.action);
            }
        }
        let kind = match header.output {
            OutputKind::Keep => self.miss_output,
            kind => kind,
        };
        let (ppu, port) = (header.ppu, header.port);
        match (header.drop, kind) {
            (Some(DeviceDrop::BadEdit), _) => Fate::Dropped("bad_edit"),
            (Some(DeviceDrop::Ttl), _) => Fate::Dropped("ttl_expired"),
            (None, OutputKind::Port) if header.copied > 0 => Fate::Port { port, frame: header.finish() },
            (None, OutputKind::Controller) if header.copied > 0 => {
                Fate::Controller { ppu, code: port, frame: header.finish() }
            }
            _ => Fate::Dropped("discarded"),
        }
    }

    fn count(&mut self, name: &str) {
        if let Some(at) = COUNTERS.iter().position(|(counter, _)| *counter == name) {
            self.counters[at] += 1;
        }
    }
}
