// SPDX-License-Identifier: Apache-2.0
//! Non-blocking TLS connection over TCP.

use super::reason::reason;
use rustls::Connection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum number of TLS reads of one [`TlsStream::read`], so that a peer that sends only records without
/// data cannot occupy the thread.
const READS: usize = 16;

/// A non-blocking TLS connection. Data written before the handshake ends is sent after it.
pub struct TlsStream {
    tcp: TcpStream,
    session: Connection,
    /// First byte that the peer has sent.
    first: Option<u8>,
    /// Number of decrypted bytes that wait to be read.
    decrypted: usize,
    /// Why TLS has failed.
    failed: Option<String>,
}

/// Reads from a TCP connection, and records the first byte.
struct Noting<'a> {
    tcp: &'a mut TcpStream,
    first: &'a mut Option<u8>,
}

impl Read for Noting<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.tcp.read(bytes)?;
        if let Some(first) = bytes.first().filter(|_| count > 0) {
            self.first.get_or_insert(*first);
        }
        Ok(count)
    }
}

impl TlsStream {
    /// Begins TLS on a TCP connection. Makes it non-blocking and disables Nagle's algorithm.
    pub fn new(tcp: TcpStream, session: Connection) -> io::Result<Self> {
        tcp.set_nonblocking(true)?;
        tcp.set_nodelay(true)?;
        Ok(Self { tcp, session, first: None, decrypted: 0, failed: None })
    }

    /// Returns whether there is encrypted output that the socket has not accepted yet.
    pub fn wants_write(&self) -> bool {
        self.failed.is_none() && self.session.wants_write()
    }

    /// Returns whether decrypted data can be read. Polling the descriptor does not report it.
    pub fn has_data(&self) -> bool {
        self.decrypted > 0
    }

    /// Ends the output. The alert is sent as far as the socket accepts it.
    pub fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Read {
            self.session.send_close_notify();
            self.send()?;
        }
        self.tcp.shutdown(how)
    }

    /// Sends encrypted output as far as the socket accepts it.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.tcp) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads decrypted data, if there is any.
    fn take(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.session.reader().read(bytes) {
            Ok(count) => {
                self.decrypted = self.decrypted.saturating_sub(count);
                Ok(count)
            }
            // Many peers end the connection without the alert of TLS. Messages have a length, so that a cut
            // is noticed.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Decrypts what was received. If that fails, the peer gets an alert.
    fn decrypt(&mut self) -> io::Result<()> {
        match self.session.process_new_packets() {
            Ok(state) => self.decrypted = state.plaintext_bytes_to_read(),
            Err(error) => {
                let reason = reason(&error, self.first);
                // The connection has failed, whether the alert can be sent or not.
                let _ = self.send();
                self.failed = Some(reason.clone());
                return Err(io::Error::new(ErrorKind::InvalidData, reason));
            }
        }
        // The handshake may have made data ready to send.
        self.send()
    }
}

impl Read for TlsStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let Some(reason) = &self.failed {
            return Err(io::Error::new(ErrorKind::InvalidData, reason.clone()));
        }
        for _ in 0..READS {
            match self.take(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            let received =
                self.session.read_tls(&mut Noting { tcp: &mut self.tcp, first: &mut self.first })?;
            let was_handshaking = self.session.is_handshaking();
            self.decrypt()?;
            // Whoever sends nothing, such as a health check, needs no reason in the log.
            if received == 0 && was_handshaking && self.first.is_some() {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the peer ended the connection during the TLS handshake",
                ));
            }
        }
        // More may have arrived, so the caller must not wait for the descriptor.
        Err(ErrorKind::Interrupted.into())
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        let count = self.session.writer().write(bytes)?;
        self.send()?;
        if count == 0 && !bytes.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

impl std::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsStream").field("tcp", &self.tcp).finish_non_exhaustive()
    }
}
