// SPDX-License-Identifier: Apache-2.0
//! The remote side of all ports: arrivals, bounded receive rings, and transmitted packets.

use crate::arrivals::report::{ArrivalTimes, ClassReport, RING_FULL, Spans};
use crate::arrivals::source::Source;
use crate::arrivals::{Load, Report};
use flow::{DropReason, Outcome, PortNo};
use frame::{Frame, Stamp};
use hdrhistogram::CreationError;
use pipeline::Via;
use port::{Capabilities, Link, Pools, Queue, Statistics};
use port_cache::MissFigures;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names of the lanes in reports.
const LANES: [&str; 2] = ["low-latency", "normal"];

/// Virtual time, shared between the worker's probe and the worker's ports.
#[derive(Debug, Default)]
pub(super) struct VirtualTime(AtomicU64);

impl VirtualTime {
    /// Returns the current time in nanoseconds.
    pub fn now_ns(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    /// Sets the current time in nanoseconds.
    pub fn set_ns(&self, now_ns: f64) {
        self.0.store(now_ns.to_bits(), Relaxed);
    }
}

/// State of one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    class: u16,
    flow: u32,
    /// Whether the packet is on its second pass through the switch.
    back: bool,
    /// Whether the packet stayed on the fast-forwarding path.
    fast: bool,
    /// Whether a path record forwarded the packet.
    express: bool,
    /// Whether the packet has been sent, or will never be sent.
    over: bool,
    /// Whether the packet is counted. Packets that arrive during the warm-up are not counted.
    counts: bool,
    /// Time at which the packet arrived for the first time, in nanoseconds.
    begun_ns: f64,
    /// Time at which the packet arrived most recently, in nanoseconds.
    arrived_ns: f64,
}

/// Packets that a port has received, in order of their sequence numbers. Those at the front that are over are
/// removed.
#[derive(Debug, Default)]
struct Inside {
    /// Sequence number of the first packet.
    first: u64,
    packets: VecDeque<Passage>,
}

impl Inside {
    /// Appends the next packet and returns its sequence number.
    fn push(&mut self, passage: Passage) -> u64 {
        while self.packets.front().is_some_and(|passage| passage.over) {
            self.packets.pop_front();
            self.first += 1;
        }
        self.packets.push_back(passage);
        self.first + self.packets.len() as u64 - 1
    }

    fn get_mut(&mut self, sequence: u64) -> Option<&mut Passage> {
        self.packets.get_mut(usize::try_from(sequence.checked_sub(self.first)?).ok()?)
    }

    /// Removes all packets.
    fn clear(&mut self) {
        self.first += self.packets.len() as u64;
        self.packets.clear();
    }
}

/// A traffic class with the state of its flows.
#[derive(Debug)]
struct Line {
    port: usize,
    comes_back: Option<usize>,
    flows: Arc<[Vec<u8>]>,
    /// For each flow, whether it is low-latency; empty if the lanes are unknown.
    low_latency: Arc<[bool]>,
    /// For each pass through the switch and each flow, the sequence number of the packet that was sent last.
    last: [Vec<u64>; 2],
    /// Arrival time of each flow's first packet: NaN before that packet, and infinite if the flow was known
    /// before the run, or once a packet stayed on the fast-forwarding path or had a path record.
    first_ns: Vec<f64>,
    known: bool,
    /// Results of normal flows (or of all flows if their lanes are unknown), and of low-latency flows.
    reports: [ClassReport; 2],
}

impl Line {
    fn report(&mut self, flow: usize) -> &mut ClassReport {
        let low_latency = self.low_latency.get(flow).copied().unwrap_or(false);
        &mut self.reports[usize::from(low_latency)]
    }
}

