// SPDX-License-Identifier: Apache-2.0
//! Safe functions over the C shim. This module and the binding generated from `shim.h` contain all `unsafe`
//! code of the driver.
#![allow(unsafe_code)]

use frame::{FillLevel, Frame, Head, Owner};
use std::ffi::{CStr, CString, NulError, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

#[allow(missing_docs, non_camel_case_types, clippy::all, clippy::undocumented_unsafe_blocks)]
mod ffi {
    include!(concat!(env!("OUT_DIR"), "/shim.rs"));
}

pub(super) use ffi::{shim_device as Device, shim_drops as Drops, shim_link as Link};

/// Maximum number of packets per call.
pub(super) const BURST: usize = ffi::SHIM_BURST as usize;

// The private area of an mbuf is the last part of a frame's head.
const _: () = assert!(frame::layout::PRIVATE + ffi::SHIM_PRIVATE_BYTES as usize == frame::HEAD_BYTES);

/// Serializes attaching, starting and detaching devices.
static DEVICES: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    DEVICES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The owner of the frames that are mbufs.
// SAFETY: `give_back` expects an mbuf. Frames with this owner are made from mbufs only, by `receive`.
static MBUFS: Owner = unsafe { Owner::new(give_back, level) };

unsafe fn give_back(head: NonNull<Head>) {
    // SAFETY: `Owner::new` guarantees that the head belongs to a dropped frame. It is an mbuf that nothing
    // else owns.
    unsafe { ffi::shim_free(head.as_ptr().cast()) };
}

/// Returns the fill level of an mbuf's pool.
fn level(head: &Head) -> FillLevel {
    level_of(head.pool())
}

fn level_of(pool: *mut c_void) -> FillLevel {
    let mut total = 0;
    // SAFETY: the pool belongs to an mbuf, or comes from `shim_pool`. Pools are never freed.
    let free = unsafe { ffi::shim_level(pool, &raw mut total) };
    FillLevel { free: free as usize, total: total as usize }
}

/// Sets up the private area of a new mbuf.
unsafe extern "C" fn prepare(mbuf: *mut c_void, memory_bytes: u32) {
    if let Some(head) = NonNull::new(mbuf.cast::<Head>()) {
        // SAFETY: the shim passes each mbuf of a new pool before any of them is used. An mbuf has a private
        // area and the layout of `Head`, which the shim's static assertions compare.
        unsafe { Head::prepare(head, memory_bytes, &MBUFS) };
    }
}

/// Converts a result of the shim to DPDK's description of the error.
fn check(result: c_int) -> Result<(), String> {
    if result >= 0 {
        return Ok(());
    }
    // Many drivers return -1 for any error.
    if result == -1 {
        return Err("its driver gives no reason; see the messages above".into());
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
    // SAFETY: the array holds `count` terminated strings and a final null pointer. All of them are leaked, so
    // they live until the process ends.
    check(unsafe { ffi::shim_eal(count, strings.as_mut_ptr()) })
}

/// Registers the calling thread with DPDK, which gives it caches of mbufs. No effect if it is registered
/// already.
pub(super) fn use_thread() {
    // SAFETY: the call takes no pointers.
    unsafe { ffi::shim_thread() };
}

/// A pool of mbufs that is never freed, because frames may outlive their port.
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
        let pool = unsafe { ffi::shim_pool(name.as_ptr(), count, socket, Some(prepare), &raw mut error) };
        NonNull::new(pool).map(Self).ok_or_else(|| check(error).err().unwrap_or_default())
    }

    /// Returns the fill level. Free mbufs in the caches of other threads count as used.
    pub(super) fn level(self) -> FillLevel {
        level_of(self.0.as_ptr().cast())
    }
}

/// An attached device, which is stopped and detached on drop.
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

    /// Discards this value without detaching the device, because another value owns the device.
    pub(super) fn forget(self) {
        std::mem::forget(self);
    }

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

