// SPDX-License-Identifier: Apache-2.0
//! The software model of the device behind a UDP socket.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use device::emulator::{DeviceAgent, Emulator, Fate};
use device::message::MESSAGE_BYTES_MAX;

use crate::{LONG, Result};

/// Size of the device.
pub const PPUS: u8 = 4;
pub const ENTRIES: u16 = 512;

/// Work of the device so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Datagrams of the daemon.
    pub commands: u32,
    /// Time in which they were executed and answered.
    pub busy: Duration,
}

/// The device. It works only while one of its methods runs.
pub struct Stub {
    socket: UdpSocket,
    agent: DeviceAgent,
    daemon: Option<SocketAddr>,
    counts: Counts,
}

/// Returns a frame of the flow with this number, from the MAC address 02:01 and the number, to station 2.
fn frame(flow: u32) -> Vec<u8> {
    let [a, b, c, d] = flow.to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 1, 2, 2, 1, a, b, c, d, 0x88, 0xb5];
    frame.resize(60, 0);
    frame
}

impl Stub {
    pub fn new() -> Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_nonblocking(true)?;
        let agent = DeviceAgent::new(Emulator::new(PPUS, ENTRIES));
        Ok(Self { socket, agent, daemon: None, counts: Counts::default() })
    }

    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.socket.local_addr()?)
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Loses all entries.
    pub fn restart(&mut self) {
        self.agent = DeviceAgent::new(Emulator::new(PPUS, ENTRIES));
    }

    /// Executes the datagrams that have arrived.
    pub fn serve(&mut self) -> Result<()> {
        let mut buffer = [0; MESSAGE_BYTES_MAX];
        loop {
            let (length, from) = match self.socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let start = Instant::now();
            self.daemon = Some(from);
            self.agent.receive(true, &buffer[..length]);
            self.send()?;
            self.counts.commands += 1;
            self.counts.busy += start.elapsed();
        }
    }

    fn send(&mut self) -> Result<()> {
        while let Some(datagram) = self.agent.next_datagram() {
            if let Some(daemon) = self.daemon {
                self.socket.send_to(&datagram, daemon)?;
            }
        }
        Ok(())
    }

    pub fn serve_for(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.serve()?;
        }
        Ok(())
    }

    pub fn serve_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) -> Result<()> {
        let end = Instant::now() + LONG;
        while !is_so(self) {
            self.serve()?;
            if Instant::now() > end {
                return Err(format!("timed out, waiting until {what}").into());
            }
        }
        Ok(())
    }

    /// Receives a frame of a flow at port 1.
    pub fn receive(&mut self, flow: u32) -> Result<()> {
        self.agent.receive_frame(1, &frame(flow));
        self.send()
    }

    /// Receives a frame of station 2 at port 2.
    pub fn receive_from_station(&mut self) -> Result<()> {
        let mut bytes = frame(0);
        bytes[..12].copy_from_slice(&[2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 1, 2]);
        self.agent.receive_frame(2, &bytes);
        self.send()
    }

    /// Returns whether an entry forwards the flow. The frame that this needs is not sent anywhere.
    pub fn forwards(&mut self, flow: u32) -> bool {
        matches!(self.agent.device.process(1, &frame(flow)), Fate::Port { .. })
    }

    /// Returns whether the daemon has written the last row of each table.
    pub fn is_programmed(&self) -> bool {
        (0..PPUS).all(|ppu| self.agent.device.entry(ppu, ENTRIES - 1).is_some_and(|entry| entry.valid))
    }

    /// Returns whether packets without an entry go to the controller.
    pub fn has_miss_entry(&mut self) -> bool {
        matches!(self.agent.device.process(1, &frame(u32::MAX)), Fate::Controller { .. })
    }
}
