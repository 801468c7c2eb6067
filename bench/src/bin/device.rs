// SPDX-License-Identifier: Apache-2.0
//! Time that the daemon adds to the control path of a device, and the reaction to a new flow.
//!
//! The device is the software model behind a UDP socket. It is served by the same thread as the local
//! controller, which never sleeps, so no time includes the wake-up of either. The daemon runs on another CPU.
//!
//! - Daemon's share: from the first byte of a FLOW_MOD with a BARRIER_REQUEST to the BARRIER_REPLY, without
//!   the time in which the device works on messages.
//!   It is measured with a controller that never pauses, and with one that pauses before each round. During
//!   such a pause, the daemon falls asleep, so this share includes its wake-up.
//! - Exchange: from a datagram to its answer by a thread that never sleeps, which is the time that the
//!   machine needs without a daemon.
//! - Reaction: from a Packet_in of the device to the execution of the entry that the controller adds, by a
//!   controller in this process, and by the learning application on os-ken.

#[path = "device/daemon.rs"]
mod daemon;
#[path = "device/stub.rs"]
mod stub;

use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use daemon::{Daemon, LocalController, OsKen};
use shunt_bench::{Figure, allowed_cpus, pin_to};
use stub::Stub;

/// Entries that are added before the table is emptied.
const ENTRIES: u32 = 400;
/// Length of an exchanged datagram in bytes, about that of a command.
const EXCHANGED_BYTES: usize = 128;
/// Longest time of a round.
const LONG: Duration = Duration::from_secs(10);
/// Pause before a round, in which the daemon falls asleep.
const PAUSE: Duration = Duration::from_millis(1);
/// Share of the daemon at the 99th percentile, in us.
const SHARE_MAX_US: f64 = 50.0;

/// Measures every case, and writes target/report/device.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Number of flow-mods, and of new flows for the local controller.
    #[arg(long, default_value_t = 20_000)]
    rounds: u32,
    /// Number of new flows for the application on os-ken.
    #[arg(long, default_value_t = 2_000)]
    remote_rounds: u32,
    /// Set if the program already runs in its namespaces.
    #[arg(long, hide = true)]
    inside: bool,
}

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if !arguments.inside {
        return Err(enter_namespaces()?.into());
    }
    for line in
        [["mount", "-t", "tmpfs", "tmpfs", daemon::FOLDER].as_slice(), &["ip", "link", "set", "lo", "up"]]
    {
        let (program, words) = line.split_first().ok_or("an empty command")?;
        if !Command::new(program).args(words).status()?.success() {
            return Err(format!("{line:?} failed").into());
        }
    }
    let cpus = allowed_cpus()?;
    let (first, last) = cpus.first().zip(cpus.last()).ok_or("no CPU is allowed")?;
    report("exchange of datagrams without the daemon", &exchanges(*first, *last, arguments.rounds)?, None)?;
    let mut stub = Stub::new()?;
    pin_to(*last)?;
    let daemon = Daemon::start(&mut stub)?;
    pin_to(*first)?;
    let figure = "flow-mod and barrier";
    shares(figure, Some(SHARE_MAX_US), &mut stub, &daemon, arguments.rounds, Duration::ZERO)?;
    shares(&format!("{figure} after a pause"), None, &mut stub, &daemon, arguments.rounds / 4, PAUSE)?;
    let reactions = local_reactions(&mut stub, &daemon, arguments.rounds)?;
    report("reaction to a new flow, local controller", &reactions, None)?;
    drop(daemon);
    stub.restart();
    pin_to(*last)?;
    let os_ken = OsKen::start()?;
    let daemon = Daemon::start(&mut stub)?;
    pin_to(*first)?;
    let reactions = remote_reactions(&mut stub, arguments.remote_rounds)?;
    report("reaction to a new flow, learning application on os-ken", &reactions, None)?;
    drop((daemon, os_ken));
    Ok(())
}

/// Runs this program again in new namespaces, which remove files at the end. Returns only on failure.
fn enter_namespaces() -> Result<io::Error> {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--mount", "--"]).arg(std::env::current_exe()?);
    Ok(command.args(std::env::args_os().skip(1)).arg("--inside").exec())
}

