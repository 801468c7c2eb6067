// SPDX-License-Identifier: Apache-2.0
//! Levels of the log by module, which can change while the switch runs.

use super::format;
use config::{LOG_MODULES, LogFormat, LogLevel, LogModule};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use tracing_subscriber::{EnvFilter, reload};

/// Level of modules without a level of their own, if `RUST_LOG` is not set.
const DEFAULT: &str = "warn";

/// Changes the filter of the running log.
type Reload = Box<dyn Fn(EnvFilter) + Send>;

struct Levels {
    set: Vec<(LogModule, LogLevel)>,
    reload: Option<Reload>,
}

static LEVELS: Mutex<Levels> = Mutex::new(Levels { set: Vec::new(), reload: None });

/// Levels and form of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReport {
    /// Form of the lines: `text` or `json`.
    pub format: String,
    /// Levels of modules without a level of their own, in the notation of `RUST_LOG`.
    pub default: String,
    /// All modules that log.
    pub modules: Vec<LogModuleRow>,
}

/// Level of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogModuleRow {
    /// Name of the module.
    pub module: String,
    /// Level of the module, or `null` if it has none of its own. It then has the level of `switch`, if that
    /// is set and contains the module, or the default.
    pub level: Option<String>,
    /// Description of the module.
    pub meaning: String,
}

fn default() -> String {
    std::env::var(EnvFilter::DEFAULT_ENV)
        .ok()
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| DEFAULT.to_owned())
}

/// Returns the filter with these levels.
pub fn filter(levels: &[(LogModule, LogLevel)]) -> EnvFilter {
    let base = EnvFilter::try_new(default()).unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let directives =
        levels.iter().filter_map(|(module, level)| format!("{}={level}", module.path()).parse().ok());
    directives.fold(base, EnvFilter::add_directive)
}

/// Notes that the log runs with a filter that this handle changes.
pub fn started<S: 'static>(handle: reload::Handle<EnvFilter, S>) {
    let mut levels = LEVELS.lock().unwrap_or_else(PoisonError::into_inner);
    // The call fails only if the log has ended.
    levels.reload = Some(Box::new(move |filter| drop(handle.reload(filter))));
}

/// Sets the level of a module.
pub fn set_level(module: LogModule, level: LogLevel) {
    let mut levels = LEVELS.lock().unwrap_or_else(PoisonError::into_inner);
    levels.set.retain(|(other, _)| *other != module);
    levels.set.push((module, level));
    if let Some(reload) = &levels.reload {
        reload(filter(&levels.set));
    }
}

/// Returns the levels and the form of the log.
#[must_use]
pub fn report() -> LogReport {
    let levels = LEVELS.lock().unwrap_or_else(PoisonError::into_inner);
    let row = |module: &LogModule| LogModuleRow {
        module: module.name().to_owned(),
        level: levels.set.iter().find(|(other, _)| other == module).map(|(_, level)| level.to_string()),
        meaning: module.meaning().to_owned(),
    };
    let format = match format::current() {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    };
    LogReport {
        format: format.to_owned(),
        default: default(),
        modules: LOG_MODULES.iter().map(row).collect(),
    }
}
