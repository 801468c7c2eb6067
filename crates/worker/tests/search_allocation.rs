// SPDX-License-Identifier: Apache-2.0
//! Neither a worker nor the search worker allocates or frees memory for a search, or for an operation.

#![allow(clippy::unwrap_used)]

mod counting;

use counting::Counted;
use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowModCommand, Nanos, PortNo};
use frame::Frame;
use model::{Model, ModelConfig, PortDesc};
use pipeline::LaneLimits;
use port::Queue;
use port::mem;
use port_cache::{MissLimits, PortCacheConfig, SearcherKind};
use wire::PacketBuilder;
use worker::{PortQueues, WorkerSetConfig, build};

#[global_allocator]
static ALLOCATOR: counting::Allocator = counting::Allocator;

/// Poll iterations before allocations are counted.
const WARM_UP: u16 = 300;

const TURNS: u16 = 5_000;

const RULES: [&str; 7] = [
    "priority=9,udp,tp_dst=1,actions=dec_ttl,output:2",
    "priority=9,udp,tp_dst=2,actions=output:2,output:1",
    "priority=9,udp,tp_dst=3,actions=normal",
    "priority=9,udp,tp_dst=4,actions=controller:64",
    "priority=9,udp,tp_dst=5,actions=push_vlan:0x8100,set_field:4097->vlan_vid,goto_table:1",
    "priority=8,udp,tp_src=9,actions=drop",
    "table=1,priority=1,actions=output:2",
];

#[test]
fn no_thread_allocates_or_frees_for_a_search() {
    let (mut handles, mut ports) = (Vec::new(), Vec::new());
    for number in 1..=2 {
        let (queues, handle) = mem::pair(number, 1, 1_024);
        let queues = queues.into_iter().map(|queue| (0, Box::new(queue) as Box<dyn Queue>)).collect();
        ports.push(PortQueues { number: PortNo(number), queues, egress: Vec::new() });
        handles.push(handle);
    }
    let limits = MissLimits { timeout_ns: Nanos(3_000), retries: 4, entries: 16, ..MissLimits::USUAL };
    let cache = PortCacheConfig { limits, searcher: SearcherKind::Worker, ..PortCacheConfig::default() };
    let config = WorkerSetConfig {
        express_records: 256,
        port_cache: Some(cache),
        lanes: LaneLimits::NONE,
        ..WorkerSetConfig::default()
    };
    let (mut plane, mut workers) = build(&config, ports);
    let (mut search, mut worker) = (plane.take_search_worker().unwrap(), workers.remove(0));
    let mut model = Model::new(ModelConfig::default(), plane, Nanos(0));
    for number in [1, 2].map(PortNo) {
        model.add_port(Nanos(0), PortDesc { number, ..PortDesc::default() }, true).unwrap();
    }
    let flow = |model: &mut Model<_>, text: &str, now| {
        let flow = parse_flow(text, FlowModCommand::Add, ParseOptions::default()).unwrap();
        model.flow_mod(now, flow).unwrap();
    };
    RULES.iter().for_each(|rule| flow(&mut model, rule, Nanos(0)));
    let mut counted = Counted::default();
    for turn in 0..TURNS {
        let now = Nanos(1 + 1_000 * u64::from(turn));
        for number in 0..turn % 9 {
            // In each turn, packets of known flows, of new flows, and more than one packet of a flow arrive.
            let source = if number % 3 == 0 { number } else { 1_000 + turn };
            let packet = PacketBuilder::ethernet([2; 6], [4; 6])
                .ipv4([10; 4], [11, 0, 0, number as u8])
                .udp(source, 1 + (turn + number / 2) % 6)
                .pad_to(60 + usize::from(turn % 1_400));
            handles[0].push_frame(0, &Frame::from_bytes(&packet.build()));
        }
        if turn % 50 == 0 {
            flow(&mut model, &format!("priority=7,udp,tp_src={turn},actions=output:2"), now);
        }
        model.poll(now);
        while model.next_async_message().is_some() {}
        let before = counting::on_this_thread();
        worker.turn(now);
        // Some searches wait for several turns, or are repeated, but the search worker is not taken for dead.
        if turn % 13 < 9 {
            search.turn(now);
        }
        let after = counting::on_this_thread();
        if turn >= WARM_UP {
            let Counted { allocated, freed } = after - before;
            counted = Counted { allocated: counted.allocated + allocated, freed: counted.freed + freed };
        }
        handles.iter_mut().for_each(|handle| while handle.pop(0).is_some() {});
    }
    assert_eq!(counted, Counted::default());
    let figures = model.plane_mut().miss_figures();
    let all = [figures.sent, figures.answered, figures.outdated, figures.retried, figures.stale];
    assert!(all.iter().all(|count| *count > 10), "{figures:?}");
}
