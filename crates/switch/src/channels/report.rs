// SPDX-License-Identifier: Apache-2.0
//! Reports the connections of controllers.

use super::dialer::Dialer;
use super::link::ControllerLink;
use super::{Channels, Origin};
use crate::control::{ControllerRow, ControllersReport};

impl Channels {
    /// Returns the configured controllers, followed by the peers that have connected.
    pub fn report(&self) -> ControllersReport {
        let link_of = |number: usize| {
            let is_of = |origin: &Origin| *origin == Origin::Controller(number);
            self.links.iter().find(|(origin, _)| is_of(origin)).map(|(_, link)| link)
        };
        let dialers = self.dialers.iter().enumerate();
        let configured = dialers.map(|(number, dialer)| self.controller(dialer, link_of(number)));
        let peers = self.links.iter().filter(|(origin, _)| matches!(origin, Origin::Peer(_)));
        let accepted = peers.map(|(_, link)| self.peer(link));
        ControllersReport { controllers: configured.chain(accepted).collect() }
    }

    fn controller(&self, dialer: &Dialer, link: Option<&ControllerLink>) -> ControllerRow {
        let state = match link {
            Some(_) if dialer.is_open() => "connected",
            Some(_) => "handshake",
            None if dialer.is_idle() => "waiting",
            None => "connecting",
        };
        ControllerRow {
            protocol: dialer.protocol().name().to_owned(),
            address: dialer.address().to_string(),
            configured: true,
            state: state.to_owned(),
            role: link.and_then(|link| self.role(link)),
            since_s: link.and_then(ControllerLink::opened_s),
            failures: dialer.failures(),
        }
    }

    fn peer(&self, link: &ControllerLink) -> ControllerRow {
        ControllerRow {
            protocol: link.protocol().name().to_owned(),
            address: link.peer().to_owned(),
            configured: false,
            state: if link.opened_s().is_some() { "connected" } else { "handshake" }.to_owned(),
            role: self.role(link),
            since_s: link.opened_s(),
            failures: 0,
        }
    }

    /// Returns the role of the controller, if the handshake is complete.
    fn role(&self, link: &ControllerLink) -> Option<String> {
        link.opened_s().and(self.agents.role(link.channel())).map(str::to_owned)
    }
}
