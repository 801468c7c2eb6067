// SPDX-License-Identifier: Apache-2.0
//! Meters, by the generic cell rate algorithm (GCRA).
//!
//! Each band has one bucket for all workers, stored as its theoretical arrival time. A packet advances that
//! time by its cost. The packet exceeds the rate if the new time would be further ahead of the clock than the
//! burst duration.

use crate::field_write::FieldWrite;
use crate::packet_data::PacketData;
use flow::action::SetField;
use flow::meter::{Band, Meter, MeterBand};
use flow::{DropReason, Field, Nanos};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::layers::header;

/// Burst duration of a band that specifies none, in ns.
const DEFAULT_BURST_NS: Nanos = Nanos(100_000_000);

const SECOND_NS: u64 = 1_000_000_000;

/// Counters of one meter or band, shared by all workers.
#[derive(Debug, Default)]
pub struct MeterCount {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl MeterCount {
    fn add(&self, bytes: u64) {
        self.packets.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Returns the numbers of packets and bytes.
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        (self.packets.load(Relaxed), self.bytes.load(Relaxed))
    }
}

/// Rate limiter of one band.
#[derive(Debug)]
struct Bucket {
    band: MeterBand,
    /// Index of the band in the meter's list.
    place: usize,
    /// Theoretical arrival time, in ns. Each admitted packet advances this time by the packet's cost.
    paid_ns: AtomicU64,
    count: MeterCount,
}

/// A meter, shared by all workers.
#[derive(Debug)]
pub struct MeterState {
    meter: Meter,
    count: MeterCount,
    /// Buckets by descending rate. The first band that a packet exceeds applies.
    buckets: Vec<Bucket>,
}

impl MeterState {
    /// Returns whether a band changes packets; see [`Meter::remarks`].
    #[must_use]
    pub fn remarks(&self) -> bool {
        self.meter.remarks()
    }

    /// Creates a meter whose bands all admit a full burst.
    #[must_use]
    pub fn new(meter: &Meter) -> Self {
        let mut bands: Vec<(usize, MeterBand)> = meter.bands.iter().copied().enumerate().collect();
        bands.sort_by_key(|(_, band)| std::cmp::Reverse(band.rate));
        let bucket =
            |(place, band)| Bucket { band, place, paid_ns: AtomicU64::new(0), count: MeterCount::default() };
        Self {
            meter: meter.clone(),
            count: MeterCount::default(),
            buckets: bands.into_iter().map(bucket).collect(),
        }
    }

    /// Returns the numbers of packets and bytes that entered the meter.
    #[must_use]
    pub fn count(&self) -> (u64, u64) {
        self.count.read()
    }

    /// Returns the numbers of packets and bytes of each band, in the order of the meter's list.
    #[must_use]
    pub fn bands(&self) -> Vec<(u64, u64)> {
        let of = |place| self.buckets.iter().find(|b| b.place == place).map(|b| b.count.read());
        (0..self.meter.bands.len()).map(|place| of(place).unwrap_or_default()).collect()
    }

    /// Charges and counts a packet that arrives at `now`. Remarks the packet if it exceeds a band that
    /// remarks.
    ///
    /// # Errors
    /// Returns `MeterBand` if the packet exceeds a band that drops.
    pub fn run(&self, packet: &mut PacketData, now: Nanos) -> Result<(), DropReason> {
        let bytes = packet.frame.len() as u64;
        self.count.add(bytes);
        let Some(bucket) = self.exceeded(bytes, now) else { return Ok(()) };
        bucket.count.add(bytes);
        match bucket.band.band {
            Band::Drop => Err(DropReason::MeterBand),
            Band::DscpRemark { precedence_level } => {
                remark(packet, precedence_level);
                Ok(())
            }
        }
    }

