// SPDX-License-Identifier: Apache-2.0
//! Forwarding to the reserved port NORMAL, as a learning bridge.
//!
//! Learned addresses are entries of an ordinary table ([`MAC_TABLE`]), which this module only reads. It
//! reports a source that is missing or was learned at another port. The control thread turns the report into
//! an operation.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::full_ports::RefusalReports;
use crate::packet::{Packet, Take};
use actions::Retag;
use dataplane::{Event, MacSeen, StormEvent};
use flow::operation::MAC_TABLE;
use flow::{DropReason, EntryId, PortNo};
use keys::Stations;
use wire::Depth;
use wire::layers::header;

/// Bits of the VLAN ID in the TCI.
const VID: u16 = 0x0fff;

/// First five bytes of the multicast addresses that bridges must not forward (IEEE 802.1Q, table 8-1).
const RESERVED: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

/// Forwards the packet as a learning bridge does. If ports have settings for NORMAL, the packet belongs to a
/// VLAN that does not depend on its tag alone.
pub(crate) fn forward<E: Egress>(context: &mut BurstContext<'_, E>, packet: &mut Packet, take: Take) {
    // The slot may still hold the stations (entries of learned addresses) of an earlier packet. This packet
    // may be dropped before its own stations are looked up.
    packet.stations = Stations::NONE;
    packet.data.locate(Depth::L2);
    let has_tag = packet.data.layers.present & header::VLAN != 0;
    let tag = has_tag.then_some(packet.data.layers.vlan_tci & VID);
    let [destination, source] = macs(packet);
    if destination[..5] == RESERVED && destination[5] & 0xf0 == 0 {
        return context.fail(packet, DropReason::ReservedMulticast);
    }
    let in_port = packet.data.ext.in_port();
    let vid = tag.unwrap_or(0);
    let bridge = context.bridge;
    let Some(vid) = bridge.map_or(Some(vid), |bridge| bridge.vlan(in_port, vid)) else {
        return context.fail(packet, DropReason::WrongVlan);
    };
    let [known, seen] = lookup(context, vid, [destination, source]);
    let full = match seen {
        Some((_, port)) if port == in_port => None,
        _ => context.full_ports.reports_of(in_port),
    };
    if source[0] & 1 == 0 && source != [0; 6] && flow::port_no::is_real(in_port) {
        learn(context, seen, full, MacSeen { vid, mac: source, port: in_port });
    }
    let known = known.filter(|_| destination[0] & 1 == 0);
    let retag = |port| bridge.map_or(Some(Retag::Keep), |bridge| bridge.retag(port, vid, tag));
    // A packet whose tag changes cannot leave by a path record.
    let leaves_unchanged = known.is_some_and(|(_, port)| retag(port) == Some(Retag::Keep));
    if leaves_unchanged {
        packet.stations = stations(seen, known, in_port, full.is_some());
    }
    match known {
        Some((_, port)) if port == in_port => context.fail(packet, DropReason::IngressPort),
        Some((_, port)) => match retag(port) {
            Some(Retag::Keep) => context.send_to_port(packet, port, take),
            Some(retag) => context.send_retagged_to_port(packet, port, retag, take),
            None => context.fail(packet, DropReason::WrongVlan),
        },
        None => match bridge {
            None => context.send_to_many(packet, |port| !port.no_flood, take),
            Some(bridge) => {
                if let Some((kind, shuts)) = bridge.exceeded(in_port, destination, context.now) {
                    if shuts {
                        // If the report is lost, the next packet above the limit repeats it.
                        drop(context.egress.report(Event::Storm(StormEvent { port: in_port, kind })));
                    }
                    return context.fail(packet, kind.reason());
                }
                context.flood_vlan(packet, |port| bridge.retag(port, vid, tag), take);
            }
        },
    }
}

fn macs(packet: &Packet) -> [[u8; 6]; 2] {
    let mut macs = [[0; 6]; 2];
    let bytes = packet.data.frame.bytes();
    macs[0].copy_from_slice(&bytes[..6]);
    macs[1].copy_from_slice(&bytes[6..12]);
    macs
}

/// Entry of a learned address, and the port at which the address was learned.
type Learned = (EntryId, PortNo);

/// Returns the entries of the source and destination addresses. Returns [`Stations::NONE`] if the destination
/// is unknown or if the source must be learned. A full port learns no source, so the destination suffices.
fn stations(seen: Option<Learned>, known: Option<Learned>, in_port: PortNo, is_full: bool) -> Stations {
    match (seen, known) {
        (Some((source, port)), Some((destination, _))) if port == in_port => Stations { source, destination },
        (_, Some((destination, _))) if is_full => Stations { destination, ..Stations::NONE },
        _ => Stations::NONE,
    }
}

/// Refreshes the entry of the source address, or reports the source to the control thread. A full port learns
/// no source, and its reports have a rate limit.
fn learn<E: Egress>(
    context: &mut BurstContext<'_, E>,
    known: Option<Learned>,
    full: Option<&RefusalReports>,
    learn: MacSeen,
) {
    match (known, full) {
        (Some((id, port)), _) if port == learn.port => {
            if let Some(cell) = context.cells.get(id) {
                cell.touch(context.now);
            }
        }
        (_, Some(reports)) => {
            if reports.admit(context.now) {
                drop(context.egress.report(Event::MacRefused(learn.port)));
            }
        }
        // If a report is lost, the next packet from the source repeats it.
        _ => drop(context.egress.report(Event::Learn(learn))),
    }
}

/// Looks up two addresses in one call, which costs less than two calls.
fn lookup<E: Egress>(context: &BurstContext<'_, E>, vid: u16, macs: [[u8; 6]; 2]) -> [Option<Learned>; 2] {
    let Some((table, _)) = context.tables[MAC_TABLE.index()].as_deref() else { return [None; 2] };
    // This is the key layout that a key plan gives to `dl_dst` and `vlan_vid`; the test below checks it.
    let keys =
        macs.map(|[a, b, c, d, e, f]| u64::from_be_bytes([a, b, c, d, e, f, 0, 0]) | u64::from(vid) << 3);
    let mut ids = [EntryId::NONE; 2];
    table.lookup(&keys, &mut ids);
    ids.map(|id| Some((id, context.entry(id)?.1.learned_port()?)))
}

#[cfg(test)]
mod tests {
    use engines::KeyPlan;
    use flow::{Field, FieldMatch, Match};

    #[test]
    fn a_learned_address_has_the_layout_that_lookup_uses() {
        let plan = KeyPlan::new(&[Field::VlanVid, Field::EthDst]).unwrap();
        let learned = Match::new([
            FieldMatch { field: Field::VlanVid, value: 0x00a, mask: 0x0fff },
            FieldMatch::exact(Field::EthDst, 0x0200_0000_0001),
        ])
        .unwrap();
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&learned, &mut values, &mut masks);
        assert_eq!(values, [0x0200_0000_0001 << 16 | 0x00a << 3]);
        assert_eq!(masks, [0xffff_ffff_ffff << 16 | 0xfff << 3]);
    }
}
