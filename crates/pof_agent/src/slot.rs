// SPDX-License-Identifier: Apache-2.0
//! Slots of dialect 1.4.0.015. The switch is slot 0.

use crate::refusal::PofRefusal;
use pof::error;

/// Number that stands for all slots.
const ALL: u16 = 0xffff;

/// Checks the slot of a request.
///
/// # Errors
/// Returns a refusal for slots that do not exist.
pub fn check(slot: u16) -> Result<(), PofRefusal> {
    if matches!(slot, 0 | ALL) {
        return Ok(());
    }
    let problem = format!("slot {slot} does not exist; the switch is slot 0");
    Err(PofRefusal::new(error::BAD_PORT, problem))
}
