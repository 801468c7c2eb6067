// SPDX-License-Identifier: Apache-2.0
//! Listening socket for connections of controllers, TCP or unix. `mod.rs` begins TLS on the connections.

use super::CONNECTIONS;
use super::agents::Protocol;
use super::stream::Stream;
use crate::listener::{ListenError, Listener};
use config::socket::SocketPurpose;
use config::{Endpoint, SocketAccess};
use rustix::event::PollFlags;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(Listener),
}

/// Listening socket for connections of one protocol.
#[derive(Debug)]
pub struct Acceptor {
    protocol: Protocol,
    socket: Socket,
    address: Endpoint,
    /// Endpoint in the configuration, which may have port 0.
    configured: Endpoint,
    /// Whether a client waits to be accepted.
    is_ready: bool,
}

impl Acceptor {
    /// Binds the endpoint and listens on it.
    pub fn open(protocol: Protocol, endpoint: &Endpoint) -> Result<Self, ListenError> {
        let (socket, address) = match endpoint {
            Endpoint::Tcp(address) => {
                let (listener, address) = listen_on(*address)?;
                (Socket::Tcp(listener), Endpoint::Tcp(address))
            }
            Endpoint::Ssl(address) => {
                let (listener, address) = listen_on(*address)?;
                (Socket::Tcp(listener), Endpoint::Ssl(address))
            }
            Endpoint::Unix(path) => {
                // Only the owner may connect.
                let access = SocketAccess::default();
                let listener = Listener::bind(path, purpose(protocol), &access, CONNECTIONS as i32)?;
                (Socket::Unix(listener), endpoint.clone())
            }
        };
        Ok(Self { protocol, socket, address, configured: endpoint.clone(), is_ready: false })
    }

    /// Uses the socket of an earlier process, which listens already.
    pub fn inherited(protocol: Protocol, endpoint: &Endpoint, socket: OwnedFd) -> Result<Self, ListenError> {
        let tcp = |address: SocketAddr, socket: OwnedFd| {
            let listener = TcpListener::from(socket);
            let bound = listener.local_addr().map_err(|source| ListenError::Tcp { address, source })?;
            Ok::<_, ListenError>((Socket::Tcp(listener), bound))
        };
        let (socket, address) = match endpoint {
            Endpoint::Tcp(address) => {
                let (socket, bound) = tcp(*address, socket)?;
                (socket, Endpoint::Tcp(bound))
            }
            Endpoint::Ssl(address) => {
                let (socket, bound) = tcp(*address, socket)?;
                (socket, Endpoint::Ssl(bound))
            }
            Endpoint::Unix(path) => {
                let listener = Listener::inherited(path, purpose(protocol), socket)?;
                (Socket::Unix(listener), endpoint.clone())
            }
        };
        Ok(Self { protocol, socket, address, configured: endpoint.clone(), is_ready: false })
    }

    /// Returns the socket with its name, for another process that continues to listen.
    pub fn hand_over(&self) -> io::Result<(String, OwnedFd)> {
        let socket = match &self.socket {
            Socket::Tcp(listener) => listener.as_fd(),
            Socket::Unix(listener) => listener.descriptor(),
        };
        Ok((handover_name(self.protocol, &self.configured), socket.try_clone_to_owned()?))
    }

    /// Leaves the file of a unix socket to another process.
    pub fn leave(&mut self) {
        if let Socket::Unix(listener) = &mut self.socket {
            listener.leave();
        }
    }

    /// Returns the protocol of the accepted connections.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the bound endpoint, with the port that the system chose in place of port 0.
    pub fn address(&self) -> &Endpoint {
        &self.address
    }

    /// Returns the endpoint in the configuration.
    pub fn configured(&self) -> &Endpoint {
        &self.configured
    }

    /// Returns the descriptor to poll, or `None` if a client is already known to wait. While accepting is
    /// paused, the ready descriptor would end every sleep immediately.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = match &self.socket {
            Socket::Tcp(listener) => listener.as_fd(),
            Socket::Unix(listener) => listener.descriptor(),
        };
        (!self.is_ready).then_some(descriptor)
    }

    pub fn woken(&mut self, answer: PollFlags) {
        self.is_ready = !answer.is_empty();
    }

    /// Returns whether a client waits to be accepted.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Accepts the next client. Returns its connection with a name for the log, or `None` if no client waits.
    ///
    /// # Errors
    ///
    /// Returns the error of the system. After `ConnectionAborted` and `Interrupted`, the next client can
    /// still be accepted.
    pub fn accept(&mut self) -> io::Result<Option<(Stream, String)>> {
        let accepted = match &self.socket {
            Socket::Tcp(listener) => match listener.accept() {
                Ok((stream, peer)) => {
                    let stream = Stream::tcp(stream).map_err(|_| ErrorKind::ConnectionAborted)?;
                    Some((stream, peer.to_string()))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => None,
                Err(error) => return Err(error),
            },
            Socket::Unix(listener) => {
                listener.accept()?.map(|stream| (Stream::Unix(stream), self.address.to_string()))
            }
        };
        self.is_ready = accepted.is_some();
        Ok(accepted)
    }
}

/// Returns the name of a listening socket in an upgrade.
pub fn handover_name(protocol: Protocol, endpoint: &Endpoint) -> String {
    format!("{protocol:?} {endpoint}")
}

fn purpose(protocol: Protocol) -> SocketPurpose {
    match protocol {
        Protocol::OpenFlow => SocketPurpose::OpenFlow,
        Protocol::Pof => SocketPurpose::Pof,
    }
}

/// Listens on an address. Returns the socket with its address.
fn listen_on(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ListenError> {
    let tcp = |source| ListenError::Tcp { address, source };
    let listener = listen(address).map_err(tcp)?;
    let address = listener.local_addr().map_err(tcp)?;
    Ok((listener, address))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // The backlog has space for all clients at once, because a client that finds it full tries again only
    // after a second.
    rustix::net::listen(&listener, CONNECTIONS as i32)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
