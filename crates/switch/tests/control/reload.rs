// SPDX-License-Identifier: Apache-2.0
//! Changes of the configuration of a daemon under traffic. The ports 1 and 2 never change; a thread sends
//! numbered frames through them. Their devices are in-memory pairs, all other devices are opened from the
//! file.

use crate::lab::{LONG, folder, until};
use config::Config;
use config::edit::{PortEdit, PortForm};
use port::mem::{MemHandle, pair};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;
use switch::control::{Client, ClientError, ControlRequest, FlowForm, FlowPart, Ports, ReloadReport};
use switch::daemon::{ConfigSource, Daemon, DaemonError, OpenPort, Stop};

/// Cookie of the flow that the numbered frames hit.
const COOKIE: &str = "0x77";

/// Settings of the ports that change, and of other keys.
#[derive(Clone, Debug, Default)]
struct Settings {
    /// Number, name, workers and queues of each further port.
    ports: Vec<(u32, String, Vec<usize>, Vec<u32>)>,
    /// Sections of the datapath.
    sections: String,
}

impl Settings {
    fn random(random: &mut fastrand::Rng, workers: usize) -> Self {
        let mut ports = Vec::new();
        for number in 3..=6 {
            if random.bool() {
                let name = random.choice(["a", "b"]).unwrap();
                let mut serving: Vec<usize> = (0..workers).collect();
                random.shuffle(&mut serving);
                serving.truncate(random.usize(1..=workers));
                let queues = random.choice([vec![], vec![], vec![0], vec![1, 5]]).unwrap();
                ports.push((number, format!("{name}{number}"), serving, queues));
            }
        }
        let sections = [
            "",
            "[datapath.low_latency]\ncookie = \"0x70/0xf0\"\n",
            "[datapath.low_latency]\nlearn = { enabled = true, min_pps = 1 }\n",
            "[datapath.openflow]\nlisten = \"127.0.0.1:0\"\npacket_in.action = { rate = 9 }\n",
            "[datapath.openflow]\ncontrollers = [\"tcp:127.0.0.1:1\"]\nfail_mode = \"secure\"\n",
            "[datapath.stateless]\ntrusted = [1]\n",
        ];
        Self { ports, sections: (*random.choice(&sections).unwrap()).to_owned() }
    }

    /// Returns the numbers, names and queues that the switch must show.
    fn shown(&self) -> Vec<(u32, String, Vec<u32>)> {
        let kept = [1, 2].map(|number| (number, format!("p{number}"), Vec::new()));
        let others = self.ports.iter().map(|(number, name, _, queues)| {
            let mut all = queues.clone();
            if !all.is_empty() && !all.contains(&0) {
                all.insert(0, 0);
            }
            (*number, name.clone(), all)
        });
        kept.into_iter().chain(others).collect()
    }
}

struct Lab {
    folder: PathBuf,
    workers: usize,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Result<(), DaemonError>>>,
    traffic: Option<Traffic>,
}

struct Traffic {
    ends: Arc<AtomicBool>,
    passed: Arc<AtomicU64>,
    thread: JoinHandle<u64>,
}

/// Sends numbered frames into `first` until the end, and takes them from `second`. Returns their number.
fn pass(first: &mut MemHandle, second: &mut MemHandle, ends: &AtomicBool, passed: &AtomicU64) -> u64 {
    let (mut sent, mut seen) = (0_u64, 0_u64);
    let mut ended: Option<Instant> = None;
    while ended.is_none_or(|ended| seen < sent && ended.elapsed() < LONG) {
        let mut bytes = [0; 64];
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb7]);
        bytes[14..22].copy_from_slice(&sent.to_be_bytes());
        // There are never more frames on their way than the switch can hold.
        if ended.is_none() && sent - seen < 128 && first.push(0, &bytes) {
            sent += 1;
        } else {
            std::thread::yield_now();
        }
        while let Some(frame) = second.pop(0) {
            let number = u64::from_be_bytes(frame[14..22].try_into().unwrap());
            assert_eq!(number, seen, "a frame was lost, repeated or reordered");
            seen += 1;
        }
        passed.store(seen, Ordering::Relaxed);
        if ended.is_none() && ends.load(Ordering::Relaxed) {
            ended = Some(Instant::now());
        }
    }
    assert_eq!(seen, sent, "the last frames were lost");
    sent
}

