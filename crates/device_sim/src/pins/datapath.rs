// SPDX-License-Identifier: Apache-2.0
//! The verilated data plane's pins.

// The C interface of the simulation.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// Inputs for the next clock edge, and outputs as they were before the last one. The layout is that of
/// `DatapathPins` in `cpp/datapath.cpp`. A vector is a list of 32-bit words, the least significant one first.
#[repr(C)]
#[derive(Clone, Default)]
pub struct Pins {
    pub in_data: [u32; 16],
    pub command: [u32; 16],
    pub in_keep: u64,
    pub rst: bool,
    pub in_valid: bool,
    pub in_last: bool,
    pub in_bad: bool,
    pub in_port: u8,
    pub out_ready: bool,
    pub command_valid: bool,
    pub miss_output: u8,
    pub read_valid: bool,
    pub read_ppu: u8,
    pub read_index: u16,
    pub out_data: [u32; 16],
    pub out_keep: u64,
    pub out_egress: u32,
    pub out_valid: bool,
    pub out_last: bool,
    pub command_ready: bool,
    pub done: bool,
    pub refused: bool,
    pub read_ready: bool,
    pub reply_valid: bool,
    pub reply_exists: bool,
    pub counters: [u32; 18],
}

/// The C++ object.
#[repr(C)]
struct Datapath {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn datapath_pins_bytes() -> usize;
    fn datapath_new(seed: u32) -> *mut Datapath;
    fn datapath_delete(datapath: *mut Datapath);
    fn datapath_clock(datapath: *mut Datapath, pins: *mut Pins);
}

/// A verilated data plane.
pub struct Verilated(NonNull<Datapath>);

impl Verilated {
    /// Returns a new data plane, which needs a reset. Until then, its registers have random values, which
    /// depend on the seed. Returns `None` if memory is short.
    pub fn new(seed: u32) -> Option<Self> {
        // SAFETY: the function has no preconditions.
        let bytes = unsafe { datapath_pins_bytes() };
        assert_eq!(bytes, size_of::<Pins>(), "`Pins` differs from cpp/datapath.cpp");
        // SAFETY: the function has no preconditions.
        NonNull::new(unsafe { datapath_new(seed) }).map(Self)
    }

    /// Runs one clock cycle.
    pub fn clock(&mut self, pins: &mut Pins) {
        // SAFETY: the object lives until `drop`, and `pins` has the layout that the function expects,
        // whose size `new` has checked.
        unsafe { datapath_clock(self.0.as_ptr(), pins) }
    }
}

impl Drop for Verilated {
    fn drop(&mut self) {
        // SAFETY: the object was made by `datapath_new`, and nothing uses it afterwards.
        unsafe { datapath_delete(self.0.as_ptr()) }
    }
}

// SAFETY: the object has no reference to a thread; `&mut` gives each call exclusive access.
unsafe impl Send for Verilated {}
