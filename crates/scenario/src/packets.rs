// SPDX-License-Identifier: Apache-2.0
//! Packets of a traffic class, which are generated from templates or read from a capture.

use config::packet::{Masks, Template};
use fastrand::Rng;
use flow::PortNo;
use port::LARGE_FRAME_BYTES;
use sim::arrivals::Capture;
use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use wire::capture::CaptureReader;

/// Maximum number of flows of a traffic class.
pub const FLOWS: usize = 1_000_000;

/// Range of packet lengths on the wire in bytes, including the FCS.
pub const BYTES: RangeInclusive<i64> = 64..=9_018;

/// Length of the FCS in bytes.
const FCS_BYTES: usize = 4;

/// Maximum total size in bytes of the packets of a traffic class.
const ALL_BYTES: usize = 256 * 1_024 * 1_024;
/// Maximum number of packets in a capture.
const CAPTURED: usize = 4_000_000;

/// Maximum number of attempts per flow to generate a packet that differs from all others.
const ATTEMPTS: usize = 64;

/// Packets of a traffic class.
#[derive(Debug)]
pub struct Packets {
    /// One packet per flow.
    pub flows: Arc<[Vec<u8>]>,
    /// Order and times of captured packets.
    pub capture: Option<Arc<Capture>>,
    /// Ingress port of the templates, or `None` if they give none.
    pub in_port: Option<PortNo>,
}

/// Generates `flows` packets of each template. Bits outside the masks are random.
pub fn made(templates: &[String], flows: usize, bytes: usize, seed: u64) -> Result<Packets, String> {
    if templates.len().saturating_mul(flows) > FLOWS {
        return Err(format!(
            "are {} templates of {flows} flows each; the maximum is {FLOWS} flows",
            templates.len()
        ));
    }
    let mut rng = Rng::with_seed(seed);
    let (mut all, mut seen, mut in_port) = (Vec::new(), HashSet::new(), None);
    let mut bytes_left = ALL_BYTES;
    for text in templates {
        let wrong = |why: String| format!("\"{text}\": {why}");
        let template =
            Template::parse(text, &|_| None, Masks::Allowed).map_err(|error| wrong(error.to_string()))?;
        if let (Some(one), Some(other)) = (in_port, template.in_port)
            && one != other
        {
            return Err(wrong(format!(
                "in_port={other} differs from in_port={one} of another template; put it into a separate [[traffic]]"
            )));
        }
        in_port = in_port.or(template.in_port);
        let open = template.open_bits();
        if open < usize::BITS && flows > 1 << open {
            let problem = format!(
                "has {open} open bits, too few for {flows} flows; leave more open, such as nw_src=10.0.0.0/16"
            );
            return Err(wrong(problem));
        }
        let mut attempts = flows.saturating_mul(ATTEMPTS);
        let until = all.len() + flows;
        while all.len() < until {
            attempts = attempts.checked_sub(1).ok_or_else(|| {
                wrong(format!("gave fewer than {flows} different packets; leave more bits open"))
            })?;
            let frame = template.frame(&mut || rng.u128(..), bytes - FCS_BYTES);
            let frame = frame.map_err(|error| wrong(error.to_string()))?;
            if seen.insert(frame.clone()) {
                bytes_left = bytes_left.checked_sub(frame.len()).ok_or_else(too_much)?;
                all.push(frame);
            }
        }
    }
    Ok(Packets { flows: all.into(), capture: None, in_port })
}

fn too_much() -> String {
    format!("need more than {ALL_BYTES} bytes in total; use fewer or shorter packets")
}

/// Reads the packets of a capture. Equal packets belong to one flow.
pub fn captured(path: &Path) -> Result<Packets, String> {
    let refuse = |problem: String| format!("{}: {problem}", path.display());
    // Opening a pipe would block until another process opens it for writing.
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(refuse("is not a regular file".into()));
    }
    let mut reader = CaptureReader::open(path).map_err(|error| refuse(error.to_string()))?;
    let (mut flows, mut places) = (Vec::new(), HashMap::new());
    let (mut order, mut times) = (Vec::new(), Vec::new());
    let mut bytes_left = ALL_BYTES;
    while let Some(packet) = reader.next_packet().map_err(|error| refuse(error.to_string()))? {
        let number = order.len() + 1;
        if packet.bytes.is_empty() || packet.bytes.len() > LARGE_FRAME_BYTES {
            let length = packet.bytes.len();
            return Err(refuse(format!(
                "packet {number} has {length} bytes; a frame has 1 to {LARGE_FRAME_BYTES}"
            )));
        }
        if number > CAPTURED {
            return Err(refuse(format!("has more than {CAPTURED} packets; use a part of it")));
        }
        let place = match places.get(packet.bytes) {
            Some(place) => *place,
            None => {
                bytes_left = bytes_left.checked_sub(packet.bytes.len()).ok_or_else(|| refuse(too_much()))?;
                let place = flows.len() as u32;
                flows.push(packet.bytes.to_vec());
                places.insert(packet.bytes.to_vec(), place);
                place
            }
        };
        order.push(place);
        times.push(packet.timestamp_ns);
    }
    if flows.is_empty() {
        return Err(refuse("has no packet".into()));
    }
    let mut gaps_ns: Vec<f64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect();
    // When the capture is repeated, the mean gap separates its last and its first packet.
    let mean_ns = gaps_ns.iter().sum::<f64>() / gaps_ns.len().max(1) as f64;
    gaps_ns.push(mean_ns);
    let capture = Capture { order: order.into(), gaps_ns: gaps_ns.into() };
    Ok(Packets { flows: flows.into(), capture: Some(Arc::new(capture)), in_port: None })
}
