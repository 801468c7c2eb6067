// SPDX-License-Identifier: Apache-2.0
//! Metering of packets by the meter that an entry names.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::Packet;
use flow::{MeterId, Next};

impl<E: Egress> BurstContext<'_, E> {
    /// Meters the packet. Returns false if the packet is dropped. `next` is the table with which the packet
    /// continues.
    ///
    /// If the meter remarks packets and another table follows, packets of one flow may hit different entries
    /// in that table. All packets of the flow are normal from here on, because in different lanes they could
    /// overtake one another.
    #[inline(never)]
    pub(crate) fn meter(&mut self, packet: &mut Packet, id: MeterId, next: Option<Next>) -> bool {
        let meters = self.meters;
        let Some(meter) = meters.get(id) else { return true };
        packet.low_latency &= !(next.is_some() && meter.remarks());
        if let Err(reason) = meter.run(&mut packet.data, self.now) {
            self.fail(packet, reason);
            return false;
        }
        true
    }
}
