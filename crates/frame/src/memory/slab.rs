// SPDX-License-Identifier: Apache-2.0
//! The memory of a pool's buffers: one mapping, which takes few system calls and no copies of zeros.
#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Size of a usual page in bytes.
const PAGE_BYTES: usize = 4096;

/// A mapping that is removed when it is dropped. Its bytes are 0 at first.
#[derive(Debug)]
pub struct Slab {
    memory: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: a slab only removes its mapping, which is possible from any thread.
unsafe impl Send for Slab {}
// SAFETY: a shared reference gives access to an address only.
unsafe impl Sync for Slab {}

impl Slab {
    /// Maps memory for `count` buffers of `stride_bytes` each, in huge pages if the system provides them. The
    /// kernel provides all pages now, so that workers cause no page faults later. Aborts the process if there
    /// is no memory.
    pub fn new(count: usize, stride_bytes: usize) -> Self {
        let layout = Layout::from_size_align(count.saturating_mul(stride_bytes), PAGE_BYTES);
        let Ok(layout) = layout.map(|layout| layout.pad_to_align()) else {
            handle_alloc_error(Layout::new::<[u8; PAGE_BYTES]>())
        };
        let (bytes, access) = (layout.size(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: no address is given, so the kernel chooses one that is not in use.
        let mapped = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE) };
        let Some(memory) = mapped.ok().and_then(NonNull::new) else { handle_alloc_error(layout) };
        for advice in [Advice::LinuxHugepage, Advice::LinuxPopulateWrite] {
            // SAFETY: the range is the mapping, and the advice does not change its content. On failure, for
            // example before Linux 5.14, the kernel provides a page when it is first used.
            let _ = unsafe { madvise(memory.as_ptr(), bytes, advice) };
        }
        Self { memory, bytes }
    }

    /// Returns the address of the first byte, which is aligned to a page.
    pub fn start(&self) -> NonNull<u8> {
        self.memory.cast()
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: `new` has made this mapping, and it is removed once. Each buffer in it has a reference to
        // the slab, so no buffer is left.
        let _ = unsafe { munmap(self.memory.as_ptr(), self.bytes) };
    }
}
