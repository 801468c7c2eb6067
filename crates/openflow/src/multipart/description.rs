// SPDX-License-Identifier: Apache-2.0
//! The switch in words (7.3.5.1).

use crate::bytes::{Put, Reader};
use crate::error::DecodeError;

const LONG_BYTES: usize = 256;
const SERIAL_BYTES: usize = 32;

/// What the switch is. Texts are cut to 255 bytes, the serial number to 31.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Description {
    /// Who made it.
    pub manufacturer: String,
    /// The hardware.
    pub hardware: String,
    /// The software.
    pub software: String,
    /// The serial number.
    pub serial_number: String,
    /// The datapath, for humans.
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
