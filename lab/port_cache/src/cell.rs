// SPDX-License-Identifier: Apache-2.0
//! One experiment: a switch with given sizes, a recording of traffic, and the counters at the end.

use crate::line::{Port, SharedLine, address, frames, lock};
use crate::traffic::{Arrival, Recording, Traffic};
use crate::tree::{HOSTS, Position, Routing};
use dataplane::{DataPlane, Totals};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{DropReason, FlowModCommand, Nanos, PortNo};
use model::{Model, ModelConfig, PortDesc};
use port::{Queue, Statistics};
use port_cache::{MissFigures, MissLimits, MissMode, PortCacheConfig, Victim, WhenFull};
use serde::Serialize;
use std::error::Error;
use std::sync::Arc;
use worker::{PortQueues, Turn, Worker, WorkerSet, WorkerSetConfig, build};

/// Number of ports that receive.
const PORTS: u32 = 4;
/// Port that sends all packets.
const SINK: u32 = PORTS + 1;
/// Path records of the switch, far more than there are flows.
const RECORDS: usize = 16_384;
/// Time between two poll iterations in nanoseconds, while packets arrive.
const TURN_NS: f64 = 1_000.0;
/// Start of the switch's clock.
const START: Nanos = Nanos(1_000_000_000);
/// Interval between two polls of the model in nanoseconds.
const CONTROL_NS: f64 = 1e6;
/// Time after which a search is repeated. Searches of this lab always get an answer.
const TIMEOUT: Nanos = Nanos(10_000_000_000);

/// Mode of the port cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Only packets of flows that are being searched wait.
    Nonblocking,
    /// All packets of a port wait in its receive ring while a flow is being searched.
    Blocking,
}

/// Which record is removed from a full cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VictimPolicy {
    /// The first record in a circular list without a hit since it was passed.
    Clock,
    /// The record whose last hit is oldest.
    Lru,
}

impl From<VictimPolicy> for Victim {
    fn from(policy: VictimPolicy) -> Self {
        match policy {
            VictimPolicy::Clock => Self::Clock,
            VictimPolicy::Lru => Self::LeastRecentlyUsed,
        }
    }
}

/// Question that an experiment answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Cache and queue sizes by packet length.
    Sizes,
    /// Cache and queue sizes by service time, with 64-byte packets.
    Services,
    /// Routing policies.
    Routing,
    /// Number of sources, share of pending entries and number of unserved searches.
    Selection,
    /// Victim policies.
    Victims,
    /// Searches per flow in a cache that removes no record.
    Flows,
    /// Port caches in all switches of a fat tree of 8-port switches.
    Tree,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 7] =
        [Self::Services, Self::Sizes, Self::Selection, Self::Routing, Self::Victims, Self::Flows, Self::Tree];
}

/// Settings of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Mode of the port cache.
    pub mode: Mode,
    /// Time of a search in nanoseconds. All ports share one searcher.
    pub service_ns: u64,
    /// Maximum number of pending flows and path records per port.
    pub cache: u16,
    /// One in this many entries may be pending.
    pub pending_part: u16,
    /// Number of unserved searches up to which the searcher also takes packets of flows that cannot be
    /// pending.
    pub searches: u32,
    /// Which record is removed from a full cache.
    pub victim: VictimPolicy,
    /// Maximum number of packets per port that wait behind the first packet of their flow.
    pub queue: u16,
}

