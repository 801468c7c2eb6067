// SPDX-License-Identifier: Apache-2.0
//! Tests of the DPDK driver. All of them share one DPDK, whose memory needs no huge pages.

mod borders;

use super::*;
use crate::{Pools, PortDrop, Queue};
use frame::{DEVICE_HOME, Frame, Gso, GsoKind, PartialChecksum, Stamp};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wire::capture::{CaptureReader, CaptureWriter};

const MBUFS: u32 = 512;
const PATIENCE: Duration = Duration::from_secs(20);

/// A directory for one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shunt-dpdk-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    fn write(&self, name: &str, packets: &[Vec<u8>]) -> String {
        let path = self.file(name);
        let mut writer = CaptureWriter::create(&path).unwrap();
        packets.iter().for_each(|bytes| writer.write(0, bytes.len() as u32, bytes).unwrap());
        writer.finish().unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &str) -> Vec<Vec<u8>> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet.bytes.to_vec());
    }
    packets
}

fn spec(device: &str, queues: usize) -> Spec {
    Spec {
        number: 5,
        name: "p5".into(),
        driver: NAME.into(),
        device: device.into(),
        queues,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: crate::Handover::Never,
    }
}

/// Serializes the tests, because a device that one test removes could belong to another.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_open(device: &str, queues: usize) -> Result<Queues, String> {
    let eal = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry", "--log-level=error"];
    configure(DpdkSettings { eal: eal.map(String::from).to_vec(), mbufs: MBUFS, mtu: 9_000 });
    open(&spec(device, queues)).map_err(|error| error.to_string())
}

fn open_one(device: &str) -> Box<dyn Queue> {
    try_open(device, 1).unwrap().remove(0)
}

fn pools() -> Pools {
    Pools::new(0, 64, 4)
}

/// Receives until `count` frames have arrived.
fn receive(queue: &mut dyn Queue, pools: &mut Pools, count: usize) -> Vec<Frame> {
    let (start, mut frames) = (Instant::now(), Vec::new());
    while frames.len() < count && start.elapsed() < PATIENCE {
        queue.receive(pools, &mut frames, 32, Stamp::new(9));
    }
    assert!(frames.iter().all(|frame| frame.meta.stamp == 9));
    frames
}

fn send(queue: &mut dyn Queue, pools: &mut Pools, frames: Vec<Frame>) -> usize {
    let (mut frames, mut done) = (frames, Vec::new());
    let taken = queue.transmit(&mut frames, &mut done);
    free(pools, done.into_iter().chain(frames));
    taken
}

/// Returns frames to their pools or to their device.
fn free(pools: &mut Pools, frames: impl IntoIterator<Item = Frame>) {
    frames.into_iter().for_each(|frame| drop(pools.put(frame)));
}

fn is_mbuf(frame: &Frame) -> bool {
    frame.home() == DEVICE_HOME
}

/// Returns packets of these lengths. The first byte of each is its number.
fn packets(lengths: impl Iterator<Item = usize>) -> Vec<Vec<u8>> {
    lengths
        .enumerate()
        .map(|(n, len)| (0..len).map(|at| if at == 0 { n } else { at } as u8).collect())
        .collect()
}

#[test]
fn packets_pass_from_port_to_port_in_their_mbufs() {
    let _alone = alone();
    let folder = Folder::new("pass");
    let sent = packets((60..160).chain([1514, 2048]));
    let (input, output) = (folder.write("in", &sent), folder.file("out"));
    let mut queue = open_one(&format!("net_pcap_pass,rx_pcap={input},tx_pcap={output}"));
    let mut pools = pools();
    let mut seen = 0;
    while seen < sent.len() {
        let mut frames = receive(&mut *queue, &mut pools, 1);
        assert!(!frames.is_empty(), "{seen} of {}", sent.len());
        for frame in &mut frames {
            assert!(is_mbuf(frame) && frame.bytes() == sent[seen]);
            assert_eq!((frame.meta.in_port, frame.meta.sequence), (5, seen as u64));
            // Inserting a VLAN tag changes the packet's offset in the mbuf.
            assert!(frame.insert(12, 4));
            frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 7]);
            seen += 1;
        }
        let count = frames.len();
        assert_eq!(send(&mut *queue, &mut pools, frames), count);
    }
    let (statistics, bytes) = (queue.statistics(), sent.iter().map(Vec::len).sum::<usize>());
    assert_eq!((statistics.rx_packets, statistics.rx_bytes), (sent.len() as u64, bytes as u64));
    assert_eq!(
        (statistics.tx_packets, statistics.tx_bytes),
        (sent.len() as u64, (bytes + 4 * sent.len()) as u64)
    );
    drop(queue);
    let tagged = |bytes: &Vec<u8>| [&bytes[..12], &[0x81, 0, 0, 7], &bytes[12..]].concat();
    assert_eq!(read(&output), sent.iter().map(tagged).collect::<Vec<_>>());
}

