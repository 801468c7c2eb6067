// SPDX-License-Identifier: Apache-2.0
//! Quenching of packet-ins, and their rate limits.

use crate::file::{PacketInSection, RateSection};
use crate::forwarding::Forwarding;
use crate::mistakes::Mistakes;
use crate::value::{duration, in_range};
use actions::{PacketInRate, PacketInRates};
use flow::{Nanos, TableId};
use port_cache::{PortCacheConfig, QuenchConfig, QuenchedTables};
use worker::WorkerSetConfig;

/// Range of the time for which packets wait for the controller.
const QUENCH_MIN_NS: Nanos = Nanos(1_000_000);
const QUENCH_MAX_NS: Nanos = Nanos(60_000_000_000);

/// Settings of packet-ins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketIns {
    /// Tables with quenched packet-ins, if there are any.
    pub quench: Option<QuenchConfig>,
    /// Rate limits by reason.
    pub rates: PacketInRates,
}

impl PacketIns {
    /// Returns the configuration of a set of workers with these settings and those in `forwarding`.
    #[must_use]
    pub fn worker_set(&self, forwarding: &Forwarding) -> WorkerSetConfig {
        let config = forwarding.worker_set();
        let cache = self
            .quench
            .map(|quench| PortCacheConfig { quench: Some(quench), ..config.port_cache.unwrap_or_default() });
        WorkerSetConfig { port_cache: cache.or(config.port_cache), packet_in_rates: self.rates, ..config }
    }
}

/// Checks the settings of packet-ins at `key`.
pub(crate) fn packet_ins(key: &str, section: &PacketInSection, mistakes: &mut Mistakes) -> PacketIns {
    let last = i64::from(TableId::LAST.0);
    let mut tables = Vec::new();
    for (n, table) in section.quench.iter().enumerate() {
        let table = mistakes.at(format!("{key}.quench[{n}]"), in_range(*table, 0..=last));
        tables.extend(table.map(|table| TableId(table as u8)));
    }
    let timeout = duration(section.quench_timeout.as_deref().unwrap_or("1s")).and_then(timeout_range);
    let timeout_ns = mistakes.at(format!("{key}.quench_timeout"), timeout).unwrap_or(QUENCH_MAX_NS);
    if section.quench_timeout.is_some() && section.quench.is_empty() {
        mistakes.wrong(format!("{key}.quench_timeout"), "has no effect without tables; write quench = [0]");
    }
    let quench = QuenchConfig { tables: QuenchedTables::of(tables.iter().copied()), timeout_ns };
    let mut rate = |name, rate: &Option<RateSection>| {
        rate.as_ref().map_or(PacketInRate::default(), |rate| limit(&format!("{key}.{name}"), rate, mistakes))
    };
    let rates = PacketInRates {
        no_match: rate("no_match", &section.no_match),
        action: rate("action", &section.action),
        invalid_ttl: rate("invalid_ttl", &section.invalid_ttl),
    };
    PacketIns { quench: (!tables.is_empty()).then_some(quench), rates }
}

fn timeout_range(timeout_ns: Nanos) -> Result<Nanos, String> {
    if (QUENCH_MIN_NS..=QUENCH_MAX_NS).contains(&timeout_ns) {
        Ok(timeout_ns)
    } else {
        Err("is out of range; use \"1ms\" to \"1m\"".to_owned())
    }
}

/// Reads a rate limit. The default burst is the number of packet-ins in one second.
pub(crate) fn limit(key: &str, section: &RateSection, mistakes: &mut Mistakes) -> PacketInRate {
    let rate = mistakes.needed(format!("{key}.rate"), section.rate, "rate = 1000");
    let rates = 1..=i64::from(PacketInRate::RATE_MAX);
    let rate = rate.and_then(|rate| mistakes.at(format!("{key}.rate"), in_range(rate, rates)));
    let bursts = 1..=i64::from(PacketInRate::BURST_MAX);
    let usual = rate.unwrap_or(1).min(PacketInRate::BURST_MAX.into()) as i64;
    let burst = in_range(section.burst.unwrap_or(usual), bursts);
    let burst = mistakes.at(format!("{key}.burst"), burst);
    PacketInRate { rate: rate.unwrap_or(1) as u32, burst: burst.unwrap_or(1) as u32 }
}
