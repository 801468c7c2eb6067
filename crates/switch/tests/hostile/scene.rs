// SPDX-License-Identifier: Apache-2.0
//! Test harness: a switch with flows and constant traffic, a well-behaved controller, and the checks at the
//! end of a test.

use crate::lab::{LONG, Lab, until};
use crate::peer::{Peer, add};
use flow::TableId;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::{Answer, MultipartRequest, Query};
use openflow::{Message, encode};
use port::mem::MemHandle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of entries in addition to the entry that forwards the traffic.
pub const ENTRIES: usize = 5_000;
/// Longest time that the well-behaved controller waits for a barrier.
const BARRIER_MAX: Duration = Duration::from_secs(2);
/// Number of packets in the switch at a time.
const IN_FLIGHT: u64 = 32;
const PAUSE: Duration = Duration::from_micros(200);

/// Memory and descriptors are counted for the whole process, so only one scene runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Scene {
    pub lab: Lab,
    pub good: Peer,
    flows: Vec<String>,
    traffic: Option<Traffic>,
    resident_bytes: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    pub fn start() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lab = Lab::start(1, 2, "");
        let mut good = lab.peer();
        good.send(&add("in_port=1,actions=output:2"));
        for n in 0..ENTRIES {
            good.send(&add(&format!("table=1,ip,nw_dst=10.{}.{}.1,actions=output:2", n / 250, n % 250)));
        }
        good.barrier();
        let flows = lab.flows();
        let mut ports = std::mem::take(&mut lab.ports).into_iter();
        let traffic = Some(Traffic::start(ports.next().unwrap(), ports.next().unwrap()));
        Self { lab, good, flows, traffic, resident_bytes: resident_bytes(), _alone: alone }
    }

    /// Checks that the well-behaved controller's barrier is answered in time.
    pub fn is_served(&mut self) {
        let start = Instant::now();
        self.good.barrier();
        assert!(start.elapsed() < BARRIER_MAX, "a barrier took {:?}", start.elapsed());
    }

    /// Checks that memory has grown by at most `bytes`, including the memory of both ends of all connections.
    #[track_caller]
    pub fn has_grown_at_most(&self, bytes: usize) {
        let grown = resident_bytes().saturating_sub(self.resident_bytes);
        assert!(grown <= bytes, "resident memory grew by {grown} bytes, but at most {bytes} are allowed");
    }

    /// Waits for `count` lines of the log that contain all `parts`.
    pub fn is_logged(&self, count: usize, parts: &[&str]) {
        until(&format!("{count} lines of log with {parts:?}"), || self.lab.log.lines(parts).len() >= count);
    }

    /// Checks that no packet was lost and that the flows are unchanged, and ends the scene.
    pub fn end(mut self) {
        self.is_served();
        let passed = self.traffic.take().unwrap().end();
        assert_eq!(self.lab.flows(), self.flows);
        let all = Query::Flow(FlowQuery { table: Some(TableId(0)), ..FlowQuery::default() });
        let asked = Message::MultipartRequest(MultipartRequest { more: false, query: all });
        let Message::MultipartReply(reply) = self.good.ask(&asked) else { panic!("unexpected answer") };
        let Answer::Flow(entries) = reply.answer else { panic!("unexpected answer") };
        let counted: Vec<_> = entries.iter().filter(|e| e.priority != 0).map(|e| e.packets).collect();
        assert_eq!(counted, [passed]);
    }
}

/// Traffic of numbered packets from one port to the other.
struct Traffic {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Traffic {
    fn start(mut from: MemHandle, mut to: MemHandle) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut sent, mut received) = (0, 0);
            let mut last = Instant::now();
            while !stopped.load(Ordering::Relaxed) || sent == 0 || received < sent {
                while (!stopped.load(Ordering::Relaxed) || sent == 0) && sent < received + IN_FLIGHT {
                    assert!(from.push(0, &numbered(sent)));
                    sent += 1;
                }
                while let Some(frame) = to.pop(0) {
                    assert_eq!(frame, numbered(received), "packet {received} is lost or late");
                    received += 1;
                    last = Instant::now();
                }
                assert!(last.elapsed() < LONG, "packet {received} does not arrive");
                std::thread::sleep(PAUSE);
            }
            assert_eq!(to.pop(0), None);
            received
        });
        Self { stop, thread }
    }

    /// Stops the traffic and returns the number of packets that passed. Their order was checked.
    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let passed = self.thread.join().unwrap();
        assert!(passed > 0);
        passed
    }
}

fn numbered(number: u64) -> [u8; 60] {
    let mut frame = [7; 60];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x12, 0x34]);
    frame[14..22].copy_from_slice(&number.to_be_bytes());
    frame
}

fn resident_bytes() -> usize {
    const PAGE_BYTES: usize = 4_096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    PAGE_BYTES * text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap()
}

pub fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, 9, &mut bytes).unwrap();
    bytes
}

/// Returns a request for all entries.
pub fn dump() -> Message {
    let query = Query::Flow(FlowQuery::default());
    Message::MultipartRequest(MultipartRequest { more: false, query })
}
