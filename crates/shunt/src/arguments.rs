// SPDX-License-Identifier: Apache-2.0
//! Command-line arguments. The doc comments of options and commands are the texts of `--help`.

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use config::PortCacheMode;
use config::edit::{QueueForm, StormForm};
use sim::replay::ReplayEngine;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// Shunt, an OpenFlow/SDN switch with a fast-forwarding path for low-latency traffic.
#[derive(Debug, Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        shunt check -c switch.toml\n  \
        shunt run -c switch.toml --flows start.flows\n  \
        shunt show ports\n  \
        shunt --control /run/shunt/s2.sock flows load new.flows\n\n\
        Exit codes: 0 done, 1 failure (a sentence on stderr says what and where), 2 wrong usage."
)]
pub struct Arguments {
    /// Control socket of the switch [default: from the configuration given by -c, else /run/shunt/s1.sock]
    #[arg(long, global = true, value_name = "PATH")]
    pub control: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a switch in the foreground until SIGTERM or SIGINT
    ///
    /// Prints one line to stderr when the switch forwards packets ("shunt: ready, ..."). Logs go to stderr
    /// too, at the levels of RUST_LOG (default: warnings) and of `log.levels` in the configuration. On
    /// SIGTERM or SIGINT the switch removes its sockets and ends with exit code 0.
    Run(Run),
    /// Check a configuration, and optionally a flow file, without opening a device
    ///
    /// Prints one line per error, which begins with FILE:LINE:COLUMN and names a fix. CPUs, devices and
    /// socket directories must exist on this machine, unless --offline is given. Also lists settings that are
    /// valid but have no effect in this build.
    Check(Check),
    /// Read the configuration of a running switch again, and apply what changed
    ///
    /// Ports, queues, controllers, limits and marks change while all other traffic goes on. If the file has
    /// an error, if a device cannot be opened, or if a change needs a restart, nothing is changed.
    Reload(Reload),
    /// Replace the program of a running switch by a newer one, without losing a packet
    ///
    /// Starts the program that is installed now, with the arguments of the running one. It gets the rules,
    /// the learned MACs, the counters and the sockets of the running program, and then takes over the
    /// packets. Controllers connect again. If the new program does not start, the running one goes on. Needs
    /// `upgrade = true` in the configuration, and ports of the drivers af_packet or af_xdp.
    Upgrade(UpgradeArguments),
    /// Add, remove or change a port of a running switch
    #[command(subcommand)]
    Port(PortCommand),
    /// Add or remove a mirror of a running switch, which copies frames to a port or a file
    #[command(subcommand)]
    Mirror(MirrorCommand),
    /// Show the state of a running switch
    Show(Show),
    /// Watch a running switch: rates of ports, lanes, tables and drops, once a second
    Top(Top),
    /// Load, print or delete the flows of a running switch
    #[command(subcommand)]
    Flows(Flows),
    /// Set, show or clear the Tag-and-Forward gates of a running switch
    #[command(subcommand)]
    Gates(GatesCommand),
    /// Show or set the levels of a running switch's log
    #[command(subcommand)]
    Log(LogCommand),
    /// Show how a packet would be forwarded, table by table, and why
    Trace(TraceArguments),
    /// Send a capture through a switch and write the output captures; needs no running switch and no
    /// privileges
    ///
    /// Time follows the timestamps of the capture. Writes one port-N.pcap for each port that the flows name
    /// or that receives packets, and controller.pcap. A summary goes to stdout.
    Replay(Replay),
    /// Simulate synthetic traffic in virtual time, through one switch or through a network with link failures
    ///
    /// For one switch, the report contains load, bursts, overload, and the deliveries, drops and latencies of
    /// each lane. For a network, the report contains the packets that were delivered or lost, where and why,
    /// over how many links, and the state that switches keep. The exit code is 1 if a packet is misdelivered
    /// or otherwise handled wrongly.
    ///
    /// The costs of the worker's steps are either given in the scenario or measured on this machine. With
    /// given costs, the same file and seed print the same result every time. Measured costs are printed, so
    /// that the run can be repeated.
    Sim(Sim),
    /// Start programs for upgrades; a running switch starts this by itself
    #[command(hide = true)]
    Launcher {
        /// Arguments of the programs
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Write the man pages and the completions of shells to a folder, for packages
    #[command(hide = true)]
    Generate {
        /// Folder; it is created if it is missing
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  shunt run -c switch.toml --flows start.flows")]
pub struct Run {
    /// Configuration file (TOML; see docs/configuration.md)
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Flow file to load before the first packet, in addition to the default flow
    #[arg(long, value_name = "FILE")]
    pub flows: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  shunt check -c switch.toml --flows start.flows")]
pub struct Check {
    /// Configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Flow file
    #[arg(long, value_name = "FILE")]
    pub flows: Option<PathBuf>,
    /// Do not check CPUs, devices and socket directories, because the file is for another machine
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "SIGHUP has the same effect; the result is then in the log.\n\nExample:\n  shunt reload -c switch.toml"
)]
pub struct Reload {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Take the control socket's path from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  shunt upgrade -c switch.toml")]
pub struct UpgradeArguments {
    /// Absolute path of the new program [default: the path of the running one]
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Take the control socket's path from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum PortCommand {
    /// Add a port
    #[command(
        after_help = "Example:\n  shunt port add 3 --name p3 --driver af_packet --device veth3 --workers 0 --write"
    )]
    Add {
        /// Number of the port
        number: u32,
        #[command(flatten)]
        settings: PortSettings,
        #[command(flatten)]
        target: PortTarget,
    },
    /// Remove a port
    #[command(after_help = "Example:\n  shunt port remove p3 --write")]
    Remove {
        /// Number or name of the port
        port: String,
        #[command(flatten)]
        target: PortTarget,
    },
    /// Change settings of a port
    ///
    /// Only another number, driver or device, or other workers, close the device: the port is then removed
    /// and added again. All other settings change while packets pass.
    #[command(
        after_help = "Examples:\n  shunt port set p3 --queue id=1,max_rate_kbps=50000 --queue id=2,priority=3\n  shunt port set 3 --workers 0,1 --write"
    )]
    Set {
        /// Number or name of the port
        port: String,
        /// New number of the port
        #[arg(long, value_name = "N")]
        number: Option<u32>,
        #[command(flatten)]
        settings: PortSettings,
        #[command(flatten)]
        target: PortTarget,
    },
}

