// SPDX-License-Identifier: Apache-2.0
//! One worker's forwarding.

pub mod event;

pub use event::{Event, Learn, PacketIn};