impl Lab {
    fn start(workers: usize) -> Self {
        let folder = folder();
        std::fs::create_dir_all(&folder).unwrap();
        let mut lab = Self { folder, workers, stop: None, thread: None, traffic: None };
        let text = lab.write(&Settings::default(), "");
        let config = Config::parse(&text).unwrap();
        let (mut ports, mut handles) = (Vec::new(), Vec::new());
        for port in &config.datapath.ports {
            let (mut queues, handle) = pair(port.number.0, 1, 256);
            handles.push(handle);
            let queues = vec![(port.workers[0], Box::new(queues.remove(0)) as Box<dyn port::Queue>)];
            ports.push(OpenPort { number: port.number, name: port.name.clone(), queues, device_lock: None });
        }
        let (stop, tell) = Stop::by_hand().unwrap();
        let mut daemon = Daemon::start(&config, || Ok(ports), None, &stop).unwrap().unwrap();
        daemon.reload_from(ConfigSource { path: lab.path(), text, control: None }, config).unwrap();
        lab.stop = Some(tell);
        lab.thread = Some(std::thread::spawn(move || daemon.serve(&stop)));
        let mut flows = format!("cookie={COOKIE},priority=9,in_port=1,dl_type=0x88b7,actions=output:2\n");
        for n in 0..200 {
            writeln!(flows, "priority=8,dl_dst=02:00:00:01:00:{n:02x},actions=output:{}", n % 7 + 1).unwrap();
        }
        lab.client().load::<serde_json::Value>(|take| take(&flows)).unwrap();
        let (ends, passed) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let ([mut first, mut second], of_thread) =
            (<[MemHandle; 2]>::try_from(handles).ok().unwrap(), (Arc::clone(&ends), Arc::clone(&passed)));
        let thread = std::thread::spawn(move || pass(&mut first, &mut second, &of_thread.0, &of_thread.1));
        lab.traffic = Some(Traffic { ends, passed, thread });
        lab
    }

    fn path(&self) -> PathBuf {
        self.folder.join("switch.toml")
    }

    fn client(&self) -> Client {
        Client::connect(&self.folder.join("control.sock")).unwrap()
    }

    /// Writes the configuration, with `extra` before the ports. Returns its text.
    fn write(&self, settings: &Settings, extra: &str) -> String {
        let mut text = format!("control = {:?}\n", self.folder.join("control.sock"));
        text.push_str(&"[[worker]]\n".repeat(self.workers));
        write!(text, "[[datapath]]\nid = 1\n{}{extra}", settings.sections).unwrap();
        let kept = [1, 2].map(|n: u32| (n, format!("p{n}"), vec![n as usize % self.workers], vec![]));
        for (number, name, workers, queues) in kept.iter().chain(&settings.ports) {
            writeln!(
                text,
                "[[datapath.port]]\nnumber = {number}\nname = {name:?}\ndriver = \"mem\"\ndevice = \"null\"\nworkers = {workers:?}"
            )
            .unwrap();
            for id in queues {
                writeln!(text, "[[datapath.port.queue]]\nid = {id}\npriority = 3").unwrap();
            }
        }
        std::fs::write(self.path(), &text).unwrap();
        text
    }

    fn reload(&self) -> Result<Vec<String>, ClientError> {
        self.client().ask::<ReloadReport>(&ControlRequest::Reload).map(|report| report.changes)
    }

    fn shown(&self) -> Vec<(u32, String, Vec<u32>)> {
        let ports: Ports = self.client().ask(&ControlRequest::Ports).unwrap();
        let queues =
            |port: &switch::control::PortRow| port.queues.iter().map(|queue| queue.queue.0).collect();
        ports.ports.iter().map(|port| (port.number, port.name.clone(), queues(port))).collect()
    }

    fn flows(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let request = ControlRequest::Flows { form: FlowForm::File };
        let _: serde_json::Value = self
            .client()
            .ask_parts(&request, |part: FlowPart| {
                let FlowPart::Lines(part) = part else { unreachable!("{part:?}") };
                lines.extend(part);
                Ok(())
            })
            .unwrap();
        lines.retain(|line| !line.contains("NORMAL"));
        lines
    }

