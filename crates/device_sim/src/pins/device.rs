// SPDX-License-Identifier: Apache-2.0
//! The verilated device's pins.

// The C interface of the simulation.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::CHANNELS;

/// Inputs for the next clock edge, and outputs as they were before the last one. The layout is that of
/// `DevicePins` in `cpp/device.cpp`. A vector is a list of words, the least significant one first. Bit n of
/// `rx_valid` and so on stands for channel n.
#[repr(C)]
#[derive(Clone, Default)]
pub struct Pins {
    pub rx_data: [[u32; 16]; CHANNELS as usize],
    pub cpu_rx_data: [u32; 16],
    pub rx_keep: [u64; CHANNELS as usize],
    pub cpu_rx_keep: u64,
    pub addresses: [u32; 6],
    pub rst: bool,
    pub miss_output: u8,
    pub rx_valid: u8,
    pub rx_last: u8,
    pub rx_bad: u8,
    pub tx_ready: u8,
    pub cpu_rx_valid: bool,
    pub cpu_rx_last: bool,
    pub cpu_rx_bad: bool,
    pub cpu_tx_ready: bool,
    pub tx_valid: u8,
    pub tx_last: u8,
    pub cpu_tx_valid: bool,
    pub cpu_tx_last: bool,
    pub tx_data: [[u32; 16]; CHANNELS as usize],
    pub cpu_tx_data: [u32; 16],
    pub tx_keep: [u64; CHANNELS as usize],
    pub cpu_tx_keep: u64,
}

/// The C++ object.
#[repr(C)]
struct Device {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn device_pins_bytes() -> usize;
    fn device_new(seed: u32) -> *mut Device;
    fn device_delete(device: *mut Device);
    fn device_clock(device: *mut Device, pins: *mut Pins);
}

/// A verilated device.
pub struct Verilated(NonNull<Device>);

impl Verilated {
    /// Returns a new device, which needs a reset. Until then, its registers have random values, which depend
    /// on the seed. Returns `None` if memory is short.
    pub fn new(seed: u32) -> Option<Self> {
        // SAFETY: the function has no preconditions.
        let bytes = unsafe { device_pins_bytes() };
        assert_eq!(bytes, size_of::<Pins>(), "`Pins` differs from cpp/device.cpp");
        // SAFETY: the function has no preconditions.
        NonNull::new(unsafe { device_new(seed) }).map(Self)
    }

    /// Runs one clock cycle.
    pub fn clock(&mut self, pins: &mut Pins) {
        // SAFETY: the object lives until `drop`, and `pins` has the layout that the function expects,
        // whose size `new` has checked.
        unsafe { device_clock(self.0.as_ptr(), pins) }
    }
}

impl Drop for Verilated {
    fn drop(&mut self) {
        // SAFETY: the object was made by `device_new`, and nothing uses it afterwards.
        unsafe { device_delete(self.0.as_ptr()) }
    }
}

// SAFETY: the object has no reference to a thread; `&mut` gives each call exclusive access.
unsafe impl Send for Verilated {}
