// SPDX-License-Identifier: Apache-2.0
//! The HTTP server: one thread, one response per connection, and a limit for everything that a client can
//! use up.
//!
//! A client that sends or reads too slowly is disconnected after [`REQUEST_LIMIT`]. If [`CONNECTIONS`] are
//! open, a new client replaces the one that has waited longest, and for at least [`GRACE`], without sending a
//! whole request. Idle clients thus cannot lock out others.

use super::exposition::CONTENT_TYPE;
use super::request::{HEAD_BYTES, Parsed, head, parse};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of open connections.
pub const CONNECTIONS: usize = 256;
/// Longest time from the first byte of a connection to the last.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Time for which metrics are used again for further requests, so that many requests cost the switch no more
/// than a few.
const FRESH: Duration = Duration::from_millis(200);
/// Time for which a client may still read a response that was written, before its connection is closed.
const LINGER: Duration = Duration::from_secs(1);
/// Time for which a client keeps its connection without a request, however many others wait. A client on a
/// busy machine needs some time from the connection to its request.
const GRACE: Duration = Duration::from_millis(100);
/// Pause in accepting after the system refused a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of connections accepted at a time.
const ACCEPTS: usize = 64;

/// The server's thread. Dropping it ends the thread and closes all connections.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    /// The listening socket, which the thread uses, too.
    socket: TcpListener,
    end: UnixStream,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Returns the listening socket, for another process that continues to listen.
    ///
    /// # Errors
    ///
    /// Returns an error if the process has no descriptor left.
    pub fn listener(&self) -> io::Result<TcpListener> {
        self.socket.try_clone()
    }

    /// Listens on `address` and starts the thread, which calls `begin` first. `render` returns the metrics;
    /// it is called on the thread, and may block for a moment.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses the address or the thread.
    pub fn start(
        address: SocketAddr,
        begin: impl FnOnce() + Send + 'static,
        render: impl FnMut() -> String + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_on(TcpListener::bind(address)?, begin, render)
    }

    /// Starts the server like [`Server::start`] on a socket that listens already.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses the thread.
    pub fn start_on(
        listener: TcpListener,
        begin: impl FnOnce() + Send + 'static,
        render: impl FnMut() -> String + Send + 'static,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let socket = listener.try_clone()?;
        let (end, stop) = UnixStream::pair()?;
        let mut running = Running {
            listener,
            connections: Vec::new(),
            metrics: Metrics { render, last: None },
            accept_after: Instant::now(),
        };
        let run = move || {
            begin();
            while running.step(&stop) {}
        };
        let thread = Some(thread::Builder::new().name("metrics".into()).spawn(run)?);
        Ok(Self { address, socket, end, thread })
    }

    /// Returns the bound address, with the port that the system chose in place of port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If this fails, the thread has ended already.
        let _ = self.end.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The metrics as of the last request.
struct Metrics<R> {
    render: R,
    last: Option<(Instant, Arc<str>)>,
}

impl<R: FnMut() -> String> Metrics<R> {
    fn get(&mut self) -> Arc<str> {
        match &self.last {
            Some((at, text)) if at.elapsed() < FRESH => Arc::clone(text),
            _ => {
                let text: Arc<str> = (self.render)().into();
                // The time after rendering: a slow source must not be asked again at once.
                self.last = Some((Instant::now(), Arc::clone(&text)));
                text
            }
        }
    }
}

enum State {
    /// The head of the request is being read.
    Request(Vec<u8>),
    /// The response is being written: its parts, and the number of bytes written.
    Response { head: String, body: Arc<str>, sent: usize },
    /// The response is written. Input is discarded, because closing a socket with unread input would drop
    /// output that the client has not read.
    Ending,
}

struct Connection {
    stream: TcpStream,
    state: State,
    /// Time at which the connection is closed.
    until: Instant,
}

struct Running<R> {
    listener: TcpListener,
    /// Connections in the order in which they were accepted.
    connections: Vec<Connection>,
    metrics: Metrics<R>,
    accept_after: Instant,
}

