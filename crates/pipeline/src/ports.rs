// SPDX-License-Identifier: Apache-2.0
//! The ports as forwarding sees them.

use flow::{PortNo, PortState};

/// All ports of the datapath, by number.
#[derive(Clone, Debug, Default)]
pub struct PortTable {
    ports: Vec<PortState>,
}

impl PortTable {
    /// The ports, in any order.
    #[must_use]
    pub fn new(mut ports: Vec<PortState>) -> Self {
        ports.sort_unstable_by_key(|port| port.number);
        Self { ports }
    }

    /// The port of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, number: PortNo) -> Option<&PortState> {
        // Most switches number their ports 1, 2, 3 ...
        match self.ports.get((number as usize).wrapping_sub(1)) {
            Some(port) if port.number == number => Some(port),
            _ => self.ports.binary_search_by_key(&number, |port| port.number).ok().map(|at| &self.ports[at]),
        }
    }

    /// All ports, by number.
    #[must_use]
    pub fn all(&self) -> &[PortState] {
        &self.ports
    }
}
