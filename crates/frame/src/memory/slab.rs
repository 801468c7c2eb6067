// SPDX-License-Identifier: Apache-2.0
//! The memory of a pool's buffers: one mapping, so that a pool is allocated by few system calls, and nothing
//! but the heads of its buffers is written.
#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::alloc::{Layout, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// Size of a page in bytes.
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
    /// Maps memory for `count` buffers of `stride_bytes` each. Aborts the process if there are no addresses.
    ///
    /// Short buffers are in huge pages if the system provides them, because packets use all of them. Buffers
    /// of several pages are not: with huge pages, writing the heads alone would make the kernel provide and
    /// clear all of the memory. So a worker takes the page faults of a long buffer when it first uses it.
    pub fn new(count: usize, stride_bytes: usize) -> Self {
        let page = Layout::new::<[u8; PAGE_BYTES]>();
        let bytes = count.checked_mul(stride_bytes).and_then(|it| it.checked_next_multiple_of(PAGE_BYTES));
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { handle_alloc_error(page) };
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: without an address, the kernel chooses unused addresses.
        let mapped = unsafe { mmap_anonymous(null_mut(), bytes, access, flags) };
        let Some(memory) = mapped.ok().and_then(NonNull::new) else {
            handle_alloc_error(Layout::from_size_align(bytes, PAGE_BYTES).unwrap_or(page))
        };
        let advice = if stride_bytes > PAGE_BYTES { Advice::LinuxNoHugepage } else { Advice::LinuxHugepage };
        // SAFETY: the range is the mapping, and the advice does not change its content. On failure the pages
        // have their usual size.
        let _ = unsafe { madvise(memory.as_ptr(), bytes, advice) };
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