impl<R: FnMut() -> String> Running<R> {
    /// Waits and does what is ready. Returns `false` if the server is stopped.
    fn step(&mut self, stop: &UnixStream) -> bool {
        let now = Instant::now();
        self.connections.retain(|connection| connection.until > now);
        let accepts = now >= self.accept_after && self.may_accept();
        let ends = self.connections.iter().map(|connection| connection.until).min();
        let pause = (now < self.accept_after).then_some(self.accept_after);
        let due = ends.into_iter().chain(pause).chain(self.next_replaceable()).min();
        let answers = {
            let none = PollFlags::empty();
            let mut set = vec![PollFd::new(stop, PollFlags::IN)];
            set.push(PollFd::new(&self.listener, if accepts { PollFlags::IN } else { none }));
            set.extend(
                self.connections.iter().map(|it| PollFd::from_borrowed_fd(it.stream.as_fd(), it.waits_for())),
            );
            let limit = due.map(|due| due.saturating_duration_since(now) + Duration::from_millis(1));
            let limit = limit
                .map(|limit| Timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos().into() });
            match poll(&mut set, limit.as_ref()) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return true,
                // Without poll, the server cannot continue.
                Err(_) => return false,
            }
            set.iter().map(PollFd::revents).collect::<Vec<_>>()
        };
        let mut answers = answers.into_iter();
        if answers.next().is_some_and(|answer| !answer.is_empty()) {
            return false;
        }
        let is_called = answers.next().is_some_and(|answer| !answer.is_empty());
        let metrics = &mut self.metrics;
        self.connections.retain_mut(|connection| {
            let is_ready = answers.next().is_some_and(|answer| !answer.is_empty());
            !is_ready || connection.step(metrics)
        });
        if accepts && is_called {
            self.accept();
        }
        true
    }

    /// Returns whether there is space for a client, or a client that may be replaced.
    fn may_accept(&self) -> bool {
        self.connections.len() < CONNECTIONS || self.replaceable().is_some()
    }

    /// Returns the client that a new one may replace: the first that has not sent its request in time.
    fn replaceable(&self) -> Option<usize> {
        let now = Instant::now();
        let is_late = |connection: &Connection| connection.grace_end().is_some_and(|end| end <= now);
        self.connections.iter().position(is_late)
    }

    /// Returns the time at which a client may be replaced, if a new one must wait for it.
    fn next_replaceable(&self) -> Option<Instant> {
        let is_full = self.connections.len() >= CONNECTIONS;
        is_full.then(|| self.connections.iter().find_map(Connection::grace_end))?
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            if !self.may_accept() {
                return;
            }
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) =>
                {
                    continue;
                }
                Err(_) => {
                    self.accept_after = Instant::now() + ACCEPT_PAUSE;
                    return;
                }
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if let Some(oldest) = self.replaceable().filter(|_| self.connections.len() >= CONNECTIONS) {
                self.connections.remove(oldest);
            }
            let (state, until) = (State::Request(Vec::new()), Instant::now() + REQUEST_LIMIT);
            let mut connection = Connection { stream, state, until };
            // The request has often arrived with the connection. Answering it now prevents that other clients
            // replace this one.
            if connection.step(&mut self.metrics) {
                self.connections.push(connection);
            }
        }
    }
}

impl Connection {
    /// Returns the time from which another client may replace this one, if its request is not complete.
    fn grace_end(&self) -> Option<Instant> {
        matches!(self.state, State::Request(_)).then(|| self.until - REQUEST_LIMIT + GRACE)
    }

    fn waits_for(&self) -> PollFlags {
        match self.state {
            State::Response { .. } => PollFlags::OUT,
            State::Request(_) | State::Ending => PollFlags::IN,
        }
    }

    /// Reads or writes what is possible. Returns `false` if the connection is over.
    fn step(&mut self, metrics: &mut Metrics<impl FnMut() -> String>) -> bool {
        if let State::Request(bytes) = &mut self.state {
            let Ok(parsed) = read_head(&mut self.stream, bytes) else { return false };
            self.state = match parsed {
                Parsed::Incomplete => return true,
                Parsed::Metrics { with_body } => response(metrics.get(), with_body),
                Parsed::Refused(status, sentence) => refusal(status, sentence),
            };
        }
        if let State::Response { head, body, sent } = &mut self.state {
            match write(&mut self.stream, [head.as_bytes(), body.as_bytes()], sent) {
                Ok(false) => return true,
                Ok(true) => {}
                Err(_) => return false,
            }
            if self.stream.shutdown(Shutdown::Write).is_err() {
                return false;
            }
            self.state = State::Ending;
            self.until = self.until.min(Instant::now() + LINGER);
        }
        discard(&mut self.stream)
    }
}

fn response(body: Arc<str>, with_body: bool) -> State {
    let head = head("200 OK", CONTENT_TYPE, body.len());
    State::Response { head, body: if with_body { body } else { "".into() }, sent: 0 }
}

fn refusal(status: &str, sentence: &str) -> State {
    let body: Arc<str> = format!("{sentence}\n").into();
    State::Response { head: head(status, "text/plain; charset=utf-8", body.len()), body, sent: 0 }
}

/// Reads what has arrived of a request's head.
fn read_head(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Parsed> {
    let start = bytes.len();
    bytes.resize(HEAD_BYTES, 0);
    let got = stream.read(&mut bytes[start..]);
    bytes.truncate(start + *got.as_ref().unwrap_or(&0));
    match got {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(parse(bytes)),
        Err(error) if is_temporary(&error) => Ok(Parsed::Incomplete),
        Err(error) => Err(error),
    }
}

/// Writes two parts from the byte `sent` on. Returns whether both are written.
fn write(stream: &mut TcpStream, parts: [&[u8]; 2], sent: &mut usize) -> io::Result<bool> {
    let [first, second] = parts;
    while *sent < first.len() + second.len() {
        let rest = match first.get(*sent..).filter(|rest| !rest.is_empty()) {
            Some(rest) => rest,
            None => second.get(*sent - first.len()..).unwrap_or_default(),
        };
        match stream.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => *sent += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_temporary(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Discards input. Returns `false` if the client has ended the connection.
fn discard(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; HEAD_BYTES];
    match stream.read(&mut bytes) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => is_temporary(&error),
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
