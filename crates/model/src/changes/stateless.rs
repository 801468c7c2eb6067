// SPDX-License-Identifier: Apache-2.0
//! Changes of the stateless forwarder's configuration, in parts or as a whole.

use super::transaction::Transaction;
use crate::error::ModelError;
use flow::stateless::{StatelessChange, StatelessConfig};
use std::sync::Arc;

/// Replaces the whole configuration, or removes it.
///
/// # Errors
/// Returns an error if the configuration is invalid. In that case nothing is changed.
pub(crate) fn replace(
    transaction: &mut Transaction<'_>,
    stateless_config: Option<Arc<StatelessConfig>>,
) -> Result<(), ModelError> {
    if let Some(stateless_config) = &stateless_config {
        stateless_config.check()?;
    }
    transaction.set_stateless(stateless_config);
    Ok(())
}

/// Changes some sections. Only the first change of a request copies the configuration.
pub(super) fn apply(transaction: &mut Transaction<'_>, change: StatelessChange) -> Result<(), ModelError> {
    let StatelessChange::Set(sections) = change else {
        transaction.set_stateless(None);
        return Ok(());
    };
    // Each section can be checked alone.
    let mut alone = StatelessConfig::default();
    sections.iter().for_each(|section| alone.set(section.clone()));
    alone.check()?;
    transaction.edit_stateless(|config| sections.into_iter().for_each(|section| config.set(section)));
    Ok(())
}
