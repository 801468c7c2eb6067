// SPDX-License-Identifier: Apache-2.0
//! Textual description of the switch (section 7.3.5.1).

use crate::bytes::{Put, Reader};
use crate::error::DecodeError;

const LONG_BYTES: usize = 256;
const SERIAL_BYTES: usize = 32;

/// Description of the switch. Texts are truncated to 255 bytes, and the serial number to 31 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Description {
    /// Manufacturer.
    pub manufacturer: String,
    /// Hardware.
    pub hardware: String,
    /// Software version.
    pub software: String,
    /// Serial number.
    pub serial_number: String,
    /// Human-readable name of the datapath.
    pub datapath: String,
}

impl Description {
    pub(crate) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            manufacturer: r.text::<LONG_BYTES>()?,
            hardware: r.text::<LONG_BYTES>()?,
            software: r.text::<LONG_BYTES>()?,
            serial_number: r.text::<SERIAL_BYTES>()?,
            datapath: r.text::<LONG_BYTES>()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_text(&self.manufacturer, LONG_BYTES);
        out.put_text(&self.hardware, LONG_BYTES);
        out.put_text(&self.software, LONG_BYTES);
        out.put_text(&self.serial_number, SERIAL_BYTES);
        out.put_text(&self.datapath, LONG_BYTES);
    }
}
