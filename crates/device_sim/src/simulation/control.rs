// SPDX-License-Identifier: Apache-2.0
//! The path between daemon and device: datagrams of a socket on one side, Ethernet frames on the other.
//!
//! The device's filter compares the addresses of frames with [`DAEMON`] and [`DEVICE`]. A datagram of the
//! daemon gets these addresses. A datagram of another peer gets another UDP port, so that the filter refuses
//! it.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use device::{Body, DeviceMessage};
use wire::{PacketBuilder, checksum, ethernet, ipv4, udp};

use crate::beat::{self, Beat};
use crate::{ControlCounters, DAEMON, DEVICE};

/// Silence after which another peer may become the daemon. A daemon sends a datagram every half a second.
const DAEMON_TIME: Duration = Duration::from_millis(1_500);
/// Maximum number of frames that wait for the device. Further datagrams wait in the socket.
const FRAMES_MAX: usize = 16;
/// Maximum length of a datagram.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Minimum length of an Ethernet frame without FCS.
const FRAME_BYTES_MIN: usize = 60;
/// Source port of datagrams that are not the daemon's.
const STRANGER_PORT: u16 = 0;

/// The path between daemon and device.
pub(super) struct ControlPath {
    socket: UdpSocket,
    /// The daemon, and the time at which its last datagram arrived.
    daemon: Option<(SocketAddr, Instant)>,
    frames: VecDeque<Vec<u8>>,
    /// Next beat of the first frame.
    at: usize,
    buffer: Vec<u8>,
    pub counters: ControlCounters,
}

