// SPDX-License-Identifier: Apache-2.0
//! What a path record does with a packet.

use crate::context::BurstContext;
use crate::hops::{Hop, Hops, is_recordable};
use actions::{MacWrite, Route};
use flow::PortNo;
use frame::{Frame, Lane};
use wire::{Depth, Layers};

/// A path, and its effect if its entries only rewrite MAC addresses and the TTL, and send the packet to one
/// port. It takes one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Path {
    pub hops: Hops,
    macs: MacWrite,
    writes_macs: bool,
    dec_ttl: bool,
    /// Whether the packet can leave without its entries' instructions.
    is_direct: bool,
    /// Low-latency if every entry is.
    pub lane: Lane,
    /// Port by which the packet leaves directly. It is open, and not the ingress port.
    pub output: PortNo,
}

const _: () = assert!(size_of::<Path>() == 64);

impl Default for Path {
    fn default() -> Self {
        Self::new(Hops::default(), Lane::Normal)
    }
}

impl Path {
    fn new(hops: Hops, lane: Lane) -> Self {
        let macs = MacWrite::NONE;
        Self { hops, macs, writes_macs: false, dec_ttl: false, is_direct: false, lane, output: PortNo(0) }
    }

    /// Returns the path of packets of a port that hit these entries. Returns `None` if the key does not
    /// determine the path.
    ///
    /// A later table sees bits of the key or written constants if every entry before the last one only writes
    /// MAC addresses and decrements the TTL.
    pub fn of<E>(context: &BurstContext<'_, E>, hops: &Hops, in_port: PortNo) -> Option<Self> {
        let programs = || hops.entries().iter().map(|entry| Some(context.entry(*entry)?.1));
        if !hops.is_known() || !is_recordable(programs()) {
            return None;
        }
        let is_low_latency = programs().all(|program| program.is_some_and(|program| program.low_latency));
        let lane = if is_low_latency { Lane::LowLatency } else { Lane::Normal };
        Some(Self::new(*hops, lane).directly(context, in_port))
    }

    /// Compiles the effect of the path's entries, if it is simple.
    fn directly<E>(self, context: &BurstContext<'_, E>, in_port: PortNo) -> Self {
        let (mut route, mut output) = (Route::NONE, None);
        for Hop { entry, .. } in self.hops.iter() {
            let Some((_, program)) = context.entry(entry) else { return self };
            if let Some(next) = &program.route {
                let Some(both) = route.then(next) else { return self };
                route = both;
            }
            output = program.output;
        }
        // With this setting, fragments are dropped at their admission.
        let output = output.filter(|port| *port != in_port && context.ports.is_open(*port));
        match output.filter(|_| !context.settings.drop_fragments) {
            Some(output) => Self {
                macs: route.macs,
                writes_macs: route.macs != MacWrite::NONE,
                dec_ttl: route.dec_ttl,
                is_direct: true,
                output,
                ..self
            },
            None => self,
        }
    }

    /// Returns whether the packet can leave without its entries' instructions, if the rewrites succeed on it.
    #[inline(always)]
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Returns whether the rewrites of the path's entries succeed on a frame. If not, its TTL expires, or it
    /// is not IP. The headers must be located to [`Self::depth`].
    #[inline(always)]
    pub fn suits(&self, frame: &Frame, layers: &Layers) -> bool {
        !self.dec_ttl || self.route().suits(frame.bytes(), layers)
    }

    /// Rewrites a frame that the path suits.
    #[inline(always)]
    pub fn rewrite(&self, frame: &mut Frame, layers: &Layers) {
        if self.dec_ttl || self.writes_macs {
            self.route().rewrite(frame.bytes_mut(), layers);
        }
    }

    #[inline(always)]
    fn route(&self) -> Route {
        Route { macs: self.macs, dec_ttl: self.dec_ttl }
    }

    /// Returns the depth to which the headers must be located for the rewrites.
    #[inline(always)]
    pub fn depth(&self) -> Depth {
        if self.dec_ttl { Depth::L3 } else { Depth::None }
    }
}
