// SPDX-License-Identifier: Apache-2.0
//! OpenFlow 1.3 without I/O: bytes and the time go in, bytes and events come out.
//!
//! - [`decode`] and [`encode`] turn a [`Message`] from and into its bytes; a refusal names OpenFlow's error code.
//! - [`multipart::parts::Parts`] writes long replies part by part.
//! - [`Session`] is one connection of a switch: it agrees on the version, answers echoes, refuses what cannot be
//!   decoded, notices silence, and says when to stop reading.
//! - [`ours`] documents what this switch adds to OpenFlow 1.3: slices, stateless headers, the stateless lane.

mod action;
pub mod bundle;
mod bytes;
pub mod error;
pub mod features;
pub mod flow_mod;
pub mod group;
mod header;
mod hello;
mod instruction;
pub mod lane;
mod matching;
mod message;
pub mod meter;
pub mod multipart;
mod nicira;
pub mod ours;
mod oxm;
pub mod packet;
pub mod port;
pub mod queue;
pub mod role;
mod session;
mod symmetric;

pub use error::{DecodeError, ErrorCode, TooLong};
pub use header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, VERSION};
pub use hello::Hello;
pub use matching::code_of as code_of_match_error;
pub use message::{Message, decode, encode};
pub use session::{CloseReason, Head, Request, Session, SessionConfig, SessionEvent, Undecodable};
pub use symmetric::ErrorMessage;