#[test]
fn frames_of_other_drivers_are_copied_and_their_checksums_completed() {
    let _alone = alone();
    let folder = Folder::new("border");
    let output = folder.file("out");
    let mut queue =
        open_one(&format!("net_pcap_border,tx_pcap={output},rx_pcap={}", folder.write("in", &[])));
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 80, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0, 9, 0, 9, 0, 60, 0, 0]);
    bytes.extend([7; 52]);
    // Sum of the pseudo-header: 10.0.0.1 + 10.0.0.2 + 17 + 60.
    bytes[40..42].copy_from_slice(&(0x0a00u16 + 1 + 0x0a00 + 2 + 17 + 60).to_be_bytes());
    let (mut open, mut long, mut wrong) =
        (Frame::from_bytes(&bytes), Frame::from_bytes(&bytes), Frame::from_bytes(&bytes));
    open.meta.checksum = Some(PartialChecksum { start: 34, offset: 6 });
    long.meta.checksum = open.meta.checksum;
    long.meta.gso = Some(Gso { kind: GsoKind::Udp, ecn: false, size: 20, header_len: 42 });
    wrong.meta.checksum = Some(PartialChecksum { start: 900, offset: 6 });
    let jumbo = packets([8_000].into_iter()).remove(0);
    let all = [
        open,
        Frame::from_bytes(&jumbo),
        long,
        wrong,
        Frame::from_bytes(&[1; 5]),
        Frame::from_bytes(&[1; 9_999]),
    ];
    let (mut frames, mut done) = (Vec::from(all), Vec::new());
    assert_eq!((queue.transmit(&mut frames, &mut done), done.len()), (6, 6));
    let statistics = queue.statistics();
    assert_eq!(statistics.tx_packets, 3);
    for reason in [PortDrop::TxUnfinished, PortDrop::TxRunt, PortDrop::TxOversized] {
        assert_eq!(statistics.drops(reason), 1, "{reason:?}");
    }
    drop(queue);
    let written = read(&output);
    assert_eq!(written.iter().map(Vec::len).collect::<Vec<_>>(), [94, 8_000, 62, 62, 54]);
    assert_eq!(written[1], jumbo);
    // With a correct checksum, the one's complement sum of pseudo-header, UDP header and data is 0xffff.
    let words = |bytes: &[u8]| {
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum::<u32>()
    };
    let sum = words(&written[0][26..34]) + 17 + 60 + words(&written[0][34..]);
    assert_eq!(((sum & 0xffff) + (sum >> 16)) & 0xffff, 0xffff);
}

#[test]
fn long_packets_arrive_whole_or_are_counted() {
    let _alone = alone();
    let folder = Folder::new("long");
    let sent = packets([2_112, 2_113, 9_000, 60].into_iter());
    let input = folder.write("in", &sent);
    let mut pools = pools();
    let mut queue = open_one(&format!("net_pcap_long0,rx_pcap={input},tx_pcap={}", folder.file("out")));
    let frames = receive(&mut *queue, &mut pools, 4);
    assert_eq!(frames.iter().map(|frame| frame.bytes().to_vec()).collect::<Vec<_>>(), sent);
    assert_eq!(frames.iter().map(is_mbuf).collect::<Vec<_>>(), [false, false, false, true]);
    assert_eq!(send(&mut *queue, &mut pools, frames), 4);
    drop(queue);
    assert_eq!(read(&folder.file("out")), sent);
    // Without large frames, long packets cannot be received.
    let mut pools = Pools::new(0, 64, 0);
    let mut queue = open_one(&format!("net_pcap_long1,rx_pcap={input},tx_pcap={}", folder.file("out")));
    let frames = receive(&mut *queue, &mut pools, 1);
    assert_eq!(frames.iter().map(Frame::len).collect::<Vec<_>>(), [60]);
    assert_eq!(queue.statistics().drops(PortDrop::RxOversized), 3);
    free(&mut pools, frames);
    // No large frame is free.
    let mut pools = Pools::new(0, 64, 1);
    let _taken = pools.get(9_000).unwrap();
    let mut queue = open_one(&format!("net_pcap_long2,rx_pcap={input},tx_pcap={}", folder.file("out")));
    let frames = receive(&mut *queue, &mut pools, 1);
    assert_eq!(frames.len(), 1);
    assert_eq!(queue.statistics().drops(PortDrop::RxNoLargeFrame), 3);
}