    /// Returns the packets that the flow of the numbered frames has counted.
    fn counted(&self) -> u64 {
        let mut packets = None;
        let request = ControlRequest::Flows { form: FlowForm::Lines };
        let _: serde_json::Value = self
            .client()
            .ask_parts(&request, |part: FlowPart| {
                let FlowPart::Lines(part) = part else { unreachable!("{part:?}") };
                for line in part.iter().filter(|line| line.contains(&format!("cookie={COOKIE},"))) {
                    let count = line.split("n_packets=").nth(1).unwrap().split(',').next().unwrap();
                    packets = Some(count.parse().unwrap());
                }
                Ok(())
            })
            .unwrap();
        packets.unwrap()
    }

    /// Waits until further frames have passed.
    fn wait_for_traffic(&self) {
        let passed = || self.traffic.as_ref().unwrap().passed.load(Ordering::Relaxed);
        let before = passed();
        until("further frames have passed", || passed() > before + 50);
    }

    /// Ends the traffic. Returns the number of frames.
    fn end_traffic(&mut self) -> u64 {
        let Traffic { ends, thread, .. } = self.traffic.take().unwrap();
        ends.store(true, Ordering::Relaxed);
        thread.join().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(traffic) = self.traffic.take() {
            traffic.ends.store(true, Ordering::Relaxed);
        }
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        std::fs::remove_dir_all(&self.folder).unwrap();
        if !std::thread::panicking() {
            ended.unwrap().unwrap().unwrap();
        }
    }
}

/// Random differences, a quarter of which must be refused, do not affect the ports that stay.
#[test]
fn random_reloads_under_traffic_lose_no_packet_and_no_flow() {
    let reloads = std::env::var("RELOADS").map_or(60, |reloads| reloads.parse().unwrap());
    for workers in [1, 3] {
        let random = &mut fastrand::Rng::with_seed(workers as u64);
        let mut lab = Lab::start(workers);
        let flows = lab.flows();
        let (mut now, mut refused) = (Settings::default(), 0);
        for _ in 0..reloads {
            let next = Settings::random(random, workers);
            let faults = [
                ("[datapath.express]\nrecords = 64\n", "datapath.express"),
                ("[datapath.lanes]\nhold = 9\n", "datapath.lanes"),
                ("[datapath.ffp]\nlut_entries = 1\n", "datapath.ffp.lut_entries"),
                (
                    "[[datapath.port]]\nnumber = 9\nname = \"p9\"\ndriver = \"af_packet\"\ndevice = \"nosuch0\"\nworkers = [0]\n",
                    "nosuch0",
                ),
            ];
            if random.u8(..4) == 0 {
                let (fault, part) = random.choice(&faults).unwrap();
                lab.write(&next, fault);
                let error = lab.reload().unwrap_err().to_string();
                assert!(error.contains(part), "{error}");
                refused += 1;
            } else {
                lab.write(&next, "");
                lab.reload().unwrap();
                now = next;
            }
            assert_eq!(lab.shown(), now.shown());
            if random.u8(..8) == 0 {
                lab.wait_for_traffic();
            }
        }
        assert!(refused > 0 || reloads < 20);
        lab.write(&now, "");
        assert_eq!(lab.reload().unwrap(), Vec::<String>::new(), "nothing is left to change");
        lab.wait_for_traffic();
        assert_eq!(lab.flows(), flows);
        let sent = lab.end_traffic();
        until("all frames are counted", || lab.counted() == sent);
    }
}