#[derive(Debug, Subcommand)]
pub enum MirrorCommand {
    /// Add a mirror
    ///
    /// Frames are copied as they arrive at a port and as they leave it. `shunt show mirrors` shows the
    /// mirrors.
    #[command(after_help = "Examples:\n  shunt mirror add span --both p1,p2 --to-port p3\n  \
                      shunt mirror add web --ingress p1 --vlan 10 --to-file /var/tmp/web.pcapng --max-packets 1000")]
    Add {
        /// Name of the mirror
        name: String,
        #[command(flatten)]
        settings: MirrorSettings,
        #[command(flatten)]
        target: PortTarget,
    },
    /// Remove a mirror; its file is then complete
    #[command(after_help = "Example:\n  shunt mirror remove span --write")]
    Remove {
        /// Name of the mirror
        name: String,
        #[command(flatten)]
        target: PortTarget,
    },
}

// Settings of a mirror.
#[derive(Debug, Args)]
pub struct MirrorSettings {
    /// Ports whose received frames are copied, by number or name
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    pub ingress: Vec<String>,
    /// Ports whose sent frames are copied, by number or name
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    pub egress: Vec<String>,
    /// Ports whose received and sent frames are copied, by number or name
    #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
    pub both: Vec<String>,
    /// VLANs whose frames are copied; 0 stands for frames without a tag [default: all frames]
    #[arg(long, value_name = "VLAN,...", value_delimiter = ',')]
    pub vlan: Vec<u16>,
    /// Port to which the copies go, by number or name
    #[arg(long, value_name = "PORT", conflicts_with = "to_file", required_unless_present = "to_file")]
    pub to_port: Option<String>,
    /// Let the output port also forward other traffic
    #[arg(long, requires = "to_port")]
    pub other_traffic: bool,
    /// pcapng file to which the copies go; the switch writes it, and overwrites an older capture
    #[arg(long, value_name = "FILE")]
    pub to_file: Option<PathBuf>,
    /// Number of bytes that are kept of each frame [default: 262144]
    #[arg(long, value_name = "BYTES", requires = "to_file")]
    pub snap_bytes: Option<u32>,
    /// Maximum size of the file [default: 100000000]
    #[arg(long, value_name = "BYTES", requires = "to_file")]
    pub max_bytes: Option<u64>,
    /// Maximum number of frames in the file
    #[arg(long, value_name = "N", requires = "to_file")]
    pub max_packets: Option<u64>,
}