impl ControlPath {
    /// Returns a path without a daemon. The socket must not block.
    pub fn new(socket: UdpSocket) -> Self {
        Self {
            socket,
            daemon: None,
            frames: VecDeque::new(),
            at: 0,
            buffer: vec![0; DATAGRAM_BYTES_MAX],
            counters: ControlCounters::default(),
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Returns whether frames wait for the device.
    pub fn has_frames(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Takes datagrams from the socket.
    pub fn receive(&mut self) {
        while self.frames.len() < FRAMES_MAX {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((_, from)) if !from.ip().to_canonical().is_loopback() => self.counters.remote += 1,
                Ok((len, from)) => {
                    let port = if self.is_daemon(from, len) { DAEMON.port } else { STRANGER_PORT };
                    self.frames.push_back(frame_of(&self.buffer[..len], port));
                    self.counters.received += 1;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.counters.failures += u64::from(error.kind() != ErrorKind::WouldBlock);
                    return;
                }
            }
        }
    }

    /// Returns whether a datagram in the buffer is the daemon's. The first peer that says Hello is the
    /// daemon, until it was silent for a while: two daemons would take the device from each other.
    fn is_daemon(&mut self, from: SocketAddr, len: usize) -> bool {
        let now = Instant::now();
        let known = self.daemon.filter(|(_, heard)| now.duration_since(*heard) < DAEMON_TIME);
        let is_daemon = match known {
            Some((daemon, _)) => daemon == from,
            None => is_hello(&self.buffer[..len]) || self.daemon.is_some_and(|(daemon, _)| daemon == from),
        };
        if is_daemon {
            self.daemon = Some((from, now));
        }
        is_daemon
    }

    /// Takes the next beat for the device.
    pub fn next_beat(&mut self) -> Option<Beat> {
        let beat = beat::beat(self.frames.front()?, self.at);
        self.at += 1;
        if beat.last {
            self.frames.pop_front();
            self.at = 0;
        }
        Some(beat)
    }

    /// Sends the datagram in a frame of the device.
    pub fn send(&mut self, frame: &[u8]) {
        let Some(datagram) = datagram_of(frame) else {
            self.counters.malformed += 1;
            return;
        };
        let sent = self.daemon.is_some_and(|(daemon, _)| self.socket.send_to(datagram, daemon).is_ok());
        self.counters.sent += u64::from(sent);
        self.counters.lost += u64::from(!sent);
    }
}

fn is_hello(datagram: &[u8]) -> bool {
    matches!(DeviceMessage::decode(datagram), Ok(DeviceMessage { body: Body::Hello { .. }, .. }))
}

/// Returns the frame from the daemon to the device with this datagram.
fn frame_of(datagram: &[u8], source_port: u16) -> Vec<u8> {
    PacketBuilder::ethernet(DEVICE.mac, DAEMON.mac)
        .ipv4(DAEMON.ip, DEVICE.ip)
        .udp(source_port, DEVICE.port)
        .payload(datagram)
        .pad_to(FRAME_BYTES_MIN)
        .build()
}

/// Returns the datagram in a frame from the device to the daemon, or `None` if it is anything else or
/// damaged.
fn datagram_of(frame: &[u8]) -> Option<&[u8]> {
    let ethernet = ethernet::Frame::new_checked(frame).ok()?;
    let is_between = (ethernet.src(), ethernet.dst()) == (DEVICE.mac, DAEMON.mac);
    if !is_between || ethernet.ethertype() != ethernet::IPV4 {
        return None;
    }
    let ip = ipv4::Packet::new_checked(frame.get(ethernet::ETHERNET_BYTES..)?).ok()?;
    let is_between = (ip.src(), ip.dst()) == (DEVICE.ip, DAEMON.ip);
    if !is_between || ip.is_fragment() || ip.proto() != udp::PROTO || !ip.checksum_ok() {
        return None;
    }
    let start = ethernet::ETHERNET_BYTES + ip.header_len();
    let bytes = frame.get(start..ethernet::ETHERNET_BYTES + usize::from(ip.total_len()))?;
    let header = udp::Datagram::new_checked(bytes).ok()?;
    let is_between = (header.src_port(), header.dst_port()) == (DEVICE.port, DAEMON.port);
    let pseudo = checksum::pseudo_v4(DEVICE.ip, DAEMON.ip, udp::PROTO, bytes.len() as u32);
    let is_whole = usize::from(header.length()) == bytes.len() && header.checksum() != 0;
    if !is_between || !is_whole || checksum::add(pseudo, checksum::sum(bytes)) != 0xffff {
        return None;
    }
    bytes.get(8..)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frame with which the device answers.
    fn answer(datagram: &[u8]) -> Vec<u8> {
        PacketBuilder::ethernet(DAEMON.mac, DEVICE.mac)
            .ipv4(DEVICE.ip, DAEMON.ip)
            .udp(DEVICE.port, DAEMON.port)
            .payload(datagram)
            .pad_to(FRAME_BYTES_MIN)
            .build()
    }

    #[test]
    fn a_damaged_frame_has_no_datagram() {
        for len in [0, 1, 17, 18, 600] {
            let datagram: Vec<u8> = (0..len).map(|at| at as u8).collect();
            let frame = answer(&datagram);
            assert_eq!(datagram_of(&frame), Some(&datagram[..]));
            let end = 42 + len;
            for at in 0..end {
                // TTL, type of service and ID are covered by the checksum of the header.
                let mut damaged = frame.clone();
                damaged[at] ^= 0x10;
                assert_eq!(datagram_of(&damaged), None, "byte {at} of {len}");
            }
            for cut in 0..end {
                assert_eq!(datagram_of(&frame[..cut]), None, "{cut} of {len}");
            }
        }
    }

    #[test]
    fn frames_of_the_daemon_have_other_addresses() {
        assert_eq!(datagram_of(&frame_of(b"text", DAEMON.port)), None);
        let longest = frame_of(&vec![7; DATAGRAM_BYTES_MAX], DAEMON.port);
        assert_eq!(longest.len(), 42 + DATAGRAM_BYTES_MAX);
    }

    #[test]
    fn only_a_whole_hello_is_one() {
        let hello =
            DeviceMessage { id: 7, body: Body::Hello { ppus: 0, entries: 0 } }.encode().unwrap_or_default();
        assert!(is_hello(&hello));
        assert!(!is_hello(&hello[..11]) && !is_hello(&[]));
        let echo = DeviceMessage { id: 7, body: Body::EchoRequest(vec![0; 4]) }.encode().unwrap_or_default();
        assert!(!is_hello(&echo));
    }
}