#[derive(Debug)]
pub(super) struct Links {
    clock: Arc<VirtualTime>,
    lines: Vec<Line>,
    sources: Vec<Source>,
    /// Time of the earliest next arrival in nanoseconds, and the index of its source.
    next: (f64, usize),
    rings: Vec<VecDeque<Passage>>,
    ring: usize,
    returning: VecDeque<Passage>,
    /// Packets inside the worker, by port.
    inside: Vec<Inside>,
    /// Whether packets arrive at their scheduled times. Before [`Links::begin`], packets arrive only by
    /// [`Links::present`].
    open: bool,
    /// Port and sequence number of each frame handed to a device since the last doorbell.
    given: Vec<(PortNo, u64)>,
    spans: Spans,
    /// Time of the last poll, and whether it returned any packets.
    polled: Option<(f64, bool)>,
    warm_up_ns: f64,
    io_ns: f64,
}

impl Links {
    pub fn new(load: &Load, ports: u32, clock: Arc<VirtualTime>, end_ns: f64) -> Result<Self, CreationError> {
        let lines = load.classes.iter().map(|class| {
            let flows = class.flows.len();
            Ok(Line {
                port: class.port.0.saturating_sub(1) as usize,
                comes_back: class.comes_back.map(|port| port.0.saturating_sub(1) as usize),
                flows: Arc::clone(&class.flows),
                last: [vec![0; flows], vec![0; flows]],
                first_ns: vec![f64::NAN; flows],
                known: class.known,
                low_latency: Arc::clone(&class.low_latency),
                reports: [ClassReport::new(&class.name)?, ClassReport::new(&class.name)?],
            })
        });
        let lines = lines.collect::<Result<Vec<_>, CreationError>>()?;
        let seeds = (1..).map(|n| load.seed.wrapping_add(n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let sources = load.classes.iter().zip(seeds);
        let ports = ports as usize;
        let mut links = Self {
            clock,
            sources: sources.map(|(class, seed)| Source::new(class, seed, end_ns)).collect(),
            next: (f64::INFINITY, 0),
            rings: vec![VecDeque::with_capacity(load.ring); ports],
            ring: load.ring,
            returning: VecDeque::new(),
            inside: (0..ports).map(|_| Inside::default()).collect(),
            open: false,
            given: Vec::new(),
            spans: Spans { burst: ArrivalTimes::new()?, other: ArrivalTimes::new()? },
            polled: None,
            warm_up_ns: load.warm_up_ns,
            io_ns: load.io_ns,
            lines,
        };
        links.look_ahead();
        Ok(links)
    }

    fn look_ahead(&mut self) {
        let next = self.sources.iter().map(|source| source.next_ns).enumerate();
        self.next =
            next.fold((f64::INFINITY, 0), |least, (at, ns)| if ns < least.0 { (ns, at) } else { least });
    }

    /// Returns the time of the next arrival in nanoseconds, or infinity if there is none.
    pub fn next_ns(&self) -> f64 {
        let returning_ns = self.returning.front().map_or(f64::INFINITY, |passage| passage.arrived_ns);
        self.next.0.min(returning_ns)
    }

    /// Returns whether any packet waits in a receive ring.
    pub fn any_waits(&self) -> bool {
        self.rings.iter().any(|ring| !ring.is_empty())
    }

    /// Makes the next packet arrive, regardless of the current time.
    pub fn arrive(&mut self) {
        let returns = self.returning.front().is_some_and(|passage| passage.arrived_ns < self.next.0);
        let passage = if returns {
            self.returning.pop_front()
        } else {
            let (arrived_ns, class) = self.next;
            let source = self.sources.get_mut(class).filter(|_| arrived_ns.is_finite());
            let flow = source.map(Source::take);
            self.look_ahead();
            let counts = arrived_ns >= self.warm_up_ns;
            let begun_ns = arrived_ns;
            flow.map(|flow| Passage {
                class: class as u16,
                flow,
                counts,
                begun_ns,
                arrived_ns,
                ..Passage::default()
            })
        };
        let Some(passage) = passage else { return };
        let line = &mut self.lines[usize::from(passage.class)];
        let port = if passage.back { line.comes_back.unwrap_or(line.port) } else { line.port };
        if !passage.back {
            line.report(passage.flow as usize).offered += u64::from(passage.counts);
            let first_ns = &mut line.first_ns[passage.flow as usize];
            if first_ns.is_nan() {
                *first_ns = passage.arrived_ns;
            }
        }
        if self.rings[port].len() < self.ring {
            self.rings[port].push_back(passage);
        } else if passage.counts {
            *line.report(passage.flow as usize).lost.entry(RING_FULL).or_default() += 1;
        }
    }

    /// Makes a packet of a flow arrive now. The packet is not counted.
    pub fn present(&mut self, class: usize, flow: usize) {
        let line = &self.lines[class];
        let now_ns = self.clock.now_ns();
        let passage = Passage {
            class: class as u16,
            flow: flow as u32,
            begun_ns: now_ns,
            arrived_ns: now_ns,
            ..Passage::default()
        };
        self.rings[line.port].push_back(passage);
    }

    /// Makes all packets that return arrive now. Returns whether there were any.
    pub fn present_returning(&mut self) -> bool {
        let any = !self.returning.is_empty();
        while let Some(passage) = self.returning.pop_front() {
            let line = &self.lines[usize::from(passage.class)];
            self.rings[line.comes_back.unwrap_or(line.port)].push_back(passage);
        }
        any
    }

    /// Starts the scheduled arrivals.
    pub fn begin(&mut self) {
        self.open = true;
        self.polled = None;
        for line in &mut self.lines {
            line.first_ns.fill(if line.known { f64::INFINITY } else { f64::NAN });
        }
    }

    fn receive(
        &mut self,
        port: usize,
        pools: &mut Pools,
        burst: &mut Vec<Frame>,
        max: usize,
        stamp: Stamp,
    ) -> usize {
        let now_ns = self.clock.now_ns();
        while self.open && self.next_ns() <= now_ns {
            self.arrive();
        }
        let mut count = 0;
        while count < max
            && let Some(passage) = self.rings[port].front()
        {
            let bytes = &self.lines[usize::from(passage.class)].flows[passage.flow as usize];
            let Some(mut frame) = pools.filled(bytes) else { break };
            let sequence = self.inside[port].push(*passage);
            frame.meta.arrive(port as u32 + 1, sequence, stamp);
            self.rings[port].pop_front();
            burst.push(frame);
            count += 1;
        }
        if let Some((then_ns, brought)) = self.polled.replace((now_ns, count > 0))
            && then_ns >= self.warm_up_ns
        {
            if brought { &mut self.spans.burst } else { &mut self.spans.other }.add(now_ns - then_ns);
        }
        count
    }

    fn passage(&mut self, port: PortNo, sequence: u64) -> Option<&mut Passage> {
        self.inside.get_mut(port.0.checked_sub(1)? as usize)?.get_mut(sequence)
    }

    /// Records the outcome of a packet in the worker.
    pub fn left(&mut self, port: PortNo, sequence: u64, outcome: Outcome, via: Via) {
        let Some(passage) = self.passage(port, sequence) else { return };
        (passage.fast, passage.express) = (via == Via::FastPath, via == Via::Express);
        let name = match outcome {
            Outcome::Forwarded => return,
            Outcome::Consumed => "consumed",
            Outcome::Dropped(reason) => DropReason::name(reason),
        };
        passage.over = true;
        let Passage { class, flow, counts, .. } = *passage;
        if counts {
            let report = self.lines[usize::from(class)].report(flow as usize);
            *report.lost.entry(name).or_default() += 1;
        }
    }

    /// Discards the records of all packets inside the worker.
    pub fn forget(&mut self) {
        self.given.clear();
        self.inside.iter_mut().for_each(Inside::clear);
    }

    /// Records the transmission of all frames handed to devices.
    pub fn doorbell(&mut self) {
        let now_ns = self.clock.now_ns();
        for at in 0..self.given.len() {
            let (port, sequence) = self.given[at];
            let Some(passage) = self.passage(port, sequence) else { continue };
            // Another copy of this packet was sent before.
            if std::mem::replace(&mut passage.over, true) {
                continue;
            }
            let passage = *passage;
            self.leave(&passage, sequence, now_ns);
        }
        self.given.clear();
    }

    fn leave(&mut self, passage: &Passage, sequence: u64, now_ns: f64) {
        let line = &mut self.lines[usize::from(passage.class)];
        let flow = passage.flow as usize;
        let last = std::mem::replace(&mut line.last[usize::from(passage.back)][flow], sequence);
        let first_ns = line.first_ns[flow];
        let is_known = passage.fast || passage.express;
        if is_known {
            line.first_ns[flow] = f64::INFINITY;
        }
        let goes_back = line.comes_back.is_some() && !passage.back;
        let report = line.report(flow);
        report.overtaken += u64::from(sequence < last);
        report.fast += u64::from(passage.counts && passage.fast);
        report.express += u64::from(passage.counts && passage.express);
        if is_known && first_ns < f64::INFINITY {
            report.learning.add(now_ns - first_ns + self.io_ns);
        }
        if goes_back {
            let arrived_ns = now_ns + self.io_ns;
            let back =
                Passage { back: true, fast: false, express: false, over: false, arrived_ns, ..*passage };
            self.returning.push_back(back);
        } else if passage.counts {
            report.delivered += 1;
            report.latency.add(now_ns - passage.begun_ns + self.io_ns);
        }
    }

    /// Returns the results. May be called only once.
    pub fn report(&mut self, turns: u64, received: u64, busy_ns: f64) -> Report {
        let reported = self.lines.iter().any(|line| !line.low_latency.is_empty());
        let mut lanes: Vec<ClassReport> = Vec::new();
        let mut classes = Vec::with_capacity(self.lines.len());
        for line in std::mem::take(&mut self.lines) {
            let [mut all, low_latency] = line.reports;
            if reported {
                for (place, (name, part)) in LANES.iter().zip([&low_latency, &all]).enumerate() {
                    match lanes.get_mut(place) {
                        Some(lane) => lane.merge(part),
                        None => lanes.push(ClassReport { name: (*name).into(), ..part.clone() }),
                    }
                }
            }
            all.merge(&low_latency);
            classes.push(all);
        }
        Report {
            classes,
            lanes,
            turns,
            received,
            spans: self.spans.clone(),
            end_ns: self.clock.now_ns(),
            busy_ns,
            misses: MissFigures::default(),
            free_steps: Vec::new(),
        }
    }
}

/// Locks the shared state, which is used from one thread only.
pub(super) fn lock(links: &Mutex<Links>) -> MutexGuard<'_, Links> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The worker's side of a port's queue.
pub(super) struct LinkQueue {
    pub port: PortNo,
    pub links: Arc<Mutex<Links>>,
}

impl Queue for LinkQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        lock(&self.links).receive(self.port.0.saturating_sub(1) as usize, pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let count = frames.len();
        let mut links = lock(&self.links);
        links.given.extend(frames.iter().map(|frame| (PortNo(frame.meta.in_port), frame.meta.sequence)));
        done.append(frames);
        count
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    fn poll_link(&mut self) -> Link {
        Link { up: true, ..Link::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_by_sequence_number_until_they_and_all_earlier_packets_are_over() {
        let mut inside = Inside::default();
        let packet = |flow| Passage { flow, ..Passage::default() };
        assert_eq!([0, 1, 2].map(|flow| inside.push(packet(flow))), [0, 1, 2]);
        inside.get_mut(1).unwrap().over = true;
        // The first packet waits while many others pass.
        for flow in 3..100_000 {
            assert_eq!(inside.push(packet(flow)), u64::from(flow));
            inside.get_mut(flow.into()).unwrap().over = true;
        }
        assert_eq!(
            [0, 1, 2].map(|sequence| inside.get_mut(sequence).map(|packet| packet.flow)),
            [0, 1, 2].map(Some)
        );
        inside.get_mut(0).unwrap().over = true;
        inside.push(packet(7));
        assert_eq!(
            [1, 2].map(|sequence| inside.get_mut(sequence).map(|packet| packet.flow)),
            [None, Some(2)]
        );
        inside.clear();
        assert_eq!((inside.get_mut(2).is_none(), inside.push(packet(8))), (true, 100_001));
    }
}
