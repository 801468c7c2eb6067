// SPDX-License-Identifier: Apache-2.0
//! The simulated device: pins of its channels and of the control plane's channel, one cycle at a time.

use device::OutputKind;

use crate::CHANNELS;
use crate::beat::{self, Beat};
use crate::pins::device::{Pins, Verilated};

/// Cycles of a reset.
const RESET_CYCLES: usize = 4;
/// Number of channels.
const COUNT: usize = CHANNELS as usize;

/// Addresses of one side of the control path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireAddresses {
    /// MAC address.
    pub mac: [u8; 6],
    /// IPv4 address.
    pub ip: [u8; 4],
    /// UDP port.
    pub port: u16,
}

impl WireAddresses {
    fn bytes(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[..6].copy_from_slice(&self.mac);
        bytes[6..10].copy_from_slice(&self.ip);
        bytes[10..].copy_from_slice(&self.port.to_be_bytes());
        bytes
    }
}

/// Addresses of the device. They do not leave the process.
pub const DEVICE: WireAddresses = WireAddresses { mac: [2, 0, 0, 0, 0x0d, 1], ip: [10, 0, 0, 2], port: 6634 };
/// Addresses of the daemon, as the device sees them.
pub const DAEMON: WireAddresses =
    WireAddresses { mac: [2, 0, 0, 0, 0x0d, 2], ip: [10, 0, 0, 1], port: 45_678 };

/// The simulated device. Its addresses are [`DEVICE`] and [`DAEMON`].
pub struct RtlDevice {
    verilated: Verilated,
    pins: Box<Pins>,
    /// Frames that leave the channels, and the frame that leaves for the daemon.
    leaving: [Vec<u8>; COUNT + 1],
    /// Bit n: the last beat of frame n of `leaving` left in the last cycle.
    done: u8,
    /// Whether a beat entered or left in the last cycle.
    moved: bool,
    cycles: u64,
}

impl RtlDevice {
    /// Returns a device after a reset: no entries, and frames without output are discarded. All channels
    /// accept beats. The seed chooses the registers' values before the reset. Returns `None` if memory is
    /// short.
    #[must_use]
    pub fn new(seed: u32) -> Option<Self> {
        let mut addresses = [0; 6];
        let bytes = [DEVICE.bytes(), DAEMON.bytes()].concat();
        for (word, part) in addresses.iter_mut().rev().zip(bytes.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*part);
        }
        let pins = Pins {
            addresses,
            miss_output: OutputKind::Discard as u8,
            tx_ready: (1 << COUNT) - 1,
            cpu_tx_ready: true,
            ..Pins::default()
        };
        let mut device = Self {
            verilated: Verilated::new(seed)?,
            pins: Box::new(pins),
            leaving: Default::default(),
            done: 0,
            moved: false,
            cycles: 0,
        };
        device.pins.rst = true;
        for _ in 0..RESET_CYCLES {
            device.clock();
        }
        device.pins.rst = false;
        // Before the reset, outputs are random.
        device.leaving.iter_mut().for_each(Vec::clear);
        (device.done, device.cycles) = (0, 0);
        Some(device)
    }

    /// Sets the output of frames for which no PPU set one.
    pub fn set_miss_output(&mut self, kind: OutputKind) {
        self.pins.miss_output = kind as u8;
    }

    /// Returns the number of cycles since the reset.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Offers a beat to a channel in the next cycle. A channel that does not exist discards it.
    pub fn offer(&mut self, channel: usize, beat: &Beat) {
        let (Some(words), Some(keep)) =
            (self.pins.rx_data.get_mut(channel), self.pins.rx_keep.get_mut(channel))
        else {
            return;
        };
        beat.write_words(words);
        *keep = beat.keep;
        let bit = 1 << channel;
        self.pins.rx_valid |= bit;
        self.pins.rx_last = self.pins.rx_last & !bit | u8::from(beat.last) << channel;
        self.pins.rx_bad = self.pins.rx_bad & !bit | u8::from(beat.bad) << channel;
    }

    /// Offers a beat of a frame from the daemon in the next cycle.
    pub fn offer_control(&mut self, beat: &Beat) {
        beat.write_words(&mut self.pins.cpu_rx_data);
        self.pins.cpu_rx_keep = beat.keep;
        (self.pins.cpu_rx_valid, self.pins.cpu_rx_last, self.pins.cpu_rx_bad) = (true, beat.last, beat.bad);
    }

    /// Sets in which channels beats can leave. Bit n stands for channel n.
    pub fn set_ready(&mut self, channels: u8) {
        self.pins.tx_ready = channels & ((1 << COUNT) - 1);
    }

    /// Runs one cycle.
    pub fn clock(&mut self) {
        let entered = self.pins.rx_valid != 0 || self.pins.cpu_rx_valid;
        self.verilated.clock(&mut self.pins);
        self.cycles += 1;
        (self.pins.rx_valid, self.pins.cpu_rx_valid) = (0, false);
        let left = self.pins.tx_valid & self.pins.tx_ready;
        self.moved = entered || left != 0 || self.pins.cpu_tx_valid;
        let before = std::mem::take(&mut self.done);
        if before == 0 && left == 0 && !self.pins.cpu_tx_valid {
            return;
        }
        for (number, frame) in self.leaving.iter_mut().enumerate() {
            if before >> number & 1 != 0 {
                frame.clear();
            }
            let (moves, last, words, keep) = match self.pins.tx_data.get(number) {
                Some(words) => (
                    left >> number & 1 != 0,
                    self.pins.tx_last >> number & 1 != 0,
                    words,
                    self.pins.tx_keep[number],
                ),
                None => (
                    self.pins.cpu_tx_valid,
                    self.pins.cpu_tx_last,
                    &self.pins.cpu_tx_data,
                    self.pins.cpu_tx_keep,
                ),
            };
            if moves {
                beat::append(frame, words, keep);
                self.done |= u8::from(last) << number;
            }
        }
    }

    /// Returns the frame whose last beat left a channel in the last cycle.
    #[must_use]
    pub fn left(&self, channel: usize) -> Option<&[u8]> {
        self.leaving
            .get(channel)
            .filter(|_| channel < COUNT && self.done >> channel & 1 != 0)
            .map(Vec::as_slice)
    }

    /// Returns the frame for the daemon whose last beat left in the last cycle.
    #[must_use]
    pub fn left_control(&self) -> Option<&[u8]> {
        self.leaving.last().filter(|_| self.done >> COUNT & 1 != 0).map(Vec::as_slice)
    }

    /// Returns whether any frame left in the last cycle.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.done != 0
    }

    /// Returns whether a beat entered or left in the last cycle.
    #[must_use]
    pub fn moved(&self) -> bool {
        self.moved
    }
}
