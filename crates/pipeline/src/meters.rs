// SPDX-License-Identifier: Apache-2.0
//! Metering of packets by the meter that an entry names.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::field_write::FieldWrite;
use crate::packet::Packet;
use flow::action::SetField;
use flow::meter::Band;
use flow::{DropReason, Field, Next};
use wire::layers::header;

impl<E: Egress> BurstContext<'_, E> {
    /// Meters the packet. Returns false if the packet is dropped. `next` is the table that it continues with.
    ///
    /// If the meter remarks packets and another table follows, packets of one flow may differ in that table.
    /// They are all normal from here on, because they could overtake one another in two lanes.
    #[inline(never)]
    pub(crate) fn meter(&mut self, packet: &mut Packet, id: u32, next: Option<Next>) -> bool {
        let meters = self.meters;
        let Some(meter) = meters.get(id) else { return true };
        packet.low_latency &= !(next.is_some() && meter.remarks());
        let bytes = packet.frame.len() as u64;
        meter.count.add(bytes);
        let Some(bucket) = meter.exceeded(bytes, self.now) else { return true };
        bucket.count.add(bytes);
        match bucket.band.band {
            Band::Drop => {
                self.fail(packet, DropReason::MeterBand);
                false
            }
            Band::DscpRemark { precedence_level } => {
                remark(packet, precedence_level);
                true
            }
        }
    }
}

/// Raises the drop precedence of an assured forwarding class (RFC 2597). Other classes stay unchanged.
fn remark(packet: &mut Packet, steps: u8) {
    if !packet.has(header::IP) {
        return;
    }
    let dscp = packet.layers.ip_tos >> 2;
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if !(1..=4).contains(&class) || precedence == 0 || dscp & 1 != 0 {
        return;
    }
    let value = u128::from(class << 3 | precedence.saturating_add(steps).min(3) << 1);
    let set = SetField { field: Field::IpDscp, value, mask: Field::IpDscp.full_mask() };
    // The IP header is present, so the write cannot fail.
    let _ = FieldWrite::compile(&set).run(packet);
}
