// SPDX-License-Identifier: Apache-2.0
//! Settings of the port cache.

use crate::mistakes::Mistakes;
use crate::value::{duration, in_range};
use flow::Nanos;
use port_cache::{LimitError, MissLimits, MissMode, PortCacheConfig, SearcherKind, Victim, WhenFull};
use serde::Deserialize;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Maximum number of packets of all ports that wait in the port caches of all workers. The workers' pools
/// have a frame for each of them.
pub const WAITING_MAX: usize = 131_072;

/// Least time after which a search is repeated, in nanoseconds.
const TIMEOUT_MIN_NS: Nanos = Nanos(1_000);

/// Mode of the port caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortCacheMode {
    /// No cache.
    #[default]
    Off,
    /// The first packet of an unknown flow is searched, and later packets of its flow wait.
    Nonblocking,
    /// After a packet of an unknown flow, all packets of its port wait.
    Blocking,
}

impl PortCacheMode {
    /// Returns the name in configuration files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Nonblocking => "nonblocking",
            Self::Blocking => "blocking",
        }
    }

    /// Returns the mode of a worker's port cache, or `None` if it is off.
    #[must_use]
    pub fn cache_mode(self) -> Option<MissMode> {
        match self {
            Self::Off => None,
            Self::Nonblocking => Some(MissMode::NonBlocking),
            Self::Blocking => Some(MissMode::Blocking),
        }
    }

    /// Returns the mode of these settings of a worker's port cache.
    #[must_use]
    pub fn of(cache: Option<&PortCacheConfig>) -> Self {
        match cache.map(|cache| cache.mode) {
            None => Self::Off,
            Some(MissMode::NonBlocking) => Self::Nonblocking,
            Some(MissMode::Blocking) => Self::Blocking,
        }
    }
}

impl fmt::Display for PortCacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PortCacheMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "nonblocking" => Ok(Self::Nonblocking),
            "blocking" => Ok(Self::Blocking),
            _ => Err(format!("\"{text}\" is unknown; use \"off\", \"nonblocking\" or \"blocking\"")),
        }
    }
}

/// Table `port_cache` of a datapath.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortCacheSection {
    mode: Option<String>,
    entries: Option<i64>,
    queue: Option<i64>,
    records: Option<i64>,
    victim: Option<String>,
    bytes: Option<i64>,
    timeout: Option<String>,
    retries: Option<i64>,
    negative: Option<String>,
    when_full: Option<String>,
    searcher: Option<String>,
    service: Option<String>,
    searcher_cpu: Option<i64>,
}

impl PortCacheSection {
    /// Sets the mode, regardless of the file.
    pub fn set_mode(&mut self, mode: PortCacheMode) {
        self.mode = Some(mode.name().to_owned());
    }

    /// Returns whether the file turns the cache off, or has settings of a cache that it does not turn on.
    pub(crate) fn is_off(&self) -> bool {
        self.mode.as_deref().map_or(*self != Self::default(), |mode| mode == PortCacheMode::Off.name())
    }

    /// Returns whether the file names a searcher of the simulator.
    pub(crate) fn is_simulated(&self) -> bool {
        self.searcher.as_deref() == Some("lab")
    }

    /// Returns whether the file names the search worker.
    pub(crate) fn has_search_worker(&self) -> bool {
        self.searcher.as_deref() == Some("worker")
    }

    /// Returns whether the file gives a time that searches take, which only the simulator uses.
    pub(crate) fn has_service(&self) -> bool {
        self.service.is_some()
    }

    /// Returns the CPU for the thread of the search worker, as it is in the file.
    #[must_use]
    pub fn searcher_cpu(&self) -> Option<i64> {
        self.searcher_cpu
    }
}

/// Reads the settings of the port cache of the datapath at `key`. The outer option is `None` if a value is
/// wrong. The inner option is `None` if the cache is off. `has_records` is whether the express path is on.
pub(crate) fn port_cache(
    key: &str,
    section: &PortCacheSection,
    has_records: bool,
    mistakes: &mut Mistakes,
) -> Option<Option<PortCacheConfig>> {
    let key = |name: &str| format!("{key}.port_cache.{name}");
    let mode = match &section.mode {
        Some(text) => text.parse::<PortCacheMode>().map(PortCacheMode::cache_mode),
        None => Ok(None),
    };
    let mode = mistakes.at(key("mode"), mode);
    if matches!(mode, Some(Some(_))) && !has_records {
        let problem = "needs path records, but express.enabled is false; set express.enabled = true";
        mistakes.wrong(key("mode"), problem);
        return None;
    }
    let limits = limits(key, section, mistakes);
    let searcher = searcher(key, section, mistakes);
    let (searcher, service_ns) = searcher?;
    let config = PortCacheConfig {
        mode: mode?.unwrap_or_default(),
        limits: limits?,
        searcher,
        service_ns,
        ..PortCacheConfig::default()
    };
    if let Err(LimitError { name, value, min, max }) = config.check() {
        mistakes
            .wrong(key(name.trim_end_matches("_ns")), format!("{value} is out of range; use {min} to {max}"));
        return None;
    }
    Some(mode?.map(|_| config))
}

