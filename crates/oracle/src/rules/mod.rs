// SPDX-License-Identifier: Apache-2.0
//! Random rules, derived from the test packets, so that rules match packets and actions are applicable.

mod actions;
mod bridge;
pub(super) mod edits;
mod groups;
mod matching;
mod meters;
mod stateless;

use super::templates::Template;
use fastrand::Rng;
use flow::{EntryFlags, Field, FlowMod, Match, PortNo, TableId};
use matching::{matching, slice};
use wire::layers::header;

/// Characteristics of the rules of a case.
#[derive(Clone, Debug)]
pub(super) struct Style {
    /// Whether the case is calm: all entries are low-latency, and rules rarely change. Nearly every packet
    /// must then stay on the fast-forwarding path.
    pub calm: bool,
    /// Number of initial ports, numbered from 1.
    pub ports: u32,
    /// Tables in use in ascending order, except the linear table. The first one is table 0.
    pub tables: Vec<Table>,
    /// Number of the linear table.
    pub linear: TableId,
    /// Bytes that slices may contain.
    pub reach: Reach,
    /// Slices that rules use in addition to named fields.
    pub slices: Vec<Field>,
    /// Whether packets of a flow differ in their TTL. The case then has no slices, because no rule may
    /// examine the TTL.
    pub ttl_varies: bool,
    /// Share of routing entries (which only rewrite MAC addresses and the TTL) among the entries that lead to
    /// another table, in sixteenths. Packets that hit only routing entries before their last table can have a
    /// path record.
    pub routing: u8,
    /// Whether half of the outputs are to NORMAL and few entries rewrite MAC addresses. NORMAL then learns
    /// the destination addresses of many flows.
    pub bridges: bool,
    /// Whether tables examine slices that are counted from a moving base, and entries edit packets.
    pub moving: bool,
    /// Number of groups, numbered from 1. Some may be missing at times.
    pub groups: u32,
    /// Number of meters, numbered from 1. Some may be missing at times.
    pub meters: u32,
    /// Share of low-latency entries, in tenths.
    pub low_latency: u8,
    /// Priorities of the entries, so few that many entries share a priority.
    pub priorities: Vec<u16>,
}

/// A table in use.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Table number.
    pub number: TableId,
    /// Common form of the table's rules.
    pub kind: Kind,
    /// Base with which most packets reach the table, in bytes.
    pub base: u16,
}

/// Common form of the rules of a table.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Exact values of these fields.
    Exact(Vec<Field>),
    /// Prefixes of one field.
    Routes(Field),
    /// Prefixes of the source and destination address, with protocol and ports.
    AccessList,
    /// Arbitrary matches.
    Any,
    /// Rules that match every packet, with any priority.
    CatchAll,
}

impl Kind {
    fn random(rng: &mut Rng, ttl_varies: bool, reach: Reach) -> Self {
        if reach == Reach::Distant {
            return match rng.u8(0..6) {
                0 => Self::Exact(vec![Field::InPort, Field::EthDst]),
                1 => Self::CatchAll,
                2 | 3 => Self::Routes(slice(rng, reach)),
                _ => Self::Any,
            };
        }
        let few: [&[Field]; 6] = [
            &[Field::InPort, Field::EthDst],
            &[Field::EthSrc],
            &[Field::EthType, Field::Ipv4Src, Field::Ipv4Dst],
            &[Field::VlanVid, Field::EthDst],
            &[Field::Metadata],
            &[Field::EthType, Field::Ipv6Dst],
        ];
        let routed = [Field::Ipv4Dst, Field::Ipv4Src, Field::Ipv6Dst, Field::Ipv6Dst, Field::EthDst];
        match rng.u8(0..10) {
            0..2 => Self::Exact(few[rng.usize(0..few.len())].to_vec()),
            2 if !ttl_varies => Self::Routes(slice(rng, reach)),
            2..5 => Self::Routes(routed[rng.usize(0..routed.len())]),
            5 | 6 => Self::AccessList,
            9 => Self::CatchAll,
            _ => Self::Any,
        }
    }

