// SPDX-License-Identifier: Apache-2.0
//! The POF agent: the channels of POF controllers over one [`model::Model`], without I/O.
//!
//! The crate must not open sockets or read clocks, and it forwards no packets. Its driver passes received
//! bytes to a `PofChannel`, calls `PofAgent::step` and writes the channel's output. `PofAgent::report`
//! forwards a message of the model to the controllers. Each call does a bounded amount of work, and memory is
//! bounded.
//!
//! Begin with `PofAgent`, then `channel.rs` (the state of a connection), `request.rs` (the function for
//! each message) and [`translate`] (POF in terms of the flow model).

mod layout;
mod refusal;
mod slot;
pub mod translate;

pub use layout::TableLayout;
pub use refusal::PofRefusal;
