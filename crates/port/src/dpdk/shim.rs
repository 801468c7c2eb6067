// SPDX-License-Identifier: Apache-2.0
//! Safe functions over the C shim. This module and the binding generated from `shim.h` contain all `unsafe`
//! code of the driver.
#![allow(unsafe_code)]

use frame::{Frame, Lender, Loan};
use std::ffi::{CStr, CString, NulError, c_char, c_int};
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

#[allow(missing_docs, non_camel_case_types, clippy::all, clippy::undocumented_unsafe_blocks)]
mod ffi {
    include!(concat!(env!("OUT_DIR"), "/shim.rs"));
}

pub(super) use ffi::{shim_device as Device, shim_drops as Drops, shim_link as Link};

/// Maximum number of packets per call.
pub(super) const BURST: usize = ffi::SHIM_BURST as usize;

/// Serializes attaching, starting and detaching devices.
static DEVICES: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lender of all mbufs.
// SAFETY: `give_back` expects the start of an mbuf's memory. `Burst::next` creates every loan of this lender
// from such an address.
static LENDER: Lender = unsafe { Lender::new(give_back) };

unsafe fn give_back(memory: NonNull<u8>) {
    // SAFETY: `Lender::new` guarantees that `memory` belongs to a loan. It is the memory of an mbuf that
    // nothing else owns.
    unsafe { ffi::shim_free(memory.as_ptr()) };
}

/// Converts a result of the shim to DPDK's description of the error.
fn check(result: c_int) -> Result<(), String> {
    if result >= 0 {
        return Ok(());
    }
    // Many drivers return -1 for any error.
    if result == -1 {
        return Err("its driver gives no reason; messages above may".into());
    }
    // SAFETY: the shim returns a terminated string in a buffer of the calling thread, which is copied at
    // once.
    Err(unsafe { CStr::from_ptr(ffi::shim_error(result)) }.to_string_lossy().into_owned())
}

fn text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error: NulError| error.to_string())
}

/// Function for DPDK's messages.
static LOG: OnceLock<fn(&str)> = OnceLock::new();

/// Directs DPDK's messages to `log`, which must not block. Must be called before DPDK is started.
pub(super) fn log_to(log: fn(&str)) -> Result<(), String> {
    let _ = LOG.set(log);
    // SAFETY: `take_message` is a function, so it lives until the end of the process, and any thread may call
    // it.
    check(unsafe { ffi::shim_log(Some(take_message)) })
}

unsafe extern "C" fn take_message(bytes: *const c_char, len: usize) {
    // SAFETY: DPDK's stream passes `len` bytes that live until the call returns.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) };
    if let Some(log) = LOG.get() {
        log(&String::from_utf8_lossy(bytes));
    }
}

/// Starts DPDK's environment with these arguments; the first is the program's name.
pub(super) fn start_eal(arguments: &[String]) -> Result<(), String> {
    let strings = arguments.iter().map(|argument| text(argument)).collect::<Result<Vec<_>, _>>()?;
    // DPDK keeps pointers to its arguments and reorders them, so they are leaked.
    let strings: Vec<*mut c_char> = strings.into_iter().map(CString::into_raw).collect();
    let count = c_int::try_from(strings.len()).map_err(|error| error.to_string())?;
    let strings = Box::leak(strings.into_iter().chain([null_mut()]).collect::<Box<[_]>>());
    // SAFETY: `count` terminated strings and a final null pointer, which are leaked and so live until the end
    // of the process.
    check(unsafe { ffi::shim_eal(count, strings.as_mut_ptr()) })
}

/// Registers the calling thread with DPDK, which gives it caches of mbufs. No effect if it is registered
/// already.
pub(super) fn use_thread() {
    // SAFETY: the call takes no pointers.
    unsafe { ffi::shim_thread() };
}

/// A pool of mbufs that is never freed, because frames may borrow mbufs after their port was closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool(NonNull<ffi::shim_pool>);

// SAFETY: DPDK's pools may be used by any number of threads at the same time.
unsafe impl Send for Pool {}
// SAFETY: DPDK's pools may be used by any number of threads at the same time.
unsafe impl Sync for Pool {}

