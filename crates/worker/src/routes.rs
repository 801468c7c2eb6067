// SPDX-License-Identifier: Apache-2.0
//! Routes from a worker to the ports.

use flow::PortNo;

/// Path by which a worker sends frames to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The worker's own queue. Contains the queue's index in the worker's list.
    Own(u16),
    /// Another worker, reached over the ring to it. Contains the worker's number.
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
        // On most switches, ports are numbered 1, 2, 3 and so on.
        match self.routes.get((port.0 as usize).wrapping_sub(1)) {
            Some((number, route)) if *number == port => Some(*route),
            _ => self
                .routes
                .binary_search_by_key(&port, |(number, _)| *number)
                .ok()
                .map(|at| self.routes[at].1),
        }
    }
}