    /// Returns the band that a packet of `bytes` bytes exceeds at `now`, if any. Charges all other bands.
    fn exceeded(&self, bytes: u64, now: Nanos) -> Option<&Bucket> {
        let mut exceeded = None;
        for bucket in &self.buckets {
            if !bucket.take(&self.meter, bytes, now) && exceeded.is_none() {
                exceeded = Some(bucket);
            }
        }
        exceeded
    }
}

impl Bucket {
    /// Charges a packet to the bucket. Returns false if the packet exceeds the rate.
    fn take(&self, meter: &Meter, bytes: u64, now: Nanos) -> bool {
        let rate = u64::from(self.band.rate).max(1);
        let (cost_ns, unit_ns) = if meter.packets {
            (SECOND_NS / rate, SECOND_NS / rate)
        } else {
            (bytes * 8 * 1_000_000 / rate, SECOND_NS / rate)
        };
        let burst_ns = match self.band.burst {
            0 => DEFAULT_BURST_NS,
            burst => Nanos(u64::from(burst).saturating_mul(unit_ns)),
        };
        let most_ns = burst_ns.max(Nanos(cost_ns));
        let charge = |paid: u64| {
            let after = paid.max(now.0).saturating_add(cost_ns);
            (Nanos(after) - now <= most_ns).then_some(after)
        };
        self.paid_ns.fetch_update(Relaxed, Relaxed, charge).is_ok()
    }
}

/// Raises the drop precedence of an assured forwarding class (RFC 2597) by `steps`. Other classes stay
/// unchanged.
fn remark(packet: &mut PacketData, steps: u8) {
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
    // The packet has an IP header, so the write cannot fail.
    let _ = FieldWrite::compile(&set).run(packet);
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::MeterId;

    fn meter(packets: bool, bands: &[(u32, u32)]) -> MeterState {
        let band = |&(rate, burst): &(u32, u32)| MeterBand { band: Band::Drop, rate, burst };
        MeterState::new(&Meter {
            id: MeterId(1),
            packets,
            stats: true,
            burst: true,
            bands: bands.iter().map(band).collect(),
        })
    }

    /// Returns how many 1,000-byte packets are admitted within a second if one arrives every `every_ns`.
    fn through(meter: &MeterState, every_ns: u64, from_ns: u64) -> u64 {
        let times = (0..SECOND_NS / every_ns).map(|n| from_ns + n * every_ns);
        times.filter(|now| meter.exceeded(1_000, Nanos(*now)).is_none()).count() as u64
    }

    #[test]
    fn rates_hold_in_packets_and_in_bits() {
        let packets = meter(true, &[(1_000, 10)]);
        assert!((1_000..=1_011).contains(&through(&packets, 100_000, 0)));
        assert_eq!(through(&packets, 2_000_000, 10 * SECOND_NS), 500, "below the rate nothing is dropped");
        // 8,000 kbit/s are 1,000 packets of 1,000 bytes per second.
        let bits = meter(false, &[(8_000, 80)]);
        assert!((1_000..=1_011).contains(&through(&bits, 100_000, 0)));
    }

    #[test]
    fn a_packet_larger_than_the_burst_passes_an_idle_meter() {
        let slow = meter(false, &[(1, 1)]);
        assert!(slow.exceeded(1_500, Nanos(0)).is_none());
        assert!(slow.exceeded(1_500, Nanos(SECOND_NS)).is_some());
        assert!(slow.exceeded(1_500, Nanos(13 * SECOND_NS)).is_none());
    }

    #[test]
    fn of_several_bands_exceeded_the_highest_rate_applies() {
        let two = meter(true, &[(100, 1), (1_000, 1)]);
        let mut hit = [0; 2];
        for n in 0..10_000u64 {
            match two.exceeded(100, Nanos(n * 100_000)).map(|bucket| bucket.band.rate) {
                Some(100) => hit[0] += 1,
                Some(_) => hit[1] += 1,
                None => {}
            }
        }
        assert!((890..=910).contains(&hit[0]) && (8_990..=9_010).contains(&hit[1]), "{hit:?}");
    }
    #[test]
    fn equal_bands_count_separately() {
        let equal = meter(true, &[(1, 1), (1, 1)]);
        assert!(equal.exceeded(60, Nanos(0)).is_none());
        equal.exceeded(60, Nanos(0)).unwrap().count.add(60);
        assert_eq!(equal.bands(), [(1, 60), (0, 0)], "the first of the equal bands applies");
    }
}
