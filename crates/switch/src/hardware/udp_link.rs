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
    /// The connected socket, or `None` if there is no device.
    socket: Option<UdpSocket>,
}

impl UdpLink {
    /// Returns a link to the device at this address. `bind` is the daemon's address, if the device expects a
    /// certain one.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses the socket, or has no route to the address.
    pub fn connect(device: SocketAddr, bind: Option<SocketAddr>) -> io::Result<Self> {
        let any = match device {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(bind.unwrap_or(any))?;
        socket.connect(device)?;
        socket.set_nonblocking(true)?;
        // A flood of packets for the controller must not displace replies. Without privileges, the system's
        // limit applies.
        if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BYTES).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BYTES)?;
        }
        Ok(Self { socket: Some(socket) })
    }

    /// Returns a link to no device.
    #[must_use]
    pub fn closed() -> Self {
        Self { socket: None }
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
        // The session repeats a request that the system did not accept.
        let _ = self.socket.as_ref().map(|socket| socket.send(datagram));
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let socket = self.socket.as_ref()?;
        // A longer datagram is cut, and then refused because of its length.
        let mut buffer = [0; MESSAGE_BYTES_MAX + 1];
        for _ in 0..ERRORS_MAX {
            match socket.recv(&mut buffer) {
                Ok(length) => return Some(buffer[..length].to_vec()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                // No device listened when an earlier datagram arrived.
                Err(_) => {}
            }
        }
        None
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
    }

    #[test]
    fn a_closed_link_has_no_descriptor() {
        let mut link = UdpLink::closed();
        link.send(b"nothing");
        assert!(link.receive().is_none() && link.descriptor().is_none());
    }
}
