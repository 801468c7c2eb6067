// SPDX-License-Identifier: Apache-2.0
//! Experiments with recorded captures: all packets of a capture arrive at one port, at their recorded times.

use crate::cell::{Counts, Input, Mode, Setting, run};
use crate::traffic::Arrival;
use serde::Serialize;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use wire::capture::CaptureReader;

/// Time before the first packet, and after the last one, in nanoseconds. All answers come before the end.
const BEFORE_NS: f64 = 2_000.0;
const AFTER_NS: f64 = 3e10;
/// Service times in nanoseconds.
const SERVICES: [u64; 3] = [1_000_000, 10_000_000, 100_000_000];

/// Settings of an experiment with a capture, with the results.
#[derive(Debug, Serialize)]
struct CaptureCell<'a> {
    /// File name of the capture, without its ending.
    capture: &'a str,
    #[serde(flatten)]
    setting: Setting,
    #[serde(flatten)]
    counts: Counts,
}

/// Runs all captures of a folder with each service time in both modes. Calls `print` with the JSON object of
/// each experiment. `usual` returns the settings of a mode.
///
/// # Errors
/// Returns an error if the folder or a capture cannot be read.
pub fn run_all(
    folder: &Path,
    usual: impl Fn(Mode) -> Setting,
    mut print: impl FnMut(String) -> std::io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    let files = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = files.collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension() == Some(OsStr::new("pcap")));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let input = read(&path)?;
        let span_ns = input.recording.arrivals.last().map_or(0.0, |last| last.at_ns) + AFTER_NS;
        for service_ns in SERVICES {
            for mode in [Mode::Nonblocking, Mode::Blocking] {
                let setting = Setting { service_ns, ..usual(mode) };
                let counts = run(&input, &setting, 0.0, span_ns)?;
                print(serde_json::to_string(&CaptureCell { capture: &name, setting, counts })?)?;
            }
        }
    }
    Ok(())
}

/// Reads a capture. Its flows are not counted.
fn read(path: &Path) -> Result<Input, Box<dyn Error>> {
    let mut capture = CaptureReader::open(path)?;
    let (mut frames, mut arrivals, mut first_ns) = (Vec::new(), Vec::<Arrival>::new(), None);
    while let Some(packet) = capture.next_packet()? {
        let first_ns = *first_ns.get_or_insert(packet.timestamp_ns);
        let at_ns = packet.timestamp_ns.saturating_sub(first_ns) as f64 + BEFORE_NS;
        arrivals.push(Arrival { at_ns, flow: frames.len() as u32, port: 0 });
        frames.push(packet.bytes.to_vec());
    }
    arrivals.sort_by(|one, other| one.at_ns.total_cmp(&other.at_ns));
    Ok(Input::of_frames(arrivals, frames))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::PacketBuilder;
    use wire::capture::CaptureWriter;

    #[test]
    fn all_packets_of_a_capture_arrive_and_leave() {
        let folder = std::env::temp_dir().join(format!("shunt-lab-captures-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut writer = CaptureWriter::create(folder.join("two.pcap")).unwrap();
        for n in 0..40_u64 {
            let packet = PacketBuilder::ethernet([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 9, 0, 1]);
            let bytes = packet.udp(1_000 + (n % 2) as u16, 53).payload(&[0; 30]).build();
            writer.write(5_000_000_000 + n * 100_000, bytes.len() as u32, &bytes).unwrap();
        }
        writer.finish().unwrap();
        let mut lines = Vec::new();
        let usual = |mode| Setting { mode, ..crate::queued(32, 64) };
        let result = run_all(&folder, usual, |line| {
            lines.push(serde_json::from_str::<serde_json::Value>(&line).unwrap());
            Ok(())
        });
        fs::remove_dir_all(&folder).unwrap();
        result.unwrap();
        assert_eq!(lines.len(), 6);
        for line in lines {
            assert_eq!((&line["capture"], &line["offered"]), (&"two".into(), &40.into()), "{line}");
            assert_eq!((&line["forwarded"], &line["searched"]), (&40.into(), &2.into()), "{line}");
        }
    }
}
