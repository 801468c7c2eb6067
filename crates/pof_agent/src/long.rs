// SPDX-License-Identifier: Apache-2.0
//! Ends requests whose changes were applied, by this thread or by another.

use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::work::Then;
use crate::{group_mod, reset};
use model::{Changed, ModelError};

/// Ends a request with the result of its changes.
pub fn end(
    then: Then,
    result: Result<Changed, (usize, ModelError)>,
    shared: &mut Shared,
) -> Result<(), PofRefusal> {
    result.map_err(|(_, error)| error)?;
    match then {
        Then::Nothing => {}
        Then::Reset => reset::forget_all(shared),
        Then::EndGroup(group, counts) => group_mod::end(group, counts, shared),
    }
    Ok(())
}