    /// Returns the number of rules in a large table of this kind. Large and small tables have different
    /// engines.
    pub fn large(&self) -> usize {
        if matches!(self, Self::Routes(_)) { 120 } else { 400 }
    }
}

/// Bytes that the slices of a case may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Slices end within an IPv4 header without options, as in most cases.
    Near,
    /// Slices whose base is L3 can contain bytes of L4, even after IPv4 options or an IPv6 header.
    Upper,
    /// Slices are of the packet, whatever its headers are, and most have bytes after the first 64. Rules
    /// match no field that needs headers.
    Distant,
}

/// Number of leading bits of a packet that distant slices may contain. The express path has templates for
/// most of these slices, but not for all.
const DISTANT_BITS: u32 = 1_080;

impl Reach {
    /// Returns the maximum end of slices whose base is L3, in bits from the start of L3.
    fn l3_bits(self) -> u32 {
        if self == Self::Upper { 480 } else { 160 }
    }

    /// Returns the number of leading bytes that slices may contain, even after labels were removed.
    fn bytes(self) -> usize {
        match self {
            // An Ethernet header, two VLAN tags and an IPv4 header.
            Self::Near => 42,
            // An Ethernet header, two VLAN tags, three labels that may be removed, and 60 bytes from L3.
            Self::Upper => 94,
            // Two VLAN tags and three labels may be removed.
            Self::Distant => DISTANT_BITS as usize / 8 + 20,
        }
    }
}

/// Maximum number of entries in the linear table.
const PLACES: u32 = 4;

/// Priorities at the ends of the range and near powers of two, and common priorities.
const PRIORITIES: [u16; 14] =
    [0, 1, 2, 10, 100, 1_000, 11_000, 32_766, 32_767, 32_768, 32_769, 49_152, 65_534, u16::MAX];

/// Packets for which an entry, a group or a packet-out is generated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    /// One of the packets.
    pub template: &'a Template,
    /// Ingress port of the template's packets.
    pub in_port: PortNo,
    /// Headers that all these packets have.
    known: u32,
}

/// Bit for a header of stateless forwarding, in addition to [`header`].
const TAGGED: u32 = 1 << 31;

impl<'a> Scope<'a> {
    /// Returns the scope of arbitrary packets, of which the template is one.
    pub fn any(template: &'a Template, in_port: PortNo) -> Self {
        Self { template, in_port, known: 0 }
    }

    /// Returns the scope of the template's packets.
    pub fn of(template: &'a Template, in_port: PortNo) -> Self {
        let tagged = if template.is_tagged() { TAGGED } else { 0 };
        Self { template, in_port, known: template.layers().present | tagged }
    }

    /// Returns the scope of the packets that satisfy a match, of which the template is one.
    pub fn matching(self, rng: &mut Rng, matching: &Match) -> Self {
        let exact = |field| matching.get(field).filter(|c| c.is_exact()).map(|c| c.value);
        let mut known: u32 = match exact(Field::EthType) {
            Some(0x0800) => header::IP | header::IPV4,
            Some(0x86dd) => header::IP | header::IPV6,
            Some(0x8847 | 0x8848) => header::MPLS,
            Some(0x88e7) => header::PBB,
            Some(0x0806) => header::ARP,
            Some(_) if self.template.is_tagged() => TAGGED,
            _ => 0,
        };
        known |= match exact(Field::IpProto) {
            Some(6) => header::TCP,
            Some(17) => header::UDP,
            Some(132) => header::SCTP,
            Some(1) => header::ICMPV4,
            Some(58) => header::ICMPV6,
            _ => 0,
        };
        if exact(Field::VlanVid).is_some_and(|vid| vid & 0x1000 != 0) {
            known |= header::VLAN;
        }
        // Most packets that have the template's address or port also have the template's headers.
        if known & !header::VLAN != 0 && matching.fields().count() > 1 || rng.u8(0..12) == 0 {
            known |= self.template.layers().present;
        }
        Self { known, ..self }
    }
}

