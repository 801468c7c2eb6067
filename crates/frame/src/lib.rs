// SPDX-License-Identifier: Apache-2.0
//! Packet buffers, pools and their metadata. A frame has one owner; freed frames go home to their pool.

mod frame;
mod memory;
mod meta;
mod pool;
pub mod prefetch;

pub use frame::{Frame, HEADROOM_BYTES, Label, TAILROOM_BYTES};
pub use memory::{Lender, Loan, Memory};
pub use meta::{Gso, GsoKind, Lane, Meta, PartialChecksum};
pub use pool::Pool;
