// SPDX-License-Identifier: Apache-2.0
//! Quenching while a search worker finds the paths of unknown flows.

use crate::lab::{LIMITS, Lab, MISS, packet, quench};
use pipeline::LaneLimits;
use port_cache::{PortCacheConfig, SearcherKind};
use worker::WorkerSetConfig;

/// The path of the table-miss entry is found by the search worker. It is not recorded, because packets that
/// hit a record ask nothing.
#[test]
fn a_new_flow_causes_one_packet_in_with_a_search_worker() {
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let known = "dl_dst=02:00:00:00:00:02,actions=output:2";
    for lanes in [LaneLimits::NONE, LaneLimits::USUAL] {
        let usual = quench(0);
        let cache = usual.port_cache.map(|cache| PortCacheConfig { searcher: SearcherKind::Worker, ..cache });
        let config = WorkerSetConfig { lanes, port_cache: cache, ..usual };
        let mut lab = Lab::new(&config, &[known, low_latency, MISS]);
        lab.push(1, &packet(1, 2, 7));
        lab.turns();
        assert_eq!((lab.sent(2), lab.figures().answered), (vec![7], 1), "the search worker answers");
        let mut packet_ins = Vec::new();
        for number in 0..1_000 {
            lab.push(1, &packet(1, 3, number));
            lab.turn();
            packet_ins.extend(lab.packet_ins());
        }
        let [packet_in] = &packet_ins[..] else { panic!("{} packet-ins, {lanes:?}", packet_ins.len()) };
        assert_eq!((lab.totals().held, lab.totals().consumed), (LIMITS.queue.into(), 1));
        lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", packet_in.buffer_id);
        lab.turns();
        assert_eq!(lab.sent(3), (0..=LIMITS.queue.into()).collect::<Vec<u32>>(), "{lanes:?}");
        assert_eq!((lab.packet_ins(), lab.errors), (vec![], vec![]));
    }
}
