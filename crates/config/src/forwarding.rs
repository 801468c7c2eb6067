// SPDX-License-Identifier: Apache-2.0
//! Forwarding settings of a datapath: low latency, fast-forwarding path, express path and lanes. Scenarios
//! contain the same settings. Begin with [`forwarding`].

use crate::cache::port_cache;
use crate::file::{
    ExpressSection, FfpSection, LanesSection, LearnSection, LowLatencySection, PortCacheSection,
};
use crate::mistakes::Mistakes;
use crate::value::{cookie, duration, in_range};
use flow::Nanos;
use model::{CookieMask, Learning};
use pipeline::{BURST, LaneLimits};
use port_cache::PortCacheConfig;
use std::ops::RangeInclusive;
use worker::{Consistency, Quanta, WorkerSetConfig};

/// Range of the time over which learning measures packet rates.
const LEARN_WINDOWS_NS: RangeInclusive<Nanos> = Nanos(100_000_000)..=Nanos(3_600_000_000_000);

/// Default of `outstanding_bytes`. A 10 Gbit/s device sends this number of bytes in 0.2 ms.
const OUTSTANDING_BYTES: usize = 256 * 1024;

/// Maximum of `outstanding_bytes`. This value exceeds a socket's buffer, so it acts as no limit.
const OUTSTANDING_MAX_BYTES: i64 = 16 * 1024 * 1024;

/// Maximum of `lanes.quiet` in ns, the time without low-latency packets after which the large quantum is
/// used.
const QUIET_MAX_NS: Nanos = Nanos(1_000_000_000);

/// Forwarding settings of a datapath, without ports and controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// Cookie value and mask. Entries with a matching cookie are low-latency.
    pub low_latency_cookie: Option<CookieMask>,
    /// Learning of low-latency entries. If `None`, learning is off.
    pub learning: Option<Learning>,
    /// Number of records per LUT and worker. If 0, the fast-forwarding path is off.
    pub lut_entries: usize,
    /// Number of path records per worker. If 0, the express path is off.
    pub express_records: usize,
    /// Limits and searcher of the port cache. If `None`, it is off.
    pub port_cache: Option<PortCacheConfig>,
    /// Consistency mode of LUT records while rules change.
    pub consistency: Consistency,
    /// Settings of the lanes of each worker.
    pub lanes: LaneSettings,
    /// Default of [`crate::ConfiguredPort::outstanding_bytes`].
    pub outstanding_bytes: usize,
}

/// Settings of a worker's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// Capacities of the backlog and the hold queue.
    pub limits: LaneLimits,
    /// Quanta of the backlog.
    pub quanta: Quanta,
}

impl Forwarding {
    /// Returns the configuration of a set of workers with these settings and defaults.
    #[must_use]
    pub fn worker_set(&self) -> WorkerSetConfig {
        WorkerSetConfig {
            lut_entries: self.lut_entries,
            express_records: self.express_records,
            port_cache: self.port_cache,
            consistency: self.consistency,
            lanes: self.lanes.limits,
            quanta: self.lanes.quanta,
            ..WorkerSetConfig::default()
        }
    }
}

/// Tables of a file with the forwarding settings of a datapath.
#[derive(Clone, Copy, Debug)]
pub struct ForwardingSections<'a> {
    /// Table `low_latency`.
    pub low_latency: &'a LowLatencySection,
    /// Table `ffp`.
    pub ffp: &'a FfpSection,
    /// Table `express`.
    pub express: &'a ExpressSection,
    /// Table `lanes`.
    pub lanes: &'a LanesSection,
    /// Table `port_cache`.
    pub port_cache: &'a PortCacheSection,
}

/// Checks the forwarding settings of the datapath at `key`. Returns `None` if any of them is wrong.
pub fn forwarding(
    key: &str,
    sections: ForwardingSections<'_>,
    mistakes: &mut Mistakes,
) -> Option<Forwarding> {
    let ForwardingSections { low_latency, ffp, express, lanes: waiting, port_cache: cache } = sections;
    let before = mistakes.len();
    let low_latency_cookie = low_latency
        .cookie
        .as_ref()
        .and_then(|text| mistakes.at(format!("{key}.low_latency.cookie"), cookie(text)));
    let consistency = match &ffp.consistency {
        Some(text) => mistakes.at(format!("{key}.ffp.consistency"), text.parse()),
        None => Some(Consistency::default()),
    };
    let learning = learning(&format!("{key}.low_latency.learn"), &low_latency.learn, mistakes);
    let lut_entries = fast_paths(key, ffp, mistakes);
    let express_records = express_records(key, express, mistakes);
    let port_cache = port_cache(key, cache, express_records.is_none_or(|records| records > 0), mistakes);
    let lanes = lanes(&format!("{key}.lanes"), waiting, mistakes);
    let outstanding_bytes =
        outstanding(&format!("{key}.lanes"), waiting.outstanding_bytes, OUTSTANDING_BYTES, mistakes);
    let forwarding = Forwarding {
        low_latency_cookie,
        learning: learning?,
        lut_entries: lut_entries?,
        express_records: express_records?,
        port_cache: port_cache?,
        consistency: consistency?,
        lanes: lanes?,
        outstanding_bytes: outstanding_bytes?,
    };
    (mistakes.len() == before).then_some(forwarding)
}

