// SPDX-License-Identifier: Apache-2.0
//! The stateless lane as the model has it: one configuration, changed in parts.

use crate::data_plane::DataPlane;
use crate::error::ModelError;
use crate::model::Model;
use crate::stage::Staged;
use flow::Nanos;
use flow::stateless::{LaneChange, Stateless};
use std::sync::Arc;

impl<D: DataPlane> Model<D> {
    /// The stateless lane, if there is one.
    #[must_use]
    pub fn stateless(&self) -> Option<&Arc<Stateless>> {
        self.stateless.as_ref()
    }

    /// Sets the whole lane, or that there is none.
    ///
    /// # Errors
    /// What cannot be; nothing is changed then.
    pub fn set_stateless(&mut self, now: Nanos, lane: Option<Arc<Stateless>>) -> Result<(), ModelError> {
        if let Some(lane) = &lane {
            lane.check()?;
        }
        let mut staged = Staged::default();
        self.keep_lane(&mut staged);
        self.stateless = lane;
        self.commit(now, staged);
        Ok(())
    }

    /// Takes as long as the change is large, but for the first one of a request, which copies the lane.
    pub(crate) fn stage_stateless(
        &mut self,
        change: LaneChange,
        staged: &mut Staged,
    ) -> Result<(), ModelError> {
        let LaneChange::Set(sections) = change else {
            self.keep_lane(staged);
            self.stateless = None;
            return Ok(());
        };
        // What a section may be does not depend on others.
        let mut alone = Stateless::default();
        sections.iter().for_each(|section| alone.set(section.clone()));
        alone.check()?;
        self.keep_lane(staged);
        let lane = Arc::make_mut(self.stateless.get_or_insert_default());
        sections.into_iter().for_each(|section| lane.set(section));
        Ok(())
    }

    fn keep_lane(&self, staged: &mut Staged) {
        staged.lane.get_or_insert_with(|| self.stateless.clone());
    }
}
