// SPDX-License-Identifier: Apache-2.0
//! Coverage counters, which show whether the generator still produces every situation.

use super::path_use::PathUse;
use dataplane::{ExpressFigures, LutFigures};
use port_cache::MissFigures;
use std::collections::BTreeMap;
use std::fmt;

/// Coverage of one or several cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Packets compared with the reference.
    pub packets: usize,
    /// Packets that matched two or more entries of some table.
    pub overlapping: usize,
    /// Changes of entries, groups, meters and ports by the driver. Changes of groups and meters, and deletes
    /// of entries by output, count only if they changed the treatment of a test packet.
    pub updates: usize,
    /// Updates that changed the treatment of a test packet.
    pub live_updates: usize,
    /// All operations, including those of set-up, learning and expiry.
    pub operations: usize,
    /// Entries that timed out.
    pub expired: usize,
    /// Entries and learned addresses whose expiry was checked.
    pub timed_out: usize,
    /// Flow-removed messages compared with the reference.
    pub removed: usize,
    /// Number of times that a meter band applied to a packet.
    pub metered: usize,
    /// Number of floods that exceeded a storm limit.
    pub exceeded_floods: usize,
    /// Number of times that a storm limit closed a port.
    pub closed_ports: usize,
    /// Number of times that a closed port opened again.
    pub reopened_ports: usize,
    /// Ports at their limits of learned addresses, summed over all versions of the rules.
    pub full_ports: usize,
    /// Packets, copies and packet-ins lost for lack of space, by reason.
    pub losses: BTreeMap<&'static str, u64>,
    /// Packets dropped because a backlog was full.
    pub refused: usize,
    /// Number of times that a low-latency packet was held to keep the order of its flow.
    pub held_back: u64,
    /// Flows that contain several of the driver's flows, because no rule examines the bits in which these
    /// flows differ. Summed over all eras.
    pub merged_flows: usize,
    /// Packets of the driver's flows whose packets differ in examined bits, because these bits include test
    /// tags.
    pub unlike: usize,
    /// Numbers of packets that were forwarded, consumed and dropped, in this order.
    pub outcomes: [usize; 3],
    /// Packets sent to the controller.
    pub packet_ins: usize,
    /// Packets that were looked up in several tables.
    pub multi_table: usize,
    /// Number of times that a packet used a group.
    pub group_uses: u64,
    /// Packets whose simulated trace was compared with the reference.
    pub traced: usize,
    /// Packets whose recorded processing was compared with their traces.
    pub judged: usize,
    /// Counters compared with the reference.
    pub counters: usize,
    /// Lookups per engine.
    pub lookups: BTreeMap<&'static str, u64>,
    /// Packets in cases with the fast-forwarding path enabled.
    pub offered: usize,
    /// Packets that stayed on the fast-forwarding path.
    pub fast: u64,
    /// Copies of mirrors.
    pub mirrored: usize,
    /// Packets that the stateless forwarder sent or dropped.
    pub stateless: u64,
    /// Counters of the LUTs.
    pub luts: LutFigures,
    /// Counters of the express path.
    pub express: ExpressFigures,
    /// Hits of path records in cases whose keys need no header at the end of the case, but distant slices.
    pub distant_hits: u64,
    /// Counters of the port caches.
    pub misses: MissFigures,
    /// Packet-outs with the buffer ID of a packet-in for whose answer packets wait.
    pub answered: usize,
    /// Changes made while packets pass, by kind. Changes of entries are not included.
    pub changes: ChangeCounts,
    /// Number of packets that used each feature of the flow model.
    pub features: BTreeMap<&'static str, usize>,
    /// Dropped packets by reason.
    pub drops: BTreeMap<&'static str, usize>,
    /// Frames that waited in an egress queue because of its maximum rate.
    pub rate_held: usize,
    /// Calm cases with large enough LUTs. In a calm case, all entries are low-latency and rules rarely
    /// change.
    pub calm: usize,
    /// Use of the fast-forwarding path in calm cases.
    pub path: PathUse,
}

