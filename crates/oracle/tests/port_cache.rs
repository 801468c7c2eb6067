// SPDX-License-Identifier: Apache-2.0
//! The oracle with the port cache on. Searches take no time, or longer than several bursts and operations.
//! Answers may be lost, late, doubled and reordered. The test `oracle` explains the environment variables.

use flow::{Nanos, TableId};
use oracle::{CaseOptions, Coverage, run_case};
use pipeline::{BypassLimits, LaneLimits};
use port_cache::{
    MissFigures, MissLimits, MissMode, PortCacheConfig, QuenchConfig, QuenchedTables, SearcherFaults,
    SearcherKind, Victim, WhenFull,
};
use worker::{Consistency, Quanta};

/// Minimum number of rule sets in a run for coverage to be checked.
const CASES: u64 = 100;

/// Maximum number of violations that are described.
const SHOWN: usize = 5;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Returns the mode, the limits and the searcher of a case. A quarter of the cases blocks ports. A sixth of
/// the cases has a searcher that answers at once.
fn port_cache(seed: u64) -> PortCacheConfig {
    let mut rng = fastrand::Rng::with_seed(seed);
    let entries = [1, 2, 4, 16, 64][rng.usize(0..5)];
    let mut limits = MissLimits {
        entries,
        queue: [0, 1, 4, 16, 64][rng.usize(0..5)],
        bytes: [4_096, 100_000, MissLimits::BYTES_MAX][rng.usize(0..3)],
        timeout_ns: Nanos([20_000_000, 200_000_000, 2_000_000_000][rng.usize(0..3)]),
        retries: rng.u8(0..4),
        negative_ns: Nanos([0, 30_000_000, 500_000_000][rng.usize(0..3)]),
        when_full: [WhenFull::Drop, WhenFull::Forward][rng.usize(0..2)],
        ..MissLimits::USUAL
    };
    let faults = SearcherFaults {
        seed,
        lost: [0, 0, 10, 40][rng.usize(0..4)],
        doubled: [0, 20][rng.usize(0..2)],
        delay_ns: Nanos([50_000_000, 300_000_000, 1_000_000_000][rng.usize(0..3)]),
    };
    if (seed / 48).is_multiple_of(2) {
        limits.records = entries + [0, 1, 8][rng.usize(0..3)];
        limits.victim = [Victim::Clock, Victim::LeastRecentlyUsed][rng.usize(0..2)];
    }
    let mode = if seed / 12 % 4 == 1 { MissMode::Blocking } else { MissMode::NonBlocking };
    // The driver answers some packet-ins, late or twice.
    let tables = QuenchedTables::of(TableId::of_controllers());
    let timeout_ns = Nanos([1_000_000, 50_000_000, 500_000_000][rng.usize(0..3)]);
    let asks = mode == MissMode::NonBlocking && seed % 5 < 2;
    let quench = asks.then_some(QuenchConfig { tables, timeout_ns });
    let cache = match seed / 2 % 6 {
        0 => PortCacheConfig { mode, limits, ..PortCacheConfig::default() },
        1 | 2 => {
            let service_ns = Nanos([1, 1_000_000, 20_000_000, 100_000_000][rng.usize(0..4)]);
            PortCacheConfig { mode, limits, service_ns, ..PortCacheConfig::default() }
        }
        _ => {
            let (service_ns, faults) = (Nanos(1_000_000), Some(faults));
            PortCacheConfig { mode, limits, service_ns, faults, ..PortCacheConfig::default() }
        }
    };
    // `ORACLE_SEARCHER=worker` gives all cases a search worker, and `own` gives it to none.
    let searches = match std::env::var("ORACLE_SEARCHER").as_deref() {
        Ok("worker") => true,
        Ok("own") => false,
        _ => (seed / 7).is_multiple_of(3),
    };
    let searcher = if searches { SearcherKind::Worker } else { SearcherKind::Own };
    PortCacheConfig { quench, searcher, ..cache }
}

