// SPDX-License-Identifier: Apache-2.0
//! The memory of a frame: its own, or borrowed from a device.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

/// A lender of memory for frames: a driver whose device writes packets to its own memory. Loans of different
/// lenders are distinguished by the lender's address.
pub struct Lender {
    give_back: unsafe fn(NonNull<u8>),
}

impl Lender {
    /// Creates a lender to which memory is returned by `give_back`, on the thread on which the loan ends.
    ///
    /// # Safety
    /// It must be sound to call `give_back` once for each loan of this lender, with the start passed to
    /// [`Loan::new`], on any thread.
    #[must_use]
    pub const unsafe fn new(give_back: unsafe fn(NonNull<u8>)) -> Self {
        Self { give_back }
    }
}

impl fmt::Debug for Lender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lender({:p})", std::ptr::from_ref(self))
    }
}

/// Borrowed memory. It is returned to its lender on drop.
#[derive(Debug)]
pub struct Loan(Memory);

impl Loan {
    /// Creates a loan of `bytes` bytes from `start` on.
    ///
    /// # Safety
    /// The bytes must be initialized, readable and writable. Nothing else may use them until they are
    /// returned to the lender.
    #[must_use]
    #[inline]
    pub unsafe fn new(start: NonNull<u8>, bytes: u32, lender: &'static Lender) -> Self {
        Self(Memory { start, lender: Some(lender), bytes, home: 0 })
    }

    /// Returns the size of the loan in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Ends the loan without returning the memory to its lender, and returns its start. The caller takes over
    /// the memory.
    #[must_use]
    #[inline]
    pub fn into_start(self) -> NonNull<u8> {
        ManuallyDrop::new(self).0.start
    }
}

/// Memory of a frame: its own, aligned to a cache line, or borrowed. Because of the alignment, a frame of 64
/// bytes lies in one cache line. The frame's home number is stored here too, to keep the frame's fields
/// within one cache line.
#[derive(Debug)]
pub struct Memory {
    start: NonNull<u8>,
    lender: Option<&'static Lender>,
    bytes: u32,
    pub(crate) home: u16,
}

// SAFETY: the bytes belong to this value alone, by allocation or by the contract of `Loan::new`.
// `Lender::new` permits ending a loan on any thread.
unsafe impl Send for Memory {}
// SAFETY: a shared reference gives access to shared slices only.
unsafe impl Sync for Memory {}

impl Memory {
    /// Creates an empty memory.
    pub(crate) const fn none(home: u16) -> Self {
        Self { start: NonNull::<Line>::dangling().cast(), lender: None, bytes: 0, home }
    }

    /// Allocates `bytes` zeroed bytes.
    pub(crate) fn new(bytes: usize, home: u16) -> Self {
        let lines = Box::leak(vec![Line([0; LINE_BYTES]); bytes.div_ceil(LINE_BYTES)].into_boxed_slice());
        Self { start: NonNull::from(lines).cast(), lender: None, bytes: bytes as u32, home }
    }

    /// Returns whether the memory is borrowed.
    #[inline]
    pub(crate) fn is_on_loan(&self) -> bool {
        self.lender.is_some()
    }

    /// Replaces the memory by a loan.
    #[inline]
    pub(crate) fn lend(&mut self, loan: Loan) {
        let home = self.home;
        *self = loan.0;
        self.home = home;
    }

    /// Takes the loan, if there is one. The memory is empty afterwards.
    #[inline]
    pub(crate) fn take_loan(&mut self) -> Option<Loan> {
        self.lender?;
        let home = self.home;
        Some(Loan(std::mem::replace(self, Self::none(home))))
    }

    /// Returns the loan to its lender, if there is one.
    #[inline]
    pub(crate) fn end_loan(&mut self) {
        if self.lender.is_some() {
            drop(self.take_loan());
        }
    }

    /// Returns the size of the memory in bytes, or 0 if it is borrowed.
    #[inline]
    pub(crate) fn own_bytes(&self) -> usize {
        if self.lender.is_some() { 0 } else { self.bytes as usize }
    }

    /// Returns the start of the memory if it is borrowed from this lender.
    #[inline]
    pub(crate) fn loan_start(&self, lender: &'static Lender) -> Option<NonNull<u8>> {
        self.lender.is_some_and(|mine| std::ptr::eq(mine, lender)).then_some(self.start)
    }
}

