// SPDX-License-Identifier: Apache-2.0
//! Rules, packets, and the changes of rules.
//!
//! Table 0 is an access list with four masks. Table 1 has a route for each destination, which rewrites the
//! destination MAC address. Each flow has its own addresses and ports.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt::Write;

use flow::syntax::{ParseOptions, parse_flows};
use flow::{FlowMod, FlowModCommand, Match, TableId};
use wire::PacketBuilder;

/// Number of rules in table 0.
const LIST: usize = 1_000;

/// Ports that send packets.
pub const OUT_PORTS: std::ops::RangeInclusive<u32> = 2..=3;

/// Number of different rules that are added.
const ADDED: usize = 2_000;

/// Maximum number of added rules that are not deleted yet.
const LIVING_MAX: usize = 32;

/// Conditions on fields that no other rule examines. No packet meets them.
const WIDENING: [&str; 4] =
    ["ip,ip_dscp=33", "ip,nw_ecn=2", "dl_src=06:00:00:00:00:01", "dl_dst=06:00:00:00:00:02"];

/// Number of flows and of routes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub flows: usize,
    pub routes: usize,
}

impl Sizes {
    /// Returns the index of a flow's route.
    fn route(self, flow: usize) -> usize {
        flow * (self.routes / self.flows).max(1) % self.routes
    }

    /// Returns the rules, in the syntax of ovs-ofctl.
    pub fn rules(self) -> String {
        let mut text = String::from("table=0,priority=1,ip,actions=goto_table:1\n");
        text += "table=1,priority=1,ip,actions=output:2\n";
        for n in 0..LIST {
            let (low, high) = (n & 0xff, n >> 8);
            let form = match n % 4 {
                0 => format!("nw_src=10.{low}.{high}.0/24"),
                1 => format!("nw_src=10.{low}.0.0/16,nw_dst=20.{high}.{low}.0/24"),
                2 => format!("nw_dst=20.0.{high}.{low},tp_dst={n}"),
                _ => format!("nw_src=10.1.{high}.{low},tp_src={n}"),
            };
            // Formatting to a string cannot fail.
            let _ = writeln!(text, "table=0,priority={},udp,{form},actions=goto_table:1", 100 + n);
        }
        for n in 0..self.routes {
            let _ = writeln!(text, "{}", route(destination(20, n), n));
        }
        text
    }

    /// Returns one packet of each flow, 64 bytes on the wire.
    pub fn packets(self) -> Vec<Vec<u8>> {
        let packet = |flow: usize| {
            let (source, route) = (source(flow), destination(20, self.route(flow)));
            let made = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(source, route);
            let [from, to] = ports(flow);
            made.udp(from, to).pad_to(60).build()
        };
        (0..self.flows).map(packet).collect()
    }

    /// Returns the match of a flow's route.
    pub fn route_match(self, flow: usize) -> Result<(TableId, Match), Box<dyn Error>> {
        let mods = parse(&route(destination(20, self.route(flow)), 0))?;
        let route = mods.into_iter().next().ok_or("there is no route")?;
        Ok((TableId(1), route.matching))
    }
}

/// Returns a flow's source address.
fn source(flow: usize) -> [u8; 4] {
    let [.., high, low] = (flow as u32).to_be_bytes();
    [10, 1, high, low]
}

/// Returns address number `n` of the network `first`.0.0.0/8.
fn destination(first: u8, n: usize) -> [u8; 4] {
    let [_, high, middle, low] = (n as u32).to_be_bytes();
    [first, high, middle, low]
}

fn ports(flow: usize) -> [u16; 2] {
    [(1_024 + flow % 50_000) as u16, (2_000 + flow % 7) as u16]
}

fn dotted([a, b, c, d]: [u8; 4]) -> String {
    format!("{a}.{b}.{c}.{d}")
}

fn route(to: [u8; 4], n: usize) -> String {
    let (low, high) = (n & 0xff, n >> 8 & 0xff);
    format!(
        "table=1,priority=10,ip,nw_dst={},actions=set_field:02:00:00:01:{high:02x}:{low:02x}->eth_dst,output:{}",
        dotted(to),
        OUT_PORTS.start() + n as u32 % 2
    )
}