fn options(seed: u64, packets: usize) -> CaseOptions {
    let mut rng = fastrand::Rng::with_seed(seed);
    let lanes = match seed % 4 {
        0 | 1 => LaneLimits::default(),
        2 => LaneLimits { normal: rng.u16(0..20), unknown: rng.u16(1..20), hold: rng.u16(0..20) },
        _ => LaneLimits { hold: [0, 1, 8, 64][rng.usize(0..4)], ..LaneLimits::USUAL },
    };
    CaseOptions {
        packets,
        repeats: true,
        workers: 1 + (seed / 3 % 2) as usize,
        lut_entries: [0, 16, 256, 4_096][(seed / 3 % 4) as usize],
        express_records: [16, 4_096, 4_096][(seed / 5 % 3) as usize],
        // The port cache ends the bypass; otherwise it would often be on.
        express_bypass: BypassLimits {
            window_packets: 8,
            sample_packets: 4,
            packets_per_hit: 1,
            sampled_bursts: 2,
        },
        port_cache: Some(port_cache(seed)),
        consistency: Consistency::ALL[seed as usize % 4],
        lanes,
        quanta: Quanta { small: rng.usize(1..5), large: rng.usize(4..33), quiet_ns: Nanos(0) },
        // Search workers must take no tokens of storm limits.
        vlans: seed % 5 == 2,
    }
}

#[test]
fn packets_of_unknown_flows_wait_as_the_equivalence_rule_allows() {
    let (cases, packets) = (number("ORACLE_CASES", CASES), number("ORACLE_PACKETS", 1_000) as usize);
    let first = number("ORACLE_SEED", 1);
    let (mut coverage, mut breaches) = (Coverage::default(), Vec::new());
    for seed in first..first + cases {
        pipeline::set_portable(seed % 3 == 0);
        match run_case(seed, options(seed, packets)) {
            Ok(case) => coverage.add(&case),
            Err(breach) => breaches.push(breach),
        }
    }
    pipeline::set_portable(false);
    println!("{cases} rule sets\n{coverage}\n{:?}, {} answers", coverage.misses, coverage.answered);
    let shown: Vec<String> = breaches.iter().take(SHOWN).map(ToString::to_string).collect();
    assert!(breaches.is_empty(), "{} breaches\n{}", breaches.len(), shown.join("\n"));
    // With one kind of searcher, the situations of the other kind do not occur.
    if cases >= CASES && std::env::var_os("ORACLE_SEARCHER").is_none() {
        check_coverage(&coverage, cases);
    }
}

/// Checks that packets meet each situation often enough.
fn check_coverage(coverage: &Coverage, cases: u64) {
    let MissFigures {
        hits,
        searched,
        merged,
        passed,
        uncached,
        dropped,
        forced,
        retried,
        timed_out,
        stale,
        unserved: _,
        sent,
        answered,
        outdated,
        fallen_back,
        released,
        evicted,
        asked,
        returned: _,
        unquenched,
        unanswered,
    } = coverage.misses;
    let counts = [
        hits,
        searched,
        merged,
        passed,
        uncached,
        dropped,
        forced,
        retried,
        timed_out,
        stale,
        sent,
        answered,
        outdated,
        fallen_back,
        released,
        evicted,
        asked,
        unquenched,
        unanswered,
    ];
    assert!(counts.iter().all(|count| *count >= cases / 2), "{:?}", coverage.misses);
    // Packets that return to the queue are rare: those without space in the port cache. The test `quench` of
    // `worker` covers them.
    assert!(coverage.answered as u64 >= cases / 2, "{} answers", coverage.answered);
    assert!(coverage.express.inherited >= cases / 2, "{:?}", coverage.express);
    assert!(coverage.losses["miss_queue_full"] >= cases && coverage.losses["miss_timeout"] >= cases / 2);
}
