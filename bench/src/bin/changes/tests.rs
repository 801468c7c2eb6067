// SPDX-License-Identifier: Apache-2.0
//! A short run of each kind of job.

use dataplane::DataPlane;
use flow::{Nanos, TableId};
use model::{FlowCursor, FlowFilter, FlowStats};
use shunt_bench::scenario::Popularity;

use crate::control::{Job, Served};
use crate::rules::Sizes;
use crate::side::{Pair, Side};

const SIZES: Sizes = Sizes { flows: 200, routes: 400 };

/// One of this many changes adds a rule on a new field.
const SHARE: usize = 100;

/// Time during which packets arrive while a job runs, in nanoseconds.
const SPAN_NS: u64 = 100_000_000;

/// Job with 200 changes and 20 requests within [`SPAN_NS`].
const JOB: Job = Job { changes: 2_000, statistics: 200, dump: true };

/// Priority of added rules that packets hit.
const HIT_PRIORITY: u16 = 5_000;

#[test]
fn packets_pass_while_the_control_thread_works() {
    let mut pair = Pair::new(SIZES, SHARE, Popularity::InTurn).unwrap();
    let measured = pair.sides[0].paced(JOB, 10_000.0, SPAN_NS).unwrap();
    let counted = measured.delays.packets() + measured.excluded;
    assert!(measured.sent > 0 && counted <= measured.sent, "{counted} of {}", measured.sent);
    // The control thread may be too slow for all requests, but not for a tenth of them.
    let work = measured.work;
    assert!(work.changes >= 20 && work.statistics >= 2 && work.plans >= work.widened, "{work:?}");
    let entries = SIZES.rules().lines().count() as u64;
    assert!((entries..=entries + work.changes).contains(&work.dumped), "{entries} entries: {work:?}");
    let (window, work) = pair.sides[1].full_speed(Job::default(), 5_000_000).unwrap();
    assert!(window.units > 0 && window.cpu_ns > 0);
    assert_eq!((work.changes, work.dumped, work.statistics), (0, 0, 0));
    let mut ended = pair.end().unwrap();
    for (side, served) in &mut ended {
        check_counters(side, served);
    }
    assert!(ended[0].1.changes.living().any(|rule| rule.priority == HIT_PRIORITY));
}

/// Checks that the rules of the changes are in force, and that each packet is counted once in each table.
fn check_counters(side: &mut Side, served: &mut Served) {
    assert!(side.settle(served, SIZES.flows), "hits of path records remain uncounted");
    let totals = served.model.plane_mut().totals();
    assert!(totals.received > 0 && totals.express > 0, "{totals:?}");
    assert_eq!((totals.forwarded, totals.copies), (totals.received, totals.received));
    for table in [0, 1] {
        let counters = served.model.plane_mut().table_counters(TableId(table));
        assert_eq!((counters.lookups, counters.matches), (totals.received, totals.received), "table {table}");
    }
    let filter = FlowFilter::default();
    let flows = served.model.flows(Nanos(0), &filter, &mut FlowCursor::default(), usize::MAX);
    // No route in use is ever deleted.
    let in_table_1 = flows.iter().filter(|flow| flow.entry.table == TableId(1));
    assert_eq!(in_table_1.map(|flow| flow.packets).sum::<u64>(), totals.received);
    let living = served.changes.living();
    assert_eq!(flows.len(), SIZES.rules().lines().count() + living.len());
    for rule in living {
        let is_rule = |flow: &&FlowStats| {
            (Some(flow.entry.table), flow.entry.priority) == (rule.table, rule.priority)
                && flow.entry.matching == rule.matching
        };
        let flow = flows.iter().find(is_rule).expect("each added rule has an entry");
        assert_eq!(flow.packets > 0, rule.priority == HIT_PRIORITY, "{rule:?}: {} packets", flow.packets);
    }
}
