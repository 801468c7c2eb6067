// SPDX-License-Identifier: Apache-2.0
//! Codec of OpenFlow 1.3 messages, and state machine of a connection, both without I/O. The inputs are bytes
//! and the time; the outputs are bytes and events.
//!
//! The crate must not open sockets, read clocks or keep tables: the agent in `model` interprets the messages.
//! Begin with [`Message`] for the codec and with [`Session`] for a connection.
//!
//! - [`decode`] and [`encode`] convert a [`Message`] from and to its bytes. The error for a refused message
//!   contains OpenFlow's error code.
//! - [`multipart::parts::Parts`] writes long replies in parts.
//! - [`Session`] is one connection of a switch. It negotiates the version, answers echoes, refuses
//!   undecodable messages, detects silent peers, and reports when to stop reading.
//! - [`MessageStream`] has the buffers and timers of a connection. POF uses it as well.
//! - [`experimenter`] has the numbers of Shunt's extensions of OpenFlow 1.3, for example slices and stateless
//!   forwarding.

mod action;
pub mod bundle;
mod bytes;
mod edit;
pub mod error;
pub mod experimenter;
pub mod features;
pub mod flow_mod;
pub mod group;
mod header;
mod hello;
mod instruction;
mod matching;
mod message;
pub mod meter;
pub mod multipart;
mod nicira;
mod oxm;
pub mod packet;
pub mod port;
pub mod queue;
pub mod role;
mod session;
pub mod stateless;
mod stream;
mod symmetric;

pub use error::{DecodeError, ErrorCode, TooLong};
pub use header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, VERSION};
pub use hello::Hello;
pub use matching::code_of as code_of_match_error;
pub use message::{Message, decode, encode};
pub use session::{CloseReason, MOVE_TO_POF, Request, RequestHead, Session, SessionEvent, Undecodable};
pub use stream::{KeepaliveStep, MessageStream, SessionConfig};
pub use symmetric::ErrorMessage;
