// SPDX-License-Identifier: Apache-2.0
//! All messages of POF, with their encoding and decoding.

pub mod packet;
pub mod port;
pub mod setup;
