// SPDX-License-Identifier: Apache-2.0
//! Shunt and Open vSwitch as separate programs, each with two ports on veth pairs.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use shunt_bench::{Window, pin_to};

use crate::client::Batch;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Folder to which scripts/setup.sh unpacks Open vSwitch if it is not installed.
const TOOLS: &str = "target/tools/ovs";
const LONG: Duration = Duration::from_secs(20);
/// Pause after all flows are deleted, in which the switch finishes the deletion.
const PAUSE: Duration = Duration::from_millis(100);

/// Core for the threads of a switch, and core for its client.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    pub switch: usize,
    pub client: usize,
}

/// Running switch.
pub struct Switch {
    name: &'static str,
    folder: PathBuf,
    /// Unix socket for OpenFlow.
    socket: PathBuf,
    cores: Cores,
    /// Programs in the order of their start.
    programs: Vec<Child>,
}

impl Switch {
    /// Starts Shunt with one worker and default settings.
    pub fn shunt(folder: &Path, cores: Cores) -> Result<Self> {
        let socket = folder.join("shunt/br0.mgmt");
        let mut switch = Self::new("shunt", folder, socket, cores)?;
        let config = switch.folder.join("switch.toml");
        let control = switch.folder.join("control.sock");
        let mut text = format!("control = {control:?}\n[[worker]]\n[[datapath]]\nid = 1\n");
        text += &format!("[datapath.openflow]\nlisten = {:?}\n", switch.target());
        for (number, device) in (1..).zip(switch.ports()?) {
            text += &format!("[[datapath.port]]\nnumber = {number}\nname = \"p{number}\"\n");
            text += &format!("driver = \"af_packet\"\ndevice = \"{device}\"\nworkers = [0]\n");
        }
        fs::write(&config, text)?;
        let program = std::env::current_exe()?.with_file_name("shunt");
        if !program.exists() {
            return Err("the program `shunt` is missing beside this one; build it with `cargo build --release -p shunt`".into());
        }
        let arguments = ["run", "-c", &config.to_string_lossy()];
        let log = switch.start(&program.to_string_lossy(), &arguments)?;
        switch.wait("shunt is ready", || Ok(fs::read_to_string(&log)?.contains("shunt: ready")))?;
        Ok(switch)
    }

    /// Starts the userspace datapath of Open vSwitch. The client uses the unix socket of its bridge.
    pub fn open_vswitch(folder: &Path, cores: Cores) -> Result<Self> {
        let own = folder.join("ovs");
        let mut switch = Self::new("ovs", folder, own.join("br0.mgmt"), cores)?;
        let (database, socket) = (own.join("conf.db"), format!("unix:{}", own.join("db.sock").display()));
        let schema = [TOOLS, "/"]
            .map(|root| Path::new(root).join("usr/share/openvswitch/vswitch.ovsschema"))
            .into_iter()
            .find(|schema| schema.exists())
            .ok_or("vswitch.ovsschema is missing; scripts/setup.sh bench unpacks it")?;
        let database = database.to_string_lossy();
        done(switch.tool("ovsdb-tool").args(["create", &database, &schema.to_string_lossy()]).output()?)?;
        switch.start("ovsdb-server", &[&database, &format!("--remote=p{socket}"), "-vconsole:off"])?;
        let db = format!("--db={socket}");
        switch.wait("ovsdb-server is ready", || Ok(own.join("db.sock").exists()))?;
        done(switch.tool("ovs-vsctl").args([&db, "--timeout=20", "--no-wait", "init"]).output()?)?;
        switch.start("ovs-vswitchd", &[&socket, "--disable-system", "-vconsole:off", "-vsyslog:off"])?;
        let mut setup = switch.tool("ovs-vsctl");
        setup.args([&db, "--timeout=20", "add-br", "br0", "--"]);
        setup.args([
            "set",
            "bridge",
            "br0",
            "datapath_type=netdev",
            "fail_mode=secure",
            "protocols=OpenFlow13",
        ]);
        for device in switch.ports()? {
            setup.args(["--", "add-port", "br0", &device]);
        }
        done(setup.output()?)?;
        switch.wait("br0 is ready", || Ok(own.join("br0.mgmt").exists()))?;
        Ok(switch)
    }