/// Reads the budgets and times.
fn limits(
    key: impl Fn(&str) -> String,
    section: &PortCacheSection,
    mistakes: &mut Mistakes,
) -> Option<MissLimits> {
    let usual = MissLimits::USUAL;
    let mut number = |name: &str, value: Option<i64>, default: u32, min: u32, max: u32| {
        let range = i64::from(min)..=i64::from(max);
        mistakes.at(key(name), in_range(value.unwrap_or(default.into()), range)).map(|value| value as u32)
    };
    let entries = number("entries", section.entries, usual.entries.into(), 1, MissLimits::ENTRIES_MAX.into());
    let queue = number("queue", section.queue, usual.queue.into(), 0, MissLimits::QUEUE_MAX.into());
    let bytes = number("bytes", section.bytes, usual.bytes, MissLimits::BYTES_MIN, MissLimits::BYTES_MAX);
    let records = number("records", section.records, usual.records.into(), 0, MissLimits::RECORDS_MAX.into());
    let retries = number("retries", section.retries, usual.retries.into(), 0, MissLimits::RETRIES_MAX.into());
    let mut time = |name: &str, text: &Option<String>, default: Nanos, range: RangeInclusive<Nanos>| {
        let time = text.as_deref().map_or(Ok(default), duration).and_then(|time| match time {
            time if range.contains(&time) => Ok(time),
            _ => Err(format!("is out of range; use \"{}us\" to \"60s\"", range.start().0 / 1_000)),
        });
        mistakes.at(key(name), time)
    };
    let timeout_ns =
        time("timeout", &section.timeout, usual.timeout_ns, TIMEOUT_MIN_NS..=MissLimits::TIME_MAX);
    let negative_ns = time("negative", &section.negative, usual.negative_ns, Nanos(0)..=MissLimits::TIME_MAX);
    let victim = match section.victim.as_deref() {
        None | Some("clock") => Ok(Victim::Clock),
        Some("lru") => Ok(Victim::LeastRecentlyUsed),
        Some(other) => Err(format!("\"{other}\" is unknown; use \"clock\" or \"lru\"")),
    };
    let victim = mistakes.at(key("victim"), victim);
    if let (Some(records), Some(entries)) = (records, entries)
        && (1..entries).contains(&records)
    {
        let problem = format!("{records} is less than entries; use at least {entries}, or 0 for no limit");
        mistakes.wrong(key("records"), problem);
        return None;
    }
    let lru_max = MissLimits::LRU_RECORDS_MAX;
    if records > Some(lru_max.into()) && victim == Some(Victim::LeastRecentlyUsed) {
        let problem = format!(
            "victim = \"lru\" compares all records of a port; use at most {lru_max} records, or victim = \"clock\""
        );
        mistakes.wrong(key("records"), problem);
        return None;
    }
    let when_full = match section.when_full.as_deref() {
        None | Some("drop") => Ok(WhenFull::Drop),
        Some("forward") => Ok(WhenFull::Forward),
        Some(other) => Err(format!("\"{other}\" is unknown; use \"drop\" or \"forward\"")),
    };
    let when_full = mistakes.at(key("when_full"), when_full);
    Some(MissLimits {
        entries: entries? as u16,
        queue: queue? as u16,
        records: records? as u16,
        victim: victim?,
        bytes: bytes?,
        timeout_ns: timeout_ns?,
        retries: retries? as u8,
        negative_ns: negative_ns?,
        when_full: when_full?,
    })
}

/// Reads the searcher, and returns its service time in nanoseconds. It is 0 for the worker's own tables.
fn searcher(
    key: impl Fn(&str) -> String,
    section: &PortCacheSection,
    mistakes: &mut Mistakes,
) -> Option<(SearcherKind, Nanos)> {
    let service = section.service.as_deref().map(duration);
    if section.searcher_cpu.is_some() && !section.has_search_worker() {
        mistakes.wrong(
            key("searcher_cpu"),
            "is for searcher = \"worker\"; omit it, or write searcher = \"worker\"",
        );
        return None;
    }
    match (section.searcher.as_deref(), service) {
        (None | Some("inline"), None) => Some((SearcherKind::Own, Nanos(0))),
        (None | Some("inline"), Some(_)) => {
            let problem = "is for searcher = \"lab\" or \"worker\" in scenarios of shunt sim; omit it, or write searcher = \"lab\"";
            mistakes.wrong(key("service"), problem);
            None
        }
        (Some("worker"), None) => Some((SearcherKind::Worker, Nanos(0))),
        (Some("lab"), None) => {
            mistakes.wrong(key("service"), "is missing; write service = \"10us\"");
            None
        }
        (Some(name @ ("lab" | "worker")), Some(service)) => {
            let service = service.and_then(|time| match time {
                time if time <= MissLimits::TIME_MAX => Ok(time),
                _ => Err("is out of range; use \"0us\" to \"60s\"".to_owned()),
            });
            let kind = if name == "worker" { SearcherKind::Worker } else { SearcherKind::Own };
            mistakes.at(key("service"), service).map(|service_ns| (kind, service_ns))
        }
        (Some(other), _) => {
            let problem = format!(
                "\"{other}\" is not a searcher of this build; use \"inline\" or \"worker\", or \"lab\" in a scenario of shunt sim"
            );
            mistakes.wrong(key("searcher"), problem);
            None
        }
    }
}

/// Checks that the packets that may wait at `ports` ports of `workers` workers fit the pools of the workers.
/// Their memory is reserved even if the searcher answers at once, so that no packet waits for it.
pub fn check_pool(key: &str, cache: &PortCacheConfig, ports: usize, workers: usize, mistakes: &mut Mistakes) {
    let MissLimits { entries, queue, .. } = cache.limits;
    if ports * workers * cache.limits.packets() > WAITING_MAX {
        let all = WAITING_MAX / (ports * workers);
        let remedy = match all.saturating_sub(entries.into()) {
            0 => format!("lower entries and queue to {all} in total"),
            most => format!("use at most {most}"),
        };
        let problem = format!(
            "{queue} packets and {entries} entries of each of {ports} ports and {workers} workers exceed the pools of {WAITING_MAX} frames; {remedy}, with mode = \"nonblocking\""
        );
        mistakes.wrong(format!("{key}.port_cache.queue"), problem);
    }
}
