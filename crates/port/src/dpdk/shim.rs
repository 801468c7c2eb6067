// SPDX-License-Identifier: Apache-2.0
//! Safe functions over the C shim. Together with the binding, which is made from `shim.h`, the only module of this driver
//! with `unsafe`.
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

/// Packets in one call at most.
pub(super) const BURST: usize = ffi::SHIM_BURST as usize;

/// Devices come and go one at a time.
static DEVICES: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loans of all mbufs.
// SAFETY: every loan of this lender begins where the memory of an mbuf does.
static LENDER: Lender = unsafe { Lender::new(give_back) };

unsafe fn give_back(memory: NonNull<u8>) {
    // SAFETY: a loan's memory is that of an mbuf which nobody else has.
    unsafe { ffi::shim_free(memory.as_ptr()) };
}

/// What DPDK says to an error.
fn told(result: c_int) -> Result<(), String> {
    if result >= 0 {
        return Ok(());
    }
    // What many drivers say to anything.
    if result == -1 {
        return Err("its driver gives no reason; messages above may".into());
    }
    // SAFETY: the answer is a string of the calling thread's, and is copied at once.
    Err(unsafe { CStr::from_ptr(ffi::shim_error(result)) }.to_string_lossy().into_owned())
}

fn text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|error: NulError| error.to_string())
}

/// Where DPDK's messages go.
static LOG: OnceLock<fn(&str)> = OnceLock::new();

/// Has DPDK's messages given to `log`, which must not block. To be called before DPDK is started.
pub(super) fn log_to(log: fn(&str)) -> Result<(), String> {
    let _ = LOG.set(log);
    // SAFETY: the function lives for ever and may be called from any thread.
    told(unsafe { ffi::shim_log(Some(take_message)) })
}

unsafe extern "C" fn take_message(bytes: *const c_char, len: usize) {
    // SAFETY: DPDK's stream gives that many bytes, which outlive the call.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), len) };
    if let Some(log) = LOG.get() {
        log(&String::from_utf8_lossy(bytes));
    }
}

/// Starts DPDK's environment with these arguments; the first is the program's name.
pub(super) fn start_eal(arguments: &[String]) -> Result<(), String> {
    let strings = arguments.iter().map(|argument| text(argument)).collect::<Result<Vec<_>, _>>()?;
    // DPDK keeps pointers to its arguments, and moves them about.
    let strings: Vec<*mut c_char> = strings.into_iter().map(CString::into_raw).collect();
    let count = c_int::try_from(strings.len()).map_err(|error| error.to_string())?;
    let strings = Box::leak(strings.into_iter().chain([null_mut()]).collect::<Box<[_]>>());
    // SAFETY: so many strings, which live for ever.
    told(unsafe { ffi::shim_eal(count, strings.as_mut_ptr()) })
}

/// Gives the calling thread caches of mbufs, if it has none yet.
pub(super) fn use_thread() {
    // SAFETY: no pointers.
    unsafe { ffi::shim_thread() };
}

/// Mbufs, for ever: frames may have some of them on loan when the port that made them is long gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool(NonNull<ffi::shim_pool>);

// SAFETY: DPDK's pools may be used by any number of threads.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    /// So many mbufs near a CPU socket.
    pub(super) fn new(name: &str, count: u32, socket: u16) -> Result<Self, String> {
        let (name, mut error) = (text(name)?, 0);
        // SAFETY: both outlive the call.
        let pool = unsafe { ffi::shim_pool(name.as_ptr(), count, socket, &raw mut error) };
        NonNull::new(pool).map(Self).ok_or_else(|| told(error).err().unwrap_or_default())
    }
}

/// An attached device. Dropped, it is stopped and detached.
#[derive(Debug)]
pub(super) struct Port(u16);

impl Port {
    /// Attaches what a device string describes.
    pub(super) fn attach(device: &str) -> Result<Self, String> {
        let (device, mut port) = (text(device)?, 0);
        let _alone = alone();
        // SAFETY: both outlive the call.
        told(unsafe { ffi::shim_attach(device.as_ptr(), &raw mut port) })?;
        Ok(Self(port))
    }

    /// DPDK's number of it.
    pub(super) fn number(&self) -> u16 {
        self.0
    }

    /// Leaves it as it is: it is another's.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }

    /// Whether the device has been taken away.
    pub(super) fn is_gone(&self) -> bool {
        // SAFETY: no pointers.
        unsafe { ffi::shim_is_gone(self.0) != 0 }
    }

    pub(super) fn device(&self) -> Result<Device, String> {
        let mut device = Device::default();
        // SAFETY: it outlives the call.
        told(unsafe { ffi::shim_device(self.0, &raw mut device) })?;
        Ok(device)
    }

    /// Sets so many queues up and starts the device.
    pub(super) fn start(&self, queues: u16, descriptors: u16, mtu: u16, pool: Pool) -> Result<(), String> {
        let _alone = alone();
        // SAFETY: a pool lives for ever.
        told(unsafe { ffi::shim_start(self.0, queues, descriptors, mtu, pool.0.as_ptr()) })
    }

