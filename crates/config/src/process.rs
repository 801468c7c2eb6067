// SPDX-License-Identifier: Apache-2.0
//! Settings of the process that all its datapaths share: metrics, log and security.

use crate::address::{AddressError, socket_address};
use crate::file::{ConfigFile, LogSection};
use crate::mistakes::Mistakes;
use crate::security::{SecuritySettings, SocketAccess, security_settings, socket_access};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Settings of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSettings {
    /// Address on which the metrics are offered over HTTP, if they are.
    pub metrics: Option<SocketAddr>,
    /// Settings of the log.
    pub log: LogSettings,
    /// Who may connect to the control sockets.
    pub control: SocketAccess,
    /// Privileges and system calls.
    pub security: SecuritySettings,
    /// Whether a new program can take over from the running one, for which a process with all privileges of
    /// the start waits.
    pub upgrade: bool,
}

/// Settings of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// Form of the lines.
    pub format: LogFormat,
    /// Levels of modules. The others have the level of `RUST_LOG`, or WARN.
    pub levels: Vec<(LogModule, LogLevel)>,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// A JSON object per line.
    Json,
}

/// A part of the switch whose log has a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogModule {
    name: &'static str,
    path: &'static str,
    meaning: &'static str,
}

/// The modules that log, with the general one first.
pub const LOG_MODULES: &[LogModule] = &[
    module("switch", "switch", "all modules below, unless they have a level of their own"),
    module("channels", "switch::channels", "connections of controllers"),
    module("control", "switch::control", "requests over the control socket"),
    module("daemon", "switch::daemon", "threads, workers and links"),
    module("hardware", "switch::hardware", "sessions with devices"),
    module("metrics", "switch::metrics", "metrics over HTTP"),
    module("device_sim", "device_sim", "the simulated device"),
];

const fn module(name: &'static str, path: &'static str, meaning: &'static str) -> LogModule {
    LogModule { name, path, meaning }
}

impl LogModule {
    /// Returns the name in the configuration and on the command line.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the path of the module in the code, which log lines show.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// Returns a description.
    #[must_use]
    pub fn meaning(&self) -> &'static str {
        self.meaning
    }
}

impl FromStr for LogModule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        LOG_MODULES.iter().find(|module| module.name == text).copied().ok_or_else(|| {
            let names: Vec<&str> = LOG_MODULES.iter().map(LogModule::name).collect();
            format!("\"{text}\" is not a module that logs; use one of {}", names.join(", "))
        })
    }
}

/// Level of log lines. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// No lines.
    Off,
    /// Faults.
    Error,
    /// Losses, refusals and other problems.
    Warn,
    /// Usual events, such as connections.
    Info,
    /// Details.
    Debug,
    /// More details.
    Trace,
}

const LEVELS: [(&str, LogLevel); 6] = [
    ("off", LogLevel::Off),
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LEVELS.iter().find(|(_, level)| level == self).map_or("off", |(name, _)| name))
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        LEVELS
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, level)| *level)
            .ok_or_else(|| format!("\"{text}\" is not a level; use off, error, warn, info, debug or trace"))
    }
}

/// Checks the settings of the process. Returns them with notes on settings without effect.
pub(crate) fn process(file: &ConfigFile, mistakes: &mut Mistakes) -> (ProcessSettings, Vec<String>) {
    let (metrics, remote) = (file.metrics.as_deref(), file.metrics_remote);
    let address = metrics.and_then(|text| mistakes.at("metrics", metrics_address(text, remote)));
    let mut notes = Vec::new();
    if remote && metrics.is_none() {
        notes.push("metrics_remote has no effect without metrics.".to_owned());
    }
    let log = log_settings(&file.log, mistakes);
    let control = socket_access(&file.control, mistakes);
    let security = security_settings(&file.security, mistakes);
    let upgrade = file.upgrade;
    (ProcessSettings { metrics: address, log, control, security, upgrade }, notes)
}

