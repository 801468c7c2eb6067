// SPDX-License-Identifier: Apache-2.0
//! Sends and receives numbered UDP packets at a high rate, for tests in which no packet may be lost. Both
//! sides use the rings of the driver `af_packet`, because a system call per packet would take too much CPU
//! time from the switch.
//!
//! `numbered send DEVICE ADDRESS PPS SECONDS` prints the number of packets. `numbered receive DEVICE` ends
//! when no packet has arrived for a second, and prints a summary as JSON: the longest gap between two
//! packets, and for each run of missing numbers its length and when it was noticed (milliseconds since 1970).
//!
//! The destination MAC address belongs to nobody, so that the kernel of the receiver answers no packet.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use frame::{Frame, Stamp};
use port::{Handover, Pools, Queue, Spec};
use std::error::Error;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant, UNIX_EPOCH};

const QUIET: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_micros(500);
const BURST: usize = 64;
/// Packets that may wait for the receiver. The receiver must not lose packets that the switch has sent.
const RECEIVE_RING: usize = 32_768;
const HEADERS_BYTES: usize = 14 + 20 + 8;
const PAYLOAD_BYTES: usize = 64;
const UDP_PORT: u16 = 9000;

/// Opens a device with one queue. `receive_ring` is [`Spec::receive_ring`].
fn open(device: &str, receive_ring: Option<usize>) -> Result<Box<dyn Queue>, Box<dyn Error>> {
    let mut queues = port::open(&Spec {
        number: 1,
        name: device.into(),
        driver: "af_packet".into(),
        device: device.into(),
        queues: 1,
        outstanding_bytes: usize::MAX,
        receive_ring,
        handover: Handover::Never,
    })?;
    Ok(queues.remove(0))
}

/// Returns a packet to this address with the number 0.
fn template(to: Ipv4Addr) -> [u8; HEADERS_BYTES + PAYLOAD_BYTES] {
    let mut packet = [0; HEADERS_BYTES + PAYLOAD_BYTES];
    packet[..14].copy_from_slice(&[2, 0, 0, 0, 0x77, 2, 2, 0, 0, 0, 0x77, 1, 8, 0]);
    let ip_bytes = (20 + 8 + PAYLOAD_BYTES) as u16;
    packet[14] = 0x45;
    packet[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
    packet[22..24].copy_from_slice(&[64, 17]);
    packet[26..30].copy_from_slice(&[10, 0, 0, 1]);
    packet[30..34].copy_from_slice(&to.octets());
    let sum: u32 = packet[14..34].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet[34..36].copy_from_slice(&UDP_PORT.to_be_bytes());
    packet[36..38].copy_from_slice(&UDP_PORT.to_be_bytes());
    packet[38..40].copy_from_slice(&((8 + PAYLOAD_BYTES) as u16).to_be_bytes());
    packet
}

/// Returns the number of a packet, or `None` if another program has sent it.
fn number_of(packet: &[u8]) -> Option<u64> {
    let ours = packet.get(12..14)? == [8, 0] && packet.get(36..38)? == UDP_PORT.to_be_bytes();
    let number = packet.get(HEADERS_BYTES..HEADERS_BYTES + 8)?.try_into().ok()?;
    ours.then(|| u64::from_be_bytes(number))
}

fn send(device: &str, to: &str, pps: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let mut queue = open(device, None)?;
    let mut packet = template(to.parse()?);
    let (mut number, mut begun, end) = (0_u64, Instant::now(), Instant::now() + Duration::from_secs(seconds));
    let mut before = 0;
    let (mut frames, mut done) = (Vec::new(), Vec::new());
    while Instant::now() < end {
        let due = (begun.elapsed().as_secs_f64() * pps as f64) as u64 + before;
        // After a pause of this process, the missed packets are not sent at once.
        if due > number + pps / 100 {
            (begun, before) = (Instant::now(), number);
            continue;
        }
        while number < due {
            for _ in 0..(due - number).min(BURST as u64) {
                packet[HEADERS_BYTES..HEADERS_BYTES + 8].copy_from_slice(&number.to_be_bytes());
                frames.push(Frame::from_bytes(&packet));
                number += 1;
            }
            while !frames.is_empty() {
                queue.transmit(&mut frames, &mut done);
            }
            done.clear();
        }
        std::thread::sleep(PAUSE);
    }
    println!("{}", queue.statistics().tx_packets);
    Ok(())
}

fn receive(device: &str) -> Result<(), Box<dyn Error>> {
    let mut queue = open(device, Some(RECEIVE_RING))?;
    let mut pools = Pools::new(0, 2 * BURST, 0);
    eprintln!("listening");
    let (mut received, mut disordered, mut repeated, mut gap) = (0_u64, 0_u64, 0_u64, Duration::ZERO);
    let (mut next, mut last_at) = (0_u64, None::<Instant>);
    let mut seen: Vec<bool> = Vec::new();
    let mut losses: Vec<String> = Vec::new();
    let mut burst = Vec::new();
    loop {
        queue.receive(&mut pools, &mut burst, BURST, Stamp::NONE);
        let now = Instant::now();
        if burst.is_empty() {
            if last_at.is_some_and(|at| now - at > QUIET) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        for frame in burst.drain(..) {
            if let Some(number) = number_of(frame.bytes()) {
                gap = gap.max(last_at.map_or(Duration::ZERO, |at| now - at));
                last_at = Some(now);
                let at = number as usize;
                if seen.len() <= at {
                    seen.resize(at + 1, false);
                }
                repeated += u64::from(std::mem::replace(&mut seen[at], true));
                disordered += u64::from(number < next);
                if number > next {
                    losses.push(format!("[{}, {}]", UNIX_EPOCH.elapsed()?.as_millis(), number - next));
                }
                next = number + 1;
                received += 1;
            }
            let _ = pools.put(frame);
        }
    }
    let (gap_us, dropped) = (gap.as_micros(), queue.statistics().named_drops().map(|(_, n)| n).sum::<u64>());
    println!(
        "{{\"received\":{received},\"repeated\":{repeated},\"disordered\":{disordered},\"dropped\":{dropped},\
         \"gap_us\":{gap_us},\"losses\":[{}]}}",
        losses.join(",")
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["send", device, to, pps, seconds] => send(device, to, pps.parse()?, seconds.parse()?),
        ["receive", device] => receive(device),
        _ => Err("usage: numbered send DEVICE ADDRESS PPS SECONDS | receive DEVICE".into()),
    }
}