#[test]
fn a_device_without_free_buffers_receives_again_after_frames_are_freed() {
    let _alone = alone();
    let folder = Folder::new("hold");
    let input = folder.write("in", &packets([60; 10].into_iter()));
    let mut queue =
        open_one(&format!("net_pcap_hold,rx_pcap={input},infinite_rx=1,tx_pcap={}", folder.file("out")));
    let mut pools = Pools::new(0, 0, 0);
    let full = queue.buffers();
    assert_eq!((full.total, full.is_below(2)), (MBUFS as usize, false));
    let mut held = Vec::new();
    // Frames are held until the device has no free buffer except those in its ring.
    for _ in 0..1_000 {
        queue.receive(&mut pools, &mut held, 32, Stamp::NONE);
    }
    let most = held.len();
    assert!(most > MBUFS as usize / 2 && most < MBUFS as usize, "{most}");
    assert!(queue.buffers().is_below(4) && pools.is_scarce(&held[0]) && pools.is_half_used(&held[0]));
    assert_eq!(queue.receive(&mut pools, &mut held, 32, Stamp::NONE), 0);
    free(&mut pools, held.drain(..64));
    assert!(receive(&mut *queue, &mut pools, 32).len() >= 32);
    free(&mut pools, held.drain(3..));
    assert!(!pools.is_half_used(&held[0]));
    // Frames outlive their port.
    drop(queue);
    assert_eq!(held[2].len(), 60);
}

/// Receives many packets. Their mbufs are sent, freed by another thread, or freed after the packets were
/// copied. At the end all mbufs must be free. `DPDK_PACKETS` sets the number of packets.
#[test]
fn no_mbuf_is_lost() {
    let _alone = alone();
    let many = std::env::var("DPDK_PACKETS").map_or(200_000, |number| number.parse().unwrap());
    let folder = Folder::new("leak");
    let input = folder.write("in", &packets([60, 13, 600, 2_000].into_iter()));
    let mut from =
        open_one(&format!("net_pcap_leak,rx_pcap={input},infinite_rx=1,tx_pcap={}", folder.file("out")));
    let mut to = open_one("net_null_leak");
    let mut pools = pools();
    let before = [from.buffers(), to.buffers()];
    let mut received = 0;
    for round in 0.. {
        let mut frames = receive(&mut *from, &mut pools, 1);
        received += frames.len();
        match round % 64 {
            // Another thread frees the mbufs.
            0 => std::thread::spawn(move || drop(frames)).join().unwrap(),
            1 => assert!(send(&mut *from, &mut pools, frames) > 0),
            2 => {
                let copies = frames.iter().map(|frame| Frame::from_bytes(frame.bytes())).collect();
                assert!(send(&mut *to, &mut pools, copies) > 0);
                free(&mut pools, frames.drain(..));
            }
            _ => assert!(send(&mut *to, &mut pools, frames) > 0),
        }
        if received >= many {
            break;
        }
    }
    println!(
        "{received} packets; free and all mbufs before {before:?}, after {:?}",
        [from.buffers(), to.buffers()]
    );
    assert_eq!([from.buffers(), to.buffers()], before);
}

/// Packets in several mbufs are copied to frames, and their mbufs are freed.
#[test]
fn no_segment_is_lost() {
    let _alone = alone();
    let folder = Folder::new("segments");
    let input = folder.write("in", &packets([9_000; 400].into_iter()));
    let mut queue = open_one(&format!("net_pcap_segments,rx_pcap={input},tx_pcap={}", folder.file("out")));
    let (mut pools, before) = (pools(), queue.buffers());
    // A call receives up to 32 packets. The pool has large frames for four of them; the others are dropped.
    for _ in 0..12 {
        let frames = receive(&mut *queue, &mut pools, 1);
        assert!(frames.iter().all(|frame| frame.len() == 9_000 && !is_mbuf(frame)));
        assert_eq!(send(&mut *queue, &mut pools, frames), 4);
    }
    assert_eq!(queue.statistics().drops(PortDrop::RxNoLargeFrame), 12 * 28);
    assert_eq!((queue.buffers(), pools.large.available()), (before, 4));
}