impl Drop for Memory {
    #[inline]
    fn drop(&mut self) {
        if let Some(lender) = self.lender {
            // SAFETY: a loan ends once: here, or in `Loan::into_start`, which prevents the drop. So this is
            // the only call for this loan, with the start passed to `Loan::new`.
            unsafe { (lender.give_back)(self.start) };
        } else if self.bytes > 0 {
            let lines = (self.bytes as usize).div_ceil(LINE_BYTES);
            let lines = NonNull::slice_from_raw_parts(self.start.cast::<Line>(), lines);
            // SAFETY: memory without a lender was leaked by `new` as this number of lines, and is freed only
            // here.
            drop(unsafe { Box::from_raw(lines.as_ptr()) });
        }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` bytes are initialized and readable, by allocation in `new` or by the contract of
        // `Loan::new`. They are borrowed as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes as usize) }
    }
}

impl DerefMut for Memory {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` bytes are initialized and writable, by allocation in `new` or by the contract of
        // `Loan::new`. They belong to this value alone, which is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes as usize) }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Memory of every loan so far, and whether the loan has ended.
    static LOANS: Mutex<Vec<(Box<[u8]>, bool)>> = Mutex::new(Vec::new());
    // SAFETY: `take_back` accepts any pointer. It fails for unknown pointers.
    pub(crate) static LENDER: Lender = unsafe { Lender::new(take_back) };

    unsafe fn take_back(start: NonNull<u8>) {
        give_back(start);
    }

    fn with_loan<T>(start: NonNull<u8>, what: impl FnOnce(&mut bool) -> T) -> T {
        let mut loans = LOANS.lock().unwrap();
        let found = loans.iter_mut().find(|(bytes, _)| std::ptr::eq(bytes.as_ptr(), start.as_ptr()));
        what(&mut found.unwrap().1)
    }

    /// Ends a loan.
    pub(crate) fn give_back(start: NonNull<u8>) {
        assert!(!with_loan(start, |ended| std::mem::replace(ended, true)), "it has ended already");
    }

    fn is_lent(start: NonNull<u8>) -> bool {
        with_loan(start, |ended| !*ended)
    }

    /// Returns a loan of `bytes` bytes with the value 7.
    pub(crate) fn loan(bytes: u32) -> Loan {
        let mut loans = LOANS.lock().unwrap();
        loans.push((vec![7; bytes as usize].into(), false));
        let start = NonNull::new(loans.last_mut().unwrap().0.as_mut_ptr()).unwrap();
        // SAFETY: the boxed bytes are never freed or moved, and only the loan uses them until it ends.
        unsafe { Loan::new(start, bytes, &LENDER) }
    }

    #[test]
    fn lines_are_aligned() {
        let mut memory = Memory::new(65, 3);
        assert_eq!((memory.len(), memory.as_ptr() as usize % LINE_BYTES), (65, 0));
        memory[64] = 7;
        assert_eq!((memory[63], memory[64], memory.home), (0, 7, 3));
        assert!(Memory::none(0).is_empty() && Memory::new(0, 0).is_empty() && !memory.is_on_loan());
        assert!(memory.take_loan().is_none() && memory.len() == 65);
    }

    #[test]
    fn a_loan_ends_once() {
        // SAFETY: no loan of this lender is created, so `take_back` is never called through it.
        static OTHER: Lender = unsafe { Lender::new(take_back) };
        let mut memory = Memory::new(64, 5);
        memory.lend(loan(256));
        let first = memory.loan_start(&LENDER).unwrap();
        assert!(memory.is_on_loan() && memory[255] == 7 && memory.home == 5 && is_lent(first));
        assert_eq!(memory.loan_start(&OTHER), None);
        memory.lend(loan(128));
        let second = memory.loan_start(&LENDER).unwrap();
        assert!(!is_lent(first) && memory.len() == 128);
        let taken = memory.take_loan();
        assert!(taken.is_some() && memory.is_empty() && memory.home == 5 && is_lent(second));
        drop(taken);
        assert!(!is_lent(second));
        memory.lend(loan(256));
        let third = memory.take_loan().map(Loan::into_start).unwrap();
        assert!(is_lent(third));
        give_back(third);
        memory.lend(loan(256));
        let fourth = memory.loan_start(&LENDER).unwrap();
        drop(memory);
        assert!(!is_lent(fourth));
    }
}
