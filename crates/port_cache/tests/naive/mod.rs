// SPDX-License-Identifier: Apache-2.0
//! A naive model of the miss queues: a list of flows, each with a list of packets.

use flow::Nanos;
use port_cache::{MissLimits, Ticket, WhenFull};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    pub number: u64,
    pub port: u16,
    pub bits: u64,
    pub bytes: u32,
}

/// What must happen to an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    New,
    Merged,
    Forced,
    Passed,
    Uncached,
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending { ends: Nanos, tries: u8 },
    Ready,
    Negative { until: Nanos },
}

#[derive(Clone, Debug)]
pub struct Flow {
    port: u16,
    key: u64,
    state: State,
    ticket: Option<Ticket>,
    has_first: bool,
    turns_negative: Option<Nanos>,
    pub packets: Vec<Packet>,
}

impl Flow {
    fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending { .. })
    }

    fn is_negative(&self) -> bool {
        matches!(self.state, State::Negative { .. })
    }
}

pub struct Model {
    limits: MissLimits,
    flows: Vec<Flow>,
    /// Whether budgets may be exceeded.
    pub is_exceeded: bool,
    /// Number of flows that turned negative when their last packet was released.
    pub negative_flows: usize,
    /// Number of flows that new keys split from another flow.
    pub split_flows: usize,
}

impl Model {
    pub fn new(limits: MissLimits) -> Self {
        Self { limits, flows: Vec::new(), is_exceeded: false, negative_flows: 0, split_flows: 0 }
    }

    fn at(&mut self, port: u16, key: u64) -> Option<&mut Flow> {
        self.flows.iter_mut().find(|flow| (flow.port, flow.key) == (port, key))
    }

