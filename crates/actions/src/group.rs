// SPDX-License-Identifier: Apache-2.0
//! Compiled groups: the actions of each bucket.

use crate::action_set::ActionSet;
use crate::program::ProgramStep;
use flow::group::{Bucket, Group};

/// A compiled group.
#[derive(Debug)]
pub struct CompiledGroup {
    group: Group,
    /// Steps of each bucket, in the order of execution.
    steps: Vec<Box<[ProgramStep]>>,
}

impl CompiledGroup {
    /// Compiles a group.
    ///
    /// # Errors
    /// Returns the index of the first bucket with more actions than an action set can hold.
    pub fn compile(group: &Group) -> Result<Self, usize> {
        let compile = |(number, bucket): (usize, &Bucket)| {
            let steps: Vec<ProgramStep> = bucket.actions.iter().map(ProgramStep::compile).collect();
            let mut set = ActionSet::default();
            set.write(&steps).map_err(|_| number)?;
            Ok(set.ordered().into_iter().collect())
        };
        let steps = group.buckets.iter().enumerate().map(compile).collect::<Result<_, usize>>()?;
        Ok(Self { group: group.clone(), steps })
    }

    /// Returns the group.
    #[must_use]
    #[inline]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the steps of a bucket, in the order of execution.
    #[must_use]
    #[inline]
    pub fn steps(&self, bucket: usize) -> &[ProgramStep] {
        &self.steps[bucket]
    }
}
