// SPDX-License-Identifier: Apache-2.0
//! Ports as forwarding sees them.

use flow::{PortNo, PortState};

/// Ports with lower numbers are also in an array indexed by number.
const LOW_PORTS: usize = 256;

/// All ports of the datapath, sorted by number.
#[derive(Clone, Debug)]
pub struct PortTable {
    ports: Vec<PortState>,
    /// For numbers below `LOW_PORTS`: whether the port exists, is up and sends packets.
    open: [bool; LOW_PORTS],
}

impl Default for PortTable {
    fn default() -> Self {
        Self { ports: Vec::new(), open: [false; LOW_PORTS] }
    }
}

impl PortTable {
    /// Creates a table of ports, given in any order.
    #[must_use]
    pub fn new(mut ports: Vec<PortState>) -> Self {
        ports.sort_unstable_by_key(|port| port.number);
        let mut open = [false; LOW_PORTS];
        for port in &ports {
            if let Some(low) = open.get_mut(port.number.0 as usize) {
                *low = is_open(port);
            }
        }
        Self { ports, open }
    }

    /// Returns the port of this number.
    #[must_use]
    #[inline]
    pub fn get(&self, number: PortNo) -> Option<&PortState> {
        // Most switches number their ports 1, 2, 3 and so on.
        match self.ports.get((number.0 as usize).wrapping_sub(1)) {
            Some(port) if port.number == number => Some(port),
            _ => self.ports.binary_search_by_key(&number, |port| port.number).ok().map(|at| &self.ports[at]),
        }
    }

    /// Returns whether the port of this number exists, is up and sends packets.
    #[must_use]
    #[inline(always)]
    pub fn is_open(&self, number: PortNo) -> bool {
        match self.open.get(number.0 as usize) {
            Some(open) => *open,
            None => self.get(number).is_some_and(is_open),
        }
    }

    /// Returns all ports, sorted by number.
    #[must_use]
    pub fn all(&self) -> &[PortState] {
        &self.ports
    }
}

fn is_open(port: &PortState) -> bool {
    port.up && !port.no_fwd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_open_if_it_exists_and_is_up_and_forwards() {
        let state = |number: u32, up, no_fwd| PortState { up, no_fwd, ..PortState::up(PortNo(number)) };
        let mut ports = Vec::new();
        for first in [1, 200, 254, 255, 256, 0x1_0000] {
            for bits in 0..4 {
                ports.push(state(first * 4 + bits, bits & 1 != 0, bits & 2 != 0));
            }
        }
        let table = PortTable::new(ports);
        for number in 0..300_000 {
            let number = PortNo(number);
            let right = table.get(number).is_some_and(|port| port.up && !port.no_fwd);
            assert_eq!(table.is_open(number), right, "{number:?}");
        }
        assert!(table.is_open(PortNo(5)) && !PortTable::default().is_open(PortNo(5)));
    }
}
