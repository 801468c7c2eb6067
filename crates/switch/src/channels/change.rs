// SPDX-License-Identifier: Apache-2.0
//! Changes of the controllers and addresses while the switch runs. Connections that the change does not
//! concern stay open.

use super::acceptor::Acceptor;
use super::agents::Protocol;
use super::dialer::Dialer;
use super::tls::Tls;
use super::{Channels, Origin};
use crate::listener::ListenError;
use config::{ConfigChange, ConnectionProtocol, Datapath, Endpoint};

impl From<ConnectionProtocol> for Protocol {
    fn from(protocol: ConnectionProtocol) -> Self {
        match protocol {
            ConnectionProtocol::OpenFlow => Self::OpenFlow,
            ConnectionProtocol::Pof => Self::Pof,
        }
    }
}

/// Binds the addresses that changes add.
///
/// # Errors
///
/// Returns an error if an endpoint cannot be bound.
pub fn bind_added(changes: &[ConfigChange]) -> Result<Vec<Acceptor>, ListenError> {
    let mut acceptors = Vec::new();
    for change in changes {
        let ConfigChange::Listen(listen) = change else { continue };
        for endpoint in &listen.added {
            acceptors.push(Acceptor::open(listen.protocol.into(), endpoint)?);
        }
    }
    Ok(acceptors)
}

impl Channels {
    /// Takes the controllers, addresses and fail mode of a datapath. `acceptors` are bound to the addresses
    /// that are new ([`bind_added`]). Connections of removed controllers, and those accepted at removed
    /// addresses, are closed. `tls` replaces the certificates for new connections, if they change.
    pub fn change(&mut self, datapath: &Datapath, acceptors: Vec<Acceptor>, tls: Option<Option<Tls>>) {
        if let Some(tls) = tls {
            self.tls = tls;
        }
        self.acceptors
            .retain(|(_, acceptor)| listens(datapath, acceptor.protocol()).contains(acceptor.configured()));
        for acceptor in acceptors {
            self.acceptors.push((self.next_acceptor, acceptor));
            self.next_acceptor += 1;
        }
        let mut before: Vec<Option<Dialer>> =
            std::mem::take(&mut self.dialers).into_iter().map(Some).collect();
        // For each controller before the change, its position after the change.
        let mut places: Vec<Option<usize>> = vec![None; before.len()];
        for protocol in [Protocol::OpenFlow, Protocol::Pof] {
            for endpoint in controllers(datapath, protocol) {
                let is_same = |dialer: &Option<Dialer>| {
                    let same =
                        |dialer: &Dialer| dialer.protocol() == protocol && dialer.address() == endpoint;
                    dialer.as_ref().is_some_and(same)
                };
                let kept = before.iter().position(is_same);
                if let Some(place) = kept.and_then(|at| places.get_mut(at)) {
                    *place = Some(self.dialers.len());
                }
                let dialer = kept.and_then(|at| before.get_mut(at)).and_then(Option::take);
                self.dialers.push(dialer.unwrap_or_else(|| Dialer::new(protocol, endpoint.clone())));
            }
        }
        let (agents, acceptors) = (&mut self.agents, &self.acceptors);
        self.links.retain_mut(|(origin, link)| {
            let stays = match origin {
                Origin::Peer(number) => acceptors.iter().any(|(acceptor, _)| acceptor == number),
                Origin::Controller(number) => match places.get(*number).copied().flatten() {
                    Some(place) => {
                        *number = place;
                        true
                    }
                    None => false,
                },
            };
            if !stays {
                tracing::info!("{}: closed, because it was removed from the configuration", link.peer());
                agents.close(link.channel());
            }
            stays
        });
        self.fallback.set_enabled(datapath.openflow.standalone && !self.dialers.is_empty());
    }

    /// Returns whether any controllers are configured.
    pub fn has_controllers(&self) -> bool {
        !self.dialers.is_empty()
    }
}

/// Returns the addresses for connections of a protocol.
fn listens(datapath: &Datapath, protocol: Protocol) -> &[Endpoint] {
    match (protocol, &datapath.pof) {
        (Protocol::OpenFlow, _) => &datapath.openflow.listen,
        (Protocol::Pof, Some(pof)) => &pof.listen,
        (Protocol::Pof, None) => &[],
    }
}

/// Returns the controllers of a protocol.
fn controllers(datapath: &Datapath, protocol: Protocol) -> &[Endpoint] {
    match (protocol, &datapath.pof) {
        (Protocol::OpenFlow, _) => &datapath.openflow.controllers,
        (Protocol::Pof, Some(pof)) => &pof.controllers,
        (Protocol::Pof, None) => &[],
    }
}
