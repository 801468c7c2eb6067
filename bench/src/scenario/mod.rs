// SPDX-License-Identifier: Apache-2.0
//! The three scenarios of the paper's measurements, as rules and packets: `server`, `video`, `vehicles`.
//!
//! Table 0 matches destination MAC address and EtherType (engine mask). Table 1 is an access list on IPv6
//! 5-tuples, SEADP or WSM (mask). Table 2 matches the destination IP address (lpm) or MAC address (exact),
//! writes the next hop's MAC address, and outputs the packet. docs/wire-formats.md describes byte layouts and
//! key bits. The same [`Options`] and [`Sources`] give the same scenario.
//!
//! A linear search of the rules gives the expected output of a flow ([`Flow::sent`]).

use flow::TableId;
mod acl;
mod routes;
mod rule;
mod server;
mod vehicles;
mod video;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write;

use fastrand::Rng;
pub use sim::arrivals::{Draw, Popularity};

use crate::{Error, Sources};
use rule::{Field, Form, Rule, hit, mac, mac_bytes, mix};

/// Number of output ports, which begin with port 2. Packets arrive on port 1.
pub const PORTS: u32 = 4;

/// Number of blocks of MAC addresses that table 0 distinguishes (prefixes of 28 bits).
const BLOCKS: u128 = 16;

/// Number of MAC addresses of a switch that routes.
const OWN_MACS: usize = 64;

/// EtherType of the short form of SEADP (docs/wire-formats.md); not assigned.
pub const SEADP_ETHERTYPE: u16 = 0xff99;

/// EtherType of WAVE short messages.
pub const WSM_ETHERTYPE: u16 = 0x88dc;

/// Kind of scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Servers of a data centre: IPv6, an access list, routes.
    Server,
    /// Video conferences: SEADP.
    Video,
    /// Vehicles: WAVE short messages, hosts identified by MAC address.
    Vehicles,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Server, Self::Video, Self::Vehicles];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Video => "video",
            Self::Vehicles => "vehicles",
        }
    }
}

/// Parameters from which a scenario is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Kind of scenario.
    pub kind: Kind,
    /// Number of entries in each of tables 1 and 2.
    pub rules: usize,
    /// Number of flows that hit low-latency entries only.
    pub flows: usize,
    /// Number of flows that hit a normal entry in table 1.
    pub normal_flows: usize,
    /// Length of a packet on the wire in bytes, including the FCS: 64 to 1,518. Packets with longer headers
    /// have their minimum length.
    pub bytes: usize,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Options {
    /// Returns options with 64-byte packets, no normal flows, and seed 1.
    #[must_use]
    pub fn new(kind: Kind, rules: usize, flows: usize) -> Self {
        Self { kind, rules, flows, normal_flows: 0, bytes: 64, seed: 1 }
    }
}

/// A flow: its packet, and the expected output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Packet without its FCS, as received on port 1.
    pub packet: Vec<u8>,
    /// Whether all entries that the packet hits are low-latency.
    pub low_latency: bool,
    /// Expected output port.
    pub port: u32,
    /// Expected destination MAC address of the output; all other bytes are unchanged.
    pub next_hop: [u8; 6],
}

impl Flow {
    /// Returns the expected output packet.
    #[must_use]
    pub fn sent(&self) -> Vec<u8> {
        let mut sent = self.packet.clone();
        sent[..6].copy_from_slice(&self.next_hop);
        sent
    }
}

/// Rules and packets of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Rules of all tables, in the flow syntax (docs/flow-syntax.md).
    pub rules: String,
    /// Flows, low-latency ones first, all different.
    pub flows: Vec<Flow>,
}

