// SPDX-License-Identifier: Apache-2.0
//! Logs of the control side. Workers write none.

use tracing_subscriber::EnvFilter;

/// Logs to stderr from now on, by the levels of the environment variable `RUST_LOG`; warnings and errors without it.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // It fails only when a log is set up already, which then goes on.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).try_init();
}
