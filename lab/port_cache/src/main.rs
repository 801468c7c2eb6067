// SPDX-License-Identifier: Apache-2.0
//! Experiments with the port cache in virtual time: hit rates and throughput of a switch in a fat tree, by
//! cache size, queue size, packet length, service time and routing policy.
//!
//! The real worker with its port cache forwards the packets. The worker itself takes no virtual time, as the
//! port processors of the thesis forward at the rate of their links. Only searches take time.
//!
//! Prints one JSON object per experiment. `lab/port_cache/figures.py` draws them.

mod captures;
mod cell;
mod line;
mod traffic;
mod tree;
mod whole_tree;

use cell::{Cell, Input, Mode, Part, Setting, VictimPolicy, run};
use clap::Parser;
use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use traffic::Traffic;
use tree::{Position, Routing};

/// Sizes of the cache.
const CACHES: [u16; 5] = [8, 16, 32, 64, 128];
/// Sizes of the queue.
const QUEUES: [u16; 6] = [0, 8, 16, 32, 64, 128];
/// Packet lengths in bytes.
const LENGTHS: [u16; 3] = [64, 512, 1_500];
/// Service times in nanoseconds, apart from the usual one.
const SERVICES: [u64; 3] = [1_000, 100_000, 1_000_000];
/// Usual service time in nanoseconds.
const USUAL_NS: u64 = 10_000;
/// Usual number of sources per host, share of pending entries, and number of unserved searches.
const SOURCES: usize = 200;
const PENDING_PART: u16 = 4;
const SEARCHES: u32 = sim::network::UNSERVED_MAX;

/// Runs the experiments of the thesis: all parts, unless an option selects one.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only this part.
    #[arg(long)]
    part: Option<Part>,
    /// Run only the captures in this folder.
    #[arg(long)]
    captures: Option<PathBuf>,
    /// Factor of all durations. Below 1, some experiments end before the answers of their first searches.
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
    /// Unit of the intervals between packets of a source in microseconds, for packets of 64 bytes.
    #[arg(long, default_value_t = 2.0)]
    interval_unit: f64,
    /// Unit of the ON and OFF periods in microseconds.
    #[arg(long, default_value_t = 100.0)]
    period_unit: f64,
    /// Seed of the traffic.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Settings of the switch that are run with the same traffic.
#[derive(Debug)]
struct Experiments {
    part: Part,
    routing: Routing,
    bytes: u16,
    sources: usize,
    duration: Duration,
    settings: Vec<Setting>,
}

/// Duration of an experiment in virtual milliseconds.
#[derive(Clone, Copy, Debug)]
struct Duration {
    warm_up: f64,
    counted: f64,
}

