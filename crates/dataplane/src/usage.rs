// SPDX-License-Identifier: Apache-2.0
//! Usage of bounded resources.

/// Usage of a bounded resource. It may be a moment old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Name of the resource in counters.
    pub name: &'static str,
    /// Amount in use.
    pub used: u64,
    /// Maximum amount, or `None` without a limit.
    pub limit: Option<u64>,
}

impl Usage {
    /// Returns the usage of a resource.
    #[must_use]
    pub fn of(name: &'static str, used: usize, limit: impl Into<Option<usize>>) -> Self {
        Self { name, used: used as u64, limit: limit.into().map(|limit| limit as u64) }
    }
}
