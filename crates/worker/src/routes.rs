// SPDX-License-Identifier: Apache-2.0
//! How a worker's frames reach a port.

use flow::PortNo;

/// Who sends for a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// This worker, by the queue with this place in its list.
    Own(u16),
    /// Another worker, over its ring.
    Peer(u16),
}

/// Routes by port number.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    routes: Vec<(PortNo, Route)>,
}

impl Routes {
    pub fn new(mut routes: Vec<(PortNo, Route)>) -> Self {
        routes.sort_unstable_by_key(|(port, _)| *port);
        Self { routes }
    }

    #[inline]
    pub fn get(&self, port: PortNo) -> Option<Route> {
        // Most switches number their ports 1, 2, 3 ...
        match self.routes.get((port as usize).wrapping_sub(1)) {
            Some((number, route)) if *number == port => Some(*route),
            _ => self
                .routes
                .binary_search_by_key(&port, |(number, _)| *number)
                .ok()
                .map(|at| self.routes[at].1),
        }
    }
}
