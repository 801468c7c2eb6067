// SPDX-License-Identifier: Apache-2.0
//! The oracle: checks the equivalence rule on random tables, packets and updates. `ORACLE_CASES` sets the
//! number of rule sets (default 200), `ORACLE_PACKETS` the number of packets of each (default 850; 60 % more
//! if flows repeat), and `ORACLE_SEED` the first seed. With fewer rule sets, coverage is printed but not
//! checked. `ORACLE_VLAN_CASES` is the number of rule sets with VLANs, storm limits and MAC limits of ports
//! (default 40).

use flow::Nanos;
use oracle::{CaseOptions, Coverage, PathUse, run_case};
use pipeline::{BypassLimits, LaneLimits};
use std::ops::Range;
use worker::{Consistency, Quanta};

/// Minimum number of rule sets in a run for coverage to be checked.
const CASES: u64 = 200;

/// Number of rule sets with VLANs of ports.
const VLAN_CASES: u64 = 40;

/// Minimum share of the repeated packets of a calm case that must pass each table on the fast-forwarding
/// path, in thousandths. A change of rules makes packets of a flow miss again, and 20 packets suffice for a
/// check, so not all packets pass.
const TABLE_PERMILLE: u64 = 500;

/// Minimum share of the repeated packets of all calm cases that must stay on the path, in percent.
const CALM_PERCENT: usize = 90;

/// Number of packets of a case in which flows repeat, in percent of the number in other cases.
const REPEATS_PERCENT: usize = 160;

/// Minimum share of the packets looked up in the express path that must have a record, in percent.
const EXPRESS_HITS_PERCENT: u64 = 45;

/// Number of records of a tiny LUT.
const TINY_LUT_ENTRIES: usize = 16;

/// Maximum number of violations that are described.
const SHOWN: usize = 5;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Returns lane limits and budgets for a case. A sixth of the cases has no lanes, and a sixth has limits of
/// at most 20 packets.
fn lanes(seed: u64) -> (LaneLimits, Quanta) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut size = |sizes: [u16; 5]| sizes[rng.usize(0..sizes.len())];
    let limits = match seed / 2 % 6 {
        0 => LaneLimits::default(),
        1 => LaneLimits {
            normal: size([0, 1, 2, 5, 20]),
            unknown: size([0, 1, 2, 5, 20]),
            hold: size([0, 1, 2, 5, 20]),
        },
        _ => LaneLimits { hold: size([0, 1, 8, 64, 256]), ..LaneLimits::USUAL },
    };
    let (small, large) = (usize::from(size([1, 1, 2, 4, 8])), usize::from(size([2, 4, 8, 32, 32])));
    let quiet_ns = if rng.bool() { u64::from(u32::MAX) } else { 0 };
    (limits, Quanta { small, large, quiet_ns: Nanos(quiet_ns) })
}

/// Returns the limits at which the express path is bypassed. In cases with tiny LUTs, the path is used and
/// bypassed alternately, for few packets each. In other cases, too few packets pass for a bypass.
fn bypass(seed: u64, lut_entries: usize) -> BypassLimits {
    if lut_entries != TINY_LUT_ENTRIES {
        return BypassLimits::USUAL;
    }
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut one = |values: [u32; 3]| values[rng.usize(0..3)];
    BypassLimits {
        window_packets: one([2, 8, 32]),
        sample_packets: one([1, 4, 16]),
        packets_per_hit: one([1, 1, 2]),
        sampled_bursts: one([2, 2, 3]),
    }
}

/// Returns the options of a case. Cases in which flows repeat have more packets.
fn options(seed: u64, packets: usize, vlans: bool) -> CaseOptions {
    // Some cases do not use the path; the others use each consistency mode, with LUTs from tiny to large.
    let (consistency, lut_entries) = match seed / 2 % 5 {
        0 if (seed / 10).is_multiple_of(3) => (Consistency::Auto, 0),
        way => (
            Consistency::ALL[way as usize % 4],
            [TINY_LUT_ENTRIES, 256, 4_096, 16_384][(seed / 10 % 4) as usize],
        ),
    };
    let (lanes, quanta) = lanes(seed);
    let express_records = [0, 16, 4_096][(seed / 3 % 3) as usize];
    let repeats = express_records > 0;
    CaseOptions {
        packets: if repeats { packets * REPEATS_PERCENT / 100 } else { packets },
        repeats,
        workers: 1 + (seed % 2) as usize,
        lut_entries,
        express_records,
        express_bypass: bypass(seed, lut_entries),
        port_cache: None,
        consistency,
        lanes,
        quanta,
        vlans,
    }
}

/// Runs cases and returns their coverage. Fails if workers and the reference disagree in a case.
fn run(seeds: Range<u64>, packets: usize, vlans: bool) -> Coverage {
    let (mut coverage, mut breaches) = (Coverage::default(), Vec::new());
    for seed in seeds {
        pipeline::set_portable(seed % 3 == 0);
        match run_case(seed, options(seed, packets, vlans)) {
            Ok(case) => {
                check_path(seed, &case.path);
                coverage.add(&case);
            }
            Err(breach) => breaches.push(breach),
        }
    }
    pipeline::set_portable(false);
    let shown: Vec<String> = breaches.iter().take(SHOWN).map(ToString::to_string).collect();
    assert!(breaches.is_empty(), "{} breaches\n{}", breaches.len(), shown.join("\n"));
    coverage
}