/// A scenario before its flows are drawn: its rules, and functions that build packets.
struct Recipe {
    fields: Vec<Field>,
    /// EtherType of the packets, and its notation in table 0.
    ether_type: (u16, &'static str),
    /// Text before the fields of each entry in table 1 and in table 2.
    headers: [&'static str; 2],
    /// Table 1, best first; priorities are assigned later.
    list: Vec<Rule>,
    /// Table 2, best first.
    fib: Vec<Rule>,
    /// Draws the values of bits that rules do not examine.
    draw: fn(&mut Rng, &mut [u128]),
    /// Builds a packet of at least the given length, and corrects dependent values. Returns `None` if the
    /// values are incompatible with each other or with this length.
    build: fn(&mut [u128], usize) -> Option<Vec<u8>>,
}

impl Scenario {
    /// Generates a scenario.
    ///
    /// # Errors
    /// Returns an error if the sources contain no rules, or no rules that the requested flows can hit.
    pub fn new(options: &Options, sources: &Sources) -> Result<Self, Error> {
        let mut recipe = match options.kind {
            Kind::Server => server::recipe(options, sources),
            Kind::Video => video::recipe(options, sources),
            Kind::Vehicles => vehicles::recipe(options),
        };
        if recipe.list.len() != options.rules {
            return Err(Error::Contender(format!(
                "no scenario with {} rules could be generated",
                options.rules
            )));
        }
        rule::rank(&mut recipe.list);
        for (place, rule) in recipe.list.iter_mut().enumerate() {
            rule.low_latency = !mix(place as u64 ^ options.seed << 32).is_multiple_of(5);
        }
        let flows = flows(&recipe, options)?;
        Ok(Self { rules: recipe.rules(), flows })
    }

    /// Returns `count` flows in the order of their packets, as indices into [`Scenario::flows`]. Of a
    /// thousand packets, `normal_per_mille` belong to normal flows, uniformly distributed; the others belong
    /// to low-latency flows, according to their popularity.
    #[must_use]
    pub fn traffic(
        &self,
        count: usize,
        popularity: Popularity,
        normal_per_mille: u32,
        seed: u64,
    ) -> Vec<usize> {
        let low_latency = self.flows.iter().filter(|flow| flow.low_latency).count();
        let normal = self.flows.len() - low_latency;
        let mut draw = Draw::new(low_latency, popularity);
        let mut rng = Rng::with_seed(seed);
        let mut next = || {
            if low_latency == 0 || normal > 0 && rng.u32(..1_000) < normal_per_mille {
                low_latency + rng.usize(..normal)
            } else {
                draw.flow(&mut rng)
            }
        };
        (0..if self.flows.is_empty() { 0 } else { count }).map(|_| next()).collect()
    }
}

impl Recipe {
    /// Returns the rules of all tables as text.
    fn rules(&self) -> String {
        let mut text = String::new();
        for block in 0..BLOCKS {
            let block = format!("dl_dst={}/ff:ff:ff:f0:00:00", mac(0x0200_0000_0000 | block << 20));
            // Other protocols continue in separate tables, which are empty here.
            for ether_type in [0x86dd, SEADP_ETHERTYPE, WSM_ETHERTYPE] {
                let table = if ether_type == self.ether_type.0 { 1 } else { 3 };
                // Formatting to a string cannot fail.
                let _ = writeln!(
                    text,
                    "low_latency,table=0,priority=20,{}={ether_type:#x},{block},actions=goto_table:{table}",
                    self.ether_type.1
                );
            }
            let _ = writeln!(text, "table=0,priority=10,{block},actions=drop");
        }
        self.list.iter().for_each(|rule| rule.write(&mut text, TableId(1), self.headers[0], &self.fields));
        self.fib.iter().for_each(|rule| rule.write(&mut text, TableId(2), self.headers[1], &self.fields));
        text
    }
}

/// Maximum number of attempts per flow. Few attempts give a UDP packet that is short enough.
const ATTEMPTS: usize = 2_000;

/// Draws flows that differ in the fields that tables examine.
fn flows(recipe: &Recipe, options: &Options) -> Result<Vec<Flow>, Error> {
    let mut rng = Rng::with_seed(options.seed);
    let mut seen = HashSet::new();
    let mut made = Vec::with_capacity(options.flows + options.normal_flows);
    for n in 0..options.flows + options.normal_flows {
        let low_latency = n < options.flows;
        let flow = (0..ATTEMPTS).find_map(|_| {
            let (values, flow) = draw(recipe, &mut rng, low_latency, options.bytes)?;
            seen.insert(values).then_some(flow)
        });
        made.push(flow.ok_or_else(|| {
            let kind = options.kind.name();
            Error::Contender(format!(
                "{kind}: only {n} different flows of {} bytes were found",
                options.bytes
            ))
        })?);
    }
    Ok(made)
}

/// Draws one flow. Returns `None` if the attempt fails.
fn draw(recipe: &Recipe, rng: &mut Rng, low_latency: bool, bytes: usize) -> Option<(Vec<u128>, Flow)> {
    let mut values = vec![0; recipe.fields.len()];
    let mut fixed = values.clone();
    (recipe.draw)(rng, &mut values);
    let rule = &recipe.list[rng.usize(..recipe.list.len())];
    rule.impose(&mut values, &mut fixed);
    let mut routes = (0..4).map(|_| &recipe.fib[rng.usize(..recipe.fib.len())]);
    if let Some(route) = routes.find(|route| route.agrees(&values, &fixed)) {
        route.impose(&mut values, &mut fixed);
    }
    let packet = (recipe.build)(&mut values, bytes.clamp(64, 1_518) - 4)?;
    if hit(&recipe.list, &values)?.low_latency != low_latency {
        return None;
    }
    let (next_hop, port) = hit(&recipe.fib, &values)?.leaves?;
    Some((values, Flow { packet, low_latency, port, next_hop: mac_bytes(next_hop) }))
}

/// Destination MAC address, the first field of every scenario.
const DESTINATION: Field = Field { name: "dl_dst", bits: 48, form: Form::Mac };

/// Returns the first 14 bytes of a packet: Ethernet addresses and EtherType.
fn ethernet(destination: u128, ether_type: u16) -> Vec<u8> {
    let mut bytes = mac_bytes(destination).to_vec();
    bytes.extend([2, 0, 0, 0, 0, 9]);
    bytes.extend(ether_type.to_be_bytes());
    bytes
}

/// Returns one of the switch's own addresses.
fn own_mac(rng: &mut Rng) -> u128 {
    routes::host(rng.usize(..OWN_MACS))
}