impl Pool {
    /// Creates a pool of `count` mbufs, allocated near a CPU socket.
    pub(super) fn new(name: &str, count: u32, socket: u16) -> Result<Self, String> {
        let (name, mut error) = (text(name)?, 0);
        // SAFETY: the terminated name and `error` live until the call returns.
        let pool = unsafe { ffi::shim_pool(name.as_ptr(), count, socket, &raw mut error) };
        NonNull::new(pool).map(Self).ok_or_else(|| check(error).err().unwrap_or_default())
    }
}

/// An attached device. It is stopped and detached on drop.
#[derive(Debug)]
pub(super) struct Port(u16);

impl Port {
    /// Attaches the device that a device string describes.
    pub(super) fn attach(device: &str) -> Result<Self, String> {
        let (device, mut port) = (text(device)?, 0);
        let _alone = alone();
        // SAFETY: the terminated string and `port` live until the call returns.
        check(unsafe { ffi::shim_attach(device.as_ptr(), &raw mut port) })?;
        Ok(Self(port))
    }

    /// Returns DPDK's number of the device.
    pub(super) fn number(&self) -> u16 {
        self.0
    }

    /// Drops the value without detaching the device, which belongs to another value.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }

    /// Returns whether the device has been removed.
    pub(super) fn is_gone(&self) -> bool {
        // SAFETY: the call takes no pointers.
        unsafe { ffi::shim_is_gone(self.0) != 0 }
    }

    pub(super) fn device(&self) -> Result<Device, String> {
        let mut device = Device::default();
        // SAFETY: `device` lives until the call returns.
        check(unsafe { ffi::shim_device(self.0, &raw mut device) })?;
        Ok(device)
    }

    /// Sets up `queues` queues per direction and starts the device.
    pub(super) fn start(&self, queues: u16, descriptors: u16, mtu: u16, pool: Pool) -> Result<(), String> {
        let _alone = alone();
        // SAFETY: pools are never freed, so the pointer is valid.
        check(unsafe { ffi::shim_start(self.0, queues, descriptors, mtu, pool.0.as_ptr()) })
    }

    pub(super) fn link(&self) -> Result<Link, String> {
        let mut link = Link::default();
        // SAFETY: `link` lives until the call returns.
        check(unsafe { ffi::shim_link(self.0, &raw mut link) })?;
        Ok(link)
    }

    /// Returns the device's drop counters since it was started.
    pub(super) fn drops(&self) -> Result<Drops, String> {
        let mut drops = Drops::default();
        // SAFETY: `drops` lives until the call returns.
        check(unsafe { ffi::shim_drops(self.0, &raw mut drops) })?;
        Ok(drops)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _alone = alone();
        // On failure the device stays attached; a destructor has no caller to report the error to.
        //
        // SAFETY: the call takes no pointers. The queues share ownership of this value, so none uses the
        // device any longer.
        let _ = check(unsafe { ffi::shim_detach(self.0) });
    }
}