fn parse(text: &str) -> Result<Vec<FlowMod>, Box<dyn Error>> {
    Ok(parse_flows(text, ParseOptions::default()).collect::<Result<Vec<_>, _>>()?)
}

/// An endless sequence of changes that add rules and soon delete them.
///
/// Of ten added rules, one matches a flow in use, five are rules of the access list, and four are routes. No
/// added rule changes where a packet is sent.
#[derive(Debug)]
pub struct Changes {
    added: Vec<FlowMod>,
    widening: Vec<FlowMod>,
    living: VecDeque<FlowMod>,
    living_max: usize,
    /// One of this many added rules examines a new field.
    share: usize,
    adds: usize,
    widened: usize,
}

impl Changes {
    /// Creates the sequence. One of `share` changes adds a rule on a field that no other rule examines.
    pub fn new(sizes: Sizes, share: usize) -> Result<Self, Box<dyn Error>> {
        let mut text = String::new();
        for n in 0..ADDED {
            let line = match n % 10 {
                0 => {
                    let flow = n * 7 % sizes.flows;
                    let [from, to] = ports(flow);
                    let (source, route) = (source(flow), destination(20, sizes.route(flow)));
                    format!(
                        "table=0,priority=5000,udp,nw_src={},nw_dst={},tp_src={from},tp_dst={to},actions=goto_table:1",
                        dotted(source),
                        dotted(route)
                    )
                }
                1..=5 => format!(
                    "table=0,priority={},udp,nw_dst={},tp_dst={},actions=goto_table:1",
                    2_000 + n % 64,
                    dotted(destination(30, n)),
                    n % 3
                ),
                _ => route(destination(30, n), n),
            };
            text += &line;
            text.push('\n');
        }
        let widening: String = WIDENING
            .iter()
            .map(|condition| format!("table=0,priority=6000,{condition},actions=goto_table:1\n"))
            .collect();
        // Half of the changes add rules. A rule on a new field is deleted before the next such rule is added,
        // so each addition and deletion changes the set of examined fields.
        let share = (share / 2).max(2);
        Ok(Self {
            added: parse(&text)?,
            widening: parse(&widening)?,
            living: VecDeque::new(),
            living_max: LIVING_MAX.min(share - 1),
            share,
            adds: 0,
            widened: 0,
        })
    }

    /// Returns the next change, or `None` if there are no rules to add.
    pub fn next(&mut self) -> Option<FlowMod> {
        if self.living.len() >= self.living_max
            && let Some(oldest) = self.living.pop_front()
        {
            return Some(FlowMod { command: FlowModCommand::DeleteStrict, ..oldest });
        }
        self.adds += 1;
        let added = if self.adds.is_multiple_of(self.share) {
            self.widened += 1;
            self.widening.get(self.widened % self.widening.len())?
        } else {
            self.added.get(self.adds % self.added.len())?
        };
        self.living.push_back(added.clone());
        Some(added.clone())
    }

    /// Returns the rules that were added and not deleted yet.
    #[cfg(test)]
    pub fn living(&self) -> impl ExactSizeIterator<Item = &FlowMod> {
        self.living.iter()
    }

    /// Returns the number of added rules that examine a new field.
    pub fn widened(&self) -> usize {
        self.widened
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_and_delete_in_turn() {
        let sizes = Sizes { flows: 100, routes: 200 };
        let mut changes = Changes::new(sizes, 100).unwrap();
        let all: Vec<FlowMod> = (0..10_000).map(|_| changes.next().unwrap()).collect();
        let deleted = all.iter().filter(|m| m.command == FlowModCommand::DeleteStrict).count();
        assert!((4_900..=5_000).contains(&deleted), "{deleted}");
        assert_eq!(changes.widened(), 100);
        assert!(changes.living.len() <= LIVING_MAX);
    }

    #[test]
    fn a_rule_on_a_new_field_is_deleted_before_the_next() {
        for share in [2, 10, 100, 1_000] {
            let mut changes = Changes::new(Sizes { flows: 10, routes: 10 }, share).unwrap();
            for _ in 0..20 * share {
                changes.next().unwrap();
                let wide = changes.living.iter().filter(|rule| rule.priority == 6_000).count();
                assert!(wide <= 1, "{wide} of 1 in {share}");
            }
            assert!(changes.widened() > 0);
        }
    }
}
