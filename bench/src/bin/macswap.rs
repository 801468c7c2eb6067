// SPDX-License-Identifier: Apache-2.0
//! Swaps the MAC addresses of packets between two DPDK ports, as testpmd does in mode macswap. The comparison
//! shows the cost of Shunt's frames and port drivers alone. `bench/peers/run.py` starts this program.
//!
//! Packets are received, sent and freed as in a worker.
//!
//! The program prints `ready` when both ports are open. It answers each input line with the numbers of
//! packets received and sent so far.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use clap::Parser;
use flow::Limits;
use frame::{Frame, Stamp};
use port::dpdk::{self, DpdkSettings};
use port::{Pools, Queue, Spec};

/// Length of a MAC address in bytes.
const MAC_BYTES: usize = 6;

/// Number of small frames for packets that the driver copies. The benchmark's packets stay in their mbufs.
const SMALL_FRAMES: usize = 64;

/// Swaps the MAC addresses of all packets between two DPDK ports.
#[derive(Debug, Parser)]
struct Arguments {
    /// Device string of the port that receives.
    from: String,
    /// Device string of the port that sends.
    to: String,
    /// Number of packet buffers per port.
    #[arg(long, default_value_t = 32_768)]
    mbufs: u32,
}

/// Packet counts that the forwarding thread publishes after each burst.
#[derive(Debug, Default)]
struct Counts {
    received: AtomicU64,
    sent: AtomicU64,
    stop: AtomicBool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let eal = ["--in-memory", "--no-pci", "--no-telemetry", "--log-level=error"].map(String::from).to_vec();
    dpdk::configure(DpdkSettings { eal, mbufs: arguments.mbufs, ..DpdkSettings::default() });
    let (from, to) = (open(1, &arguments.from)?, open(2, &arguments.to)?);
    let counts = Arc::new(Counts::default());
    let shared = Arc::clone(&counts);
    let worker = thread::Builder::new().name("worker-0".into()).spawn(move || forward(from, to, &shared))?;
    let mut output = io::stdout().lock();
    writeln!(output, "ready")?;
    for line in io::stdin().lock().lines() {
        line?;
        let [received, sent] = [&counts.received, &counts.sent].map(|count| count.load(Ordering::Relaxed));
        writeln!(output, "{received} {sent}")?;
    }
    counts.stop.store(true, Ordering::Relaxed);
    worker.join().map_err(|_| "the forwarding thread has panicked")?;
    Ok(())
}

fn open(number: u32, device: &str) -> Result<Box<dyn Queue>, Box<dyn Error>> {
    let spec = Spec {
        number,
        name: format!("p{number}"),
        driver: dpdk::NAME.into(),
        device: device.into(),
        queues: 1,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: port::Handover::Never,
    };
    port::open(&spec)?.pop().ok_or_else(|| format!("port {number} has no queue").into())
}

/// Forwards until the program ends.
fn forward(mut from: Box<dyn Queue>, mut to: Box<dyn Queue>, counts: &Counts) {
    let mut pools = Pools::new(0, SMALL_FRAMES, 0);
    let [mut burst, mut done] = [(); 2].map(|()| Vec::with_capacity(Limits::BURST_PACKETS));
    let (mut received, mut sent) = (0, 0);
    while !counts.stop.load(Ordering::Relaxed) {
        received += from.receive(&mut pools, &mut burst, Limits::BURST_PACKETS, Stamp::NONE) as u64;
        burst.iter_mut().for_each(swap);
        while !burst.is_empty() && !counts.stop.load(Ordering::Relaxed) {
            sent += to.transmit(&mut burst, &mut done) as u64;
        }
        for frame in done.drain(..) {
            // A frame of another pool returns to its own pool when it is dropped.
            drop(pools.put(frame));
        }
        counts.received.store(received, Ordering::Relaxed);
        counts.sent.store(sent, Ordering::Relaxed);
    }
}

#[inline]
fn swap(frame: &mut Frame) {
    if let Some(macs) = frame.bytes_mut().first_chunk_mut::<{ 2 * MAC_BYTES }>() {
        let before = *macs;
        macs[..MAC_BYTES].copy_from_slice(&before[MAC_BYTES..]);
        macs[MAC_BYTES..].copy_from_slice(&before[..MAC_BYTES]);
    }
}