/// Exchanges datagrams of the length of a command with a thread on another CPU. Returns times in us.
fn exchanges(here: usize, there: usize, rounds: u32) -> Result<Vec<f64>> {
    let (near, far) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answers = scope.spawn(|| -> io::Result<()> {
            pin_to(there).map_err(io::Error::other)?;
            let mut buffer = [0; EXCHANGED_BYTES];
            while !is_over.load(Ordering::Relaxed) {
                match far.recv(&mut buffer) {
                    Ok(_) => drop(far.send(&buffer)?),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        let times =
            pin_to(here).map_err(Into::into).and_then(|()| (0..rounds).map(|_| exchange(&near)).collect());
        is_over.store(true, Ordering::Relaxed);
        answers.join().map_err(|_| "the answering thread panicked")??;
        times
    })
}

fn exchange(near: &UdpSocket) -> Result<f64> {
    let mut buffer = [0; EXCHANGED_BYTES];
    let start = Instant::now();
    near.send(&buffer)?;
    while let Err(error) = near.recv(&mut buffer) {
        if error.kind() != ErrorKind::WouldBlock {
            return Err(error.into());
        }
        if start.elapsed() > LONG {
            return Err("a datagram was lost".into());
        }
    }
    Ok(us(start.elapsed()))
}

/// Adds entries one by one, each with a barrier and after a pause. The limit is for the daemon's share.
fn shares(
    figure: &str,
    limit: Option<f64>,
    stub: &mut Stub,
    daemon: &Daemon,
    rounds: u32,
    pause: Duration,
) -> Result<()> {
    let mut controller = LocalController::connect(daemon)?;
    let (mut shares, mut totals, mut commands) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        if round % ENTRIES == 0 {
            controller.empty(stub)?;
        }
        stub.serve_for(pause)?;
        let before = stub.counts();
        let start = Instant::now();
        controller.add(round)?;
        controller.barrier()?;
        let end = start + LONG;
        while !controller.has_barrier_reply()? {
            stub.serve()?;
            if Instant::now() > end {
                return Err("a barrier was not answered".into());
            }
        }
        let total = start.elapsed();
        let after = stub.counts();
        commands += after.commands - before.commands;
        totals.push(us(total));
        shares.push(us(total.saturating_sub(after.busy - before.busy)));
    }
    writeln!(
        io::stdout(),
        "{:.2} commands of the device per flow-mod",
        f64::from(commands) / f64::from(rounds)
    )?;
    report(&format!("{figure}, daemon's share"), &shares, limit)?;
    report(&format!("{figure}, in all"), &totals, None)
}

/// Sends packets of new flows through the device, to a controller in this process.
fn local_reactions(stub: &mut Stub, daemon: &Daemon, rounds: u32) -> Result<Vec<f64>> {
    let mut controller = LocalController::connect(daemon)?;
    controller.empty(stub)?;
    controller.add_miss(stub)?;
    let mut reactions = Vec::new();
    for round in 0..rounds {
        if round % ENTRIES == ENTRIES - 1 {
            controller.empty(stub)?;
            controller.add_miss(stub)?;
        }
        let start = Instant::now();
        stub.receive(round)?;
        let end = start + LONG;
        while !stub.forwards(round) {
            stub.serve()?;
            if controller.take_packet_in()? {
                controller.add(round)?;
            }
            if Instant::now() > end {
                return Err("an entry was not installed".into());
            }
        }
        reactions.push(us(start.elapsed()));
    }
    Ok(reactions)
}

/// Sends packets of new flows through the device, to the learning application on os-ken.
fn remote_reactions(stub: &mut Stub, rounds: u32) -> Result<Vec<f64>> {
    stub.serve_until("the application has added its table-miss entry", |stub| stub.has_miss_entry())?;
    // The application learns where the destination is.
    for _ in 0..3 {
        stub.receive_from_station()?;
        stub.serve_for(Duration::from_millis(300))?;
    }
    let mut reactions = Vec::new();
    for round in 0..rounds {
        let start = Instant::now();
        stub.receive(round)?;
        stub.serve_until("the application has added an entry", |stub| stub.forwards(round))?;
        reactions.push(us(start.elapsed()));
        // Idle entries are removed.
        if round % ENTRIES == ENTRIES - 1 {
            stub.serve_for(Duration::from_secs(3))?;
        }
    }
    Ok(reactions)
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Reports median, 99th percentile and maximum. The limit is for the 99th percentile.
fn report(figure: &str, times: &[f64], limit: Option<f64>) -> Result<()> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)).copied();
    for (case, share, limit) in [("p50", 0.5, None), ("p99", 0.99, limit), ("longest", 1.0, None)] {
        let value = at(share).ok_or("no rounds")?;
        let made = Figure::limited(figure, case, "us", &[value], limit).ok_or("no rounds")?;
        made.append(Path::new("target/report"), "device")?;
        let limit = limit.map_or(String::new(), |limit| format!(" (at most {limit})"));
        writeln!(io::stdout(), "{figure}, {case} of {}: {value:.1} us{limit}", times.len())?;
    }
    Ok(())
}