/// Returns the name of a device's driver.
pub(super) fn driver(device: &Device) -> String {
    let bytes = device.driver.iter().take_while(|c| **c != 0).map(|c| *c as u8);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

const NOTHING: ffi::shim_packet =
    ffi::shim_packet { memory: null_mut(), chain: null_mut(), bytes: null(), offset: 0, len: 0 };

/// A burst of packets received from a device or to be sent to it.
pub(super) struct Burst {
    packets: [ffi::shim_packet; BURST],
    /// Indices of received packets that were not taken yet.
    waiting: std::ops::Range<usize>,
    memory_bytes: u32,
}

// SAFETY: the pointers refer to mbufs that this value owns, or they are stale and not used.
unsafe impl Send for Burst {}

/// A received packet.
pub(super) enum Packet {
    /// A packet in one mbuf: the mbuf's memory, the offset of the packet's bytes in it, and their number.
    Whole(Loan, u32, u32),
    /// A packet to be copied.
    Parts(Chain),
}

/// A packet in several mbufs, or in a shared mbuf. The packet is freed on drop.
pub(super) struct Chain {
    mbuf: NonNull<std::ffi::c_void>,
    len: usize,
}

impl Chain {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Copies the packet into the frame. Returns false if it does not fit.
    pub(super) fn read(self, frame: &mut Frame) -> bool {
        if !frame.set_len(self.len) {
            return false;
        }
        // SAFETY: the frame has `self.len` bytes, so the packet fits. The chain is freed by this call only,
        // because `self` is forgotten afterwards.
        unsafe { ffi::shim_read(self.mbuf.as_ptr(), frame.bytes_mut().as_mut_ptr(), self.len as u32) };
        std::mem::forget(self);
        true
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // SAFETY: a null target only frees the chain. `read` forgets the value, so it is freed once.
        unsafe { ffi::shim_read(self.mbuf.as_ptr(), null_mut(), 0) };
    }
}

impl Burst {
    pub(super) fn new() -> Self {
        // SAFETY: the call takes no pointers.
        let memory_bytes = unsafe { ffi::shim_memory_bytes() };
        Self { packets: [NOTHING; BURST], waiting: 0..0, memory_bytes }
    }

    /// Receives up to `most` packets, at most [`BURST`]. Packets of the previous call that were not taken are
    /// freed.
    #[inline]
    pub(super) fn receive(&mut self, port: &Port, queue: u16, most: usize) {
        while self.next().is_some() {}
        let most = most.min(BURST) as u16;
        // SAFETY: `packets` has `BURST` entries, and `most` is at most `BURST`.
        let count = unsafe { ffi::shim_receive(port.0, queue, self.packets.as_mut_ptr(), most) };
        self.waiting = 0..usize::from(count).min(BURST);
    }

    /// Takes the next received packet.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Packet> {
        let packet = self.packets.get(self.waiting.next()?)?;
        if let Some(memory) = NonNull::new(packet.memory) {
            // SAFETY: the shim lends the memory of an mbuf that nothing else owns, with `memory_bytes` bytes,
            // and this loan is created once. DPDK's memory is zeroed when it is mapped, so all of it is
            // initialized.
            let loan = unsafe { Loan::new(memory, self.memory_bytes, &LENDER) };
            return Some(Packet::Whole(loan, packet.offset, packet.len));
        }
        let mbuf = NonNull::new(packet.chain)?;
        Some(Packet::Parts(Chain { mbuf, len: packet.len as usize }))
    }

    /// Passes the first of these frames to the device, at most [`BURST`]. Returns how many it took. The
    /// device then owns their mbufs, so the caller must call `taken` for each of these frames.
    pub(super) fn transmit<'f>(
        &mut self,
        port: &Port,
        queue: u16,
        pool: Pool,
        frames: impl Iterator<Item = &'f Frame>,
    ) -> usize {
        while self.next().is_some() {}
        let mut count = 0;
        for (packet, frame) in self.packets.iter_mut().zip(frames) {
            let (memory, offset) =
                frame.loan_from(&LENDER).map_or((null_mut(), 0), |(m, at)| (m.as_ptr(), at));
            let bytes = frame.bytes();
            *packet = ffi::shim_packet {
                memory,
                chain: null_mut(),
                bytes: bytes.as_ptr(),
                offset,
                len: bytes.len() as u32,
            };
            count += 1;
        }
        // SAFETY: `packets` has `count` entries. Their bytes live until the call returns. Each `memory` is
        // borrowed by its frame alone and no longer than 65,535 bytes.
        let sent =
            unsafe { ffi::shim_transmit(port.0, queue, pool.0.as_ptr(), self.packets.as_mut_ptr(), count) };
        usize::from(sent)
    }

    /// Passes a copy of these bytes to the device. Returns false if it has no space.
    pub(super) fn transmit_copy(&mut self, port: &Port, queue: u16, pool: Pool, bytes: &[u8]) -> bool {
        while self.next().is_some() {}
        let mut packet = ffi::shim_packet { bytes: bytes.as_ptr(), len: bytes.len() as u32, ..NOTHING };
        // SAFETY: one packet, whose bytes live until the call returns.
        unsafe { ffi::shim_transmit(port.0, queue, pool.0.as_ptr(), &raw mut packet, 1) == 1 }
    }
}

/// Removes the loan of a frame whose mbuf the device has taken.
#[inline]
pub(super) fn taken(frame: &mut Frame) {
    if frame.loan_from(&LENDER).is_some()
        && let Some(loan) = frame.take_loan()
    {
        // The device owns the mbuf now.
        let _ = loan.into_start();
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