    fn new(name: &'static str, folder: &Path, socket: PathBuf, cores: Cores) -> Result<Self> {
        let folder = folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { name, folder, socket, cores, programs: Vec::new() })
    }

    /// Returns the socket in the notation of ovs-ofctl.
    fn target(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// Creates the two ports, each an end of a veth pair.
    fn ports(&self) -> Result<[String; 2]> {
        let ports = [1, 2].map(|n| format!("{}{n}", self.name));
        for port in &ports {
            let peer = format!("{port}-peer");
            // Removes the interfaces of an earlier switch with this name.
            let _ = self.tool("ip").args(["link", "delete", port]).output()?;
            done(
                self.tool("ip")
                    .args(["link", "add", port, "type", "veth", "peer", "name", &peer])
                    .output()?,
            )?;
            for end in [port, &peer] {
                done(self.tool("ip").args(["link", "set", end, "up"]).output()?)?;
            }
        }
        Ok(ports)
    }

    /// Returns a command for a program from scripts/setup.sh, which ends when this benchmark ends.
    fn tool(&self, name: &str) -> Command {
        let unpacked =
            ["usr/bin", "usr/lib/openvswitch-switch"].map(|at| Path::new(TOOLS).join(at).join(name));
        let program = unpacked.into_iter().find(|program| program.exists());
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program.unwrap_or_else(|| name.into()));
        for folder in ["OVS_RUNDIR", "OVS_DBDIR", "OVS_SYSCONFDIR", "OVS_LOGDIR"] {
            command.env(folder, &self.folder);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Starts a program of the switch on the switch's core. Returns the path of its log.
    fn start(&mut self, program: &str, arguments: &[&str]) -> Result<PathBuf> {
        let log = self.folder.join(format!("log{}", self.programs.len()));
        let mut command = self.tool(program);
        command.args(arguments).stdout(Stdio::null()).stderr(File::create(&log)?);
        pin_to(self.cores.switch)?;
        let started = command.spawn();
        pin_to(self.cores.client)?;
        self.programs.push(started.map_err(|error| format!("{program}: {error}"))?);
        Ok(log)
    }

    fn wait(&mut self, what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + LONG;
        while !is_so()? {
            for (number, program) in self.programs.iter_mut().enumerate() {
                if let Some(status) = program.try_wait()? {
                    let log = fs::read_to_string(self.folder.join(format!("log{number}")))?;
                    return Err(
                        format!("a program ended, {status}, before this was true: {what}: {log}").into()
                    );
                }
            }
            if Instant::now() > end {
                return Err(format!("timed out, waiting for: {what}").into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn ofctl(&self, options: &[&str], command: &str, arguments: &[&str]) -> Result<String> {
        let mut ofctl = self.tool("ovs-ofctl");
        ofctl.args(["--timeout=300", "-O", "OpenFlow13"]).args(options).args([command, &self.target()]);
        done(ofctl.args(arguments).output()?)
    }

    /// Deletes all flows.
    pub fn clear(&self) -> Result<()> {
        self.ofctl(&[], "del-flows", &[])?;
        std::thread::sleep(PAUSE);
        Ok(())
    }

    /// Adds the flows of a file to an empty switch with ovs-ofctl, as one window.
    pub fn add_by_ofctl(&self, options: &[&str], file: &Path, count: u32) -> Result<Window> {
        self.clear()?;
        let start = Instant::now();
        self.ofctl(options, "add-flows", &[&file.to_string_lossy()])?;
        self.filled(start.elapsed(), count)
    }

    /// Adds the flows of a batch to an empty switch, as one window.
    pub fn add_pipelined(&self, batch: &Batch, count: u32) -> Result<Window> {
        self.clear()?;
        let took = batch.send(&self.socket)?;
        self.filled(took, count)
    }

    fn filled(&self, took: Duration, count: u32) -> Result<Window> {
        let reported = self.ofctl(&[], "dump-aggregate", &[])?;
        if !reported.contains(&format!("flow_count={count}\n")) {
            return Err(format!("{} does not have {count} flows: {reported}", self.name).into());
        }
        let wall_ns = u64::try_from(took.as_nanos())?;
        // The switch's CPU time cannot be separated from that of other programs, so wall-clock time is used.
        Ok(Window { units: count.into(), cpu_ns: wall_ns, wall_ns, gaps: 0, stolen_ns: 0 })
    }
}

fn done(output: Output) -> Result<String> {
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

impl Drop for Switch {
    fn drop(&mut self) {
        for mut program in self.programs.drain(..).rev() {
            if let Some(pid) = i32::try_from(program.id()).ok().and_then(Pid::from_raw) {
                // The program may already have ended.
                let _ = kill_process(pid, Signal::TERM);
            }
            let _ = program.wait();
        }
    }
}
