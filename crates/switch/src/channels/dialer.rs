// SPDX-License-Identifier: Apache-2.0
//! Connects to one controller. The pause after each failure doubles up to a limit.

use super::agents::Protocol;
use super::stream::Stream;
use config::Endpoint;
use flow::Nanos;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// First pause after a failure, in ns.
const PAUSE_NS: Nanos = Nanos(250_000_000);
/// Longest pause, in ns.
const PAUSE_MAX_NS: Nanos = Nanos(8_000_000_000);
/// Maximum time to establish a connection, in ns.
const CONNECT_NS: Nanos = Nanos(5_000_000_000);

#[derive(Debug)]
enum State {
    Waiting { until_ns: Nanos },
    Connecting { socket: OwnedFd, until_ns: Nanos, ready: bool },
    Connected { open: bool },
}

/// State of the connection to one controller.
#[derive(Debug)]
pub struct Dialer {
    protocol: Protocol,
    address: Endpoint,
    state: State,
    pause_ns: Nanos,
    /// Number of attempts and connections that failed or ended.
    failures: u64,
}

impl Dialer {
    pub fn new(protocol: Protocol, address: Endpoint) -> Self {
        Self {
            protocol,
            address,
            state: State::Waiting { until_ns: Nanos(0) },
            pause_ns: PAUSE_NS,
            failures: 0,
        }
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub fn address(&self) -> &Endpoint {
        &self.address
    }

    /// Returns the socket that is being connected. Poll it for output.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Connecting { socket, .. } => Some(socket.as_fd()),
            _ => None,
        }
    }

    pub fn woken(&mut self, answer: PollFlags) {
        if let State::Connecting { ready, .. } = &mut self.state {
            *ready |= !answer.is_empty();
        }
    }

    /// Returns the time at which [`Self::step`] has something to do, if no descriptor is ready earlier.
    pub fn due(&self) -> Option<Nanos> {
        match self.state {
            State::Waiting { until_ns } | State::Connecting { until_ns, .. } => Some(until_ns),
            State::Connected { .. } => None,
        }
    }

    /// Returns the number of attempts and connections that failed or ended.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Returns whether no connection exists or is being established.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Returns whether the connection is established and the controller has sent its HELLO.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Connected { open: true })
    }

    /// Reports the controller's HELLO. The next failure starts again with the shortest pause.
    pub fn opened(&mut self) {
        self.pause_ns = PAUSE_NS;
        self.state = State::Connected { open: true };
    }

    /// Starts the pause before the next attempt, after the connection has ended.
    pub fn lost(&mut self, now: Nanos) {
        self.failures += 1;
        self.state = State::Waiting { until_ns: now.saturating_add(self.pause_ns) };
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_MAX_NS);
    }

    /// Advances the state. Returns a connection once it is established, or the error of a failed attempt. The
    /// caller begins TLS.
    pub fn step(&mut self, now: Nanos) -> Option<io::Result<Stream>> {
        match &self.state {
            State::Waiting { until_ns } if now >= *until_ns => match dial(&self.address) {
                Ok(socket) => {
                    let until_ns = now.saturating_add(CONNECT_NS);
                    self.state = State::Connecting { socket, until_ns, ready: false };
                    None
                }
                Err(error) => Some(self.failed(error, now)),
            },
            State::Connecting { ready: false, until_ns, .. } if now >= *until_ns => {
                Some(self.failed(io::ErrorKind::TimedOut.into(), now))
            }
            State::Connecting { ready: true, .. } => {
                let State::Connecting { socket, .. } =
                    std::mem::replace(&mut self.state, State::Connected { open: false })
                else {
                    return None;
                };
                Some(match finish(&self.address, socket) {
                    Ok(stream) => Ok(stream),
                    Err(error) => self.failed(error, now),
                })
            }
            _ => None,
        }
    }

    fn failed(&mut self, error: io::Error, now: Nanos) -> io::Result<Stream> {
        self.lost(now);
        Err(error)
    }
}