/// Changes by the driver while packets pass. Changes of entries are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    /// Groups added.
    pub groups_added: usize,
    /// Groups whose weights and watched ports or groups changed.
    pub groups_reweighed: usize,
    /// Groups replaced by different groups.
    pub groups_replaced: usize,
    /// Groups deleted together with the entries that use them.
    pub groups_deleted: usize,
    /// Meters added.
    pub meters_added: usize,
    /// Meters replaced by different meters.
    pub meters_modified: usize,
    /// Meters deleted together with the entries that use them.
    pub meters_deleted: usize,
    /// Number of times that two or more ports were down, removed, or not receiving.
    pub several_ports_down: usize,
    /// Ports added.
    pub ports_added: usize,
    /// Ports removed.
    pub ports_removed: usize,
    /// Deletes of entries filtered by output port.
    pub deletes_by_port: usize,
    /// Deletes of entries filtered by group.
    pub deletes_by_group: usize,
}

impl ChangeCounts {
    fn add(&mut self, other: &Self) {
        for ((_, sum), (_, count)) in self.all_mut().into_iter().zip(other.all()) {
            *sum += count;
        }
    }

    /// Returns each counter with its name.
    #[must_use]
    pub fn all(mut self) -> [(&'static str, usize); 12] {
        self.all_mut().map(|(name, count)| (name, *count))
    }

    fn all_mut(&mut self) -> [(&'static str, &mut usize); 12] {
        [
            ("groups added", &mut self.groups_added),
            ("groups reweighed", &mut self.groups_reweighed),
            ("groups replaced", &mut self.groups_replaced),
            ("groups deleted", &mut self.groups_deleted),
            ("meters added", &mut self.meters_added),
            ("meters modified", &mut self.meters_modified),
            ("meters deleted", &mut self.meters_deleted),
            ("several ports down", &mut self.several_ports_down),
            ("ports added", &mut self.ports_added),
            ("ports removed", &mut self.ports_removed),
            ("deletes by port", &mut self.deletes_by_port),
            ("deletes by group", &mut self.deletes_by_group),
        ]
    }
}

impl Coverage {
    /// Adds the counters of another case.
    pub fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.overlapping += other.overlapping;
        self.updates += other.updates;
        self.live_updates += other.live_updates;
        self.operations += other.operations;
        self.expired += other.expired;
        self.timed_out += other.timed_out;
        self.removed += other.removed;
        self.metered += other.metered;
        self.exceeded_floods += other.exceeded_floods;
        self.closed_ports += other.closed_ports;
        self.reopened_ports += other.reopened_ports;
        self.full_ports += other.full_ports;
        for (name, count) in &other.losses {
            *self.losses.entry(name).or_default() += count;
        }
        self.refused += other.refused;
        self.merged_flows += other.merged_flows;
        self.unlike += other.unlike;
        self.held_back += other.held_back;
        for (sum, count) in self.outcomes.iter_mut().zip(other.outcomes) {
            *sum += count;
        }
        self.packet_ins += other.packet_ins;
        self.multi_table += other.multi_table;
        self.group_uses += other.group_uses;
        self.traced += other.traced;
        self.judged += other.judged;
        self.counters += other.counters;
        for (engine, lookups) in &other.lookups {
            *self.lookups.entry(engine).or_default() += lookups;
        }
        self.offered += other.offered;
        self.fast += other.fast;
        self.mirrored += other.mirrored;
        self.stateless += other.stateless;
        self.luts.add(&other.luts);
        self.express.add(&other.express);
        self.distant_hits += other.distant_hits;
        self.misses.add(&other.misses);
        self.answered += other.answered;
        self.changes.add(&other.changes);
        for (sums, counts) in [(&mut self.features, &other.features), (&mut self.drops, &other.drops)] {
            for (name, count) in counts {
                *sums.entry(name).or_default() += count;
            }
        }
        self.rate_held += other.rate_held;
        self.calm += other.calm;
        self.path.add(&other.path);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let [forwarded, consumed, dropped] = self.outcomes;
        writeln!(f, "packets {}", self.packets)?;
        writeln!(f, "  matched by overlapping rules {:.1} %", share(self.overlapping, self.packets))?;
        writeln!(f, "  through more than one table {:.1} %", share(self.multi_table, self.packets))?;
        writeln!(
            f,
            "  forwarded {:.1} %, consumed {:.1} %, dropped {:.1} %, packet-ins {}",
            share(forwarded, self.packets),
            share(consumed, self.packets),
            share(dropped, self.packets),
            self.packet_ins
        )?;
        writeln!(
            f,
            "  without room in a backlog {:.1} %, held back for order {:.1} %",
            share(self.refused, self.packets),
            share(self.held_back as usize, self.packets)
        )?;
        let lookups: u64 = self.lookups.values().sum();
        write!(f, "  lookups {lookups}")?;
        for (engine, served) in &self.lookups {
            write!(f, ", {engine} {:.1} %", share(*served as usize, lookups as usize))?;
        }
        writeln!(f)?;
        writeln!(f, "  uses of groups {}", self.group_uses)?;
        writeln!(f, "  flows of packets that differ in unexamined bits {}", self.merged_flows)?;
        writeln!(f, "  whose flow differs in examined test tags {:.1} %", share(self.unlike, self.packets))?;
        writeln!(f, "  over the rate of a band {:.1} %", share(self.metered, self.packets))?;
        writeln!(
            f,
            "  floods over a storm limit {}, ports closed {} times and opened again {} times, ports at their limit \
             of addresses {}",
            self.exceeded_floods, self.closed_ports, self.reopened_ports, self.full_ports
        )?;
        list(f, "lost for lack of room", self.losses.iter().map(|(name, count)| (*name, *count as usize)))?;
        writeln!(f, "  frames held up by the rate of an egress queue {}", self.rate_held)?;
        writeln!(f, "  calm cases {}: {}", self.calm, self.path)?;
        list(f, "dropped", self.drops.iter().map(|(name, count)| (*name, *count)))?;
        list(f, "met", self.features.iter().map(|(name, count)| (*name, *count)))?;
        list(f, "changes", self.changes.all().into_iter())?;
        writeln!(
            f,
            "updates {}, of which {:.1} % changed the treatment of a packet; operations {}, expired entries {}, \
             expiries checked {}, flow-removed messages {}",
            self.updates,
            share(self.live_updates, self.updates),
            self.operations,
            self.expired,
            self.timed_out,
            self.removed
        )?;
        let luts = &self.luts;
        writeln!(
            f,
            "copies of mirrors: {}\nstateless forwarding: {:.1} %\nfast-forwarding path: {:.1} % of all packets, {:.1} % of {} in cases with LUTs; hits of LUTs {}, known normal {}, misses {}, \
             records verified {}, {} of them against the list of changes, cleaned {}, evicted {}",
            self.mirrored,
            share(self.stateless as usize, self.packets),
            share(self.fast as usize, self.packets),
            share(self.fast as usize, self.offered),
            self.offered,
            luts.hits,
            luts.normal_hits,
            luts.misses,
            luts.verified,
            luts.walked,
            luts.cleaned,
            luts.evicted
        )?;
        write_express(f, &self.express)?;
        writeln!(f, "hits of path records with distant slices {}", self.distant_hits)?;
        write!(
            f,
            "traces compared: {} of simulated packets, {} of recorded packets; counters compared {}",
            self.traced, self.judged, self.counters
        )
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    counts: impl Iterator<Item = (&'static str, usize)>,
) -> fmt::Result {
    write!(f, "  {title}:")?;
    for (at, (name, count)) in counts.enumerate() {
        write!(f, "{} {name} {count}", if at == 0 { "" } else { "," })?;
    }
    writeln!(f)
}

fn write_express(f: &mut fmt::Formatter<'_>, express: &ExpressFigures) -> fmt::Result {
    let asked = express.hits + express.misses;
    writeln!(
        f,
        "express path: hits {} ({:.1} % of {} that it looked up), bypassed {}, records learned {}, renewed {}, \
         compared with changes {}, of which {} were still valid, taken over from an earlier plan {}, displaced {}, \
         refused {}",
        express.hits,
        100.0 * express.hits as f64 / asked.max(1) as f64,
        asked,
        express.bypassed,
        express.learned,
        express.renewed,
        express.verified,
        express.upheld,
        express.inherited,
        express.displaced,
        express.refused
    )
}