    pub fn flow_of(&self, ticket: Ticket) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.is_pending() && flow.ticket == Some(ticket))
    }

    pub fn waiting(&self) -> usize {
        self.flows.iter().map(|flow| flow.packets.len()).sum()
    }

    pub fn releases(&self) -> bool {
        self.flows.iter().any(|flow| flow.state == State::Ready)
    }

    /// Returns the ends of all searches and the number of their repetitions.
    pub fn pending(&self) -> impl Iterator<Item = (Nanos, u8)> + '_ {
        self.flows.iter().filter_map(|flow| match flow.state {
            State::Pending { ends, tries } => Some((ends, tries)),
            _ => None,
        })
    }

    /// Returns flows, followers and bytes of a port.
    pub fn usage(&self, port: u16) -> (u32, u32, u64) {
        let flows = || self.flows.iter().filter(|flow| flow.port == port && !flow.is_negative());
        let followers = |flow: &Flow| flow.packets.len() - usize::from(flow.has_first);
        let bytes = |flow: &Flow| flow.packets.iter().map(|packet| u64::from(packet.bytes)).sum::<u64>();
        (flows().count() as u32, flows().map(followers).sum::<usize>() as u32, flows().map(bytes).sum())
    }

    fn negative(&self, port: u16) -> usize {
        self.flows.iter().filter(|flow| flow.port == port && flow.is_negative()).count()
    }

    pub fn offer(&mut self, packet: Packet, key: u64, now: Nanos, has_memory: bool) -> Expected {
        let Packet { port, bytes, .. } = packet;
        let MissLimits { entries, queue, timeout_ns, when_full, .. } = self.limits;
        self.flows.retain(|flow| {
            let is_over = matches!(flow.state, State::Negative { until } if until <= now);
            !(is_over && (flow.port, flow.key) == (port, key))
        });
        let (flows, followers, all_bytes) = self.usage(port);
        let fits = all_bytes + u64::from(bytes) <= self.limits.bytes.into();
        let Some(flow) = self.at(port, key) else {
            if flows >= entries.into() || !fits || !has_memory {
                return Expected::Uncached;
            }
            let state = State::Pending { ends: now + timeout_ns, tries: 0 };
            let (ticket, packets) = (None, vec![packet]);
            let flow = Flow { port, key, state, ticket, has_first: true, turns_negative: None, packets };
            self.flows.push(flow);
            return Expected::New;
        };
        let has_room = followers < queue.into() && fits && has_memory;
        match flow.state {
            State::Negative { .. } => return Expected::Passed,
            State::Pending { .. } if !has_room && when_full == WhenFull::Drop => return Expected::Full,
            State::Pending { .. } if !has_room => {
                flow.state = State::Ready;
                flow.packets.push(packet);
                self.is_exceeded = true;
                return Expected::Forced;
            }
            State::Ready => {
                flow.packets.push(packet);
                self.is_exceeded = true;
            }
            State::Pending { .. } => flow.packets.push(packet),
        }
        Expected::Merged
    }

    pub fn set_ticket(&mut self, port: u16, key: u64, ticket: Ticket) {
        let known = self.flows.iter().any(|flow| flow.ticket == Some(ticket));
        assert!(!known, "a ticket of another flow");
        self.at(port, key).unwrap().ticket = Some(ticket);
    }

    pub fn answer(&mut self, ticket: Ticket) -> bool {
        let flow = self.flows.iter_mut().find(|flow| flow.is_pending() && flow.ticket == Some(ticket));
        flow.map(|flow| flow.state = State::Ready).is_some()
    }

    pub fn answer_flow(&mut self, port: u16, key: u64) -> bool {
        let Some(flow) = self.at(port, key).filter(|flow| !flow.is_negative()) else { return false };
        flow.state = State::Ready;
        true
    }

    pub fn answer_all(&mut self) {
        self.flows.iter_mut().filter(|flow| flow.is_pending()).for_each(|flow| flow.state = State::Ready);
    }

    pub fn set_negative(&mut self, port: u16, key: u64, now: Nanos) {
        if self.limits.negative_ns == Nanos(0) {
            return;
        }
        let until = now + self.limits.negative_ns;
        let has_room = self.negative(port) < self.limits.entries.into();
        match self.at(port, key) {
            Some(Flow { state: State::Negative { until: before }, .. }) => *before = until,
            Some(flow) => (flow.state, flow.turns_negative) = (State::Ready, Some(until)),
            None if has_room => self.flows.push(Flow {
                port,
                key,
                state: State::Negative { until },
                ticket: None,
                has_first: false,
                turns_negative: None,
                packets: Vec::new(),
            }),
            None => {}
        }
    }

    pub fn end_negative(&mut self, now: Nanos) {
        self.flows.retain(|flow| !matches!(flow.state, State::Negative { until } if until <= now));
    }

    pub fn repeat(&mut self, ticket: Ticket, now: Nanos) {
        let MissLimits { retries, timeout_ns, .. } = self.limits;
        let flow = self.flows.iter_mut().find(|flow| flow.is_pending() && flow.ticket == Some(ticket));
        let state = &mut flow.expect("a search that is over").state;
        let State::Pending { ends, tries } = *state else { return };
        assert!(ends <= now && tries < retries);
        *state = State::Pending { ends: now + timeout_ns, tries: tries + 1 };
    }

    pub fn give_up(&mut self, packet: Packet, now: Nanos) {
        let flow = self.flows.iter_mut().find(|flow| flow.packets.first() == Some(&packet));
        let flow = flow.expect("not the first packet of a flow");
        let State::Pending { ends, tries } = flow.state else { panic!("no search: {flow:?}") };
        assert!(ends <= now && tries == self.limits.retries);
        flow.packets.remove(0);
        flow.has_first = false;
        self.flows.retain(|flow| !flow.packets.is_empty() || flow.is_negative());
    }

    /// Checks that these packets may leave together, in this order.
    pub fn release(&mut self, released: &[Packet]) {
        let mut firsts = Vec::new();
        for packet in released {
            assert_eq!(packet.port, released[0].port, "a burst is from one port");
            let flow = self.flows.iter_mut().find(|flow| flow.packets.first() == Some(packet));
            let flow = flow.expect("not the first packet of a flow");
            assert_eq!(flow.state, State::Ready);
            firsts.push(std::mem::take(&mut flow.has_first));
            flow.packets.remove(0);
        }
        assert!(firsts.windows(2).all(|pair| pair[0] == pair[1]), "first packets leave without followers");
        for at in (0..self.flows.len()).rev() {
            let flow = &self.flows[at];
            if flow.state != State::Ready || !flow.packets.is_empty() {
                continue;
            }
            let Flow { port, turns_negative, .. } = *flow;
            let has_room = self.negative(port) < self.limits.entries.into();
            match turns_negative.filter(|_| has_room) {
                Some(until) => {
                    let flow = &mut self.flows[at];
                    (flow.state, flow.turns_negative) = (State::Negative { until }, None);
                    self.negative_flows += 1;
                }
                None => drop(self.flows.remove(at)),
            }
        }
    }

    /// Gives all packets new keys. `asked` are the new searches.
    pub fn rekey(&mut self, now: Nanos, mask: u64, asked: &[Ticket]) {
        let before = std::mem::take(&mut self.flows);
        let mut packets: Vec<(Packet, &Flow)> =
            before.iter().flat_map(|flow| flow.packets.iter().map(move |packet| (*packet, flow))).collect();
        packets.sort_by_key(|(packet, _)| packet.number);
        let mut asked = asked.iter();
        for (packet, old) in packets {
            let (port, key) = (packet.port, packet.bits & mask);
            let is_first = old.has_first && old.packets[0] == packet;
            if self.at(port, key).is_none() {
                self.split_flows += usize::from(!is_first);
                let (state, ticket) = match old.state {
                    State::Ready => (State::Ready, None),
                    state if is_first => (state, old.ticket),
                    _ => {
                        let state = State::Pending { ends: now + self.limits.timeout_ns, tries: 0 };
                        (state, Some(*asked.next().expect("a flow without a search")))
                    }
                };
                let packets = Vec::new();
                self.flows.push(Flow {
                    port,
                    key,
                    state,
                    ticket,
                    has_first: true,
                    turns_negative: None,
                    packets,
                });
            }
            let Some(flow) = self.at(port, key) else { continue };
            flow.packets.push(packet);
            if old.state == State::Ready {
                flow.state = State::Ready;
            }
        }
        assert!(asked.next().is_none(), "a search for no flow");
        self.is_exceeded = true;
    }
}
