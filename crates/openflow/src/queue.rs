// SPDX-License-Identifier: Apache-2.0
//! QUEUE_GET_CONFIG (section 7.3.6) and its reply.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use flow::{PortNo, QueueId};

const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;
/// Length of a queue without its properties, in bytes.
const QUEUE_BYTES: usize = 16;
/// Length of a rate property in bytes.
const RATE_BYTES: u16 = 16;

/// An egress queue. Rates are in tenths of a percent of the port's rate. A value above 1000 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueDescription {
    /// Queue number.
    pub id: QueueId,
    /// Port of the queue.
    pub port: PortNo,
    /// Guaranteed rate.
    pub min_rate: Option<u16>,
    /// Maximum rate.
    pub max_rate: Option<u16>,
}

/// Queues of one port or of all ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueConfig {
    /// Port of the request.
    pub port: PortNo,
    /// Queues of that port.
    pub queues: Vec<QueueDescription>,
}

impl QueueConfig {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let port = r.u32()?;
        r.skip(4)?;
        let mut queues = Vec::new();
        while !r.is_empty() {
            queues.push(QueueDescription::decode(r)?);
        }
        Ok(Self { port: PortNo(port), queues })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u32(self.port.0);
        out.zeros(4);
        for queue in &self.queues {
            queue.encode(out);
        }
    }
}

impl QueueDescription {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let length = usize::from(r.peek_u16(8)?);
        if length < QUEUE_BYTES {
            return error::BAD_LEN.says(format!("a queue has {length} bytes; the minimum is 16"));
        }
        let mut r = r.part(length, "a queue", error::BAD_LEN)?;
        let (id, port) = (r.u32()?, r.u32()?);
        r.skip(8)?;
        let mut queue = Self { id: QueueId(id), port: PortNo(port), min_rate: None, max_rate: None };
        while !r.is_empty() {
            let (kind, length) = (r.u16()?, r.u16()?);
            if length < 8 {
                return error::BAD_LEN.says(format!("a queue property has {length} bytes; the minimum is 8"));
            }
            let mut property = r.part(usize::from(length) - 4, "a queue property", error::BAD_LEN)?;
            property.skip(4)?;
            match kind {
                MIN_RATE => queue.min_rate = Some(property.u16()?),
                MAX_RATE => queue.max_rate = Some(property.u16()?),
                _ => {}
            }
        }
        Ok(queue)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u32(self.id.0);
        out.put_u32(self.port.0);
        out.zeros(8);
        for (kind, rate) in [(MIN_RATE, self.min_rate), (MAX_RATE, self.max_rate)] {
            if let Some(rate) = rate {
                out.put_u16(kind);
                out.put_u16(RATE_BYTES);
                out.zeros(4);
                out.put_u16(rate);
                out.zeros(6);
            }
        }
        out.patch_length(start + 8, start);
    }
}
