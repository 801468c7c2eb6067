// SPDX-License-Identifier: Apache-2.0
//! Experiments with the port cache in virtual time: hit rates and throughput of a switch in a fat tree, by
//! cache size, queue size, packet length, service time and routing policy.
//!
//! The real worker with its port cache forwards the packets. The worker itself takes no virtual time, as the
//! port processors of the thesis forward at the rate of their links. Only searches take time.
//!
//! Prints one JSON object per experiment. `lab/port_cache/figures.py` draws them.

mod cell;
mod line;
mod traffic;
mod tree;

use cell::{Cell, Input, Mode, Setting, VictimPolicy, run};
use clap::{Parser, ValueEnum};
use std::error::Error;
use std::io::Write;
use traffic::Traffic;
use tree::{Position, Routing};

/// Sizes of the cache.
const CACHES: [u16; 5] = [8, 16, 32, 64, 128];
/// Sizes of the queue.
const QUEUES: [u16; 6] = [0, 8, 16, 32, 64, 128];
/// Packet lengths in bytes.
const LENGTHS: [u16; 3] = [64, 512, 1_500];
/// Service times in nanoseconds.
const SERVICES_NS: [u64; 4] = [1_000, 10_000, 100_000, 1_000_000];
/// Usual service time in nanoseconds.
const USUAL_NS: u64 = 10_000;

/// Runs the experiments of the thesis: all parts, unless an option selects one.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Duration of an experiment with 64-byte packets in virtual milliseconds, with the warm-up.
    #[arg(long, default_value_t = 90.0)]
    millis: f64,
    /// Part of the duration that is not counted, in virtual milliseconds.
    #[arg(long, default_value_t = 30.0)]
    warm_up: f64,
    /// Number of sources per host.
    #[arg(long, default_value_t = 200)]
    sources: usize,
    /// Unit of the intervals between packets of a source in microseconds, for packets of 64 bytes.
    #[arg(long, default_value_t = 2.0)]
    interval_unit: f64,
    /// Unit of the ON and OFF periods in microseconds.
    #[arg(long, default_value_t = 100.0)]
    period_unit: f64,
    /// One in this many entries of a cache may be pending.
    #[arg(long, default_value_t = 4)]
    pending_part: u16,
    /// Number of unserved searches up to which the searcher also takes packets of flows that cannot be
    /// pending.
    #[arg(long, default_value_t = 64)]
    searches: u32,
    /// Run only experiments with this cache size.
    #[arg(long)]
    cache: Option<u16>,
    /// Run only experiments with this packet length in bytes.
    #[arg(long)]
    bytes: Option<u16>,
    /// Seed of the traffic.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Cache and queue sizes by packet length.
    Sizes,
    /// Cache and queue sizes by service time, with 64-byte packets.
    Services,
    /// Routing policies.
    Routing,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    for routing in Routing::ALL {
        for bytes in LENGTHS {
            let settings = settings(&arguments, routing, bytes);
            if settings.is_empty() {
                continue;
            }
            let (span_ns, warm_up_ns) = (arguments.millis * 1e6, arguments.warm_up * 1e6);
            let traffic = Traffic {
                routing,
                bytes,
                span_ns,
                sources: arguments.sources,
                interval_unit_ns: arguments.interval_unit * 1e3,
                period_unit_ns: arguments.period_unit * 1e3,
                seed: arguments.seed,
            };
            let sent = traffic.send();
            for position in Position::ALL {
                let input = Input::new(sent.arrivals(position), &traffic);
                for setting in &settings {
                    let counts = run(&input, setting, warm_up_ns, span_ns)?;
                    let cell = Cell { position, routing, bytes, setting: *setting, counts };
                    writeln!(out, "{}", serde_json::to_string(&cell)?)?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the settings that are run with this traffic.
fn settings(arguments: &Arguments, routing: Routing, bytes: u16) -> Vec<Setting> {
    let Arguments { part, pending_part, searches, .. } = *arguments;
    let is_part = |it| part.is_none_or(|part| part == it);
    let setting = |service_ns, cache, queue| Setting {
        mode: Mode::Nonblocking,
        service_ns,
        cache,
        pending_part,
        searches,
        victim: VictimPolicy::Clock,
        queue,
    };
    // A port that is blocked has no packets that wait in its queue.
    let blocking = |service_ns, cache| Setting { mode: Mode::Blocking, ..setting(service_ns, cache, 0) };
    let sweep = move |service_ns| {
        CACHES.into_iter().flat_map(move |cache| {
            let queued = QUEUES.into_iter().map(move |queue| setting(service_ns, cache, queue));
            queued.chain([blocking(service_ns, cache)])
        })
    };
    let mut all = Vec::new();
    if is_part(Part::Sizes) && routing == Routing::Ecmp {
        all.extend(sweep(USUAL_NS));
    }
    if is_part(Part::Services) && routing == Routing::Ecmp && bytes == 64 {
        let others = SERVICES_NS.into_iter().filter(|ns| *ns != USUAL_NS || part == Some(Part::Services));
        all.extend(others.flat_map(sweep));
    }
    if is_part(Part::Routing) && (routing != Routing::Ecmp || part == Some(Part::Routing)) {
        all.extend([(32, 64), (8, 8)].map(|(cache, queue)| setting(USUAL_NS, cache, queue)));
    }
    let is_chosen = |one: Option<u16>, value| one.is_none_or(|one| one == value);
    all.retain(|setting| is_chosen(arguments.cache, setting.cache) && is_chosen(arguments.bytes, bytes));
    all
}