// Settings of a port. Those that are not given stay as they are. (As a doc comment, this would replace the
// help of the commands.)
#[derive(Debug, Args)]
pub struct PortSettings {
    /// Name of the port
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Driver: af_packet, af_xdp, mem, patch, pcap or none
    #[arg(long, value_name = "DRIVER")]
    pub driver: Option<String>,
    /// Device, in the notation of the driver
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Workers that serve the port
    #[arg(long, value_name = "WORKER,...", value_delimiter = ',')]
    pub workers: Option<Vec<u32>>,
    /// Maximum number of bytes that wait in the device
    #[arg(long, value_name = "BYTES")]
    pub outstanding_bytes: Option<u32>,
    /// Number of packets for which the receive ring of each queue has space; 0 removes the setting
    #[arg(long, value_name = "PACKETS")]
    pub receive_ring: Option<u32>,
    /// VLAN mode: access, trunk, native-tagged or native-untagged
    #[arg(long, value_name = "MODE")]
    pub vlan_mode: Option<String>,
    /// VLAN of an access port, or native VLAN
    #[arg(long, value_name = "VLAN")]
    pub tag: Option<u32>,
    /// VLANs of a trunk port; 0 means untagged frames
    #[arg(long, value_name = "VLAN,...", value_delimiter = ',')]
    pub trunks: Option<Vec<u32>>,
    /// Remove the VLAN settings that are not given
    #[arg(long)]
    pub no_vlans: bool,
    /// Storm limits, as KEY=VALUE with the keys of [datapath.port.storm], separated by commas; a limit is
    /// RATE or RATE/BURST; replaces all storm limits of the port
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = storm)]
    pub storm: Option<StormForm>,
    /// Remove all storm limits
    #[arg(long, conflicts_with = "storm")]
    pub no_storm: bool,
    /// Maximum number of learned addresses; 0 removes the limit
    #[arg(long, value_name = "N")]
    pub mac_limit: Option<u32>,
    /// Egress queue, as id=N and, separated by commas, other keys of [[datapath.port.queue]]; may be
    /// repeated, and replaces all queues of the port
    #[arg(long, value_name = "KEY=N,...", value_parser = queue)]
    pub queue: Vec<QueueForm>,
    /// Remove all egress queues
    #[arg(long, conflicts_with = "queue")]
    pub no_queues: bool,
}

// The switch and the file that a command about a port changes.
#[derive(Debug, Args)]
pub struct PortTarget {
    /// Also write the change to the configuration file of the switch; comments stay
    #[arg(long)]
    pub write: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Take the control socket's path from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Reads storm limits, such as `broadcast=100/20,action=shut`.
fn storm(text: &str) -> Result<StormForm, String> {
    let number = |text: &str, what: &str, max: u32| -> Result<u32, String> {
        let number = text.parse().ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| format!("\"{text}\" is not a {what} from 1 to {max}"))
    };
    let rate = |text: &str| number(text, "rate", StormForm::RATE_MAX);
    let limit = |text: &str| -> Result<_, String> {
        match text.split_once('/') {
            Some((first, burst)) => {
                Ok(Some((rate(first)?, Some(number(burst, "burst", StormForm::BURST_MAX)?))))
            }
            None => Ok(Some((rate(text)?, None))),
        }
    };
    let mut storm = StormForm::default();
    let mut keys = BTreeSet::new();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not KEY=VALUE"))?;
        if !keys.insert(key) {
            return Err(format!("\"{key}\" is given more than once"));
        }
        match key {
            "broadcast" => storm.broadcast = limit(value)?,
            "multicast" => storm.multicast = limit(value)?,
            "unknown_unicast" => storm.unknown_unicast = limit(value)?,
            "action" => storm.action = Some(value.to_owned()),
            "reopen" => storm.reopen = Some(value.to_owned()),
            other => {
                let keys = "broadcast, multicast, unknown_unicast, action and reopen";
                return Err(format!("there is no key \"{other}\"; the keys are {keys}"));
            }
        }
    }
    Ok(storm)
}