impl Style {
    pub fn random(rng: &mut Rng, calm: bool, has_records: bool, reach: Reach) -> Self {
        let ttl_varies = rng.bool() && reach != Reach::Distant;
        let count = [1, 2, 2, 3, 3, 4, 5, 7][rng.usize(0..8)];
        let numbers = table_numbers(rng, count);
        let linear = TableId(linear_number(rng, &numbers));
        // In some calm cases no table examines any field.
        let plain = calm && rng.u8(0..3) == 0;
        // No rule may examine the TTL if it varies.
        let moving = !ttl_varies && rng.u8(0..8) > 0;
        let table = |number, rng: &mut Rng| Table {
            number: TableId(number),
            kind: match rng.u8(0..8) {
                _ if plain => Kind::CatchAll,
                0 | 1 if moving => Kind::Routes(edits::moving_slice(rng)),
                2 if moving => Kind::Exact(vec![edits::moving_slice(rng)]),
                _ => Kind::random(rng, ttl_varies, reach),
            },
            base: if moving && number > 0 { edits::BASES[rng.usize(0..edits::BASES.len())] } else { 0 },
        };
        let mut tables: Vec<Table> = numbers.into_iter().map(|number| table(number, rng)).collect();
        if reach == Reach::Distant && !plain {
            tables[0].kind = Kind::Routes(slice(rng, reach));
        }
        let slices = (0..if ttl_varies { 0 } else { rng.usize(0..4) }).map(|_| slice(rng, reach));
        let mut slices: Vec<Field> = slices.collect();
        if moving {
            slices.extend((0..rng.usize(1..3)).map(|_| edits::moving_slice(rng)));
        }
        let mut some = |most| if rng.bool() { rng.u32(1..=most) } else { 0 };
        let (groups, meters) = (some(4), some(3));
        let low_latency = if calm { 10 } else { [7, 10, 10, 10][rng.usize(0..4)] };
        let routing = if has_records { [14, 16, 16, 16][rng.usize(0..4)] } else { 0 };
        let bridges = rng.u8(0..6) == 0 && reach != Reach::Distant;
        let priority = |rng: &mut Rng| match rng.u8(0..4) {
            0 => rng.u16(..),
            _ => PRIORITIES[rng.usize(0..PRIORITIES.len())],
        };
        let priorities = (0..rng.usize(3..7)).map(|_| priority(rng)).collect();
        Self {
            calm,
            ports: rng.u32(3..8),
            tables,
            linear,
            reach,
            slices,
            ttl_varies,
            routing,
            bridges,
            moving,
            groups,
            meters,
            low_latency,
            priorities,
        }
    }

    /// Returns the number of leading bytes that slices may contain, even after labels were removed.
    pub fn examined_bytes(&self) -> usize {
        let moved = usize::from(edits::BASES.into_iter().max().unwrap_or_default());
        if self.moving { self.reach.bytes() + moved } else { self.reach.bytes() }
    }

    /// Returns the base with which most packets reach a table, in bytes.
    fn base_of(&self, table: TableId) -> u16 {
        self.tables.iter().find(|t| t.number == table).map_or(0, |t| t.base)
    }

    /// Returns the numbers of the initial ports.
    pub fn port_numbers(&self) -> impl Iterator<Item = PortNo> + Clone + use<> {
        (1..=self.ports).map(PortNo)
    }

    /// Returns the number of a random initial port.
    pub fn any_port(&self, rng: &mut Rng) -> PortNo {
        PortNo(rng.u32(1..=self.ports))
    }

    fn kind(&self, table: TableId) -> &Kind {
        self.tables.iter().find(|t| t.number == table).map_or(&Kind::Any, |t| &t.kind)
    }