/// Traffic of an experiment and its settings, with the results.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Question that the experiment answers.
    pub part: Part,
    /// Seed of the traffic.
    pub seed: u64,
    /// Number of sources per host.
    pub sources: usize,
    /// Switch whose traffic arrives.
    pub position: Position,
    /// Method that selects paths.
    pub routing: Routing,
    /// Length of packets in bytes.
    pub bytes: u16,
    /// Settings of the switch.
    #[serde(flatten)]
    pub setting: Setting,
    /// Results.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Results of an experiment. Counters do not include the warm-up, except where noted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Duration in nanoseconds.
    pub span_ns: f64,
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that left.
    pub forwarded: u64,
    /// Packets that left by the record of an earlier packet.
    pub hits: u64,
    /// Packets that left behind the first packet of their flow, after its search.
    pub queue_hits: u64,
    /// Packets that started a search.
    pub searched: u64,
    /// Packets that were searched without an entry, because their port had too many pending flows.
    pub uncached: u64,
    /// Records that were removed from a full cache.
    pub evicted: u64,
    /// Packets that were dropped because the searcher had too many searches, or because the queue of their
    /// port was full.
    pub queue_full: u64,
    /// Packets that found the receive ring full.
    pub ring_full: u64,
    /// Flows with packets that arrived, with the warm-up.
    pub flows: u64,
    /// Packets that started a search, with the warm-up.
    pub searched_ever: u64,
    /// Packets that were searched without an entry, with the warm-up.
    pub uncached_ever: u64,
    /// Records that were removed from a full cache, with the warm-up.
    pub evicted_ever: u64,
    /// Packets that arrived, without those that the receive ring lost or still holds, with the warm-up.
    pub received_ever: u64,
    /// Sum of the counters of the port cache that count each packet once, with the warm-up.
    pub counted_ever: u64,
    /// Share of the offered packets that were forwarded without a search of their own.
    pub hit_rate: f64,
    /// Forwarded packets per second.
    pub pps: f64,
}

/// Packets and frames of a recording.
pub struct Input {
    /// Packets.
    pub recording: Recording,
    frames: Arc<[Vec<u8>]>,
    /// Index of the first packet of each flow, in ascending order.
    firsts: Vec<usize>,
}

impl Input {
    /// Prepares the frames of a recording.
    pub fn new(recording: Recording, traffic: &Traffic) -> Self {
        let mut seen = vec![false; recording.flows.len()];
        let numbered = recording.arrivals.iter().enumerate();
        let firsts = numbered
            .filter(|(_, arrival)| !std::mem::replace(&mut seen[arrival.flow as usize], true))
            .map(|(at, _)| at)
            .collect();
        Self { firsts, frames: frames(&recording, traffic.bytes), recording }
    }

    /// Uses given frames. The flow of an arrival is the index of its frame. Flows are not counted.
    pub fn of_frames(arrivals: Vec<Arrival>, frames: Vec<Vec<u8>>) -> Self {
        let recording = Recording { flows: Vec::new(), arrivals };
        Self { recording, frames: frames.into(), firsts: Vec::new() }
    }

    /// Returns the number of flows of the first `packets` packets.
    fn flows(&self, packets: usize) -> u64 {
        self.firsts.partition_point(|first| *first < packets) as u64
    }
}

struct Switch {
    model: Model<WorkerSet>,
    worker: Worker,
    lines: Vec<SharedLine>,
}

/// Counters at a moment.
#[derive(Clone, Debug, Default)]
struct Snapshot {
    offered: u64,
    totals: Totals,
    misses: MissFigures,
    lost: u64,
}

impl Setting {
    /// Returns the settings of the port cache.
    pub fn port_cache(&self) -> PortCacheConfig {
        let limits = MissLimits {
            entries: (self.cache / self.pending_part).max(1),
            queue: self.queue,
            records: self.cache,
            victim: self.victim.into(),
            bytes: MissLimits::BYTES_MAX,
            timeout_ns: TIMEOUT,
            when_full: WhenFull::Drop,
            ..MissLimits::USUAL
        };
        let mode = match self.mode {
            Mode::Nonblocking => MissMode::NonBlocking,
            Mode::Blocking => MissMode::Blocking,
        };
        PortCacheConfig {
            mode,
            limits,
            service_ns: Nanos(self.service_ns),
            unserved_max: Some(self.searches.into()),
            ..PortCacheConfig::default()
        }
    }
}