/// Reads an egress queue, such as `id=1,max_rate_kbps=50000`.
fn queue(text: &str) -> Result<QueueForm, String> {
    let mut queue = QueueForm::default();
    let mut has_id = false;
    for part in text.split(',') {
        let (key, number) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not KEY=N"))?;
        let number: u32 =
            number.parse().map_err(|_| format!("\"{number}\" is not a number from 0 to {}", u32::MAX))?;
        match key {
            "id" => (queue.id, has_id) = (number, true),
            "min_rate_kbps" => queue.min_rate_kbps = Some(number),
            "max_rate_kbps" => queue.max_rate_kbps = Some(number),
            "priority" => queue.priority = Some(number),
            "limit_frames" => queue.limit_frames = Some(number),
            _ => {
                return Err(format!(
                    "\"{key}\" is unknown; use id, min_rate_kbps, max_rate_kbps, priority or limit_frames"
                ));
            }
        }
    }
    if has_id { Ok(queue) } else { Err("it has no id; write id=N, such as id=1,priority=3".to_owned()) }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  shunt show counters\n  shunt show flows --json | head\n  shunt show ports -c switch.toml"
)]
pub struct Show {
    /// What to show
    #[arg(value_enum)]
    pub what: What,
    /// Print one JSON object; for flows, one object per line
    #[arg(long)]
    pub json: bool,
    /// Take the control socket's path from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Ports: link state, packets, losses
    Ports,
    /// Tables that have flows or had lookups
    Tables,
    /// Flows with their counters, as `ovs-ofctl dump-flows` prints them
    Flows,
    /// Fast-forwarding path: its tables, LUT records and hits
    Ffp,
    /// Express path: plan of the keys, path records, and counters of each worker
    Express,
    /// Port caches: pending flows, waiting packets and counters of each port
    Cache,
    /// Device that forwards instead of workers: agreement with the rules, session, counters
    Device,
    /// Store that keeps the rules over restarts: state, changes kept, sizes
    Store,
    /// Mirrors: sources, output, state, copied and lost frames
    Mirrors,
    /// Stateless forwarder: IDs, labels, gates, trusted ports, and counts of tagged packets
    Stateless,
    /// Packets by outcome, drops by reason, latencies by lane
    Counters,
    /// Controllers: connection, role, time since the connection
    Controllers,
    /// Learned MAC addresses
    Macs,
}