/// Starts a connection attempt without blocking.
fn dial(address: &Endpoint) -> io::Result<OwnedFd> {
    let family = match address {
        Endpoint::Tcp(address) | Endpoint::Ssl(address) if address.is_ipv4() => AddressFamily::INET,
        Endpoint::Tcp(_) | Endpoint::Ssl(_) => AddressFamily::INET6,
        Endpoint::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    let connected = match address {
        Endpoint::Tcp(address) | Endpoint::Ssl(address) => rustix::net::connect(&socket, address),
        Endpoint::Unix(path) => rustix::net::connect(&socket, &SocketAddrUnix::new(path)?),
    };
    match connected {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

fn finish(address: &Endpoint, socket: OwnedFd) -> io::Result<Stream> {
    sockopt::socket_error(&socket)??;
    match address {
        Endpoint::Tcp(_) | Endpoint::Ssl(_) => Stream::tcp(TcpStream::from(socket)),
        Endpoint::Unix(_) => Ok(Stream::Unix(socket.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, Timespec, poll};
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    fn wait(dialer: &mut Dialer) {
        let answer = {
            let mut set = [PollFd::from_borrowed_fd(dialer.descriptor().unwrap(), PollFlags::OUT)];
            poll(&mut set, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap();
            set[0].revents()
        };
        dialer.woken(answer);
    }

    #[test]
    fn pauses_double_until_the_controller_is_there() {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = nobody.local_addr().unwrap();
        drop(nobody);
        let mut dialer = Dialer::new(Protocol::OpenFlow, Endpoint::Tcp(address));
        let mut now = Nanos(0);
        assert!(dialer.is_idle());
        for pause_ns in [PAUSE_NS, 2 * PAUSE_NS, 4 * PAUSE_NS] {
            let mut result = dialer.step(now);
            if result.is_none() {
                wait(&mut dialer);
                result = dialer.step(now);
            }
            assert!(result.unwrap().is_err());
            assert_eq!(dialer.due(), Some(now + pause_ns));
            assert!(dialer.step(now + pause_ns - Nanos(1)).is_none() && dialer.descriptor().is_none());
            now += pause_ns;
        }
        let listener = TcpListener::bind(address).unwrap();
        assert!(dialer.step(now).is_none());
        wait(&mut dialer);
        let stream = dialer.step(now).unwrap().unwrap();
        let Stream::Tcp(stream) = stream else { panic!("{stream:?}") };
        assert_eq!(listener.accept().unwrap().1, stream.local_addr().unwrap());
        assert!(!dialer.is_open() && !dialer.is_idle());
        assert_eq!(dialer.due(), None);
        dialer.opened();
        assert!(dialer.is_open() && !dialer.is_idle());
        dialer.lost(now);
        assert!(!dialer.is_open() && dialer.is_idle() && dialer.step(now + PAUSE_NS - Nanos(1)).is_none());
    }

    #[test]
    fn a_unix_socket_is_tried_again_too() {
        let path = std::env::temp_dir().join(format!("shunt-dialer-{}.sock", std::process::id()));
        let mut dialer = Dialer::new(Protocol::OpenFlow, Endpoint::Unix(path.clone()));
        assert_eq!(dialer.step(Nanos(0)).unwrap().unwrap_err().kind(), io::ErrorKind::NotFound);
        drop(UnixListener::bind(&path).unwrap());
        assert!(dialer.step(PAUSE_NS - Nanos(1)).is_none());
        assert_eq!(dialer.step(PAUSE_NS).unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        assert!(dialer.step(3 * PAUSE_NS - Nanos(1)).is_none() && dialer.descriptor().is_none());
        assert!(dialer.step(3 * PAUSE_NS).is_none());
        wait(&mut dialer);
        let mut stream = dialer.step(3 * PAUSE_NS).unwrap().unwrap();
        stream.write_all(b"x").unwrap();
        let mut byte = [0];
        listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
        std::fs::remove_file(&path).unwrap();
    }
}
