// SPDX-License-Identifier: Apache-2.0
//! DPDK ports on kernel interfaces.

use crate::lab::{Lab, in_lab, open_one, receive, run, spec_of, veth};
use crate::raw::{await_link, packet};
use frame::{Frame, Stamp};
use port::{Pools, PortDrop, Queue};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

fn open_dpdk(device: &str) -> Box<dyn Queue> {
    let eal = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=critical"];
    let eal = eal.map(String::from).to_vec();
    port::dpdk::configure(port::dpdk::DpdkSettings { eal, mbufs: 1_024, mtu: 1_500 });
    port::open(&spec_of("dpdk", 1, device, 1)).unwrap().remove(0)
}

/// Receives until `count` frames have arrived. DPDK queues have no descriptor to wait for.
fn poll(queue: &mut dyn Queue, pools: &mut Pools, count: usize) -> Vec<Vec<u8>> {
    let (start, mut burst) = (Instant::now(), Vec::new());
    while burst.len() < count && start.elapsed() < PATIENCE {
        queue.receive(pools, &mut burst, 32, Stamp::NONE);
    }
    let bytes = burst.iter().map(|frame| frame.bytes().to_vec()).collect();
    burst.into_iter().for_each(|frame| drop(pools.put(frame)));
    bytes
}

/// Sends copies of packets. Returns the number of packets that the queue took.
fn give(queue: &mut dyn Queue, packets: &[Vec<u8>]) -> usize {
    let mut frames: Vec<_> = packets.iter().map(|bytes| Frame::from_bytes(bytes)).collect();
    queue.transmit(&mut frames, &mut Vec::new())
}

#[test]
fn an_interface_may_vanish_and_come_back() {
    in_lab("dpdk::an_interface_may_vanish_and_come_back", 0, |_: &Lab| {
        veth("va", "vb");
        let mut dpdk = open_dpdk("net_af_packet0,iface=va");
        let mut pools = Pools::new(0, 64, 4);
        let packets = [packet(&[], 60, 1), packet(&[], 1514, 2)];
        let both_ways = |dpdk: &mut dyn Queue, pools: &mut Pools| {
            let mut peer = open_one(2, "vb");
            await_link(&mut *peer, true);
            assert_eq!(give(&mut *peer, &packets), packets.len());
            assert_eq!(poll(dpdk, pools, packets.len()), packets);
            assert_eq!(give(dpdk, &packets), packets.len());
            assert_eq!(receive(&mut *peer, packets.len()), packets);
        };
        both_ways(&mut *dpdk, &mut pools);
        run("ip link del va");
        await_link(&mut *dpdk, false);
        assert_eq!(dpdk.receive(&mut pools, &mut Vec::new(), 32, Stamp::NONE), 0);
        assert_eq!(give(&mut *dpdk, &packets), packets.len());
        assert_eq!(dpdk.statistics().drops(PortDrop::TxLinkDown), packets.len() as u64);
        veth("va", "vb");
        await_link(&mut *dpdk, true);
        assert_eq!(dpdk.generation(), 1);
        both_ways(&mut *dpdk, &mut pools);
        let statistics = dpdk.statistics();
        assert_eq!((statistics.rx_packets, statistics.tx_packets), (4, 4));
    });
}