impl Switch {
    fn new(setting: &Setting, frames: &Arc<[Vec<u8>]>) -> Result<Self, Box<dyn Error>> {
        let config = WorkerSetConfig {
            lut_entries: 0,
            express_records: RECORDS,
            port_cache: Some(setting.port_cache()),
            ..WorkerSetConfig::default()
        };
        let lines: Vec<SharedLine> = (0..SINK).map(|_| SharedLine::default()).collect();
        let ports = (1..).zip(&lines).map(|(number, line)| {
            let statistics = Statistics::default();
            let (line, frames) = (Arc::clone(line), Arc::clone(frames));
            let queue: Box<dyn Queue> = Box::new(Port { number, line, frames, statistics, sequence: 0 });
            PortQueues { number: PortNo(number), queues: vec![(0, queue)], egress: Vec::new() }
        });
        let (plane, mut workers) = build(&config, ports.collect());
        let mut model = Model::new(ModelConfig::default(), plane, START);
        for number in 1..=SINK {
            let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
            model.add_port(START, desc, true)?;
        }
        let mut switch = Self { model, worker: workers.swap_remove(0), lines };
        // Rules that no packet hits examine the whole 5-tuple, so each flow has a key of its own.
        for protocol in ["tcp", "udp"] {
            let tuple = "nw_src=1.1.1.1,nw_dst=1.1.1.1,tp_src=1,tp_dst=1";
            switch.add(&format!("priority=9,{protocol},{tuple},actions=drop"))?;
        }
        switch.add(&format!("priority=0,actions=output:{SINK}"))?;
        for host in 0..HOSTS as u8 {
            let [a, b, c, d] = address(host);
            switch.add(&format!("priority=1,ip,nw_dst={a}.{b}.{c}.{d},actions=output:{SINK}"))?;
        }
        // The keys of path records must be in force before the first packet.
        while switch.worker.apply() > 0 || switch.model.poll(START) {}
        Ok(switch)
    }

    fn add(&mut self, text: &str) -> Result<(), Box<dyn Error>> {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default())?;
        Ok(self.model.flow_mod(START, flow).map(drop)?)
    }

    /// Runs poll iterations at this time until nothing is left to do, and returns the last one. In the mode
    /// `blocking`, an iteration receives one packet per port.
    fn turns(&mut self, now: Nanos) -> Turn {
        loop {
            let turn = self.worker.turn(now);
            if turn.received + turn.sent + turn.worked + turn.released + turn.applied == 0 {
                return turn;
            }
        }
    }

    fn snapshot(&mut self, offered: u64) -> Snapshot {
        let plane = self.model.plane_mut();
        let (totals, misses) = (plane.totals(), plane.miss_figures());
        Snapshot { offered, totals, misses, lost: self.lines.iter().map(|line| lock(line).lost).sum() }
    }
}

/// Sends a recording through a switch. Packets that arrive in the first `warm_up_ns` are not counted.
///
/// # Errors
/// Returns an error if the switch refuses its rules.
pub fn run(
    input: &Input,
    setting: &Setting,
    warm_up_ns: f64,
    span_ns: f64,
) -> Result<Counts, Box<dyn Error>> {
    let mut switch = Switch::new(setting, &input.frames)?;
    let arrivals = &input.recording.arrivals;
    let (mut now_ns, mut next, mut control_ns) = (0.0, 0, 0.0);
    let mut warm = None;
    while now_ns < span_ns {
        while let Some(arrival) = arrivals.get(next).filter(|arrival| arrival.at_ns <= now_ns) {
            lock(&switch.lines[usize::from(arrival.port)]).arrive(arrival.flow);
            next += 1;
        }
        if warm.is_none() && now_ns >= warm_up_ns {
            warm = Some(switch.snapshot(next as u64));
        }
        let turn = switch.turns(START + Nanos(now_ns as u64));
        if now_ns >= control_ns {
            control_ns = now_ns + CONTROL_NS;
            while switch.model.poll(START + Nanos(now_ns as u64)) {}
        }
        let arrives_ns = arrivals.get(next).map_or(f64::INFINITY, |arrival| arrival.at_ns);
        let answers_ns = turn.answers_ns.map_or(f64::INFINITY, |at| at.0.saturating_sub(START.0) as f64);
        // Packets that arrive within a step are received together, as from a device that is polled.
        now_ns = arrives_ns.max(now_ns + TURN_NS).min(answers_ns.max(now_ns + 1.0));
    }
    let begin = warm.unwrap_or_default();
    let end = switch.snapshot(next as u64);
    Ok(counts(&begin, &end, span_ns - warm_up_ns, input.flows(next)))
}

fn full(snapshot: &Snapshot) -> u64 {
    snapshot.totals.dropped.of(DropReason::MissQueueFull)
}

