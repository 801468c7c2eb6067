// SPDX-License-Identifier: Apache-2.0
//! One place where others connect to us.

use super::CONNECTIONS;
use super::stream::Stream;
use crate::config::Endpoint;
use crate::listener::{ListenError, Listener, Purpose};
use rustix::event::PollFlags;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(Listener),
}

/// See the module.
#[derive(Debug)]
pub struct Door {
    socket: Socket,
    address: Endpoint,
    /// Somebody waits to be accepted.
    called: bool,
}

impl Door {
    /// Listens.
    pub fn open(endpoint: &Endpoint) -> Result<Self, ListenError> {
        let (socket, address) = match endpoint {
            Endpoint::Tcp(address) => {
                let tcp = |source| ListenError::Tcp { address: *address, source };
                let listener = listen(*address).map_err(tcp)?;
                let address = listener.local_addr().map_err(tcp)?;
                (Socket::Tcp(listener), Endpoint::Tcp(address))
            }
            Endpoint::Unix(path) => {
                (Socket::Unix(Listener::bind(path, Purpose::OpenFlow)?), endpoint.clone())
            }
        };
        Ok(Self { socket, address, called: false })
    }

    /// Where it is; never port 0.
    pub fn address(&self) -> &Endpoint {
        &self.address
    }

    /// What to sleep on; none when somebody waits already, who must not keep us awake while nobody is accepted.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let descriptor = match &self.socket {
            Socket::Tcp(listener) => listener.as_fd(),
            Socket::Unix(listener) => listener.descriptor(),
        };
        (!self.called).then_some(descriptor)
    }

    pub fn woken(&mut self, answer: PollFlags) {
        self.called = !answer.is_empty();
    }

    /// Whether somebody waits to be accepted.
    pub fn is_called(&self) -> bool {
        self.called
    }

    /// The next who waits, and a name for the log; none when nobody does.
    ///
    /// # Errors
    /// The system's refusal; `ConnectionAborted` and `Interrupted` say nothing about the next.
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
        self.called = accepted.is_some();
        Ok(accepted)
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    // All may come at once: one that finds no room tries again only after a second.
    rustix::net::listen(&listener, CONNECTIONS as i32)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
