// SPDX-License-Identifier: Apache-2.0
//! Commands that change the configuration of a running switch.

use crate::arguments::{
    MirrorCommand, MirrorSettings, PortCommand, PortSettings, PortTarget, Reload, UpgradeArguments,
};
use crate::commands::{connect, stdout};
use crate::error::CommandError;
use crate::print;
use config::Config;
use config::edit::{MirrorEdit, MirrorForm, PortEdit, PortForm, StormForm, write};
use std::io::Write;
use std::path::{Path, PathBuf};
use switch::control::{Client, ConfigurationFile, ControlRequest, ReloadReport};

type Done = Result<(), CommandError>;

pub fn reload(reload: &Reload, control: Option<&Path>) -> Done {
    // All datapaths of the file are changed, whichever socket gets the request.
    let first = match (control, &reload.config) {
        (None, Some(path)) => Config::load(path)?.into_iter().next().map(|config| config.control),
        _ => None,
    };
    let report = connect(control.or(first.as_deref()), None)?.ask(&ControlRequest::Reload)?;
    print_changes(&report, reload.json)
}

pub fn upgrade(upgrade: &UpgradeArguments, control: Option<&Path>) -> Done {
    // The process with all datapaths is replaced, whichever socket gets the request.
    let first = match (control, &upgrade.config) {
        (None, Some(path)) => Config::load(path)?.into_iter().next().map(|config| config.control),
        _ => None,
    };
    let request = ControlRequest::Upgrade { program: upgrade.program.clone() };
    let report = connect(control.or(first.as_deref()), None)?.ask(&request)?;
    print_changes(&report, upgrade.json)
}

pub fn port(command: &PortCommand, control: Option<&Path>) -> Done {
    let (edit, target) = match command {
        PortCommand::Add { number, settings, target } => {
            (PortEdit::Add(form(settings, Some(*number))), target)
        }
        PortCommand::Remove { port, target } => (PortEdit::Remove(port.clone()), target),
        PortCommand::Set { port, number, settings, target } => {
            (PortEdit::Set { port: port.clone(), to: form(settings, *number) }, target)
        }
    };
    let apply = |text: &str, datapath| edit.apply(text, datapath);
    change(&ControlRequest::Port { edit: edit.clone() }, apply, target, control)
}

pub fn mirror(command: &MirrorCommand, control: Option<&Path>) -> Done {
    let (edit, target) = match command {
        MirrorCommand::Add { name, settings, target } => {
            (MirrorEdit::Add(mirror_form(name, settings)), target)
        }
        MirrorCommand::Remove { name, target } => (MirrorEdit::Remove(name.clone()), target),
    };
    let apply = |text: &str, datapath| edit.apply(text, datapath);
    change(&ControlRequest::Mirror { edit: edit.clone() }, apply, target, control)
}

/// Makes a change of the running switch, and with `--write` in its configuration file too.
fn change(
    request: &ControlRequest,
    apply: impl Fn(&str, u64) -> Result<String, String>,
    target: &PortTarget,
    control: Option<&Path>,
) -> Done {
    let PortTarget { write: writes, json, config } = target;
    let mut client = connect(control, config.as_deref())?;
    // The file is prepared before the switch is changed, so that a file with errors changes nothing.
    let file = writes.then(|| edited(&mut client, apply)).transpose()?;
    let report: ReloadReport = client.ask(request)?;
    if let Some((path, text)) = file {
        write(&path, &text).map_err(|source| CommandError::NotWritten { path, source })?;
    }
    print_changes(&report, *json)
}

fn form(settings: &PortSettings, number: Option<u32>) -> PortForm {
    let PortSettings { name, driver, device, workers, outstanding_bytes, queue, no_queues, .. } = settings;
    PortForm {
        number,
        name: name.clone(),
        driver: driver.clone(),
        device: device.clone(),
        workers: workers.clone(),
        outstanding_bytes: *outstanding_bytes,
        receive_ring: settings.receive_ring,
        no_vlans: settings.no_vlans,
        vlan_mode: settings.vlan_mode.clone(),
        tag: settings.tag,
        trunks: settings.trunks.clone(),
        storm: settings.storm.clone().or_else(|| settings.no_storm.then(StormForm::default)),
        mac_limit: settings.mac_limit,
        queues: (*no_queues || !queue.is_empty()).then(|| queue.clone()),
    }
}

fn mirror_form(name: &str, settings: &MirrorSettings) -> MirrorForm {
    let with_both = |ports: &[String]| ports.iter().chain(&settings.both).cloned().collect();
    // The switch may have another working directory.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    MirrorForm {
        name: name.to_owned(),
        ingress: with_both(&settings.ingress),
        egress: with_both(&settings.egress),
        vlans: settings.vlan.clone(),
        output_port: settings.to_port.clone(),
        other_traffic: settings.other_traffic.then_some(true),
        file: settings.to_file.as_ref().map(|path| absolute(path).display().to_string()),
        snap_bytes: settings.snap_bytes,
        max_bytes: settings.max_bytes,
        max_packets: settings.max_packets,
    }
}

/// Returns the path of the switch's configuration, and its text with a change.
fn edited(
    client: &mut Client,
    apply: impl Fn(&str, u64) -> Result<String, String>,
) -> Result<(PathBuf, String), CommandError> {
    let ConfigurationFile { path, datapath } = client.ask(&ControlRequest::Configuration)?;
    let path = PathBuf::from(path);
    let text = apply(&Config::read(&path)?, datapath);
    let text = text.map_err(|reason| CommandError::Edit { path: path.clone(), reason })?;
    Config::parse_file(&path, &text)?;
    Ok((path, text))
}

fn print_changes(report: &ReloadReport, json: bool) -> Done {
    let mut out = stdout();
    if json {
        print::json(&mut out, report)?;
    } else if report.changes.is_empty() {
        writeln!(out, "nothing changed")?;
    }
    for change in report.changes.iter().filter(|_| !json) {
        writeln!(out, "{change}")?;
    }
    Ok(out.flush()?)
}
