// SPDX-License-Identifier: Apache-2.0
//! Tests that a running switch with DPDK ports sends the same packets as the reference. The devices are
//! captures.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used, clippy::panic)]

use sim::replay::{Options, ReplayEngine, ReplaySummary, replay};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use wire::capture::{CaptureReader, CaptureWriter};

const PATIENCE: Duration = Duration::from_secs(60);

/// Number of packets that may wait: a quarter of the port's 8,192 buffers.
const MAY_WAIT: u64 = 2_048;

/// Number of captures that are compared at the same time. Each comparison waits for most of its time, until
/// no more packets leave.
const AT_ONCE: usize = 3;

/// Temporary directory. Dropping it stops the switch and removes the directory.
struct Place {
    folder: PathBuf,
    switch: Option<Child>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mut switch) = self.switch.take() {
            let _ = switch.kill();
            let _ = switch.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("shunt-dpdk-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder, switch: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn shunt(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
        command.arg("--control").arg(self.path("control.sock")).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a switch that receives the capture on port 1, and returns the packets that each port sent.
    fn forward(
        &mut self,
        input: &Path,
        flows: &Path,
        ports: &[u32],
        settings: &str,
    ) -> BTreeMap<u32, Vec<Vec<u8>>> {
        let (none, control) = (self.path("none.pcap"), self.path("control.sock"));
        CaptureWriter::create(&none).unwrap().finish().unwrap();
        // EAL options: no huge pages, no PCI devices, and no shared files that other DPDK processes could
        // find.
        let mut text = format!(
            "control = {control:?}\n[dpdk]\neal = [\"--no-huge\", \"-m\", \"768\", \"--no-pci\", \"--no-shconf\", \
             \"--log-level=error\"]\nmbufs = 8192\nmtu = 9000\n[[worker]]\n[[datapath]]\nid = 1\n\
             [datapath.openflow]\nfail_mode = \"secure\"\n{settings}"
        );
        for port in ports {
            let received = if *port == 1 { input } else { &none };
            let sent = self.path(&format!("sent-{port}.pcap"));
            text.push_str(&format!(
                "[[datapath.port]]\nnumber = {port}\nname = \"p{port}\"\ndriver = \"dpdk\"\nworkers = [0]\n\
                 device = \"net_pcap{port},rx_pcap={},tx_pcap={}\"\n",
                received.display(),
                sent.display()
            ));
        }
        std::fs::write(self.path("switch.toml"), text).unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_shunt"));
        run.args(["run", "-c"]).arg(self.path("switch.toml")).arg("--flows").arg(flows).stdin(Stdio::null());
        self.switch = Some(run.spawn().unwrap());
        self.wait_until_all_has_left();
        let mut switch = self.switch.take().unwrap();
        assert!(Command::new("kill").arg(switch.id().to_string()).status().unwrap().success());
        assert_eq!(switch.wait().unwrap().code(), Some(0));
        ports.iter().map(|port| (*port, read(&self.path(&format!("sent-{port}.pcap"))))).collect()
    }

    /// Waits until the counters of all ports are stable for 500 ms, which is several publication periods.
    fn wait_until_all_has_left(&mut self) {
        let (start, mut last, mut since) = (Instant::now(), Vec::new(), Instant::now());
        while since.elapsed() < Duration::from_millis(500) {
            assert!(start.elapsed() < PATIENCE, "packets still arrive");
            thread::sleep(Duration::from_millis(20));
            let ended = self.switch.as_mut().and_then(|switch| switch.try_wait().unwrap());
            assert_eq!(ended, None, "the switch has ended");
            let output = self.shunt(&["show", "ports", "--json"]).output().unwrap();
            if output.stdout != last || !output.status.success() {
                (last, since) = (output.stdout, Instant::now());
            }
        }
    }
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet.bytes.to_vec());
    }
    packets
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the committed captures, and the large captures if they are available.
fn captures() -> Vec<PathBuf> {
    let committed = repository().join("crates/wire/tests/data");
    let mut found: Vec<PathBuf> =
        ["802.1ad_QinQ.pcap", "built.pcap", "mpls-over-udp.pcap"].map(|name| committed.join(name)).into();
    for folder in ["../shared/data/pcap", "../shared/data/pcap/proto"] {
        let Ok(entries) = std::fs::read_dir(repository().join(folder)) else { continue };
        let mut more: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        more.retain(|path| path.extension().is_some_and(|e| e == "pcap") && !path.ends_with("dsa.pcap"));
        more.sort();
        found.extend(more);
    }
    found
}

/// Writes the flows of the replay tests without timeouts and MAC learning, which depend on time.
fn flows(place: &Place) -> PathBuf {
    let text = std::fs::read_to_string(repository().join("crates/sim/tests/data/replay.flows")).unwrap();
    let text = text.replace("idle_timeout=1,", "").replace("hard_timeout=2,", "").replace("NORMAL", "FLOOD");
    std::fs::write(place.path("all.flows"), text).unwrap();
    place.path("all.flows")
}

/// Runs the reference on the capture.
fn reference(place: &Place, input: &Path, flows: &Path) -> (ReplaySummary, BTreeMap<u32, Vec<Vec<u8>>>) {
    let out = place.path("reference");
    let summary =
        replay(&Options { engine: ReplayEngine::Reference, ..Options::new(input, flows, &out) }).unwrap();
    let sent = summary.ports.keys().map(|port| (port.0, read(&out.join(format!("port-{port}.pcap")))));
    let sent = sent.collect();
    std::fs::remove_dir_all(out).unwrap();
    (summary, sent)
}

/// Compares a switch with the reference on one capture. Returns the numbers of packets and of copies.
fn compare(name: &str, capture: &Path) -> (u64, u64) {
    let mut place = Place::new(name);
    let flows = flows(&place);
    let (summary, expected) = reference(&place, capture, &flows);
    let ports: Vec<u32> = expected.keys().copied().collect();
    // With a single lane and without path records, all packets of a port keep their order.
    let one_lane = "[datapath.lanes]\nenabled = false\n";
    let in_order = format!("[datapath.express]\nenabled = false\n{one_lane}");
    let sent = place.forward(capture, &flows, &ports, &in_order);
    assert!(sent == expected, "{}: {summary:?}", capture.display());
    // With path records or two lanes, order holds only within a flow, so the test sorts the packets. With two
    // lanes, the backlog must have space for packets that arrive faster than the worker processes them.
    let two_lanes = "[datapath.lanes]\nnormal = 16384\nunknown = 16384\n";
    let lanes = if summary.packets < MAY_WAIT { two_lanes } else { one_lane };
    let (mut sent, mut expected) = (place.forward(capture, &flows, &ports, lanes), expected);
    sent.values_mut().chain(expected.values_mut()).for_each(|packets| packets.sort());
    assert!(sent == expected, "{} with path records, {lanes}: {summary:?}", capture.display());
    (summary.packets, summary.copies)
}

#[test]
fn dpdk_ports_send_the_same_packets_as_the_reference() {
    let remaining = Mutex::new(captures().into_iter().enumerate());
    let compare_next = || {
        let (number, capture) = remaining.lock().unwrap().next()?;
        Some(compare(&format!("capture-{number}"), &capture))
    };
    let (packets, copies) = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| std::iter::from_fn(compare_next).collect::<Vec<_>>()))
            .collect();
        let results = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        results.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
    });
    println!("{packets} packets, {copies} sent");
    // The committed captures contain 22 packets.
    assert!(packets >= 20 && copies > packets / 2);
}
