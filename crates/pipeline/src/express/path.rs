// SPDX-License-Identifier: Apache-2.0
//! What a path record does with a packet.

use crate::context::BurstContext;
use crate::hops::{Hop, Hops};
use actions::{MacWrite, Route};
use flow::{EntryId, PortNo};

/// A path, and the direct way to its end if there is one. It takes one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Path {
    pub hops: Hops,
    /// `None` if the entries' instructions must run one by one.
    pub direct: Option<Direct>,
}

/// Effect of a path whose entries only rewrite MAC addresses and the TTL, and send the packet to one port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    macs: MacWrite,
    dec_ttl: bool,
    /// An open port that is not the ingress port.
    pub output: PortNo,
    /// Whether every entry is low-latency.
    pub low_latency: bool,
}

const _: () = assert!(size_of::<Path>() == 64);

impl Path {
    /// Returns the path of packets of a port that hit these entries. Returns `None` if the key does not
    /// determine the path.
    ///
    /// A later table sees bits of the key or written constants if every entry before the last one only writes
    /// MAC addresses and decrements the TTL.
    pub fn of<E>(context: &BurstContext<'_, E>, hops: &Hops, in_port: PortNo) -> Option<Self> {
        if !hops.is_known() {
            return None;
        }
        let mut ends = false;
        for entry in hops.entries().iter().copied() {
            if ends {
                return None;
            }
            ends = match context.entry(entry) {
                None => true,
                Some((_, program)) => program.next.is_none(),
            };
            if !ends && context.entry(entry).is_none_or(|(_, program)| program.passage.is_none()) {
                return None;
            }
        }
        ends.then(|| Self { hops: *hops, direct: Direct::of(context, hops, in_port) })
    }
}

impl Direct {
    fn of<E>(context: &BurstContext<'_, E>, hops: &Hops, in_port: PortNo) -> Option<Self> {
        let (mut route, mut output, mut low_latency) = (Route::NONE, None, true);
        for Hop { entry, .. } in hops.iter() {
            if entry == EntryId::NONE {
                return None;
            }
            let (_, program) = context.entry(entry)?;
            if let Some(next) = &program.route {
                route = route.then(next)?;
            }
            output = program.output;
            low_latency &= program.low_latency;
        }
        let output = output.filter(|port| *port != in_port && context.ports.is_open(*port))?;
        // With this setting, fragments are dropped at their admission.
        let Route { macs, dec_ttl } = route;
        (!context.settings.drop_fragments).then_some(Self { macs, dec_ttl, output, low_latency })
    }

    /// Returns the rewrites of all entries.
    #[inline(always)]
    pub fn route(&self) -> Route {
        Route { macs: self.macs, dec_ttl: self.dec_ttl }
    }
}
