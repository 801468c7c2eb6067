// SPDX-License-Identifier: Apache-2.0
//! Blocking client of the control socket.

use super::protocol::{Answer, ControlRequest};
use crate::access;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// Error of a request to the switch.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No switch answers on the control socket at this path.
    #[error(
        "{}: no switch answers on this control socket ({source}); start one with `shunt run -c FILE`, or name its \
         socket with --control PATH", path.display()
    )]
    NoSwitch {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The user may not connect to the control socket.
    #[error("{}: you may not connect to this control socket; {advice}", path.display())]
    NoPermission {
        /// Path of the socket.
        path: PathBuf,
        /// What the user can do.
        advice: String,
    },
    /// The connection failed after it was established.
    #[error("the connection to the switch was lost: {0}")]
    Broken(io::Error),
    /// The switch refused the request with this message.
    #[error("{0}")]
    Refused(String),
    /// The caller stopped before the answer ended.
    #[error("the rest of the answer was not read")]
    Stopped,
    /// The answer does not have the expected form.
    #[error("the switch's answer is not understood: {0}; use the same version of shunt on both sides")]
    Unknown(String),
}

/// A client's connection to a daemon.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
    last_id: u64,
}

impl Client {
    /// Connects to the daemon whose control socket is at `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if no daemon answers there, or if the socket belongs to another user.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => {
                ClientError::NoPermission { path: path.into(), advice: access::advice(path) }
            }
            _ => ClientError::NoSwitch { path: path.into(), source },
        })?;
        Ok(Self { reader: BufReader::new(stream), last_id: 0 })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the daemon refuses the request or the connection breaks.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &ControlRequest) -> Result<T, ClientError> {
        self.ask_parts(request, |_: Value| Ok(()))
    }

    /// Sends a request and passes each part of the answer to `take`. Returns the value of the answer's last
    /// line.
    ///
    /// # Errors
    ///
    /// Returns the error of `take`, or an error if the daemon refuses the request or the connection breaks.
    pub fn ask_parts<P: DeserializeOwned, T: DeserializeOwned>(
        &mut self,
        request: &ControlRequest,
        take: impl FnMut(P) -> Result<(), ClientError>,
    ) -> Result<T, ClientError> {
        let id = self.next_id();
        self.send(id, request)?;
        self.answer(id, take)
    }

    /// Sends a flow file and waits until its flows are active. `pieces` must call the function that it gets
    /// with each piece of the file's text.
    ///
    /// # Errors
    ///
    /// Returns the error of `pieces`, or an error if the daemon refuses the file or the connection breaks.
    pub fn load<T: DeserializeOwned>(
        &mut self,
        pieces: impl FnOnce(&mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()>,
    ) -> Result<T, ClientError> {
        let id = self.next_id();
        let mut failed = None;
        let read = pieces(&mut |text| {
            let sent = self.send(id, &ControlRequest::Load { text: text.to_owned(), last: false });
            sent.map_err(|error| {
                failed = Some(error);
                io::Error::from(ErrorKind::BrokenPipe)
            })
        });
        match (failed, read) {
            // The daemon may have sent a refusal, which explains more than the connection's error, before it
            // closed the connection.
            (Some(error), _) => {
                return self.answer(id, |_: Value| Ok(())).map_err(|refusal| match refusal {
                    ClientError::Refused(_) => refusal,
                    _ => error,
                });
            }
            (None, Err(error)) => return Err(ClientError::Refused(error.to_string())),
            (None, Ok(())) => {}
        }
        self.send(id, &ControlRequest::Load { text: String::new(), last: true })?;
        self.answer(id, |_: Value| Ok(()))
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn send(&mut self, id: u64, request: &ControlRequest) -> Result<(), ClientError> {
        #[derive(serde::Serialize)]
        struct Line<'a> {
            id: u64,
            #[serde(flatten)]
            request: &'a ControlRequest,
        }
        let mut line =
            serde_json::to_vec(&Line { id, request }).map_err(|e| ClientError::Broken(e.into()))?;
        line.push(b'\n');
        self.reader.get_mut().write_all(&line).map_err(ClientError::Broken)
    }

    fn answer<P: DeserializeOwned, T: DeserializeOwned>(
        &mut self,
        id: u64,
        mut take: impl FnMut(P) -> Result<(), ClientError>,
    ) -> Result<T, ClientError> {
        let unknown = |error: serde_json::Error| ClientError::Unknown(error.to_string());
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line).map_err(ClientError::Broken)? == 0 {
                return Err(ClientError::Broken(ErrorKind::UnexpectedEof.into()));
            }
            let answer: Answer = serde_json::from_str(&line).map_err(unknown)?;
            if let Some(sentence) = answer.error {
                return Err(ClientError::Refused(sentence));
            }
            if answer.id != Some(id) {
                continue;
            }
            if let Some(part) = answer.part {
                take(serde_json::from_value(part).map_err(unknown)?)?;
            } else if let Some(done) = answer.done {
                return serde_json::from_value(done).map_err(unknown);
            }
        }
    }
}
