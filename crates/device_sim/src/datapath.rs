// SPDX-License-Identifier: Apache-2.0
//! The simulated data plane: commands, and frames in and out.

use device::{OutputKind, PpuCommand};
use thiserror::Error;

use crate::beat::{self, Beat, beats};
use crate::command;
use crate::pins::datapath::{Pins, Verilated};

/// Cycles of a reset.
const RESET_CYCLES: usize = 4;
/// Cycles in which a reset command must be accepted and executed. The RTL needs fewer.
const COMMAND_CYCLES_MAX: u32 = 100_000;
/// Maximum number of cycles until the counters include a frame that was received, or after they include a
/// sent one.
const SETTLE_CYCLES: u32 = 16;

/// A command that the data plane did not execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The PPU or the index does not exist.
    #[error("the PPU or the index does not exist")]
    Range,
    /// The command was not executed in time, which is a fault of the RTL.
    #[error("the command was not executed after {COMMAND_CYCLES_MAX} cycles")]
    Late,
}

/// A frame that left the data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFrame {
    /// Code of [`OutputKind`]: to a port, or to the control plane.
    pub kind: u8,
    /// The field `port` of the action.
    pub port: u8,
    /// Port at which the frame arrived.
    pub in_port: u8,
    /// PPU that set the output, or 255.
    pub ppu: u8,
    /// The frame without FCS.
    pub frame: Vec<u8>,
}

/// The simulated data plane.
pub struct RtlDatapath {
    device: Verilated,
    pins: Pins,
    /// Bit n: the next stage accepts a beat in cycle n from now on, modulo 64.
    ready: u64,
    /// Bytes of the frame that leaves now.
    leaving: Vec<u8>,
    /// Result of the last command, or `None` while it is executed.
    executed: Option<Result<(), Refused>>,
    cycles: u64,
}

impl RtlDatapath {
    /// Returns a data plane after a reset: no entries, and frames without output are discarded. Returns
    /// `None` if memory is short.
    #[must_use]
    pub fn new() -> Option<Self> {
        Self::with_seed(1)
    }

    /// Returns a data plane after a reset, as [`Self::new`]. The seed chooses the registers' values before
    /// the reset.
    #[must_use]
    pub fn with_seed(seed: u32) -> Option<Self> {
        let pins = Pins { miss_output: OutputKind::Discard as u8, ..Pins::default() };
        let mut datapath = Self {
            device: Verilated::new(seed)?,
            pins,
            ready: u64::MAX,
            leaving: Vec::new(),
            executed: Some(Ok(())),
            cycles: 0,
        };
        datapath.reset();
        datapath.cycles = 0;
        Some(datapath)
    }

    /// Resets the data plane. Frames in it and its entries are lost.
    pub fn reset(&mut self) {
        self.reset_with(0, &[]);
    }

    /// Resets the data plane, while these beats arrive.
    pub fn reset_with(&mut self, port: u8, beats: &[Beat]) {
        self.pins.rst = true;
        for beat in beats {
            self.receive_beat(port, beat, &mut Vec::new());
        }
        for _ in beats.len()..RESET_CYCLES {
            self.clock(&mut Vec::new());
        }
        self.pins.rst = false;
        self.leaving.clear();
        self.executed = Some(Ok(()));
    }

    /// Sets the output of frames for which no PPU set one.
    pub fn set_miss_output(&mut self, kind: OutputKind) {
        self.pins.miss_output = kind as u8;
    }

    /// Sets whether the next stage accepts a beat in the next cycles.
    pub fn set_ready(&mut self, ready: bool) {
        self.set_ready_pattern(if ready { u64::MAX } else { 0 });
    }

    /// Sets in which of the next cycles the next stage accepts a beat: bit n stands for cycle n modulo 64.
    pub fn set_ready_pattern(&mut self, pattern: u64) {
        self.ready = pattern;
    }

    /// Returns the number of cycles since the reset.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Returns the data plane's counters in the order of [`device::register::COUNTERS`], from `received` on.
    #[must_use]
    pub fn counters(&self) -> [u64; 9] {
        std::array::from_fn(|at| {
            u64::from(self.pins.counters[2 * at + 1]) << 32 | u64::from(self.pins.counters[2 * at])
        })
    }

