// SPDX-License-Identifier: Apache-2.0

use super::*;
use crate::{Pools, PortDrop};
use frame::{Frame, Gso, GsoKind, PartialChecksum, Stamp};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory for one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("shunt-port-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }

    fn write(&self, name: &str, packets: &[(u64, u32, &[u8])]) -> String {
        let path = self.file(name);
        let mut writer = CaptureWriter::create(&path).unwrap();
        for (timestamp_ns, len, bytes) in packets {
            writer.write(*timestamp_ns, *len, bytes).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open_device(device: String) -> Result<Box<dyn Queue>, String> {
    let spec = Spec {
        number: 5,
        name: "p5".into(),
        driver: NAME.into(),
        device,
        queues: 1,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: crate::Handover::Never,
    };
    crate::open(&spec).map(|mut queues| queues.remove(0)).map_err(|error| error.to_string())
}

fn read(path: &str) -> Vec<(u64, Vec<u8>)> {
    let mut reader = CaptureReader::open(path).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push((packet.timestamp_ns, packet.bytes.to_vec()));
    }
    packets
}

#[test]
fn a_capture_is_received_n_times_and_written_with_the_time_of_day() {
    let folder = Folder::new("rounds");
    let input =
        folder.write("in", &[(10, 60, &[1; 60]), (20, 13, &[2; 13]), (30, 90, &[3; 60]), (40, 70, &[4; 70])]);
    let output = folder.file("out");
    let mut queue = open_device(format!("in={input},out={output},loop=2")).unwrap();
    let mut pools = Pools::new(0, 1, 0);
    let (mut burst, mut done) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    let time_of_day_ns = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let begin_ns = time_of_day_ns();
    for _ in 0..20 {
        queue.receive(&mut pools, &mut burst, 32, Stamp::new(9));
        assert!(burst.iter().all(|frame| frame.meta.stamp == 9));
        seen.extend(burst.iter().map(|f| (f.bytes()[0], f.len(), f.meta.sequence, f.meta.in_port)));
        queue.transmit(&mut burst, &mut done);
        done.drain(..).for_each(|frame| pools.put(frame).unwrap());
    }
    assert_eq!(seen, [(1, 60, 0, 5), (4, 70, 1, 5), (1, 60, 2, 5), (4, 70, 3, 5)]);
    let statistics = queue.statistics();
    assert_eq!((statistics.drops(PortDrop::RxRunt), statistics.drops(PortDrop::RxTruncated)), (2, 2));
    drop(queue);
    let (times, packets): (Vec<u64>, Vec<Vec<u8>>) = read(&output).into_iter().unzip();
    assert_eq!(packets, [vec![1; 60], vec![4; 70], vec![1; 60], vec![4; 70]]);
    // Some capture formats have a resolution of 1 us.
    let (begin_us, end_us) = (begin_ns / 1_000, time_of_day_ns() / 1_000);
    assert!(times.iter().all(|time| (begin_us..=end_us).contains(&(time / 1_000))), "{times:?}");
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn checksums_and_segments_are_completed_on_transmit() {
    let folder = Folder::new("finish");
    let output = folder.file("out");
    let mut queue = open_device(format!("out={output}")).unwrap();

    let mut bytes = vec![2; 12];
    bytes.extend([8, 0, 0x45, 0, 0, 80, 0, 7, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend([0, 9, 0, 9, 0, 60, 0, 0]);
    bytes.extend([7; 52]);
    // Sum of the pseudo-header: 10.0.0.1 + 10.0.0.2 + 17 + 60.
    let sum: u16 = 0x0a00 + 1 + 0x0a00 + 2 + 17 + 60;
    bytes[40..42].copy_from_slice(&sum.to_be_bytes());
    let mut open = Frame::from_bytes(&bytes);
    open.meta.checksum = Some(PartialChecksum { start: 34, offset: 6 });
    let mut long = Frame::from_bytes(&bytes);
    long.meta = open.meta;
    long.meta.gso = Some(Gso { kind: GsoKind::Udp, ecn: false, size: 20, header_len: 42 });
    let mut wrong = Frame::from_bytes(&bytes);
    wrong.meta.checksum = Some(PartialChecksum { start: 900, offset: 6 });

    let mut frames = vec![open, long, wrong, Frame::from_bytes(&[1; 5])];
    let mut done = Vec::new();
    assert_eq!(queue.transmit(&mut frames, &mut done), 4);
    let statistics = queue.statistics();
    assert_eq!((statistics.tx_packets, done.len()), (2, 4));
    assert_eq!((statistics.drops(PortDrop::TxUnfinished), statistics.drops(PortDrop::TxRunt)), (1, 1));
    drop(queue);

    let packets = read(&output);
    assert_eq!(packets.iter().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>(), [94, 62, 62, 54]);
    for (_, bytes) in packets {
        let len = bytes.len() as u32 - 34;
        let pseudo = wire::checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 17, len);
        assert_eq!(wire::checksum::add(pseudo, wire::checksum::sum(&bytes[34..])), 0xffff);
    }
}

#[test]
fn errors_name_the_file_and_the_fault() {
    let folder = Folder::new("errors");
    let missing = open_device(format!("in={}", folder.file("nothing"))).err().unwrap();
    assert!(missing.contains("nothing") && missing.contains("p5"), "{missing}");
    std::fs::write(folder.file("text"), "no capture at all").unwrap();
    let text = open_device(format!("in={}", folder.file("text"))).err().unwrap();
    assert!(text.contains("not a capture"), "{text}");
    assert!(open_device("out=/nowhere/at/all".into()).is_err());
    assert!(open_device("eth0".into()).err().unwrap().contains("in=FILE"));
    let two = Spec {
        number: 1,
        name: "p1".into(),
        driver: NAME.into(),
        device: "out=x".into(),
        queues: 2,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: crate::Handover::Never,
    };
    assert!(crate::open(&two).err().unwrap().to_string().contains("exactly 1"));
}