    pub(super) fn link(&self) -> Result<Link, String> {
        let mut link = Link::default();
        // SAFETY: it outlives the call.
        told(unsafe { ffi::shim_link(self.0, &raw mut link) })?;
        Ok(link)
    }

    /// What the device has dropped since it was started.
    pub(super) fn drops(&self) -> Result<Drops, String> {
        let mut drops = Drops::default();
        // SAFETY: it outlives the call.
        told(unsafe { ffi::shim_drops(self.0, &raw mut drops) })?;
        Ok(drops)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        let _alone = alone();
        // A device that does not go stays; nobody is left to be told.
        // SAFETY: no pointers. Its queues have gone before: they own it together.
        let _ = told(unsafe { ffi::shim_detach(self.0) });
    }
}

/// The name of a device's driver.
pub(super) fn driver(device: &Device) -> String {
    let bytes = device.driver.iter().take_while(|c| **c != 0).map(|c| *c as u8);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

const NOTHING: ffi::shim_packet =
    ffi::shim_packet { memory: null_mut(), chain: null_mut(), bytes: null(), offset: 0, len: 0 };

/// Packets on their way from or to a device.
pub(super) struct Burst {
    packets: [ffi::shim_packet; BURST],
    /// Received and not taken yet.
    waiting: std::ops::Range<usize>,
    memory_bytes: u32,
}

// SAFETY: its pointers are to mbufs that it owns, or stale.
unsafe impl Send for Burst {}

/// A received packet.
pub(super) enum Packet {
    /// As it is, and where in it the packet's bytes begin and how many they are.
    Whole(Loan, u32, u32),
    /// To be copied.
    Parts(Chain),
}

/// A packet in several mbufs, or in one that is not ours alone. Dropped, it is freed.
pub(super) struct Chain {
    mbuf: NonNull<std::ffi::c_void>,
    len: usize,
}

impl Chain {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Fills the frame with it; false if it does not fit.
    pub(super) fn read(self, frame: &mut Frame) -> bool {
        if !frame.set_len(self.len) {
            return false;
        }
        // SAFETY: there is room for all of its bytes, and it is freed here only.
        unsafe { ffi::shim_read(self.mbuf.as_ptr(), frame.bytes_mut().as_mut_ptr(), self.len as u32) };
        std::mem::forget(self);
        true
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // SAFETY: it is freed here only.
        unsafe { ffi::shim_read(self.mbuf.as_ptr(), null_mut(), 0) };
    }
}

impl Burst {
    pub(super) fn new() -> Self {
        // SAFETY: no pointers.
        let memory_bytes = unsafe { ffi::shim_memory_bytes() };
        Self { packets: [NOTHING; BURST], waiting: 0..0, memory_bytes }
    }

    /// Receives up to `most` packets; what was not taken of those before is freed.
    #[inline]
    pub(super) fn receive(&mut self, port: &Port, queue: u16, most: usize) {
        while self.next().is_some() {}
        let most = most.min(BURST) as u16;
        // SAFETY: there is room for so many.
        let count = unsafe { ffi::shim_receive(port.0, queue, self.packets.as_mut_ptr(), most) };
        self.waiting = 0..usize::from(count).min(BURST);
    }

    /// The next packet received.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Packet> {
        let packet = self.packets.get(self.waiting.next()?)?;
        if let Some(memory) = NonNull::new(packet.memory) {
            // SAFETY: the shim has lent it, and it is given out once. DPDK's memory is zeroed before it is used.
            let loan = unsafe { Loan::new(memory, self.memory_bytes, &LENDER) };
            return Some(Packet::Whole(loan, packet.offset, packet.len));
        }
        let mbuf = NonNull::new(packet.chain)?;
        Some(Packet::Parts(Chain { mbuf, len: packet.len as usize }))
    }

    /// Gives the device the first of these frames, as many as it takes and as stand in a burst; returns how many. Of those
    /// the loans are the device's, which `taken` has to tell the frames.
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
        // SAFETY: so many packets, whose bytes outlive the call; a memory is on loan to its frame alone, and no longer than
        // 65,535 bytes.
        let sent =
            unsafe { ffi::shim_transmit(port.0, queue, pool.0.as_ptr(), self.packets.as_mut_ptr(), count) };
        usize::from(sent)
    }

    /// Gives the device a copy of these bytes; false if it has no room.
    pub(super) fn transmit_copy(&mut self, port: &Port, queue: u16, pool: Pool, bytes: &[u8]) -> bool {
        while self.next().is_some() {}
        let mut packet = ffi::shim_packet { bytes: bytes.as_ptr(), len: bytes.len() as u32, ..NOTHING };
        // SAFETY: one packet, whose bytes outlive the call.
        unsafe { ffi::shim_transmit(port.0, queue, pool.0.as_ptr(), &raw mut packet, 1) == 1 }
    }
}

/// Tells a frame that the device has taken it.
#[inline]
pub(super) fn taken(frame: &mut Frame) {
    if frame.loan_from(&LENDER).is_some()
        && let Some(loan) = frame.take_loan()
    {
        // The mbuf is the device's.
        let _ = loan.into_start();
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}
