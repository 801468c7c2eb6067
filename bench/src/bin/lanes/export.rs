// SPDX-License-Identifier: Apache-2.0
//! Exports a scenario's rules and packets as files for `shunt sim`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use shunt_bench::LUT_ENTRIES;
use shunt_bench::scenario::Kind;
use wire::capture::CaptureWriter;

use crate::traffic::{Normal, Traffic};

/// Number of low-latency flows.
const FLOWS: usize = 1_000;

/// Destination of an export.
#[derive(Debug, Args)]
pub struct Export {
    /// Folder for the scenario, its flows and two captures. Created if it does not exist.
    out: PathBuf,
}

/// Writes one scenario.
pub fn write(export: &Export, kind: Kind, rules: usize, express: bool) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, FLOWS)?;
    let folder = &export.out;
    fs::create_dir_all(folder)?;
    let (low, normal) = (traffic.low(0.0).flows, traffic.normal(Normal::Repeating, 0.0).flows);
    capture(&folder.join("low.pcap"), low.iter().map(Vec::as_slice))?;
    capture(&folder.join("normal.pcap"), normal.iter().map(Vec::as_slice))?;
    fs::write(folder.join("rules.flows"), traffic.rules())?;
    let name = kind.name();
    let class = |name: &str, share: f64, known: bool| {
        format!(
            "\n[[traffic]]\nname = \"{name}\"\npcap = \"{name}.pcap\"\nshare = {share}\npopularity = \"zipf\"\n\
             pattern = \"bursts\"\nknown = {known}\n"
        )
    };
    let scenario = format!(
        "# {name}, {rules} rules: a fifth of the traffic is low-latency.\npackets = 1000000\nio = \"2us\"\n\
         costs = \"measured\"\n\n[load]\nfactor = 0.95\n\n[[datapath]]\nflows = \"rules.flows\"\n\
         [datapath.ffp]\nlut_entries = {LUT_ENTRIES}\n[datapath.express]\nenabled = {express}\n{}{}",
        class("low", 0.2, true),
        class("normal", 0.8, false)
    );
    Ok(fs::write(folder.join("scenario.toml"), scenario)?)
}

/// Writes packets with time stamps one microsecond apart.
pub fn capture<'p>(path: &Path, packets: impl Iterator<Item = &'p [u8]>) -> Result<(), Box<dyn Error>> {
    let mut writer = CaptureWriter::create(path)?;
    for (at, packet) in packets.enumerate() {
        writer.write(at as u64 * 1_000, packet.len() as u32, packet)?;
    }
    writer.finish()?;
    Ok(())
}