/// Returns the number of packets that the searcher took without an entry. The counter of the cache contains
/// those that were dropped because the searcher had too many searches.
fn uncached(snapshot: &Snapshot) -> u64 {
    (snapshot.misses.uncached + snapshot.misses.dropped).saturating_sub(full(snapshot))
}

fn counts(begin: &Snapshot, end: &Snapshot, span_ns: f64, flows: u64) -> Counts {
    let offered = end.offered - begin.offered;
    let forwarded = end.totals.forwarded - begin.totals.forwarded;
    let hits = end.totals.express - begin.totals.express;
    let released = end.misses.released - begin.misses.released;
    let searched = end.misses.searched - begin.misses.searched;
    Counts {
        span_ns,
        offered,
        forwarded,
        hits,
        queue_hits: released.saturating_sub(searched),
        searched,
        evicted: end.misses.evicted - begin.misses.evicted,
        uncached: uncached(end) - uncached(begin),
        queue_full: full(end) - full(begin),
        ring_full: end.lost - begin.lost,
        flows,
        searched_ever: end.misses.searched,
        uncached_ever: uncached(end),
        evicted_ever: end.misses.evicted,
        received_ever: end.totals.received,
        counted_ever: end.misses.arrived(),
        hit_rate: hits as f64 / offered.max(1) as f64,
        pps: forwarded as f64 / span_ns * 1e9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(mode: Mode, queue: u16) -> Counts {
        counts_of(&setting(mode, queue))
    }

    fn setting(mode: Mode, queue: u16) -> Setting {
        let victim = VictimPolicy::Lru;
        Setting { mode, service_ns: 10_000, cache: 32, pending_part: 4, searches: 64, victim, queue }
    }

    fn counts_of(setting: &Setting) -> Counts {
        let traffic = Traffic {
            routing: Routing::Ecmp,
            bytes: 64,
            span_ns: 1e7,
            sources: 200,
            interval_unit_ns: 2_000.0,
            period_unit_ns: 100_000.0,
            seed: 5,
        };
        let input = Input::new(traffic.send().arrivals(Position::Core), &traffic);
        run(&input, setting, 3e6, 1e7).unwrap()
    }

    #[test]
    fn packets_leave_or_are_counted_as_lost() {
        let [blocking, without, with] =
            [(Mode::Blocking, 0), (Mode::Nonblocking, 0), (Mode::Nonblocking, 64)]
                .map(|(mode, queue)| counts(mode, queue));
        for counts in [blocking, without, with] {
            let gone = counts.forwarded + counts.queue_full + counts.ring_full;
            // The others wait in the rings and queues at the beginning or at the end.
            let waits = 4 * (crate::line::RING as u64 + 8 + 64);
            assert!(counts.offered > 20_000 && counts.offered.abs_diff(gone) <= waits, "{counts:?}");
            assert_eq!(counts.counted_ever, counts.received_ever, "{counts:?}");
            // The searcher takes 10 us for each search, and has at most 64 and those of the pending flows.
            assert!(counts.searched_ever + counts.uncached_ever <= 1_000 + 64 + 32, "{counts:?}");
        }
        assert!(blocking.ring_full > 1_000 && blocking.queue_full == 0, "{blocking:?}");
        assert!(with.ring_full == 0 && with.queue_full > 1_000 && with.evicted > 100, "{with:?}");
        assert!(without.queue_hits < 50 && with.queue_hits > 1_000, "{without:?}, {with:?}");
        assert!(with.hits > without.hits && with.pps > 2.0 * blocking.pps, "{with:?}, {blocking:?}");
        assert_eq!(with, counts(Mode::Nonblocking, 64), "equal seeds give equal results");
    }

    #[test]
    fn a_flow_is_searched_once_while_its_record_lives() {
        let most = Setting { cache: 4_096, ..setting(Mode::Nonblocking, 4_096) };
        for service_ns in [1_000, 10_000, 100_000] {
            let counts = counts_of(&Setting { service_ns, ..most });
            assert_eq!((counts.uncached_ever, counts.evicted_ever), (0, 0), "{counts:?}");
            assert_eq!(counts.searched_ever, counts.flows, "{counts:?}");
            assert!(counts.flows > 500, "{counts:?}");
        }
    }
}
