// SPDX-License-Identifier: Apache-2.0
//! Commands that change the configuration of a running switch.

use crate::arguments::{PortCommand, PortSettings, PortTarget, Reload};
use crate::commands::{connect, stdout};
use crate::error::CommandError;
use crate::print;
use config::Config;
use config::edit::{PortEdit, PortForm, write};
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
    let PortTarget { write: writes, json, config } = target;
    let mut client = connect(control, config.as_deref())?;
    // The file is prepared before the switch is changed, so that a file with errors changes nothing.
    let file = writes.then(|| edited(&mut client, &edit)).transpose()?;
    let report: ReloadReport = client.ask(&ControlRequest::Port { edit })?;
    if let Some((path, text)) = file {
        write(&path, &text).map_err(|source| CommandError::NotWritten { path, source })?;
    }
    print_changes(&report, *json)
}

fn form(settings: &PortSettings, number: Option<u32>) -> PortForm {
    let PortSettings { name, driver, device, workers, outstanding_bytes, queue, no_queues } = settings;
    PortForm {
        number,
        name: name.clone(),
        driver: driver.clone(),
        device: device.clone(),
        workers: workers.clone(),
        outstanding_bytes: *outstanding_bytes,
        queues: (*no_queues || !queue.is_empty()).then(|| queue.clone()),
    }
}

/// Returns the path of the switch's configuration, and its text with a change of a port.
fn edited(client: &mut Client, edit: &PortEdit) -> Result<(PathBuf, String), CommandError> {
    let ConfigurationFile { path, datapath } = client.ask(&ControlRequest::Configuration)?;
    let path = PathBuf::from(path);
    let text = edit.apply(&Config::read(&path)?, datapath);
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
