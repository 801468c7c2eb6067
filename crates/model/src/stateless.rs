// SPDX-License-Identifier: Apache-2.0
//! Configuration of the stateless forwarder in the model: one configuration, changed in parts.

use crate::error::ModelError;
use crate::model::Model;
use crate::stage::Staged;
use dataplane::DataPlane;
use flow::Nanos;
use flow::stateless::{StatelessChange, StatelessConfig};
use std::sync::Arc;

impl<D: DataPlane> Model<D> {
    /// Returns the configuration of the stateless forwarder, if it is configured.
    #[must_use]
    pub fn stateless(&self) -> Option<&Arc<StatelessConfig>> {
        self.stateless.as_ref()
    }

    /// Replaces the whole configuration of the stateless forwarder, or removes it.
    ///
    /// # Errors
    /// Returns an error if the configuration is invalid. Nothing is changed then.
    pub fn set_stateless(
        &mut self,
        now: Nanos,
        stateless_config: Option<Arc<StatelessConfig>>,
    ) -> Result<(), ModelError> {
        if let Some(stateless_config) = &stateless_config {
            stateless_config.check()?;
        }
        let mut staged = Staged::default();
        self.keep_stateless(&mut staged);
        self.stateless = stateless_config;
        self.commit(now, staged);
        Ok(())
    }

    /// Changes some sections. The first change of a request copies the configuration; each further one costs
    /// only its own size.
    pub(crate) fn stage_stateless(
        &mut self,
        change: StatelessChange,
        staged: &mut Staged,
    ) -> Result<(), ModelError> {
        let StatelessChange::Set(sections) = change else {
            self.keep_stateless(staged);
            self.stateless = None;
            return Ok(());
        };
        // Whether a section is valid does not depend on other sections.
        let mut alone = StatelessConfig::default();
        sections.iter().for_each(|section| alone.set(section.clone()));
        alone.check()?;
        self.keep_stateless(staged);
        let stateless_config = Arc::make_mut(self.stateless.get_or_insert_default());
        sections.into_iter().for_each(|section| stateless_config.set(section));
        Ok(())
    }

    fn keep_stateless(&self, staged: &mut Staged) {
        staged.stateless_config.get_or_insert_with(|| self.stateless.clone());
    }
}