#[test]
fn fast_path_and_reference_agree_by_the_law() {
    let (cases, packets) = (number("ORACLE_CASES", CASES), number("ORACLE_PACKETS", 850) as usize);
    let first = number("ORACLE_SEED", 1);
    let coverage = run(first..first + cases, packets, false);
    println!("{cases} rule sets\n{coverage}");
    if cases >= CASES {
        check_power(&coverage);
        check_features(&coverage);
        check_changes(&coverage, cases as usize);
        check_calm(&coverage, cases as usize);
        check_work(&coverage, cases as usize, packets);
    }
}

#[test]
fn fast_path_and_reference_agree_with_vlans_of_ports() {
    let cases = number("ORACLE_VLAN_CASES", VLAN_CASES);
    let first = number("ORACLE_SEED", 1);
    let coverage = run(first..first + cases, 850, true);
    println!("{cases} rule sets with VLANs of ports\n{coverage}");
    if cases < VLAN_CASES {
        return;
    }
    for (name, one_in) in [
        ("frames of another VLAN", 2_000),
        ("tags changed by NORMAL", 90),
        ("tags changed by NORMAL after path records", 500),
    ] {
        let met = coverage.features.get(name).copied().unwrap_or_default();
        assert!(met * one_in >= coverage.packets, "{name}: {met} packets of {}", coverage.packets);
    }
    let exceeded = coverage.exceeded_floods;
    assert!(exceeded * 200 >= coverage.packets, "floods over a storm limit: {exceeded}");
    let (closed, reopened) = (coverage.closed_ports, coverage.reopened_ports);
    assert!(2 * closed as u64 >= cases, "ports closed by storm limits: {closed}");
    assert!(2 * reopened >= closed, "closed ports that opened again: {reopened} of {closed}");
    let full = coverage.full_ports as u64;
    assert!(full >= cases, "ports at their limits of addresses: {full} in {cases} cases");
}

/// Checks that no table of a calm case is kept off the path.
fn check_path(seed: u64, path: &PathUse) {
    for (table, share) in path.tables_permille() {
        assert!(
            share >= TABLE_PERMILLE,
            "seed {seed}: {share} per thousand repeated packets pass table {table} on the path: {path:?}"
        );
    }
}

/// Checks that enough repeated packets and tables of calm cases were evaluated, for each lookup method of the
/// path.
fn check_calm(coverage: &Coverage, cases: usize) {
    let path = &coverage.path;
    assert!(path.repeated >= 20 * cases, "repeated packets in calm cases: {}", path.repeated);
    assert!(path.fast * 100 >= path.repeated * CALM_PERCENT, "repeated packets on the path: {}", path.fast);
    for (way, floor) in [("LUT", 4), ("index", 1), ("the table itself", 4)] {
        let judged = path.judged.get(way).copied().unwrap_or_default();
        assert!(judged * 100 >= floor * cases, "tables checked with lookup method {way}: {judged}");
    }
}

/// Checks that the cases are useful: most packets are forwarded, pass several tables and stay on the path;
/// rules overlap; and updates change how packets are treated.
fn check_power(coverage: &Coverage) {
    let packets = coverage.packets;
    let [.., dropped] = coverage.outcomes;
    assert!(dropped * 10 <= packets * 4, "at most four tenths of the packets are dropped");
    assert!(coverage.multi_table * 2 >= packets, "half of the packets pass several tables");
    assert!(coverage.overlapping * 2 >= packets, "half of the packets match overlapping rules");
    assert!(coverage.live_updates * 10 >= coverage.updates * 9, "updates change the treatment of packets");
    let short = (coverage.fast + coverage.express.hits) as usize;
    assert!(short * 2 >= packets, "half of all packets take the fast-forwarding path or the express path");
    let express = &coverage.express;
    let looked_up = express.hits + express.misses;
    assert!(express.bypassed * 25 >= packets as u64, "packets that bypass records: {}", express.bypassed);
    assert!(
        express.hits * 100 >= looked_up * EXPRESS_HITS_PERCENT,
        "hits of path records: {} of {looked_up} packets",
        express.hits
    );
    assert!(
        coverage.distant_hits * 100 >= express.hits,
        "hits of path records with distant slices: {} of {}",
        coverage.distant_hits,
        express.hits
    );
    assert!(
        coverage.mirrored * 20 > packets,
        "there is a copy of a mirror for each 20 of the offered packets: {}",
        coverage.mirrored
    );
    assert!(
        coverage.stateless as usize * 100 > packets,
        "stateless forwarding takes at least 1 % of the offered packets"
    );
}

