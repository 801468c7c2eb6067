// SPDX-License-Identifier: Apache-2.0
//! Log of a daemon, captured for tests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Returns a subscriber for the thread whose log is captured.
    pub fn subscriber(&self) -> impl Subscriber + Send + Sync + use<> {
        let log = self.clone();
        tracing_subscriber::fmt().with_max_level(LevelFilter::INFO).with_writer(move || log.clone()).finish()
    }

    /// Returns the lines that contain all of `parts`.
    pub fn lines(&self, parts: &[&str]) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
