// SPDX-License-Identifier: Apache-2.0
//! Network namespaces for tests: one for the driver and some for hosts. Their names exist only inside a mount
//! namespace of the test, so they disappear with the test's processes.

use frame::Stamp;
use port::{Pools, Queue, Spec};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable that is set in the test process inside the driver's namespace.
const LAB: &str = "SHUNT_PORT_TEST_LAB";
/// Environment variable with the task of a helper process in a host's namespace.
const ROLE: &str = "SHUNT_PORT_TEST_ROLE";
/// Time limit of a test in seconds.
const LIMIT_S: &str = "50";

/// The namespaces of one test.
pub struct Lab(());

/// Runs a command that must succeed.
pub fn run(command: &str) {
    let mut words = command.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs `body`, the code of the test named `test`, with the host namespaces h1 to h`hosts`. Starts this
/// program again inside the driver's namespace for this purpose. Without root privileges the test is skipped
/// with a message.
pub fn in_lab(test: &str, hosts: usize, body: fn(&Lab)) {
    if std::env::var(LAB).is_ok() {
        quiet("");
        (1..=hosts).for_each(|host| {
            run(&format!("ip netns add h{host}"));
            quiet(&format!("ip netns exec h{host} "));
        });
        return body(&Lab(()));
    }
    if !std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t") {
        eprintln!("skipped {test}: network namespaces need root");
        return;
    }
    let status = Command::new("timeout")
        .args(["--foreground", "-k", "5", LIMIT_S, "unshare", "--net", "--mount"])
        .args(["sh", "-ec", "mount -t tmpfs tmpfs /run; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(LAB, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test} failed inside its namespace: {status}");
}

/// Stops the kernel from sending packets, such as neighbour discovery, in the namespace that the command
/// `enter` enters.
fn quiet(enter: &str) {
    let ipv6 = "net.ipv6.conf";
    run(&format!("{enter}sysctl -qw {ipv6}.all.disable_ipv6=1 {ipv6}.default.disable_ipv6=1"));
}

/// A helper process, killed on drop.
pub struct Helper(Child);

impl Helper {
    /// Waits until the helper succeeds.
    pub fn join(mut self) {
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the role of this process if it is a helper.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

impl Lab {
    /// Connects the driver's namespace (device `p<host>`) and a host (device eth0, address 10.0.0.<host>).
    /// Hosts have static ARP entries, so only IP packets pass between them.
    pub fn connect(&self, host: usize) {
        let ns = format!("h{host}");
        run(&format!("ip link add p{host} type veth peer name eth0 netns {ns}"));
        run(&format!("ip -n {ns} addr add 10.0.0.{host}/24 dev eth0"));
        run(&format!("ip -n {ns} link set eth0 address 02:00:00:00:00:0{host} up"));
        for other in (1..=2).filter(|other| *other != host) {
            run(&format!("ip -n {ns} neigh add 10.0.0.{other} lladdr 02:00:00:00:00:0{other} dev eth0"));
        }
        run(&format!("ip link set p{host} up"));
    }

    /// Starts this program's test `helper` in a host's namespace.
    pub fn start(&self, host: usize, role: &str) -> Helper {
        self.start_with(&["ip", "netns", "exec", &format!("h{host}")], role)
    }

    /// Starts this program's test `helper` through the command `by`, such as `ip netns exec`.
    pub fn start_with(&self, by: &[&str], role: &str) -> Helper {
        let child = Command::new(by[0])
            .args(&by[1..])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "hosts::helper", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Helper(child)
    }
}

/// Creates a pair of connected interfaces in this namespace and brings both up.
pub fn veth(a: &str, b: &str) {
    run(&format!("ip link add name {a} type veth peer name {b}"));
    run(&format!("ip link set {a} up"));
    run(&format!("ip link set {b} up"));
}

/// Returns the specification of an af_packet port on an interface.
pub fn spec(number: u32, device: &str, queues: usize) -> Spec {
    spec_of("af_packet", number, device, queues)
}

/// Returns the specification of a port on an interface.
pub fn spec_of(driver: &str, number: u32, device: &str, queues: usize) -> Spec {
    Spec {
        number,
        name: format!("port{number}"),
        driver: driver.into(),
        device: device.into(),
        queues,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: port::Handover::Never,
    }
}

/// Opens an interface with one queue through af_packet.
pub fn open_one(number: u32, device: &str) -> Box<dyn Queue> {
    port::open(&spec(number, device, 1)).unwrap().remove(0)
}

/// Opens an interface with one queue through af_xdp.
pub fn open_xdp(number: u32, device: &str) -> Box<dyn Queue> {
    port::open(&spec_of("af_xdp", number, device, 1)).unwrap().remove(0)
}

/// Sends copies of `packets` without retrying when the device is full.
pub fn send(queue: &mut dyn Queue, packets: &[Vec<u8>]) {
    let mut frames: Vec<_> = packets.iter().map(|bytes| frame::Frame::from_bytes(bytes)).collect();
    let mut done = Vec::new();
    assert_eq!(queue.transmit(&mut frames, &mut done), packets.len());
    assert_eq!(done.len(), packets.len());
}

/// Receives until `count` frames have arrived or two seconds have elapsed.
pub fn receive(queue: &mut dyn Queue, count: usize) -> Vec<Vec<u8>> {
    collect(queue, count, Duration::from_secs(2))
}

/// Receives into `burst` until it holds `count` frames. Fails after two seconds.
pub fn fill(queue: &mut dyn Queue, pools: &mut Pools, burst: &mut Vec<frame::Frame>, count: usize) {
    let end = Instant::now() + Duration::from_secs(2);
    while burst.len() < count && Instant::now() < end {
        port::wait::wait(&[queue.descriptor().unwrap()], Some(Duration::from_millis(20))).unwrap();
        queue.receive(pools, burst, 32, Stamp::NONE);
    }
    assert_eq!(burst.len(), count);
}

/// Receives until no more frames arrive.
pub fn drain(queue: &mut dyn Queue) -> Vec<Vec<u8>> {
    collect(queue, usize::MAX, Duration::from_millis(100))
}

fn collect(queue: &mut dyn Queue, count: usize, patience: Duration) -> Vec<Vec<u8>> {
    let mut pools = Pools::new(0, 64, 4);
    let mut burst = Vec::new();
    let mut packets = Vec::new();
    let mut end = Instant::now() + patience;
    while packets.len() < count && Instant::now() < end {
        port::wait::wait(&[queue.descriptor().unwrap()], Some(Duration::from_millis(20))).unwrap();
        if queue.receive(&mut pools, &mut burst, 32, Stamp::new(9)) > 0 {
            assert!(burst.iter().all(|frame| frame.meta.stamp == 9));
            end = Instant::now() + patience;
        }
        for frame in burst.drain(..) {
            packets.push(frame.bytes().to_vec());
            pools.put(frame).unwrap();
        }
    }
    packets
}
