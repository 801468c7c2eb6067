// SPDX-License-Identifier: Apache-2.0
//! Initial rules, added rules, flows, and the expected output port of each flow, found by comparing each rule
//! with each flow.

use crate::cost::rig::udp_frame;
use fastrand::Rng;
use flow::{Action, Field, FieldMatch, FlowMod, Instructions, Match, MatchError, PortNo, TableId};
use frame::Frame;

/// Output ports of the rules.
pub(super) const PORTS: [PortNo; 2] = [PortNo(2), PortNo(3)];

/// One in `AIMED` added rules matches a flow in use.
const AIMED: usize = 10;

/// Prefix lengths of the access list.
const LENGTHS: [u32; 5] = [12, 16, 20, 24, 32];

/// Kind of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateRules {
    /// An access list. Each rule matches two prefixes and sometimes a port, and has a random priority.
    AccessList,
    /// Routes. Each rule matches a destination prefix. Longer prefixes have higher priorities.
    Routes,
}

impl UpdateRules {
    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AccessList => "access list",
            Self::Routes => "routes",
        }
    }
}

/// A flow of UDP packets to port 53, identified by its addresses.
#[derive(Clone, Copy, Debug)]
struct Flow {
    from: u32,
    to: u32,
}

/// A rule: source and destination prefix, each as value and mask, with priority and output port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    from: (u32, u32),
    to: (u32, u32),
    priority: u16,
    port: PortNo,
}

/// The rules and flows of a run.
pub(super) struct Plan {
    kind: UpdateRules,
    rng: Rng,
    flows: Vec<Flow>,
    /// Priority and output port of the best rule for each flow.
    best: Vec<(u16, PortNo)>,
}

fn mask(length: u32) -> u32 {
    u32::MAX.checked_shl(32 - length).unwrap_or(0)
}

impl Rule {
    fn matches(&self, flow: &Flow) -> bool {
        (flow.from ^ self.from.0) & self.from.1 == 0 && (flow.to ^ self.to.0) & self.to.1 == 0
    }

    /// Returns the rule as a low-latency entry.
    pub fn flow_mod(&self, kind: UpdateRules) -> Result<FlowMod, MatchError> {
        let whole = |field: Field, value: u128| FieldMatch { field, value, mask: field.full_mask() };
        let prefix = |field, (value, mask): (u32, u32)| FieldMatch {
            field,
            value: (value & mask).into(),
            mask: mask.into(),
        };
        let mut conditions = vec![whole(Field::EthType, 0x0800)];
        if kind == UpdateRules::AccessList {
            conditions.push(whole(Field::IpProto, 17));
            conditions.push(whole(Field::UdpDst, 53));
            conditions.push(prefix(Field::Ipv4Src, self.from));
        }
        conditions.push(prefix(Field::Ipv4Dst, self.to));
        conditions.retain(|condition| condition.mask != 0);
        Ok(FlowMod {
            table: Some(TableId(0)),
            priority: self.priority,
            matching: Match::new(conditions)?,
            instructions: Instructions::apply(vec![Action::output(self.port)]),
            low_latency: Some(true),
            ..FlowMod::default()
        })
    }
}

impl Plan {
    /// Creates flows and the initial rules, at least one of which matches each flow.
    pub fn new(kind: UpdateRules, flows: usize, rules: usize) -> (Self, Vec<Rule>) {
        let mut rng = Rng::with_seed(1);
        let made = (0..flows).map(|_| Flow { from: rng.u32(..), to: rng.u32(..) }).collect();
        let mut plan = Self { kind, rng, flows: made, best: vec![(0, PortNo(0)); flows] };
        let mut start: Vec<Rule> = (0..rules).map(|_| plan.any()).collect();
        // The default rule, for flows that no other rule matches.
        start.push(Rule { from: (0, 0), to: (0, 0), priority: 1, port: PORTS[0] });
        start.iter().for_each(|rule| plan.take(rule));
        (plan, start)
    }

    /// Returns the next rule to add.
    pub fn next(&mut self) -> Rule {
        if self.rng.usize(0..AIMED) > 0 {
            return self.any();
        }
        let flow = self.flows[self.rng.usize(0..self.flows.len())];
        self.around(flow)
    }

    fn any(&mut self) -> Rule {
        let flow = Flow { from: self.rng.u32(..), to: self.rng.u32(..) };
        self.around(flow)
    }

    fn around(&mut self, flow: Flow) -> Rule {
        let port = PORTS[self.rng.usize(0..PORTS.len())];
        match self.kind {
            UpdateRules::AccessList => Rule {
                from: (flow.from, mask(LENGTHS[self.rng.usize(0..LENGTHS.len())])),
                to: (flow.to, mask(LENGTHS[self.rng.usize(1..LENGTHS.len())])),
                priority: self.rng.u16(2..60_000),
                port,
            },
            UpdateRules::Routes => {
                let length = self.rng.u32(16..=32);
                Rule { from: (0, 0), to: (flow.to, mask(length)), priority: 2 + length as u16, port }
            }
        }
    }

    /// Records an added rule. Among rules of equal priority the first one is used, but a route replaces a
    /// route with the same prefix.
    pub fn take(&mut self, rule: &Rule) {
        let least = rule.priority + u16::from(self.kind == UpdateRules::Routes);
        for (flow, best) in self.flows.iter().zip(&mut self.best) {
            if least > best.0 && rule.matches(flow) {
                *best = (rule.priority, rule.port);
            }
        }
    }

    /// Returns the expected output port of a flow.
    pub fn port(&self, flow: usize) -> PortNo {
        self.best[flow].1
    }

    /// Returns one packet of each flow.
    pub fn frames(&self) -> Vec<Frame> {
        let frame = |flow: &Flow| udp_frame(flow.from.to_be_bytes(), flow.to.to_be_bytes(), 1_000);
        self.flows.iter().map(frame).collect()
    }
}