fn metrics_address(text: &str, remote: bool) -> Result<SocketAddr, String> {
    let address = socket_address(text, None).map_err(|error| match error {
        AddressError::Form => format!(
            "\"{text}\" is not an address; write IP:PORT, such as \"127.0.0.1:9494\" or \"[::1]:9494\""
        ),
        other => format!("\"{text}\" {other}"),
    })?;
    if !remote && !address.ip().is_loopback() {
        return Err(format!(
            "\"{text}\" is not a loopback address, and everyone who reaches it could read the metrics; use \
             \"127.0.0.1:{}\", or allow other hosts with metrics_remote = true",
            address.port()
        ));
    }
    Ok(address)
}

fn log_settings(log: &LogSection, mistakes: &mut Mistakes) -> LogSettings {
    let format = match log.format.as_deref() {
        None | Some("text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => {
            mistakes.wrong("log.format", format!("\"{other}\" is unknown; use \"text\" or \"json\""));
            LogFormat::Text
        }
    };
    let mut levels = Vec::with_capacity(log.levels.len());
    for (name, level) in &log.levels {
        let key = format!("log.levels.{name}");
        let module = mistakes.at(&key, name.parse());
        let level = mistakes.at(&key, level.parse());
        levels.extend(module.zip(level));
    }
    LogSettings { format, levels }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn parse(text: &str) -> Result<Config, String> {
        let text = format!("{text}\n[[worker]]\n[[datapath]]\nid = 1\n");
        let lines = |all: Vec<crate::Mistake>| all.iter().map(|one| format!("{one}\n")).collect::<String>();
        Config::parse(&text).map_err(lines)
    }

    #[test]
    fn metrics_are_off_unless_they_have_a_loopback_address() {
        assert_eq!(parse("").unwrap().process, ProcessSettings::default());
        for address in ["127.0.0.1:9494", "127.8.0.1:1", "[::1]:9494"] {
            let process = parse(&format!("metrics = \"{address}\"")).unwrap().process;
            assert_eq!(process.metrics, Some(address.parse().unwrap()));
        }
        for address in ["0.0.0.0:9494", "10.0.0.1:9494", "[::]:9494"] {
            let problem = parse(&format!("metrics = \"{address}\"")).unwrap_err();
            assert!(
                problem.starts_with("metrics: ") && problem.contains("metrics_remote = true"),
                "{problem}"
            );
            let config = parse(&format!("metrics = \"{address}\"\nmetrics_remote = true")).unwrap();
            assert_eq!(config.process.metrics, Some(address.parse().unwrap()));
        }
        assert!(parse("metrics = \"localhost:1\"").unwrap_err().contains("write IP:PORT"));
        assert!(parse("metrics = true").unwrap_err().contains("metrics = \"127.0.0.1:9494\""));
        let notes = parse("metrics_remote = true").unwrap().notes;
        assert!(notes.contains(&"metrics_remote has no effect without metrics.".to_owned()), "{notes:?}");
    }

    #[test]
    fn levels_and_format_of_the_log_are_read() {
        let log =
            parse("[log]\nformat = \"json\"\nlevels = { channels = \"debug\", switch = \"info\" }").unwrap();
        let log = log.process.log;
        assert_eq!(log.format, LogFormat::Json);
        let levels: Vec<_> = log.levels.iter().map(|(module, level)| (module.name(), *level)).collect();
        assert_eq!(levels, [("channels", LogLevel::Debug), ("switch", LogLevel::Info)]);
        let wrong = "[log]\nformat = \"xml\"\nlevels = { model = \"info\", daemon = \"loud\" }";
        let problems = parse(wrong).unwrap_err();
        for part in [
            "log.format: \"xml\"",
            "log.levels.model: \"model\" is not a module",
            "daemon: \"loud\" is not a level",
        ] {
            assert!(problems.contains(part), "{problems}");
        }
        assert!(parse("[log]\nlevels = { switch = 1 }").is_err());
    }

    #[test]
    fn levels_have_the_names_that_are_parsed() {
        for (name, level) in LEVELS {
            assert_eq!((level.to_string().as_str(), name.parse()), (name, Ok(level)));
        }
        assert!(LogLevel::Off < LogLevel::Error && LogLevel::Debug < LogLevel::Trace);
    }
}