#[test]
fn a_port_of_the_command_line_lasts_until_the_next_reload() {
    let lab = Lab::start(1);
    let port = |edit| lab.client().ask::<ReloadReport>(&ControlRequest::Port { edit });
    let mem = PortForm {
        number: Some(8),
        name: Some("eight".into()),
        driver: Some("mem".into()),
        device: Some("null".into()),
        workers: Some(vec![0]),
        ..PortForm::default()
    };
    let changes = port(PortEdit::Add(mem.clone())).unwrap().changes;
    assert_eq!(changes, ["port 8 (eight) is added, mem null"]);
    let names = || lab.shown().into_iter().map(|(_, name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(), ["p1", "p2", "eight"]);
    let to = PortForm { name: Some("acht".into()), ..PortForm::default() };
    port(PortEdit::Set { port: "eight".into(), to }).unwrap();
    assert_eq!(names(), ["p1", "p2", "acht"]);
    for (edit, part) in [
        (PortEdit::Add(mem), "datapath.port[3].number: 8 is also that of port[2]"),
        (
            PortEdit::Add(PortForm { number: Some(9), ..PortForm::default() }),
            "datapath.port[3].driver: is missing",
        ),
        (PortEdit::Remove("nine".into()), "no port has the number or name \"nine\""),
    ] {
        let error = port(edit).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(names(), ["p1", "p2", "acht"]);
    assert_eq!(lab.reload().unwrap(), ["port 8 (acht) is removed"]);
    assert_eq!(names(), ["p1", "p2"]);
}

#[test]
fn a_daemon_without_a_file_refuses_to_read_it_again() {
    let lab = crate::Lab::start(1, 1, None);
    let error = lab.client().ask::<ReloadReport>(&ControlRequest::Reload).unwrap_err();
    assert!(error.to_string().contains("without a configuration file"), "{error}");
}

/// A connection of a controller, which has sent and got HELLO.
fn controller(path: &std::path::Path) -> UnixStream {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    assert_eq!(message(&mut stream).unwrap()[1], 0);
    stream
}

/// Reads an OpenFlow message, or returns `None` at the end of the connection.
fn message(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes).ok()?;
    bytes.resize(usize::from(u16::from_be_bytes([bytes[2], bytes[3]])), 0);
    stream.read_exact(&mut bytes[8..]).ok()?;
    Some(bytes)
}

/// Returns the type of the answer to an echo request. Other messages are skipped.
fn echo(stream: &mut UnixStream) -> Option<u8> {
    stream.write_all(&[4, 2, 0, 8, 0, 0, 0, 9]).ok()?;
    loop {
        match message(stream)?[1] {
            3 => return Some(3),
            _ => continue,
        }
    }
}

#[test]
fn connections_stay_open_unless_their_address_is_removed() {
    let lab = Lab::start(1);
    let address = |name: &str| lab.folder.join(name);
    let listen = |names: &[&str]| {
        let all: Vec<String> = names.iter().map(|name| format!("unix:{}", address(name).display())).collect();
        Settings { sections: format!("[datapath.openflow]\nlisten = {all:?}\n"), ..Settings::default() }
    };
    let reload = |settings: &Settings| {
        lab.write(settings, "");
        lab.reload().unwrap()
    };
    assert_eq!(reload(&listen(&["a"])).len(), 1);
    let mut first = controller(&address("a"));
    assert_eq!(reload(&listen(&["a", "b"])).len(), 1);
    let mut second = controller(&address("b"));
    let with_port = Settings { ports: vec![(3, "p3".into(), vec![0], vec![])], ..listen(&["b", "a"]) };
    reload(&with_port);
    // Both controllers learn of the port, on the connections that they had.
    for stream in [&mut first, &mut second] {
        let status = loop {
            let message = message(stream).unwrap();
            if message[1] == 12 {
                break message;
            }
        };
        // OFPPR_ADD, and the number of the port.
        assert_eq!((status[8], &status[16..20]), (0, &[0, 0, 0, 3][..]));
    }
    reload(&listen(&["b"]));
    assert_eq!((echo(&mut first), echo(&mut second)), (None, Some(3)));
    assert!(!address("a").exists(), "the socket of the removed address is still there");
    assert!(UnixStream::connect(address("a")).is_err());
    // An address that another process uses refuses the whole change.
    let taken = std::os::unix::net::UnixListener::bind(address("c")).unwrap();
    lab.write(&Settings { ports: vec![(4, "p4".into(), vec![0], vec![])], ..listen(&["b", "c"]) }, "");
    assert!(lab.reload().unwrap_err().to_string().contains("another process answers"));
    assert_eq!(lab.shown().len(), 2);
    assert_eq!(echo(&mut second), Some(3));
    drop(taken);
}