pub(super) fn driver(device: &Device) -> String {
    let bytes = device.driver.iter().take_while(|c| **c != 0).map(|c| *c as u8);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

/// A received packet that cannot become a frame as it is. Freed on drop.
pub(super) struct Chain(NonNull<c_void>);

impl Chain {
    pub(super) fn len(&self) -> usize {
        // SAFETY: the chain owns the mbuf.
        unsafe { ffi::shim_len(self.0.as_ptr()) as usize }
    }

    /// Copies the packet into the frame. Returns false if it does not fit.
    pub(super) fn read(self, frame: &mut Frame) -> bool {
        let len = self.len();
        if !frame.set_len(len) {
            return false;
        }
        let mbuf = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: the frame has `len` bytes, so the packet fits. The mbuf is freed by this call only, because
        // `self` is not dropped.
        unsafe { ffi::shim_read(mbuf.as_ptr(), frame.bytes_mut().as_mut_ptr(), len as u32) };
        true
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // SAFETY: a null target only frees the packet. `read` does not drop the value, so it is freed once.
        unsafe { ffi::shim_read(self.0.as_ptr(), null_mut(), 0) };
    }
}

/// Appends up to `most` (at most [`BURST`]) received packets to `burst`, with stale metadata. `copy` is
/// called for each packet that cannot become a frame as it is, and makes a frame or drops the packet. Returns
/// the total length in bytes of all other packets.
#[inline]
pub(super) fn receive(
    port: &Port,
    queue: u16,
    pool: Pool,
    burst: &mut Vec<Frame>,
    most: usize,
    copy: impl FnMut(Chain) -> Option<Frame>,
) -> usize {
    let most = most.min(BURST);
    burst.reserve(most);
    let (mut odd, mut bytes) = (0, 0);
    let before = burst.len();
    let room = burst.spare_capacity_mut().as_mut_ptr();
    // SAFETY: `room` has space for `most` pointers. The frames below take over the mbufs.
    let count = unsafe {
        ffi::shim_receive(
            port.0,
            queue,
            pool.0.as_ptr(),
            room.cast(),
            most as u16,
            &raw mut odd,
            &raw mut bytes,
        )
    };
    let count = usize::from(count).min(most);
    if odd == 0 {
        // SAFETY: a frame is a pointer to its head, and the shim wrote `count` pointers to mbufs of `pool`,
        // whose heads `prepare` has set up. The shim has checked that each is in one segment that nothing
        // else uses, and that packet and tailroom are inside its memory. DPDK's memory is zeroed when it is
        // mapped, so all of it is initialized.
        unsafe { burst.set_len(before + count) };
    } else {
        // SAFETY: the shim wrote `count` pointers.
        let mbufs = unsafe { std::slice::from_raw_parts(room.cast::<*mut c_void>(), count) };
        // The pointers are copied, because `burst` is written while they are read.
        let mut all = [null_mut(); BURST];
        all[..count].copy_from_slice(mbufs);
        receive_odd(&all[..count], odd, burst, copy);
    }
    bytes as usize
}

/// Appends received packets of which some cannot become frames as they are.
#[cold]
fn receive_odd(
    mbufs: &[*mut c_void],
    odd: u64,
    burst: &mut Vec<Frame>,
    mut copy: impl FnMut(Chain) -> Option<Frame>,
) {
    for (at, mbuf) in mbufs.iter().enumerate() {
        let Some(mbuf) = NonNull::new(*mbuf) else { continue };
        if odd >> at & 1 != 0 {
            burst.extend(copy(Chain(mbuf)));
        } else {
            // SAFETY: the shim wrote this pointer to an mbuf of the pool, whose head `prepare` has set up.
            // The bit in `odd` is 0, so the shim found the packet in one segment that nothing else uses, with
            // the tailroom inside the segment's memory.
            burst.push(unsafe { Frame::from_device(mbuf.cast()) });
        }
    }
}

/// Passes up to `count` frames from the front of `frames` to the device, at most [`BURST`]. Returns how many
/// it accepted. Accepted frames of other drivers were copied and are moved to `done`.
#[inline]
pub(super) fn transmit(
    port: &Port,
    queue: u16,
    pool: Pool,
    frames: &mut Vec<Frame>,
    count: usize,
    done: &mut Vec<Frame>,
) -> usize {
    let count = count.min(BURST).min(frames.len());
    let mut copied = 0;
    // SAFETY: a frame is a pointer to its head, so `frames` begins with `count` such pointers. The frames are
    // not hollow, and their packets are valid until the call returns.
    let sent = unsafe {
        ffi::shim_transmit(
            port.0,
            queue,
            pool.0.as_ptr(),
            frames.as_ptr().cast(),
            count as u16,
            &raw mut copied,
        )
    };
    let sent = usize::from(sent).min(count);
    if copied == 0 {
        // The device owns the mbufs now.
        if sent == frames.len() {
            // SAFETY: `sent` and `copied` show that the shim has passed the buffers of all frames to the
            // device, so that no frame owns one any longer.
            unsafe { frames.set_len(0) };
        } else {
            frames.drain(..sent).for_each(|frame| _ = frame.into_head());
        }
        return sent;
    }
    for (at, frame) in frames.drain(..sent).enumerate() {
        if copied >> at & 1 != 0 {
            done.push(frame);
        } else {
            // The device owns the mbuf now.
            let _ = frame.into_head();
        }
    }
    sent
}

/// Passes a copy of these bytes to the device. Returns false if it has no space.
pub(super) fn transmit_bytes(port: &Port, queue: u16, pool: Pool, bytes: &[u8]) -> bool {
    // SAFETY: the bytes live until the call returns.
    unsafe {
        ffi::shim_transmit_bytes(port.0, queue, pool.0.as_ptr(), bytes.as_ptr(), bytes.len() as u32) == 1
    }
}

/// Unusual mbufs for tests.
#[cfg(test)]
pub(super) mod odd {
    use super::{Chain, Pool, Port};
    use frame::Frame;
    use std::ptr::{NonNull, null_mut};

    #[allow(missing_docs, non_camel_case_types, clippy::all, clippy::undocumented_unsafe_blocks)]
    mod ffi {
        include!(concat!(env!("OUT_DIR"), "/odd.rs"));
    }

    pub use ffi::odd_kind as OddKind;

    /// Sends a packet in an mbuf of this kind, taken from `pool`. Returns `None` on failure, else the mbuf
    /// that the caller must drop later, if there is one.
    pub fn send(port: &Port, pool: Pool, kind: OddKind, bytes: &[u8]) -> Option<Option<Chain>> {
        let (mut held, pool, len) = (null_mut(), pool.0.as_ptr().cast(), bytes.len() as u16);
        // SAFETY: pools are never freed, and the bytes live until the call returns.
        let sent = unsafe { ffi::odd_send(port.0, pool, kind, bytes.as_ptr(), len, &raw mut held) };
        (sent == 1).then(|| NonNull::new(held).map(Chain))
    }

    /// Returns the pool of a frame that is an mbuf.
    pub fn pool_of(frame: &Frame) -> Option<Pool> {
        NonNull::new(frame.head().pool()).map(|pool| Pool(pool.cast()))
    }
}
