// SPDX-License-Identifier: Apache-2.0
//! Choices of a test, taken from bytes. Random bytes give a random test, and a fuzzer can change them.

/// Bytes from which choices are taken. Behind the end, each choice is 0.
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a number below `limit`, from one byte or from two.
    pub fn below(&mut self, limit: u16) -> u16 {
        let number = if limit <= 256 {
            u16::from(self.bytes(1).first().copied().unwrap_or(0))
        } else {
            self.bytes(2).iter().fold(0, |number, byte| number << 8 | u16::from(*byte))
        };
        number % limit
    }

    /// Takes one of several values.
    pub fn of<T: Clone>(&mut self, values: &[T]) -> T {
        values[usize::from(self.below(values.len() as u16))].clone()
    }

    /// Returns `true` once in `n` times.
    pub fn one_in(&mut self, n: u16) -> bool {
        self.below(n) == n - 1
    }

    /// Takes up to `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes up to `most - 1` values.
    pub fn list<T>(&mut self, most: u16, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most)).map(|_| one(self)).collect()
    }
}
