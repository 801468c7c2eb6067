// SPDX-License-Identifier: Apache-2.0
//! Numbered UDP packets at a high rate, for tests in which none may be lost (`reload_traffic.py` is slower).
//!
//! `numbered send ADDRESS PPS SECONDS` prints the number of packets. `numbered receive ADDRESS` ends when no
//! packet has arrived for a second, and prints a summary as JSON with the longest gap between two packets.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(1);
const PAYLOAD_BYTES: usize = 64;

fn send(address: &str, pps: u64, seconds: u64) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    let (mut number, mut begun, end) = (0_u64, Instant::now(), Instant::now() + Duration::from_secs(seconds));
    let mut packet = [0; PAYLOAD_BYTES];
    let mut before = 0;
    while Instant::now() < end {
        let due = (begun.elapsed().as_secs_f64() * pps as f64) as u64 + before;
        // After a pause of this process, the missed packets are not sent at once.
        if due > number + pps / 200 {
            (begun, before) = (Instant::now(), number);
            continue;
        }
        while number < due {
            packet[..8].copy_from_slice(&number.to_be_bytes());
            // A full queue of the device is no loss of the switch.
            if socket.send(&packet).is_ok() {
                number += 1;
            }
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    println!("{number}");
    Ok(())
}

fn receive(address: &str) -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(QUIET))?;
    eprintln!("listening");
    let (mut received, mut disordered, mut repeated, mut gap) = (0_u64, 0_u64, 0_u64, Duration::ZERO);
    let (mut next, mut last_at) = (0_u64, None::<Instant>);
    let mut seen: Vec<bool> = Vec::new();
    let mut packet = [0; 2 * PAYLOAD_BYTES];
    loop {
        match socket.recv(&mut packet) {
            Ok(8..) => {}
            Ok(_) => continue,
            Err(_) if received == 0 => continue,
            Err(_) => break,
        }
        let now = Instant::now();
        let number = u64::from_be_bytes(packet[..8].try_into()?);
        gap = gap.max(last_at.map_or(Duration::ZERO, |at| now - at));
        last_at = Some(now);
        let at = number as usize;
        if seen.len() <= at {
            seen.resize(at + 1, false);
        }
        repeated += u64::from(std::mem::replace(&mut seen[at], true));
        disordered += u64::from(number < next);
        next = number + 1;
        received += 1;
    }
    let gap_us = gap.as_micros();
    println!(
        "{{\"received\":{received},\"repeated\":{repeated},\"disordered\":{disordered},\"last\":{},\"gap_us\":{gap_us}}}",
        seen.len().saturating_sub(1)
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["send", address, pps, seconds] => send(address, pps.parse()?, seconds.parse()?),
        ["receive", address] => receive(address),
        _ => Err("usage: numbered send ADDRESS PPS SECONDS | receive ADDRESS".into()),
    }
}
