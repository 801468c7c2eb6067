// SPDX-License-Identifier: Apache-2.0
//! The UDP socket over which the daemon and a device exchange messages.

use device::message::MESSAGE_BYTES_MAX;
use device::plane::DeviceLink;
use rustix::net::sockopt;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum number of errors that one call takes from the socket. Each datagram that was refused causes one.
const ERRORS_MAX: usize = 64;

/// Wanted size of the receive buffer in bytes.
const RECEIVE_BYTES: usize = 4 << 20;

/// A link to a device. Only datagrams of the device's address arrive.
#[derive(Debug)]
pub struct UdpLink {
    /// The socket, or `None` if there is no device.
    socket: Option<UdpSocket>,
    /// The device's address while the system cannot connect the socket with it.
    unconnected: Option<SocketAddr>,
    /// Last error of the system, if no datagram arrived since.
    fault: Option<String>,
}

impl UdpLink {
    /// Returns a link to the device at this address. `bind` is the daemon's address, if the device expects a
    /// certain one. If the system cannot reach the device's address, [`Self::fault`] states why, and each
    /// later [`send`](DeviceLink::send) tries again.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses the socket.
    pub fn connect(device: SocketAddr, bind: Option<SocketAddr>) -> io::Result<Self> {
        let any = match device {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(bind.unwrap_or(any))?;
        socket.set_nonblocking(true)?;
        // A flood of packets for the controller must not displace replies. Without privileges, the system's
        // limit applies.
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
        }
        let mut link = Self { socket: Some(socket), unconnected: Some(device), fault: None };
        link.connect_again();
        Ok(link)
    }

    /// Returns a link to no device.
    #[must_use]
    pub fn closed() -> Self {
        Self { socket: None, unconnected: None, fault: None }
    }

    /// Returns why the system cannot reach the device, if it has said so since a datagram arrived.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// Connects the socket, unless it is connected. Returns whether it is.
    fn connect_again(&mut self) -> bool {
        let (Some(socket), Some(device)) = (&self.socket, self.unconnected) else { return true };
        match socket.connect(device) {
            Ok(()) => (self.unconnected, self.fault) = (None, None),
            Err(error) => self.fault = Some(error.to_string()),
        }
        // Until now, any peer could send to the socket.
        discard(socket);
        self.unconnected.is_none()
    }

    /// Returns the address of the daemon's end.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    #[cfg(feature = "rtl")]
    pub fn address(&self) -> io::Result<Option<SocketAddr>> {
        self.socket.as_ref().map(UdpSocket::local_addr).transpose()
    }

    /// Returns the descriptor on which the control thread waits for datagrams.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(UdpSocket::as_fd)
    }
}

impl DeviceLink for UdpLink {
    fn send(&mut self, datagram: &[u8]) {
        if !self.connect_again() {
            return;
        }
        // The session repeats a request that the system did not accept.
        if let Some(Err(error)) = self.socket.as_ref().map(|socket| socket.send(datagram)) {
            self.fault = Some(error.to_string());
        }
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let socket = self.socket.as_ref()?;
        if self.unconnected.is_some() {
            discard(socket);
            return None;
        }
        // A longer datagram is cut, and then refused because of its length.
        let mut buffer = [0; MESSAGE_BYTES_MAX + 1];
        for _ in 0..ERRORS_MAX {
            match socket.recv(&mut buffer) {
                Ok(length) => {
                    self.fault = None;
                    return Some(buffer[..length].to_vec());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                // No device listened when an earlier datagram arrived.
                Err(error) => self.fault = Some(error.to_string()),
            }
        }
        None
    }
}

/// Discards datagrams that have arrived at a socket without a peer, so that they do not end every sleep.
fn discard(socket: &UdpSocket) {
    for _ in 0..ERRORS_MAX {
        match socket.recv(&mut []) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_the_device_alone_arrive() {
        let device = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut link = UdpLink::connect(device.local_addr().unwrap(), None).unwrap();
        assert_eq!(link.receive(), None);
        link.send(b"question");
        let mut buffer = [0; 64];
        let (length, daemon) = device.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"question");
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(b"forged", daemon).unwrap();
        device.send_to(b"answer", daemon).unwrap();
        assert_eq!(link.receive().as_deref(), Some(&b"answer"[..]));
        assert_eq!(link.receive(), None);
        device.send_to(&vec![0; 4_000], daemon).unwrap();
        assert_eq!(link.receive().map(|datagram| datagram.len()), Some(MESSAGE_BYTES_MAX + 1));
    }

    /// The system reports that nobody listens. Later datagrams arrive all the same.
    #[test]
    fn a_device_may_start_later() {
        let reserved = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = reserved.local_addr().unwrap();
        drop(reserved);
        let mut link = UdpLink::connect(address, None).unwrap();
        for _ in 0..3 {
            link.send(b"nobody");
            assert_eq!(link.receive(), None);
        }
        assert!(link.fault().is_some_and(|fault| fault.contains("refused")), "{:?}", link.fault());
        let device = UdpSocket::bind(address).unwrap();
        // The report about the last datagram may be pending, and fails the first of these.
        link.send(b"lost");
        link.send(b"hello");
        let mut buffer = [0; 64];
        device.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        let (length, daemon) = device.recv_from(&mut buffer).unwrap();
        assert!(matches!(&buffer[..length], b"lost" | b"hello"));
        device.send_to(b"here", daemon).unwrap();
        assert_eq!(link.receive().as_deref(), Some(&b"here"[..]));
        assert_eq!(link.fault(), None);
    }

    /// From a loopback address, the system cannot reach another host.
    #[test]
    fn an_unreachable_device_is_tried_again() {
        let unreachable = "192.0.2.1:6700".parse().unwrap();
        let mut link = UdpLink::connect(unreachable, Some("127.0.0.1:0".parse().unwrap())).unwrap();
        let daemon = link.socket.as_ref().unwrap().local_addr().unwrap();
        link.send(b"lost");
        assert!(link.fault().is_some());
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..3 {
            stranger.send_to(b"forged", daemon).unwrap();
        }
        assert_eq!(link.receive(), None, "any peer can send to a socket without a peer");
        stranger.send_to(b"forged", daemon).unwrap();
        // The address can be reached from now on.
        let device = UdpSocket::bind("127.0.0.1:0").unwrap();
        link.unconnected = Some(device.local_addr().unwrap());
        link.send(b"hello");
        assert_eq!(link.fault(), None);
        let mut buffer = [0; 64];
        device.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        assert_eq!(device.recv_from(&mut buffer).unwrap(), (5, daemon));
        device.send_to(b"here", daemon).unwrap();
        assert_eq!(link.receive().as_deref(), Some(&b"here"[..]));
        assert_eq!(link.receive(), None);
    }

    #[test]
    fn a_closed_link_has_no_descriptor() {
        let mut link = UdpLink::closed();
        link.send(b"nothing");
        assert!(link.receive().is_none() && link.descriptor().is_none());
    }
}