    /// Runs one cycle. Frames that leave are appended to `sent`.
    pub fn clock(&mut self, sent: &mut Vec<SentFrame>) {
        self.pins.out_ready = self.ready & 1 == 1;
        self.ready = self.ready.rotate_right(1);
        self.device.clock(&mut self.pins);
        self.cycles += 1;
        self.follow_command();
        if !self.pins.out_valid || !self.pins.out_ready {
            return;
        }
        beat::append(&mut self.leaving, &self.pins.out_data, self.pins.out_keep);
        if self.pins.out_last {
            let [ppu, in_port, port, kind] = self.pins.out_egress.to_le_bytes();
            let frame = std::mem::take(&mut self.leaving);
            sent.push(SentFrame { kind, port, in_port, ppu, frame });
        }
    }

    /// Offers a command, which is executed in the next cycles. An earlier command must have been executed.
    pub fn start(&mut self, ppu: u8, command: &PpuCommand) {
        self.start_with_index(ppu, command, command.index());
    }

    /// Offers a command as [`Self::start`], with another index.
    pub fn start_with_index(&mut self, ppu: u8, command: &PpuCommand, index: u16) {
        self.pins.command = command::pack(ppu, command, index);
        self.pins.command_valid = true;
        self.executed = None;
    }

    /// Returns the result of the last command, or `None` while it is executed.
    #[must_use]
    pub fn executed(&self) -> Option<Result<(), Refused>> {
        self.executed
    }

    fn follow_command(&mut self) {
        if self.pins.command_valid && self.pins.command_ready {
            self.pins.command_valid = false;
        }
        if self.pins.refused {
            self.executed = Some(Err(Refused::Range));
        } else if self.pins.done {
            self.executed = Some(Ok(()));
        }
    }

    /// Executes a command. Frames that leave meanwhile are appended to `sent`.
    ///
    /// # Errors
    ///
    /// Returns why the command was not executed.
    pub fn execute(
        &mut self,
        ppu: u8,
        command: &PpuCommand,
        sent: &mut Vec<SentFrame>,
    ) -> Result<(), Refused> {
        self.start(ppu, command);
        for _ in 0..COMMAND_CYCLES_MAX {
            self.clock(sent);
            if let Some(result) = self.executed {
                return result;
            }
        }
        self.pins.command_valid = false;
        Err(Refused::Late)
    }

    /// Feeds a frame, one beat per cycle. Frames that leave meanwhile are appended to `sent`.
    pub fn receive(&mut self, port: u8, frame: &[u8], sent: &mut Vec<SentFrame>) {
        for beat in beats(frame) {
            self.receive_beat(port, &beat, sent);
        }
    }

    /// Feeds a beat. Frames that leave meanwhile are appended to `sent`.
    pub fn receive_beat(&mut self, port: u8, beat: &Beat, sent: &mut Vec<SentFrame>) {
        self.pins.in_valid = true;
        self.pins.in_port = port;
        beat.write_words(&mut self.pins.in_data);
        (self.pins.in_keep, self.pins.in_last, self.pins.in_bad) = (beat.keep, beat.last, beat.bad);
        self.clock(sent);
        self.pins.in_valid = false;
    }

    /// Runs until nothing has left for `cycles` cycles. A frame that may not leave is not waited for.
    pub fn drain(&mut self, cycles: u32, sent: &mut Vec<SentFrame>) {
        let mut idle = 0;
        while idle < cycles {
            self.clock(sent);
            idle = if self.pins.out_valid && self.pins.out_ready { 0 } else { idle + 1 };
        }
    }

    /// Runs until the last command was executed, and each received frame has left or was dropped. If a
    /// frame is lost, stops when nothing has left for `cycles` cycles.
    pub fn settle(&mut self, cycles: u32, sent: &mut Vec<SentFrame>) {
        let (mut idle, mut settled) = (0, 0);
        while idle < cycles && settled < SETTLE_CYCLES {
            self.clock(sent);
            idle = if self.pins.out_valid && self.pins.out_ready { 0 } else { idle + 1 };
            settled = if idle > 0 && self.is_settled() { settled + 1 } else { 0 };
        }
    }

    /// Returns whether no command is under way, and each received frame has left or was dropped.
    fn is_settled(&self) -> bool {
        let [received, others @ ..] = self.counters();
        self.executed.is_some() && received == others.iter().sum()
    }
}
