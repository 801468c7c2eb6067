// SPDX-License-Identifier: Apache-2.0
//! Codec of POF (protocol-oblivious forwarding) messages, and state machine of a connection, both without
//! I/O. The inputs are bytes and the time; the outputs are bytes and events.
//!
//! The crate must not open sockets, read clocks or keep tables. Begin with [`PofMessage`] for the codec and
//! with [`session::PofSession`] for a connection. [`docs/pof.md`] has the byte tables of all messages.
//!
//! - [`decode`] and [`encode`] convert a [`PofMessage`] from and to its bytes, on either side of a channel.
//!   The error for a refused message contains POF's error code, the message, the offset and the reason.
//! - [`PofDialect`] selects the sizes and offsets. They are data: each structure has one table with a column
//!   per dialect.
//! - The frames of a stream, the header and most error codes are those of the crate `openflow`.
//!
//! [`docs/pof.md`]: ../../../docs/pof.md

pub mod action;
mod dialect;
pub mod error;
pub mod instruction;
mod layout;
pub mod message;
pub mod session;
#[cfg(test)]
mod tables;
pub mod value;

pub use dialect::{PofDialect, UnknownDialect};
pub use error::{PofDecodeError, PofEncodeError, PofErrorCode};
pub use message::{PofMessage, decode, encode};