#[derive(Debug, Args)]
#[command(
    long_about = "Watch what a running switch does, once a second: rates of ports, latencies of lanes from receive poll to \
                  transmit doorbell, rates of tables and of their LUTs, drops by reason.\n\nKeys: q quits, p pauses, tab, \
                  left and right choose a section, up and down scroll it. If input or output is not a terminal, the \
                  output is plain text.",
    after_help = "Examples:\n  shunt top\n  shunt top --once\n  shunt top --batch 60 -c switch.toml > minute.txt"
)]
pub struct Top {
    /// Print the figures of one second as plain text and exit
    #[arg(long, conflicts_with = "batch")]
    pub once: bool,
    /// Print the figures of N seconds as plain text and exit
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Take the control socket's path from this configuration
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Flows {
    /// Load the flows, groups and meters of a file: all at once, or none if one is wrong
    #[command(
        long_about = "Load the flows, groups and meters of a file: all at once, or none if one is wrong. Existing flows stay, except that a flow with the same table, priority and match is replaced. Returns when the flows are active.",
        after_help = "The syntax is that of `ovs-ofctl add-flows`, with extensions (docs/commands.md).\n\nExamples:\n  \
                      shunt flows load new.flows\n  echo 'in_port=p1,actions=output:p2' | shunt flows load -"
    )]
    Load {
        /// Flow file; - reads standard input
        file: PathBuf,
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Print all meters, groups and flows as a file that `flows load` accepts
    #[command(after_help = "Example:\n  shunt flows dump > saved.flows")]
    Dump {
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Delete all flows and restore the default flow (priority=0 actions=NORMAL)
    Clear {
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum GatesCommand {
    /// Replace all gates in one operation; returns when they are active
    #[command(
        after_help = "A gate is PORT=NUMBER, with :server or :external at ports where the tag is removed, or :assists at ports \
                      whose packets may go up.\n\nExample, the first edge switch of the k = 4 tree:\n  \
                      shunt gates set --down-d 2 --up-d 8 --server-gate-max 32 --trusted 3,4 1=2:server 2=4:server 3=48 4=56"
    )]
    Set {
        /// Ports and their gates
        #[arg(required = true, value_name = "PORT=NUMBER[:FLAG]")]
        gates: Vec<String>,
        /// Difference d of the downward gates; 0: no such gates
        #[arg(long, value_name = "D", default_value_t = 0)]
        down_d: u32,
        /// Difference d of the upward gates; 0: no such gates
        #[arg(long, value_name = "D", default_value_t = 0)]
        up_d: u32,
        /// Difference d of the external gates of a core switch; 0: no such gates
        #[arg(long, value_name = "D", default_value_t = 0)]
        external_d: u32,
        /// Highest server gate; a larger DOWN selects an external gate, if --external-d is not 0
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        server_gate_max: u32,
        /// Ports to other switches; only these may send tagged packets [default: unchanged]
        #[arg(long, value_name = "PORT,...", value_delimiter = ',')]
        trusted: Option<Vec<u32>>,
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Print all gates
    Show {
        /// Print one JSON object; null if there are no gates
        #[arg(long)]
        json: bool,
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Remove all gates
    Clear {
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Print the form of the log, and the level of each module that has one
    Show {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Set the level of a module until the switch ends
    #[command(
        after_help = "Modules: switch (all others, unless they have a level), channels (connections of controllers), \
                      control, daemon, hardware, metrics, device_sim.\nLevels: off, error, warn, info, debug, trace.\n\n\
                      Example:\n  shunt log set channels info"
    )]
    Set {
        /// Module
        module: String,
        /// Level
        level: String,
        /// Take the control socket's path from this configuration
        #[arg(short, long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
#[command(
    long_about = "Show what the switch would do with a packet. For each table, prints the entry that the packet hits, and \
                  entries of higher priority that it almost matches, with the fields that exclude it. Then prints what \
                  the actions change, and where the packet leaves or why it is dropped. Nothing is sent, counted or \
                  learned.\n\nWith --live, prints what the workers did with real packets that match FIELDS, and whether \
                  this agrees with the rules. If it does not, the switch has a fault, and the exit code is 1.",
    after_help = "The packet is given as fields in flow syntax, which may include nw_ttl, as bytes, or as a packet of a capture.\n\n\
                  Examples:\n  shunt trace in_port=1,tcp,nw_dst=10.0.0.5,tp_dst=80\n  \
                  shunt trace --pcap in.pcap --packet 7 --in-port 2\n  \
                  shunt trace --flows test.flows udp6,ipv6_dst=2001:db8::1 --json\n  \
                  shunt trace --live in_port=1,arp --count 3"
)]
pub struct TraceArguments {
    /// Fields of the packet; others are 0 or a usual value. With --live: filter for the packets to trace
    #[arg(value_name = "FIELDS", required_unless_present_any = ["hex", "pcap", "live"])]
    pub fields: Option<String>,
    /// Bytes of the packet in hexadecimal, from the destination MAC on, or - to read them from standard input
    #[arg(long, value_name = "BYTES", conflicts_with = "fields")]
    pub hex: Option<String>,
    /// Capture that contains the packet, pcap or pcapng
    #[arg(long, value_name = "FILE", conflicts_with_all = ["fields", "hex"])]
    pub pcap: Option<PathBuf>,
    /// Number of the packet in the capture, counted from 1
    #[arg(long, value_name = "N", requires = "pcap", conflicts_with_all = ["fields", "hex"], default_value_t = 1, value_parser = value_parser!(u64).range(1..))]
    pub packet: u64,
    /// Ingress port [default: 1; for pcapng, the interface's number + 1]
    #[arg(long, value_name = "N")]
    pub in_port: Option<u32>,
    /// Trace real packets as the workers of a running switch forward them
    #[arg(long, conflicts_with_all = ["hex", "pcap", "flows", "in_port"])]
    pub live: bool,
    /// With --live: number of packets to trace
    #[arg(long, value_name = "N", requires = "live", conflicts_with_all = ["hex", "pcap", "flows"], default_value_t = 10)]
    pub count: u64,
    /// With --live: end after this number of seconds
    #[arg(long, value_name = "S", requires = "live", conflicts_with_all = ["hex", "pcap", "flows"], default_value_t = 60)]
    pub timeout: u64,
    /// Use the flows of this file instead of a running switch; all ports that they name are up
    #[arg(long, value_name = "FILE")]
    pub flows: Option<PathBuf>,
    /// Print one JSON object; with --live, one per line
    #[arg(long)]
    pub json: bool,
    /// Take the control socket's path from this configuration
    #[arg(short, long, value_name = "FILE", conflicts_with = "flows")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  shunt replay --pcap in.pcap --flows test.flows --out result")]
pub struct Replay {
    /// Capture to read, pcap or pcapng, with Ethernet frames
    #[arg(long, value_name = "IN")]
    pub pcap: PathBuf,
    /// Flow file
    #[arg(long, value_name = "FILE")]
    pub flows: PathBuf,
    /// Folder for the output captures; created if missing
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Ingress port of all packets [default: 1; for pcapng, the interface's number + 1]
    #[arg(long, value_name = "N")]
    pub in_port: Option<u32>,
    /// Fast-forwarding path; the results are the same with and without it
    #[arg(long, value_enum, default_value = "on", value_name = "on|off", hide_possible_values = true)]
    pub ffp: Switched,
    /// Express path: one record for all tables of a packet; the results are the same with and without it
    #[arg(long, value_enum, default_value = "off", value_name = "on|off", hide_possible_values = true)]
    pub express: Switched,
    /// Port cache: off, nonblocking or blocking; the results are the same with and without it
    #[arg(long, default_value = "off", value_name = "MODE")]
    pub port_cache: PortCacheMode,
    /// What answers searches of the port cache: inline (the tables of the worker) or worker (a search worker
    /// with tables of its own); the results are the same
    #[arg(
        long,
        value_enum,
        default_value = "inline",
        value_name = "inline|worker",
        hide_possible_values = true
    )]
    pub searcher: SearcherName,
    /// Forwarding engine: worker (the pipeline of the switch) or reference (the plain interpreter)
    #[arg(long, default_value = "worker", value_name = "ENGINE")]
    pub engine: ReplayEngine,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  shunt sim examples/sim/overload.toml\n  \
                  shunt sim examples/sim/overload.toml --seed 7 --json\n  \
                  shunt sim examples/sim/network-failures.toml")]
pub struct Sim {
    /// Scenario file (TOML; see docs/simulation.md)
    #[arg(value_name = "SCENARIO")]
    pub scenario: PathBuf,
    /// Seed of the random generator; overrides the scenario's seed
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Express path of the switch; overrides datapath.express.enabled of the scenario
    #[arg(long, value_enum, value_name = "on|off", hide_possible_values = true)]
    pub express: Option<Switched>,
    /// Port cache of the switch: off, nonblocking or blocking; overrides datapath.port_cache.mode of the
    /// scenario
    #[arg(long, value_name = "MODE")]
    pub port_cache: Option<PortCacheMode>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SearcherName {
    Inline,
    Worker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switched {
    On,
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storm_limits_are_read_or_refused_with_a_reason() {
        let read = storm("broadcast=100/20,multicast=7,action=shut,reopen=5s").unwrap();
        assert_eq!((read.broadcast, read.multicast), (Some((100, Some(20))), Some((7, None))));
        for (text, expected) in [
            ("broadcast=1,broadcast=2", "\"broadcast\" is given more than once"),
            ("broadcast=0", "\"0\" is not a rate from 1 to 10000000"),
            ("broadcast=10000001", "\"10000001\" is not a rate from 1 to 10000000"),
            ("multicast=5/1000001", "\"1000001\" is not a burst from 1 to 1000000"),
            ("unknown_unicast", "\"unknown_unicast\" is not KEY=VALUE"),
            ("loops=1", "there is no key \"loops\"; the keys are broadcast"),
        ] {
            let reason = storm(text).unwrap_err();
            assert!(reason.starts_with(expected), "{text}: {reason}");
        }
    }
}
