// SPDX-License-Identifier: Apache-2.0
//! The thread sleeps while nothing happens, and ends when the simulation is dropped.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use device::Body;
use device::DeviceMessage;
use device_sim::DeviceChannel;
use frame::{Frame, Stamp};
use port::mem::{MemQueue, pair};
use port::wait::Wake;
use port::{Capabilities, Link, Pools, Queue, Statistics};

use crate::rig::{Daemon, Rig, frame, wait_until};

/// A queue in memory with a descriptor.
struct Described(MemQueue, Arc<Wake>);

impl Queue for Described {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.1.clear();
        self.0.receive(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.0.transmit(frames, done)
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.1.descriptor())
    }

    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.0.poll_link()
    }
}

#[test]
fn the_clock_stands_without_work_and_a_frame_or_a_message_starts_it() {
    let (mut channels, mut handles, mut wakes) = (Vec::new(), Vec::new(), Vec::new());
    for port in 1..=2 {
        let (mut queues, handle) = pair(port.into(), 1, 64);
        let wake = Arc::new(Wake::new().unwrap());
        channels
            .push(DeviceChannel { port, queue: Box::new(Described(queues.remove(0), Arc::clone(&wake))) });
        handles.push(handle);
        wakes.push(wake);
    }
    let mut rig = Rig { handles, ..Rig::with_channels(channels) };
    let mut daemon = Daemon::new(rig.address, 5);
    daemon.change("in_port=1,actions=output:2");
    daemon.settle();
    for number in 0..3 {
        let stands = rig.settle();
        thread::sleep(Duration::from_millis(600));
        let later = rig.counters();
        assert_eq!(later.cycles, stands.cycles, "the clock runs");
        let sleeps = later.sleeps - stands.sleeps;
        assert!((3..=12).contains(&sleeps), "{sleeps} sleeps in 600 ms: only links are polled");
        rig.push(1, &frame(1, 1_000, number));
        wakes[0].wake();
        assert_eq!(rig.take(2, 1), [frame(1, 1_000, number)]);
        let cycles = rig.settle().cycles - stands.cycles;
        assert!((500..1_000).contains(&cycles), "{cycles} cycles for a frame");
    }
    let stands = rig.settle();
    let hello = DeviceMessage { id: 1_000, body: Body::Hello { ppus: 0, entries: 0 } }.encode().unwrap();
    daemon.model.plane_mut().link().socket.send_to(&hello, rig.address).unwrap();
    wait_until("the Hello is answered", || rig.counters().control.sent > stands.control.sent);
    assert!(rig.settle().cycles > stands.cycles);
}

#[test]
fn dropping_a_simulation_ends_its_thread() {
    let mut rig = Rig::new(2);
    rig.push(1, &frame(1, 60, 1));
    assert!(rig.simulation.is_running());
    let start = Instant::now();
    let Rig { simulation, mut handles, .. } = rig;
    drop(simulation);
    assert!(start.elapsed() < Duration::from_secs(5));
    // The queues are dropped, so nothing takes frames any more.
    let pushed = (0..1_000).take_while(|number| handles[0].push(0, &frame(1, 60, *number))).count();
    assert!(pushed < 1_000);
}
