// SPDX-License-Identifier: Apache-2.0
//! Controller that sends all flow-mods, then one barrier.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use flow::syntax::{ParseOptions, parse_flows};
use openflow::flow_mod::FlowModMessage;
use openflow::{HEADER_BYTES, Hello, Message, decode, encode};

/// Timeout for every operation.
const LONG: Duration = Duration::from_secs(60);
const BARRIER: u32 = u32::MAX;

/// Encoded flow-mods and a barrier.
pub struct Batch(Vec<u8>);

impl Batch {
    /// Encodes the flows in the text of a flow file.
    pub fn new(flows: &str) -> Result<Self, Box<dyn Error>> {
        let mut bytes = Vec::new();
        for (xid, flow) in (1..).zip(parse_flows(flows, ParseOptions::default())) {
            encode(&Message::FlowMod(FlowModMessage { flow: flow?, buffer_id: None }), xid, &mut bytes)?;
        }
        encode(&Message::BarrierRequest, BARRIER, &mut bytes)?;
        Ok(Self(bytes))
    }

    /// Sends the batch on a new connection to a switch's unix socket. Returns the time from the first byte to
    /// the barrier's reply.
    pub fn send(&self, socket: &Path) -> Result<Duration, Box<dyn Error>> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(LONG))?;
        stream.set_write_timeout(Some(LONG))?;
        let mut hello = Vec::new();
        encode(&Message::Hello(Hello::supported()), 0, &mut hello)?;
        stream.write_all(&hello)?;
        receive(&mut stream)?;
        let start = Instant::now();
        stream.write_all(&self.0)?;
        loop {
            match receive(&mut stream)? {
                (BARRIER, Message::BarrierReply) => return Ok(start.elapsed()),
                (xid, Message::Error(error)) => {
                    return Err(format!("the switch refused flow-mod {xid}: {}", error.code).into());
                }
                _ => {}
            }
        }
    }
}

fn receive(stream: &mut UnixStream) -> Result<(u32, Message), Box<dyn Error>> {
    let mut bytes = vec![0; HEADER_BYTES];
    stream.read_exact(&mut bytes)?;
    bytes.resize(u16::from_be_bytes([bytes[2], bytes[3]]).max(HEADER_BYTES as u16).into(), 0);
    stream.read_exact(&mut bytes[HEADER_BYTES..])?;
    let xid = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    Ok((xid, decode(&bytes).map_err(|error| error.to_string())?))
}
