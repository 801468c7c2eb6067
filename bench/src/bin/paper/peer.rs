// SPDX-License-Identifier: Apache-2.0
//! DPDK libraries as a contender: the compiled program of `bench/dpdk/libraries.c`, as a separate process on
//! the same core. It measures a window on each request.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use shunt_bench::{Contender, Error, Window};

/// Message about a missing installation.
pub const MISSING: &str = "DPDK's libraries are not installed, so only Shunt's tries are measured; `scripts/setup.sh bench` \
                           (or, as root, `apt-get install libdpdk-dev pkg-config`) installs them";

/// Compiles the program next to this one. Returns `None` if DPDK is not installed.
pub fn compile() -> Result<Option<PathBuf>, Box<dyn std::error::Error>> {
    let flags = |what: &str| -> Option<Vec<String>> {
        let output =
            Command::new("pkg-config").args([what, "libdpdk"]).stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.split_whitespace().map(String::from).collect())
    };
    let (Some(include), Some(link)) = (flags("--cflags"), flags("--libs")) else { return Ok(None) };
    let program = std::env::current_exe()?.with_file_name("dpdk-libraries");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("dpdk/libraries.c");
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-Wall", "-Wextra", "-Werror"]).args(include).arg(source).arg("-o").arg(&program);
    let status = cc.args(link).status()?;
    if !status.success() {
        return Err(format!("cc could not compile bench/dpdk/libraries.c: {status}").into());
    }
    Ok(Some(program))
}

/// Minimum number of free 2 MiB huge pages. With fewer, the program uses ordinary pages.
const PAGES: u64 = 1_024;
const FREE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

/// Kind of memory that the library uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Ordinary pages.
    Ordinary,
    /// Huge pages.
    Huge,
}

impl Memory {
    /// Returns huge pages if enough of them are free.
    pub fn best() -> Self {
        let free = std::fs::read_to_string(FREE_PAGES).ok().and_then(|text| text.trim().parse::<u64>().ok());
        if free.is_some_and(|free| free >= PAGES) { Self::Huge } else { Self::Ordinary }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Ordinary => &["--no-huge", "-m", "2048", "--no-shconf"],
            // Huge pages that are not backed by files.
            Self::Huge => &["--in-memory"],
        }
    }
}

/// Running library with one table.
pub struct Peer {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
    /// Build time of the table in milliseconds.
    pub build_ms: f64,
}

impl Peer {
    /// Starts the program on a core with the rules and keys of a file, and with vectors of up to 512 bits.
    pub fn new(
        program: &Path,
        cpu: usize,
        file: &Path,
        memory: Memory,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let mut child = Command::new(program)
            .args(["--lcores", &format!("0@{cpu}")])
            .args(memory.arguments())
            .args(["--no-pci", "--no-telemetry", "--force-max-simd-bitwidth=512", "--log-level=error", "--"])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(ask), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the peer has no pipes".into());
        };
        let mut peer = Self { child, ask, answers: BufReader::new(answers), build_ms: 0.0 };
        let line = peer.line()?;
        let build = line.strip_prefix("ready ").and_then(|ms| ms.trim().parse().ok());
        peer.build_ms = build.ok_or_else(|| format!("the peer began with `{}`", line.trim()))?;
        Ok(peer)
    }

    /// Looks up the first keys with a method. Returns the results, or `None` if the method is unavailable.
    pub fn found(
        &mut self,
        method: &str,
        count: usize,
    ) -> Result<Option<Vec<u32>>, Box<dyn std::error::Error>> {
        let line = self.answer(&format!("{method} check {count}"))?;
        if line.starts_with("not") {
            return Ok(None);
        }
        // The tries return `NONE` where the library returns -1.
        let words = line.split_whitespace().map(|word| word.parse::<i32>().map(|found| found as u32));
        Ok(Some(words.collect::<Result<_, _>>()?))
    }

    /// Returns a contender that looks up keys with a method, `batch` at a time. A window has `turns`
    /// iterations.
    pub fn windows<'p>(&'p mut self, method: &str, batch: usize, turns: u32) -> impl Contender + 'p {
        let request = format!("{method} {batch} {turns}");
        move || -> Result<Window, Error> {
            let line = self.answer(&request).map_err(|error| Error::Contender(error.to_string()))?;
            serde_json::from_str(&line)
                .map_err(|error| Error::Contender(format!("`{}`: {error}", line.trim())))
        }
    }

    fn answer(&mut self, request: &str) -> io::Result<String> {
        writeln!(self.ask, "{request}")?;
        self.line()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the program of the DPDK libraries ended",
            ));
        }
        Ok(line)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The program ends when its input closes, so errors do not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
