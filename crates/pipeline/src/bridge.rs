// SPDX-License-Identifier: Apache-2.0
//! Settings of the ports for NORMAL, in the form in which workers read them.
//!
//! Without settings, NORMAL has no [`Bridge`] and forwards frames unchanged.

use actions::{Retag, TokenBucket};
use flow::bridge::{BridgeConfig, FloodKind, PortVlans, StormLimits, TrunkVlans, VID_MAX};
use flow::{Nanos, PortNo};
use std::sync::Arc;

/// Words of a set of VLAN IDs, one bit for each ID.
const WORDS: usize = (VID_MAX as usize + 1) / 64;

/// Kinds of flooded packets, in the order of [`BridgePort::buckets`].
const KINDS: [FloodKind; 3] = [FloodKind::Broadcast, FloodKind::Multicast, FloodKind::UnknownUnicast];

const SECOND_NS: u64 = 1_000_000_000;

/// Settings of all ports.
#[derive(Debug)]
pub struct Bridge {
    /// Ports with settings, sorted by number.
    ports: Vec<(PortNo, BridgePort)>,
}

/// Settings of a port.
#[derive(Clone, Debug)]
struct BridgePort {
    storm: StormLimits,
    /// Token buckets of broadcasts, multicasts and packets to unknown addresses. All workers share them.
    buckets: [Option<Arc<TokenBucket>>; 3],
    /// VLANs that the port carries.
    carried: [u64; WORDS],
    /// VLAN of frames without a VLAN. It is 0 if they stay without one.
    native: u16,
    /// Whether the port admits frames with a VLAN.
    admits_tagged: bool,
    /// VLAN whose frames are sent without a tag.
    untagged: Option<u16>,
}

impl Bridge {
    /// Compiles the settings. Token buckets whose limits have not changed are those of `before`.
    #[must_use]
    pub fn compile(config: &BridgeConfig, before: Option<&Self>) -> Self {
        let compile = |(number, settings): (&PortNo, &flow::BridgePort)| {
            let before = before.and_then(|before| before.port(*number));
            (*number, BridgePort::compile(settings, before))
        };
        // The map is sorted by port number.
        Self { ports: config.ports.iter().map(compile).collect() }
    }

    /// Returns the same settings without storm limits, for search workers. A search must take no tokens.
    #[must_use]
    pub fn without_limits(&self) -> Self {
        let without = |port: &BridgePort| BridgePort { buckets: [None, None, None], ..port.clone() };
        Self { ports: self.ports.iter().map(|(number, port)| (*number, without(port))).collect() }
    }

    fn port(&self, number: PortNo) -> Option<&BridgePort> {
        // Most switches number their ports 1, 2, 3 and so on.
        match self.ports.get((number.0 as usize).wrapping_sub(1)) {
            Some((found, port)) if *found == number => Some(port),
            _ => {
                let at = self.ports.binary_search_by_key(&number, |(number, _)| *number).ok()?;
                self.ports.get(at).map(|(_, port)| port)
            }
        }
    }

    /// Returns the VLAN of a frame with this VLAN ID (0 without a tag), or `None` if its ingress port does
    /// not admit it.
    pub(crate) fn vlan(&self, in_port: PortNo, vid: u16) -> Option<u16> {
        let Some(port) = self.port(in_port) else { return Some(vid) };
        let vlan = if vid == 0 { port.native } else { vid };
        let is_admitted = vid == 0 || port.admits_tagged;
        (is_admitted && port.carries(vlan)).then_some(vlan)
    }

    /// Charges a packet that is to be flooded. Returns the kind of packet if it exceeds its limit, and
    /// whether the port must be closed.
    pub(crate) fn exceeded(
        &self,
        in_port: PortNo,
        destination: [u8; 6],
        now: Nanos,
    ) -> Option<(FloodKind, bool)> {
        let port = self.port(in_port)?;
        let kind = match destination {
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => FloodKind::Broadcast,
            [first, ..] if first & 1 != 0 => FloodKind::Multicast,
            _ => FloodKind::UnknownUnicast,
        };
        let bucket = port.buckets[kind as usize].as_ref()?;
        (!bucket.take(now)).then_some((kind, port.storm.shut.is_some()))
    }

    /// Returns how a port changes the tag of a frame that belongs to `vlan` and has the VLAN ID `tag`, if it
    /// has a tag. Returns `None` if the port does not carry the VLAN.
    pub(crate) fn retag(&self, port: PortNo, vlan: u16, tag: Option<u16>) -> Option<Retag> {
        let port = self.port(port);
        if port.is_some_and(|port| !port.carries(vlan)) {
            return None;
        }
        let is_untagged = port.is_some_and(|port| port.untagged == Some(vlan));
        Some(match tag {
            Some(_) if is_untagged => Retag::Pop,
            None if is_untagged => Retag::Keep,
            _ if vlan == 0 => Retag::Keep,
            Some(vid) if vid == vlan => Retag::Keep,
            Some(_) => Retag::Set(vlan),
            None => Retag::Push(vlan),
        })
    }
}

impl BridgePort {
    fn compile(settings: &flow::BridgePort, before: Option<&Self>) -> Self {
        let flow::BridgePort { vlans, storm, .. } = settings;
        let buckets = KINDS.map(|kind| {
            let limit = storm.of(kind)?;
            let kept = before.filter(|before| before.storm.of(kind) == Some(limit));
            let kept = kept.and_then(|before| before.buckets[kind as usize].clone());
            let cost_ns = SECOND_NS / u64::from(limit.rate.max(1));
            Some(kept.unwrap_or_else(|| Arc::new(TokenBucket::new(cost_ns.max(1), limit.burst.max(1)))))
        });
        let (carried, native) = match vlans {
            PortVlans::Access(vid) => ([0; WORDS], *vid),
            PortVlans::Trunk(trunks) => (set(trunks), 0),
            PortVlans::NativeTagged { native, trunks } | PortVlans::NativeUntagged { native, trunks } => {
                (set(trunks), *native)
            }
        };
        let is_trunk = matches!(vlans, PortVlans::Trunk(_));
        let is_untagged = matches!(vlans, PortVlans::Access(_) | PortVlans::NativeUntagged { .. });
        let mut port = Self {
            storm: *storm,
            buckets,
            carried,
            native,
            admits_tagged: !matches!(vlans, PortVlans::Access(_)),
            untagged: is_untagged.then_some(native),
        };
        if !is_trunk {
            add(&mut port.carried, native);
        }
        port
    }

    fn carries(&self, vlan: u16) -> bool {
        self.carried.get(usize::from(vlan / 64)).is_some_and(|word| word >> (vlan % 64) & 1 != 0)
    }
}

fn set(trunks: &TrunkVlans) -> [u64; WORDS] {
    let TrunkVlans::Only(vids) = trunks else { return [u64::MAX; WORDS] };
    let mut all = [0; WORDS];
    vids.iter().for_each(|vid| add(&mut all, *vid));
    all
}

fn add(set: &mut [u64; WORDS], vid: u16) {
    if let Some(word) = set.get_mut(usize::from(vid / 64)) {
        *word |= 1 << (vid % 64);
    }
}

#[cfg(test)]
mod tests;