    /// Returns an entry of this table that the packet matches.
    pub fn entry(&self, rng: &mut Rng, table: TableId, template: &Template, in_port: PortNo) -> FlowMod {
        if table == self.linear {
            return FlowMod {
                table: Some(table),
                matching: Match::at_index(rng.u32(0..PLACES)),
                low_latency: self.lane_of(rng),
                instructions: self.instructions(rng, table, Scope::any(template, in_port)),
                ..FlowMod::default()
            };
        }
        if rng.u8(0..8) == 0 {
            return self.last_resort(rng, table, template, in_port);
        }
        let kind = self.kind(table);
        let fields: Vec<Field> = match kind {
            Kind::Exact(fields) => fields.clone(),
            Kind::Routes(field) => vec![*field],
            Kind::AccessList => {
                let ports = [Field::TcpSrc, Field::TcpDst, Field::UdpSrc, Field::UdpDst];
                let of = [Field::Ipv4Src, Field::Ipv4Dst, Field::IpProto, ports[rng.usize(0..4)]];
                of.into_iter().filter(|_| rng.u8(0..3) != 0).collect()
            }
            Kind::CatchAll => vec![],
            Kind::Any => (0..rng.usize(0..4)).map(|_| self.field(rng)).collect(),
        };
        let timed = !self.calm && rng.u8(0..6) == 0;
        let seconds = |rng: &mut Rng| if timed && rng.bool() { rng.u16(1..5) } else { 0 };
        let (idle_timeout_s, hard_timeout_s) = (seconds(rng), seconds(rng));
        let moved = Template { base: self.base_of(table).into(), ..template.clone() };
        let matching = matching(rng, &fields, &moved, in_port, kind);
        let scope = Scope::of(template, in_port).matching(rng, &matching);
        FlowMod {
            table: Some(table),
            priority: match kind {
                Kind::CatchAll if rng.bool() => rng.u16(..),
                _ => self.priorities[rng.usize(0..self.priorities.len())],
            },
            matching,
            instructions: self.instructions(rng, table, scope),
            idle_timeout_s,
            hard_timeout_s,
            flags: EntryFlags { send_flow_removed: timed, ..EntryFlags::default() },
            cookie: rng.u64(0..4),
            low_latency: self.lane_of(rng),
            ..FlowMod::default()
        }
    }

    /// Returns an entry of the lowest priority that matches every packet.
    pub fn last_resort(
        &self,
        rng: &mut Rng,
        table: TableId,
        template: &Template,
        in_port: PortNo,
    ) -> FlowMod {
        let matching = Match::any();
        let scope = Scope::of(template, in_port).matching(rng, &matching);
        FlowMod {
            table: Some(table),
            priority: 0,
            matching,
            instructions: self.instructions(rng, table, scope),
            low_latency: self.lane_of(rng),
            ..FlowMod::default()
        }
    }

    /// Returns the low-latency mark of an entry.
    fn lane_of(&self, rng: &mut Rng) -> Option<bool> {
        (rng.u8(0..10) < self.low_latency).then_some(true)
    }

    fn field(&self, rng: &mut Rng) -> Field {
        if !self.slices.is_empty() && rng.u8(0..4) == 0 {
            return self.slices[rng.usize(0..self.slices.len())];
        }
        match rng.u8(0..3) {
            _ if self.reach == Reach::Distant => {
                [Field::InPort, Field::EthDst, Field::EthSrc, Field::Metadata][rng.usize(0..4)]
            }
            0 => [Field::InPort, Field::EthDst, Field::EthSrc, Field::EthType][rng.usize(0..4)],
            1 => [Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst, Field::VlanVid]
                [rng.usize(0..5)],
            _ => loop {
                let field = Field::NAMED[rng.usize(0..Field::NAMED.len())];
                // A match on the physical port requires a match on the ingress port, which always equals it
                // here.
                if field != Field::InPhyPort {
                    break field;
                }
            },
        }
    }
}

/// Returns table numbers from 0 on: consecutive, spread over all tables, or equal in the last four bits.
fn table_numbers(rng: &mut Rng, count: usize) -> Vec<u8> {
    let mut numbers = vec![0];
    let spread = rng.u8(0..3);
    while numbers.len() < count {
        let last = numbers[numbers.len() - 1];
        let number = match spread {
            0 => last + 1,
            1 => rng.u8(1..=253),
            _ => match numbers[rng.usize(0..numbers.len())].checked_add(16 * rng.u8(1..8)) {
                Some(number) if number <= 253 => number,
                _ => rng.u8(1..=253),
            },
        };
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    numbers
}

/// Returns a number that no other table has.
fn linear_number(rng: &mut Rng, numbers: &[u8]) -> u8 {
    loop {
        let number = if rng.bool() { rng.u8(1..20) } else { rng.u8(1..=254) };
        if !numbers.contains(&number) {
            return number;
        }
    }
}
