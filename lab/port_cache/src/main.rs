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
/// Service times in nanoseconds apart from the usual one, each with the factor by which its experiments take
/// longer, so that more flows are searched.
const SERVICES: [(u64, f64); 3] = [(1_000, 1.0), (100_000, 4.0), (1_000_000, 8.0)];
/// How many times as long experiments with longer packets take, because fewer packets arrive.
const LONGER: f64 = 4.0;
/// Usual service time in nanoseconds.
const USUAL_NS: u64 = 10_000;

/// Runs the experiments of the thesis: all parts, unless an option selects one.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Duration of an experiment with 64-byte packets in virtual milliseconds, with the warm-up.
    #[arg(long, default_value_t = 30.0)]
    millis: f64,
    /// Part of the duration that is not counted, in virtual milliseconds.
    #[arg(long, default_value_t = 10.0)]
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

/// Settings of the switch that are run with the same traffic.
#[derive(Debug)]
struct Experiments {
    routing: Routing,
    bytes: u16,
    /// How many times as long as usual the experiments take.
    longer: f64,
    settings: Vec<Setting>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    for Experiments { routing, bytes, longer, settings } in arguments.experiments() {
        let [span_ns, warm_up_ns] = [arguments.millis, arguments.warm_up].map(|ms| ms * 1e6 * longer);
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
    Ok(())
}

impl Arguments {
    /// Returns the chosen experiments.
    fn experiments(&self) -> Vec<Experiments> {
        let is_part = |it| self.part.is_none_or(|part| part == it);
        let mut all = Vec::new();
        for bytes in LENGTHS {
            let longer = if bytes > 64 { LONGER } else { 1.0 };
            if is_part(Part::Sizes) {
                let settings = self.sweep(USUAL_NS);
                all.push(Experiments { routing: Routing::Ecmp, bytes, longer, settings });
            }
            for routing in Routing::ALL {
                if is_part(Part::Routing) && (routing != Routing::Ecmp || self.part.is_some()) {
                    let settings = vec![self.setting(USUAL_NS, 32, 64)];
                    all.push(Experiments { routing, bytes, longer, settings });
                }
            }
        }
        for (service_ns, longer) in SERVICES {
            if is_part(Part::Services) {
                let settings = self.sweep(service_ns);
                all.push(Experiments { routing: Routing::Ecmp, bytes: 64, longer, settings });
            }
        }
        all.iter_mut().for_each(|these| {
            these.settings.retain(|setting| self.cache.is_none_or(|cache| cache == setting.cache));
        });
        all.retain(|these| self.bytes.is_none_or(|bytes| bytes == these.bytes) && !these.settings.is_empty());
        all
    }

    /// Returns the settings for all sizes of the cache and of the queue.
    fn sweep(&self, service_ns: u64) -> Vec<Setting> {
        let all = CACHES.into_iter().flat_map(|cache| {
            let queued = QUEUES.into_iter().map(move |queue| self.setting(service_ns, cache, queue));
            // The packets of a port that is blocked wait in its receive ring, and not in the queue.
            queued.chain([Setting { mode: Mode::Blocking, ..self.setting(service_ns, cache, 0) }])
        });
        all.collect()
    }

    fn setting(&self, service_ns: u64, cache: u16, queue: u16) -> Setting {
        let Self { pending_part, searches, .. } = *self;
        let victim = VictimPolicy::Clock;
        Setting { mode: Mode::Nonblocking, service_ns, cache, pending_part, searches, victim, queue }
    }
}
