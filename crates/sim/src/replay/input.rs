// SPDX-License-Identifier: Apache-2.0
//! Reads the capture to replay: first scans the whole file, then returns its packets in bursts.

use crate::replay::{Options, ReplayError};
use flow::{Nanos, PortNo};
use pipeline::BURST;
use port::LARGE_FRAME_BYTES;
use std::collections::BTreeSet;
use wire::capture::{CaptureError, CaptureReader, CapturedPacket};

/// Result of the first pass.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Ingress ports of the packets.
    pub ports: BTreeSet<PortNo>,
    /// Time of the first packet.
    pub start_ns: Nanos,
    /// Description of the damage after the last complete packet, if there is any.
    pub damage: Option<String>,
}

/// Reads all packets, so that nothing is written for a capture that cannot be replayed. A capture without a
/// complete packet is an error.
pub(super) fn survey(options: &Options) -> Result<Survey, ReplayError> {
    // Opening a pipe would block until it has a writer. If the metadata cannot be read, `open` below reports
    // the error.
    if std::fs::metadata(&options.capture).is_ok_and(|there| !there.is_file()) {
        return Err(ReplayError::NoFile(options.capture.clone()));
    }
    let mut reader = open(options)?;
    let mut survey = Survey::default();
    let mut start_ns = None;
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                start_ns.get_or_insert(packet.timestamp_ns);
                survey.ports.insert(options.port_of(packet.interface));
            }
            Ok(None) => break,
            Err(damage @ CaptureError::Packet { .. }) if start_ns.is_none() => {
                return Err(failed(options, damage));
            }
            Err(damage @ CaptureError::Packet { .. }) => survey.damage = Some(damage.to_string()),
            Err(source) => return Err(failed(options, source)),
        }
    }
    survey.start_ns = Nanos(start_ns.unwrap_or(0));
    Ok(survey)
}

pub(super) fn open(options: &Options) -> Result<CaptureReader, ReplayError> {
    CaptureReader::open(&options.capture).map_err(|source| failed(options, source))
}

fn failed(options: &Options, source: CaptureError) -> ReplayError {
    ReplayError::Capture { path: options.capture.clone(), source }
}

/// A received packet.
#[derive(Debug)]
pub(super) struct Arrival {
    pub timestamp_ns: Nanos,
    /// Number of bytes that were on the wire but were not captured.
    pub missing: u32,
    pub bytes: Vec<u8>,
}

/// Packets of one ingress port that are forwarded together. The output of a port can then be sorted by packet
/// number.
#[derive(Debug, Default)]
pub(super) struct Burst {
    pub in_port: PortNo,
    /// Number of the first packet, counted from the start of the replay.
    pub first: u64,
    pub packets: Vec<Arrival>,
}

impl Burst {
    /// Returns the time of the first packet.
    pub fn start_ns(&self) -> Nanos {
        self.packets.first().map_or(Nanos(0), |packet| packet.timestamp_ns)
    }

    /// Returns whether a packet may join the burst. No timeout may be due between the first packet of the
    /// burst and this packet.
    pub fn takes(&self, options: &Options, packet: &CapturedPacket<'_>, deadline: Option<Nanos>) -> bool {
        let Some(first) = self.packets.first() else { return true };
        let at = Nanos(packet.timestamp_ns);
        self.packets.len() < BURST
            && self.in_port == options.port_of(packet.interface)
            && at >= first.timestamp_ns
            && at - first.timestamp_ns <= options.burst_window_ns
            && deadline.is_none_or(|deadline| at < deadline)
    }

    pub fn push(&mut self, options: &Options, packet: &CapturedPacket<'_>) {
        self.in_port = options.port_of(packet.interface);
        self.packets.push(Arrival {
            timestamp_ns: Nanos(packet.timestamp_ns),
            missing: packet.original_len.saturating_sub(packet.bytes.len() as u32),
            bytes: packet.bytes.to_vec(),
        });
    }

    /// Returns the packet with this number.
    pub fn packet(&self, number: u64) -> Option<&Arrival> {
        self.packets.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub fn next(&mut self) {
        self.first += self.packets.len() as u64;
        self.packets.clear();
    }
}

/// Returns whether a packet is longer than any frame buffer.
pub(super) fn is_oversized(packet: &CapturedPacket<'_>) -> bool {
    packet.bytes.len() > LARGE_FRAME_BYTES
}