/// Checks that enough of the forwarded packets encounter each feature of the flow model.
fn check_features(coverage: &Coverage) {
    let features = [
        ("moves of the base", 20),
        ("slices from a base that may have moved", 40),
        ("inserted or deleted bytes", 100),
        ("cuts of the front", 250),
        ("cuts of the front by path record", 1_000),
        ("increased or copied fields", 120),
        ("calculated checksums", 250),
        ("groups", 25),
        ("hosts of IPv6", 400),
        ("linear tables", 50),
        ("long frames without offloads", 700),
        ("masked L4 ports", 400),
        ("low-latency match-all entries", 6),
        ("meters", 30),
        ("open checksums completed", 250),
        ("packet-outs from ANY", 9_000),
        ("packet-outs from CONTROLLER", 9_000),
        ("packet-outs from LOCAL", 9_000),
        ("packet-outs from port 0", 9_000),
        ("packet-outs from ports", 2_000),
        ("pop_mpls to MPLS", 50),
        ("priorities from 32768 on", 5),
        ("priority 0", 15),
        ("priority 65535", 40),
        ("queues of buckets before more outputs", 300),
        ("reserved destinations by LUT", 150),
        ("reserved destinations by path record", 150),
        ("reserved destinations dropped after LUTs", 4_000),
        ("reserved destinations dropped after path records", 4_000),
        ("set_queue", 25),
        ("short frames", 40),
        ("short frames by LUT", 150),
        ("short frames by path record", 100),
        ("super-frames cut", 250),
        ("tables from 10 on", 8),
        ("tables from 16 on", 8),
    ];
    for (name, one_in) in features {
        let met = coverage.features.get(name).copied().unwrap_or_default();
        assert!(
            met * one_in >= coverage.packets,
            "{name}: encountered by {met} packets of {}",
            coverage.packets
        );
    }
    assert!(coverage.rate_held * 250 >= coverage.packets, "held up by rates: {}", coverage.rate_held);
}

/// Checks that each kind of change occurs often enough per 100 rule sets.
fn check_changes(coverage: &Coverage, cases: usize) {
    let floors = [
        ("groups added", 2),
        ("groups reweighed", 12),
        ("groups replaced", 12),
        ("groups deleted", 6),
        ("meters added", 7),
        ("meters modified", 30),
        ("meters deleted", 10),
        ("several ports down", 18),
        ("ports added", 20),
        ("ports removed", 22),
        ("deletes by port", 25),
        ("deletes by group", 3),
    ];
    let changes = coverage.changes.all();
    assert_eq!(changes.map(|(name, _)| name), floors.map(|(name, _)| name), "each kind has a minimum");
    for ((name, count), (_, floor)) in changes.into_iter().zip(floors) {
        assert!(count * 100 >= floor * cases, "{name}: {count} in {cases} rule sets");
    }
}

/// Checks that the cases reach rare situations: entries time out, backlogs overflow, and all engines and all
/// cleaning methods are used.
fn check_work(coverage: &Coverage, cases: usize, packets: usize) {
    assert!(coverage.expired > 0 && coverage.packet_ins > 0 && coverage.group_uses > 0);
    let held = coverage.held_back;
    assert!(coverage.refused > 0 && held * 2 >= 5 * cases as u64, "held back for order: {held}");
    // The test `port_cache` covers the losses of the port cache, and tests of `worker` and `actions` those of
    // quenched packet-ins and their rates.
    let elsewhere = ["miss_", "packet_in_rate_", "packet_in_quenched"];
    let is_elsewhere = |name: &str| elsewhere.iter().any(|start| name.starts_with(start));
    let mut losses = coverage.losses.iter().filter(|(name, _)| !is_elsewhere(name));
    assert!(losses.all(|(_, lost)| *lost >= cases as u64 / 2), "{:?}", coverage.losses);
    assert!(coverage.timed_out >= 5 * cases, "expiries judged: {}", coverage.timed_out);
    assert!(coverage.removed >= 5 * cases, "flow-removed messages compared: {}", coverage.removed);
    assert!(coverage.metered * 200 >= coverage.packets, "over the rate of a band: {}", coverage.metered);
    assert!(
        coverage.merged_flows >= 5 * cases,
        "flows whose packets differ in unexamined bits: {}",
        coverage.merged_flows
    );
    // The order of these packets is not checked.
    assert!(
        coverage.unlike * 50 <= coverage.packets,
        "packets whose flow differs in examined test tags: {}",
        coverage.unlike
    );
    let luts = &coverage.luts;
    assert!(luts.walked > 0 && luts.verified > luts.walked && luts.cleaned > 0 && luts.evicted > 0);
    assert!(coverage.traced >= 5 * cases, "imagined packets: {}", coverage.traced);
    assert!(coverage.judged >= packets * cases / 12, "recorded packets: {}", coverage.judged);
    let lookups: u64 = coverage.lookups.values().sum();
    for engine in ["exact", "lpm", "mask", "scan"] {
        let served = coverage.lookups.get(engine).copied().unwrap_or(0);
        assert!(
            served * 50 >= lookups,
            "{engine} served {served} of {lookups} lookups: less than a fiftieth"
        );
    }
}
