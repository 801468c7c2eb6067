// SPDX-License-Identifier: Apache-2.0
//! The daemon, and its controllers: one in this process, and the learning application on os-ken.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flow::syntax::{ParseOptions, parse_flow};
use flow::{FlowMod, FlowModCommand};
use openflow::flow_mod::FlowModMessage;
use openflow::{HEADER_BYTES, Hello, Message, decode, encode};
use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::stub::{ENTRIES, PPUS, Stub};

/// Folder of all files. A private file system is mounted on it.
pub const FOLDER: &str = "/run";
const OPENFLOW: &str = "/run/openflow.sock";
const PYTHON: &str = "target/tools/os-ken/bin/python";
/// Transaction ID of barriers.
const BARRIER: u32 = u32::MAX;

/// A program that ends when this one ends.
struct Program(Child);

impl Program {
    fn start(name: &str, program: &Path, words: &[&str]) -> Result<Self> {
        let log = File::create(Path::new(FOLDER).join(format!("{name}.log")))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(words).stdin(Stdio::null());
        Ok(Self(command.stdout(Stdio::null()).stderr(log).spawn()?))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// The running daemon.
pub struct Daemon(#[expect(dead_code, reason = "ends the program when it is dropped")] Program);

impl Daemon {
    /// Starts the daemon for the device, and waits until it has its rules.
    pub fn start(stub: &mut Stub) -> Result<Self> {
        let ones = vec!["1"; PPUS.into()].join(", ");
        let ports: String =
            (1..=4).map(|n| format!("[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\n")).collect();
        let text = format!(
            "control = \"{FOLDER}/control.sock\"\n[[datapath]]\nid = 1\n[datapath.openflow]\n\
             controllers = [\"tcp:127.0.0.1:6653\"]\nlisten = \"unix:{OPENFLOW}\"\n[datapath.device]\n\
             kind = \"udp\"\naddress = \"{}\"\nentries = {ENTRIES}\ntables = [{ones}]\n{ports}",
            stub.address()?
        );
        let config = format!("{FOLDER}/switch.toml");
        fs::write(&config, text)?;
        let program = std::env::current_exe()?.with_file_name("shunt");
        if !program.exists() {
            return Err("the program `shunt` is missing beside this one; build it with `cargo build --release -p shunt`".into());
        }
        let started = Program::start("shunt", &program, &["run", "-c", &config])?;
        stub.serve_until("the device has the rules", |stub| stub.is_programmed())?;
        Ok(Self(started))
    }
}

/// The learning application on os-ken.
pub struct OsKen(#[expect(dead_code, reason = "ends the program when it is dropped")] Program);

impl OsKen {
    pub fn start() -> Result<Self> {
        let python = Path::new(PYTHON);
        if !python.exists() {
            return Err(format!("{PYTHON} is missing; scripts/setup.sh test installs it").into());
        }
        let words = ["lab/controllers/launch.py", "learning", "--idle-timeout", "1"];
        Ok(Self(Program::start("os-ken", python, &words)?))
    }
}

/// A controller that the stub's thread runs. It never waits.
pub struct LocalController {
    stream: UnixStream,
    received: Vec<u8>,
    xid: u32,
    packet_ins: u32,
    barrier_replies: u32,
}

impl LocalController {
    pub fn connect(_: &Daemon) -> Result<Self> {
        let stream = UnixStream::connect(OPENFLOW)?;
        stream.set_nonblocking(true)?;
        let mut made = Self { stream, received: Vec::new(), xid: 1, packet_ins: 0, barrier_replies: 0 };
        made.send(&Message::Hello(Hello::supported()), 0)?;
        Ok(made)
    }

    fn send(&mut self, message: &Message, xid: u32) -> Result<()> {
        let mut bytes = Vec::new();
        encode(message, xid, &mut bytes)?;
        Ok(self.stream.write_all(&bytes)?)
    }

    fn change(&mut self, command: FlowModCommand, text: &str) -> Result<()> {
        let flow: FlowMod = parse_flow(text, command, ParseOptions::default())?;
        self.xid += 1;
        self.send(&Message::FlowMod(FlowModMessage { flow, buffer_id: None }), self.xid)
    }

    /// Adds the entry of a flow.
    pub fn add(&mut self, flow: u32) -> Result<()> {
        let [a, b, c, d] = flow.to_be_bytes();
        let source = format!("02:01:{a:02x}:{b:02x}:{c:02x}:{d:02x}");
        self.change(
            FlowModCommand::Add,
            &format!("priority=10,in_port=1,dl_src={source},dl_dst=02:00:00:00:01:02,actions=output:2"),
        )
    }

    /// Lets packets without an entry go to the controller.
    pub fn add_miss(&mut self, stub: &mut Stub) -> Result<()> {
        self.change(FlowModCommand::Add, "priority=0,actions=CONTROLLER:128")?;
        stub.serve_until("the table-miss entry is there", Stub::has_miss_entry)
    }

    /// Deletes all entries.
    pub fn empty(&mut self, stub: &mut Stub) -> Result<()> {
        self.change(FlowModCommand::Delete, "")?;
        self.barrier()?;
        let mut failed = None;
        stub.serve_until("all entries are deleted", |_| match self.has_barrier_reply() {
            Ok(replied) => replied,
            Err(error) => {
                failed = Some(error);
                true
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    pub fn barrier(&mut self) -> Result<()> {
        self.send(&Message::BarrierRequest, BARRIER)
    }

    /// Takes a reply to a barrier, if one has arrived.
    pub fn has_barrier_reply(&mut self) -> Result<bool> {
        self.receive()?;
        let has = self.barrier_replies > 0;
        self.barrier_replies -= u32::from(has);
        Ok(has)
    }

    /// Takes a packet, if one has arrived.
    pub fn take_packet_in(&mut self) -> Result<bool> {
        self.receive()?;
        let has = self.packet_ins > 0;
        self.packet_ins -= u32::from(has);
        Ok(has)
    }

    fn receive(&mut self) -> Result<()> {
        let mut buffer = [0; 4_096];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Err("the daemon closed the connection".into()),
            Ok(length) => self.received.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        while let Some(head) = self.received.first_chunk::<HEADER_BYTES>() {
            let length = usize::from(u16::from_be_bytes([head[2], head[3]])).max(HEADER_BYTES);
            let xid = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
            if self.received.len() < length {
                return Ok(());
            }
            let message: Vec<u8> = self.received.drain(..length).collect();
            match decode(&message).map_err(|error| error.to_string())? {
                Message::BarrierReply => self.barrier_replies += 1,
                Message::PacketIn(_) => self.packet_ins += 1,
                Message::EchoRequest(data) => self.send(&Message::EchoReply(data), xid)?,
                Message::Error(error) => {
                    return Err(format!("the switch refused a message: {}", error.code).into());
                }
                _ => {}
            }
        }
        Ok(())
    }
}