/// Reads the learning settings. The outer option is `None` if a value is wrong. The inner option is `None` if
/// learning is off.
fn learning(key: &str, l: &LearnSection, mistakes: &mut Mistakes) -> Option<Option<Learning>> {
    let key = |name: &str| format!("{key}.{name}");
    let min_pps = mistakes.at(key("min_pps"), in_range(l.min_pps.unwrap_or(1_000), 1..=1_000_000_000));
    let window = duration(l.window.as_deref().unwrap_or("5s")).and_then(|window| {
        let problem = "is out of range; rates are measured over \"100ms\" to \"1h\", such as \"5s\"";
        if LEARN_WINDOWS_NS.contains(&window) { Ok(window) } else { Err(problem.to_owned()) }
    });
    let window = mistakes.at(key("window"), window);
    let min_timeout = mistakes.at(key("min_timeout"), duration(l.min_timeout.as_deref().unwrap_or("10m")));
    let learning = Learning { min_pps: min_pps?, window: window?, min_timeout: min_timeout? };
    Some(l.enabled.then_some(learning))
}

/// Reads the capacities of the backlog and the hold queue, and the quanta of the backlog.
fn lanes(key: &str, l: &LanesSection, mistakes: &mut Mistakes) -> Option<LaneSettings> {
    let mut number = |name: &str, value: Option<i64>, default: usize, range| {
        let value = value.unwrap_or(default as i64);
        mistakes.at(format!("{key}.{name}"), in_range(value, range))
    };
    let packets = 0..=i64::from(LaneLimits::MAX);
    let normal = number("normal", l.normal, LaneLimits::USUAL.normal.into(), packets.clone());
    let unknown = number("unknown", l.unknown, LaneLimits::USUAL.unknown.into(), packets.clone());
    let hold = number("hold", l.hold, LaneLimits::USUAL.hold.into(), packets);
    let quantum = 1..=BURST as i64;
    let small = number("small_quantum", l.small_quantum, Quanta::DEFAULT.small, quantum.clone());
    let large = number("large_quantum", l.large_quantum, Quanta::DEFAULT.large, quantum);
    let quiet_ns = match &l.quiet {
        Some(text) => mistakes.at(format!("{key}.quiet"), duration(text).and_then(quiet_range)),
        None => Some(Quanta::DEFAULT.quiet_ns),
    };
    let limits = LaneLimits { normal: normal? as u16, unknown: unknown? as u16, hold: hold? as u16 };
    let quanta = Quanta { small: small? as usize, large: large? as usize, quiet_ns: quiet_ns? };
    Some(LaneSettings { limits: if l.enabled.unwrap_or(true) { limits } else { LaneLimits::NONE }, quanta })
}

/// Reads `outstanding_bytes` of the table at `key`, in bytes.
pub(crate) fn outstanding(
    key: &str,
    bytes: Option<i64>,
    default: usize,
    mistakes: &mut Mistakes,
) -> Option<usize> {
    let bytes = bytes.unwrap_or(default as i64);
    let bytes = mistakes.at(format!("{key}.outstanding_bytes"), in_range(bytes, 0..=OUTSTANDING_MAX_BYTES));
    bytes.map(|bytes| bytes as usize)
}

fn quiet_range(quiet_ns: Nanos) -> Result<Nanos, String> {
    if quiet_ns <= QUIET_MAX_NS {
        Ok(quiet_ns)
    } else {
        Err("is out of range; use \"0us\" to \"1s\"".to_owned())
    }
}

/// Returns the number of path records per worker, or 0 if the express path is off.
fn express_records(key: &str, express: &ExpressSection, mistakes: &mut Mistakes) -> Option<usize> {
    let records = in_range(express.records.unwrap_or(8_192), 64..=262_144);
    let records = mistakes.at(format!("{key}.express.records"), records);
    records.map(|records| if express.enabled.unwrap_or(true) { records as usize } else { 0 })
}

/// Returns the number of records per LUT, or 0 if the fast-forwarding path is off.
fn fast_paths(key: &str, ffp: &FfpSection, mistakes: &mut Mistakes) -> Option<usize> {
    let lut_entries = in_range(ffp.lut_entries.unwrap_or(4_096), 64..=65_536);
    let lut_entries = mistakes.at(format!("{key}.ffp.lut_entries"), lut_entries);
    lut_entries.map(|entries| if ffp.enabled.unwrap_or(true) { entries as usize } else { 0 })
}