impl Duration {
    /// Returns a duration in which the searcher ends at least 1,000 searches, with a warm-up that is longer
    /// than the time of an answer: up to 128 pending flows and 64 other searches come before it.
    fn of(bytes: u16, service_ns: u64) -> Self {
        match service_ns {
            1_000_000.. => Self { warm_up: 250.0, counted: 1_250.0 },
            100_000.. => Self { warm_up: 40.0, counted: 160.0 },
            // Fewer of the longer packets arrive.
            _ if bytes > 64 => Self { warm_up: 40.0, counted: 160.0 },
            _ => Self { warm_up: 10.0, counted: 60.0 },
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    if let Some(folder) = &arguments.captures {
        let usual = |mode| Setting { mode, ..queued(32, 64) };
        return captures::run_all(folder, usual, |line| writeln!(out, "{line}"));
    }
    let parts = arguments.part.map_or(Part::ALL.to_vec(), |part| vec![part]);
    if parts.contains(&Part::Tree) {
        whole_tree::run_all(arguments.seed, arguments.scale, queued(32, 64), |line| writeln!(out, "{line}"))?;
    }
    for Experiments { part, routing, bytes, sources, duration, settings } in
        parts.into_iter().flat_map(experiments)
    {
        let warm_up_ns = duration.warm_up * 1e6 * arguments.scale;
        let span_ns = warm_up_ns + duration.counted * 1e6 * arguments.scale;
        let traffic = Traffic {
            routing,
            bytes,
            span_ns,
            sources,
            interval_unit_ns: arguments.interval_unit * 1e3,
            period_unit_ns: arguments.period_unit * 1e3,
            seed: arguments.seed,
        };
        let sent = traffic.send();
        for position in Position::ALL {
            let input = Input::new(sent.arrivals(position), &traffic);
            for setting in &settings {
                let (seed, setting) = (arguments.seed, *setting);
                let counts = run(&input, &setting, warm_up_ns, span_ns)?;
                let cell = Cell { part, seed, sources, position, routing, bytes, setting, counts };
                writeln!(out, "{}", serde_json::to_string(&cell)?)?;
            }
        }
    }
    Ok(())
}

/// Returns the experiments of a part.
fn experiments(part: Part) -> Vec<Experiments> {
    let of = |routing, bytes, sources, settings: Vec<Setting>| {
        let service_ns = settings.iter().map(|setting| setting.service_ns).max().unwrap_or(USUAL_NS);
        let duration = Duration::of(bytes, service_ns);
        Experiments { part, routing, bytes, sources, duration, settings }
    };
    let usual = |settings| of(Routing::Ecmp, 64, SOURCES, settings);
    match part {
        Part::Sizes => {
            LENGTHS.map(|bytes| of(Routing::Ecmp, bytes, SOURCES, sweep(USUAL_NS))).into_iter().collect()
        }
        Part::Services => SERVICES.map(|service_ns| usual(sweep(service_ns))).into_iter().collect(),
        Part::Routing => {
            let by_length =
                LENGTHS.into_iter().flat_map(|bytes| Routing::ALL.map(|routing| (routing, bytes)));
            by_length.map(|(routing, bytes)| of(routing, bytes, SOURCES, vec![queued(32, 64)])).collect()
        }
        Part::Selection => [SOURCES / 2, SOURCES, 2 * SOURCES]
            .map(|sources| of(Routing::Ecmp, 64, sources, selection()))
            .into_iter()
            .collect(),
        Part::Victims => {
            let victims = |cache| {
                [VictimPolicy::Clock, VictimPolicy::Lru].map(|victim| Setting { victim, ..queued(cache, 64) })
            };
            vec![usual(CACHES.into_iter().flat_map(victims).collect())]
        }
        Part::Flows => {
            let most = queued(4_096, 4_096);
            let with = |service_ns| usual(vec![Setting { service_ns, ..most }]);
            [1_000, USUAL_NS, 100_000].map(with).into_iter().collect()
        }
        // Not an experiment with one switch.
        Part::Tree => Vec::new(),
    }
}

/// Returns the settings for all sizes of the cache and of the queue.
fn sweep(service_ns: u64) -> Vec<Setting> {
    let all = CACHES.into_iter().flat_map(|cache| {
        let queues = QUEUES.into_iter().map(move |queue| Setting { service_ns, ..queued(cache, queue) });
        queues.chain([Setting { service_ns, ..blocking(cache) }])
    });
    all.collect()
}

/// Returns the settings that were compared before the usual ones were chosen.
fn selection() -> Vec<Setting> {
    let all = CACHES.into_iter().flat_map(|cache| {
        let parts = [1, 2, 4, 8].map(|pending_part| Setting { pending_part, ..queued(cache, 64) });
        let searches = [16, 256, u32::MAX].map(|searches| Setting { searches, ..queued(cache, 64) });
        parts.into_iter().chain(searches).chain([blocking(cache)])
    });
    all.collect()
}

/// Returns the usual settings of the mode `nonblocking`.
fn queued(cache: u16, queue: u16) -> Setting {
    Setting {
        mode: Mode::Nonblocking,
        service_ns: USUAL_NS,
        cache,
        pending_part: PENDING_PART,
        searches: SEARCHES,
        victim: VictimPolicy::Clock,
        queue,
    }
}

/// Returns the usual settings of the mode `blocking`. The packets of a blocked port wait in its receive ring,
/// and not in the queue.
fn blocking(cache: u16) -> Setting {
    Setting { mode: Mode::Blocking, ..queued(cache, 0) }
}
