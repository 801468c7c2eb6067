// SPDX-License-Identifier: Apache-2.0
//! Statistics of ports (section 7.3.5.6) and queues (7.3.5.8), and descriptions of ports (7.3.5.7). All bits
//! of an unsupported counter are set.

use super::kind;
use super::parts::private::Coded;
use crate::bytes::{Put, Reader, duration, put_duration};
use crate::error::DecodeError;
use crate::port::PortDescription;
use flow::{Nanos, PortNo, QueueId};

/// Statistics of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortStats {
    /// Port number.
    pub port: PortNo,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets that were dropped instead of sent.
    pub tx_dropped: u64,
    /// Receive errors of all kinds.
    pub rx_errors: u64,
    /// Transmit errors of all kinds.
    pub tx_errors: u64,
    /// Frame alignment errors.
    pub rx_frame_errors: u64,
    /// Receive overruns.
    pub rx_over_errors: u64,
    /// CRC errors.
    pub rx_crc_errors: u64,
    /// Collisions.
    pub collisions: u64,
    /// Time since the port was added.
    pub duration_ns: Nanos,
}

impl Coded for PortStats {
    const KIND: u16 = kind::PORT_STATS;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let port = r.u32()?;
        r.skip(4)?;
        Ok(Self {
            port: PortNo(port),
            rx_packets: r.u64()?,
            tx_packets: r.u64()?,
            rx_bytes: r.u64()?,
            tx_bytes: r.u64()?,
            rx_dropped: r.u64()?,
            tx_dropped: r.u64()?,
            rx_errors: r.u64()?,
            tx_errors: r.u64()?,
            rx_frame_errors: r.u64()?,
            rx_over_errors: r.u64()?,
            rx_crc_errors: r.u64()?,
            collisions: r.u64()?,
            duration_ns: duration(r)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.port.0);
        out.zeros(4);
        for counter in [
            self.rx_packets,
            self.tx_packets,
            self.rx_bytes,
            self.tx_bytes,
            self.rx_dropped,
            self.tx_dropped,
            self.rx_errors,
            self.tx_errors,
            self.rx_frame_errors,
            self.rx_over_errors,
            self.rx_crc_errors,
            self.collisions,
        ] {
            out.put_u64(counter);
        }
        put_duration(out, self.duration_ns);
    }
}

/// Statistics of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueStats {
    /// Port of the queue.
    pub port: PortNo,
    /// Queue number.
    pub queue: QueueId,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Number of packets dropped because the queue was full.
    pub tx_errors: u64,
    /// Time since the queue was added.
    pub duration_ns: Nanos,
}

impl Coded for QueueStats {
    const KIND: u16 = kind::QUEUE;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            port: PortNo(r.u32()?),
            queue: QueueId(r.u32()?),
            tx_bytes: r.u64()?,
            tx_packets: r.u64()?,
            tx_errors: r.u64()?,
            duration_ns: duration(r)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.port.0);
        out.put_u32(self.queue.0);
        out.put_u64(self.tx_bytes);
        out.put_u64(self.tx_packets);
        out.put_u64(self.tx_errors);
        put_duration(out, self.duration_ns);
    }
}

impl Coded for PortDescription {
    const KIND: u16 = kind::PORT_DESC;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode(r)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }
}
