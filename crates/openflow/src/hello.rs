// SPDX-License-Identifier: Apache-2.0
//! HELLO (section 7.5.1). It has a version in its header, and an optional bitmap of versions.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use crate::header::VERSION;

/// Type of the element with the bitmap of versions (OFPHET_VERSIONBITMAP).
const VERSION_BITMAP: u16 = 1;

/// Versions that the sender supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hello {
    /// Highest supported version, from the header.
    pub version: u8,
    /// Bitmap of supported versions: bit `n` is set if version `n` (0 to 31) is supported. If `None`, all
    /// versions up to `version` may be supported.
    pub bitmap: Option<u32>,
}

impl Hello {
    /// Returns a HELLO that offers OpenFlow 1.3 only.
    #[must_use]
    pub fn supported() -> Self {
        Self { version: VERSION, bitmap: Some(1 << VERSION) }
    }

    /// Returns whether OpenFlow 1.3 can be negotiated with a peer that sends this HELLO.
    #[must_use]
    pub fn accepts_ours(&self) -> bool {
        match self.bitmap {
            Some(bitmap) => bitmap & (1 << VERSION) != 0,
            None => self.version >= VERSION,
        }
    }

    pub(crate) fn decode(version: u8, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut bitmap = None;
        while !r.is_empty() {
            let (kind, length) = (r.u16()?, usize::from(r.u16()?));
            let Some(content) = length.checked_sub(4) else {
                return error::BAD_LEN
                    .says(format!("a HELLO element has {length} bytes; its header alone has 4"));
            };
            let mut element = r.part(content, "a HELLO element", error::BAD_LEN)?;
            if kind == VERSION_BITMAP {
                bitmap = Some(element.u32()?);
            }
            // The padding of the last element may be missing.
            r.skip((length.next_multiple_of(8) - length).min(r.remaining()))?;
        }
        Ok(Self { version, bitmap })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        if let Some(bitmap) = self.bitmap {
            out.put_u16(VERSION_BITMAP);
            out.put_u16(8);
            out.put_u32(bitmap);
        }
    }
}
