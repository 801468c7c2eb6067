// SPDX-License-Identifier: Apache-2.0
//! The command `shunt-device`: runs the simulated device by itself, so that it keeps forwarding while the
//! daemon restarts.
//!
//! Exit codes: 0 for success, 1 for a failure, 2 for wrong usage.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use device_sim::{CHANNELS, DeviceChannel, Simulation, SimulationSettings};
use port::{DeviceLock, Spec};
use signal_hook::consts::{SIGINT, SIGTERM};
use tracing_subscriber::EnvFilter;

/// Time between two looks at the thread of the simulation.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Run the simulated device of Shunt's hardware pipeline until SIGTERM or SIGINT.
///
/// The device forwards the frames of its ports by the entries that a daemon writes. It keeps its entries when
/// the daemon ends. Logs go to stderr, at the levels of RUST_LOG (default: warnings).
#[derive(Debug, Parser)]
#[command(
    name = "shunt-device",
    version,
    arg_required_else_help = true,
    after_help = "Example:\n  shunt-device --listen 127.0.0.1:6700 --port 1=veth-a --port 2=af_xdp:veth-b\n\n\
        Exit codes: 0 done, 1 failure (a sentence on stderr says what and where), 2 wrong usage."
)]
struct Arguments {
    /// UDP address at which the device expects its daemon, which must run on this host
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: SocketAddr,
    /// Port of the device, from 1 to 4, with its driver and its network interface (may be repeated)
    ///
    /// The driver is one that Shunt's configuration accepts, such as af_packet (the default) or af_xdp. A TAP
    /// interface is a network interface, too.
    #[arg(long = "port", value_name = "NUMBER=[DRIVER:]DEVICE", value_parser = parse_port)]
    ports: Vec<Spec>,
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "expected an IP address and a UDP port, such as 127.0.0.1:6700")?;
    if !address.ip().is_loopback() {
        return Err("the address must be a loopback address, such as 127.0.0.1".into());
    }
    Ok(address)
}

fn parse_port(text: &str) -> Result<Spec, String> {
    let expected = "expected NUMBER=[DRIVER:]DEVICE, such as 1=veth-a or 2=af_xdp:veth-b";
    let (number, device) = text.split_once('=').ok_or(expected)?;
    let number: u32 = number.parse().map_err(|_| expected)?;
    if number == 0 || number > CHANNELS.into() {
        return Err(format!("the device has the ports 1 to {CHANNELS}"));
    }
    let (driver, device) = device.split_once(':').unwrap_or((port::af_packet::NAME, device));
    let spec = Spec {
        number,
        name: number.to_string(),
        driver: driver.into(),
        device: device.into(),
        queues: 1,
        outstanding_bytes: usize::MAX,
        receive_ring: None,
        handover: port::Handover::Never,
    };
    port::check(&spec).map_err(|error| error.to_string())?;
    Ok(spec)
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let failed = error.print().and_then(|()| io::stdout().flush()).is_err();
            let code = if error.use_stderr() { 2 } else { u8::from(failed) };
            return ExitCode::from(code);
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    // A log that cannot be written must not end the device.
    log.log_internal_errors(false).init();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            // If stderr is closed, the exit code still reports the failure.
            let _ = writeln!(io::stderr(), "shunt-device: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let stop = on_signals().map_err(|error| format!("cannot handle signals: {error}"))?;
    let socket = UdpSocket::bind(arguments.listen)
        .map_err(|error| format!("cannot listen at {}: {error}", arguments.listen))?;
    let (mut channels, mut locks) = (Vec::new(), Vec::new());
    for spec in &arguments.ports {
        locks.push(DeviceLock::take(spec).map_err(|error| error.to_string())?);
        let mut queues = port::open(spec).map_err(|error| error.to_string())?;
        let queue = queues.pop().ok_or_else(|| format!("port {}: no queue was opened", spec.number))?;
        channels.push(DeviceChannel { port: spec.number as u8, queue });
    }
    let count = channels.len();
    let simulation = Simulation::start(channels, socket, SimulationSettings::default())
        .map_err(|error| format!("cannot start the device: {error}"))?;
    // As for `say`: without stderr, the device still runs.
    let _ = writeln!(io::stderr(), "shunt-device: ready, {count} ports, listening at {}", arguments.listen);
    while simulation.is_running() {
        if stopped(&stop).map_err(|error| format!("cannot wait for signals: {error}"))? {
            return Ok(());
        }
    }
    Err("the thread of the device has ended; this is a defect".into())
}

/// Returns a stream that is readable after SIGTERM or SIGINT.
fn on_signals() -> io::Result<UnixStream> {
    let (sender, receiver) = UnixStream::pair()?;
    signal_hook::low_level::pipe::register(SIGTERM, sender.try_clone()?)?;
    signal_hook::low_level::pipe::register(SIGINT, sender)?;
    receiver.set_read_timeout(Some(LOOK_INTERVAL))?;
    Ok(receiver)
}

/// Waits for a signal, but not for long. Returns whether one has arrived.
fn stopped(mut stop: &UnixStream) -> io::Result<bool> {
    use io::Read;
    match stop.read(&mut [0]) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}
