// SPDX-License-Identifier: Apache-2.0
//! TLS connections by rustls, in which both sides must present a certificate.
//!
//! Begin with [`Tls`], which reads the files, then read [`TlsStream`].

mod files;
mod reason;
mod stream;
mod verifier;

pub use files::Tls;
pub use stream::TlsStream;