#[test]
fn a_peer_may_leave_and_return() {
    let _alone = alone();
    let folder = Folder::new("memif");
    let device = |name: &str, role: &str| {
        format!("net_memif_{name},role={role},id=0,socket={},socket-abstract=no", folder.file("s"))
    };
    let mut pools = pools();
    let mut server = open_one(&device("server", "server"));
    assert!(!server.poll_link().up);
    // A frame sent without a peer is counted as a drop.
    assert_eq!(server.transmit(&mut vec![Frame::from_bytes(&[3; 60])], &mut Vec::new()), 1);
    assert_eq!(server.statistics().drops(PortDrop::TxLinkDown), 1);
    for round in 1..=2 {
        let mut client = open_one(&device("client", "client"));
        let start = Instant::now();
        while !(server.poll_link().up && client.poll_link().up) {
            assert!(start.elapsed() < PATIENCE, "round {round}");
            std::thread::sleep(Duration::from_millis(5));
        }
        // A memif client provides buffers to its server only when it receives.
        assert_eq!(client.receive(&mut pools, &mut Vec::new(), 32, Stamp::NONE), 0);
        for count in [1, 20] {
            let mut frames: Vec<Frame> = (0..count).map(|_| Frame::from_bytes(&[3; 100])).collect();
            assert_eq!(client.transmit(&mut frames, &mut Vec::new()), count);
            let frames = receive(&mut *server, &mut pools, count);
            assert_eq!(frames.len(), count);
            // The frames return in the buffers in which they arrived.
            assert_eq!(send(&mut *server, &mut pools, frames), count);
            let frames = receive(&mut *client, &mut pools, count);
            assert_eq!((frames.len(), frames[0].len()), (count, 100));
            free(&mut pools, frames);
        }
        drop(client);
        let start = Instant::now();
        while server.poll_link().up {
            assert!(start.elapsed() < PATIENCE, "round {round}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_device_may_be_removed_and_reattached() {
    let _alone = alone();
    let folder = Folder::new("away");
    let input = folder.write("in", &packets([60; 4].into_iter()));
    let device = format!("net_pcap_away,rx_pcap={input},tx_pcap={}", folder.file("out"));
    let mut queue = open_one(&device);
    let mut pools = pools();
    let held = receive(&mut *queue, &mut pools, 4);
    assert_eq!((held.len(), queue.poll_link().up, queue.generation()), (4, true, 0));
    // The device is removed.
    drop(shim::Port::attach(&device).unwrap());
    assert!(!queue.poll_link().up);
    assert_eq!(queue.receive(&mut pools, &mut Vec::new(), 32, Stamp::NONE), 0);
    // Frames sent to the removed device are counted as drops. Mbufs received before can still be freed.
    let taken = send(&mut *queue, &mut pools, held);
    assert_eq!((taken, queue.statistics().drops(PortDrop::TxLinkDown)), (4, 4));
    // The device has been attached again.
    assert!(queue.poll_link().up);
    assert_eq!(queue.generation(), 1);
    let frames = receive(&mut *queue, &mut pools, 4);
    assert_eq!((frames.len(), frames[3].meta.sequence), (4, 7));
    assert_eq!(send(&mut *queue, &mut pools, frames), 4);
    let statistics = queue.statistics();
    assert_eq!((statistics.rx_packets, statistics.tx_packets), (8, 4));
}

#[test]
fn errors_of_open_name_the_reason() {
    let _alone = alone();
    let folder = Folder::new("errors");
    let input = folder.write("in", &[]);
    let pcap = format!("net_pcap_twice,rx_pcap={input},tx_pcap={}", folder.file("out"));
    let many = pcap.replace("twice", "many");
    let _first = try_open(&pcap, 1).unwrap();
    for (device, queues, part) in [
        ("", 1, "is empty"),
        ("net_null\n", 1, "'\\n'"),
        ("-l 3", 1, "does not begin with a name"),
        ("/class=eth", 1, "does not begin with a name"),
        ("class=eth,mac=02:00:00:00:00:01", 1, "begins with a key"),
        ("bus=vdev,name=net_null3", 1, "begins with a key"),
        ("net_null", 65, "1 to 64"),
        ("net_nosuch0", 1, "attach a port of DPDK"),
        ("net_pcap_missing,rx_pcap=/no/such/file", 1, "attach a port of DPDK"),
        ("0000:ff:1f.7", 1, "attach a port of DPDK"),
        (&pcap, 1, "another port has this device"),
        (&many, 3, "supports 1 queues"),
    ] {
        let error = try_open(device, queues).err().unwrap_or_else(|| panic!("{device} was opened"));
        assert!(error.contains("port p5") && error.contains(part), "{device:?}: {error}");
    }
    assert!(try_open(&many, 1).is_ok(), "after a refusal, the device can be opened with fewer queues");
    for option in ["-h", "--help", "--hel", "-vn", "--version", "--v"] {
        assert!(eal::check(&[option.into()]).is_err(), "{option}");
    }
    assert!(eal::check(&["--vdev".into(), "--huge-dir".into(), "-n".into()]).is_ok());
    assert!(
        eal::start(&DpdkSettings::default()).is_ok(),
        "DPDK is started once, and later settings are ignored"
    );
}
