// SPDX-License-Identifier: Apache-2.0
//! Ports as seen by forwarding.

use flow::{PortNo, PortState};

/// All ports of the datapath, sorted by number.
#[derive(Clone, Debug, Default)]
pub struct PortTable {
    ports: Vec<PortState>,
}

impl PortTable {
    /// Creates a table of ports, given in any order.
    #[must_use]
    pub fn new(mut ports: Vec<PortState>) -> Self {
        ports.sort_unstable_by_key(|port| port.number);
        Self { ports }
    }

    /// Returns the port of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, number: PortNo) -> Option<&PortState> {
        // Fast path: most switches number their ports 1, 2, 3 and so on.
        match self.ports.get((number.0 as usize).wrapping_sub(1)) {
            Some(port) if port.number == number => Some(port),
            _ => self.ports.binary_search_by_key(&number, |port| port.number).ok().map(|at| &self.ports[at]),
        }
    }

    /// Returns all ports, sorted by number.
    #[must_use]
    pub fn all(&self) -> &[PortState] {
        &self.ports
    }
}
