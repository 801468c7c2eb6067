// SPDX-License-Identifier: Apache-2.0
//! The data plane, together with the version of the last operation submitted to it.

use dataplane::DataPlane;
use flow::{Operation, RuleVersion};

/// A data plane, and the version of the last operation submitted to it.
#[derive(Debug)]
pub(crate) struct VersionedPlane<D: DataPlane> {
    plane: D,
    version: RuleVersion,
}

impl<D: DataPlane> VersionedPlane<D> {
    /// Wraps a data plane to which no operation has been submitted.
    pub fn new(plane: D) -> Self {
        Self { plane, version: RuleVersion(0) }
    }

    /// Returns the data plane for reading.
    pub fn get(&self) -> &D {
        &self.plane
    }

    /// Returns the data plane, for calls other than `submit`.
    pub fn get_mut(&mut self) -> &mut D {
        &mut self.plane
    }

    /// Submits an operation.
    pub fn submit(&mut self, operation: Operation) {
        self.version = self.plane.submit(operation);
    }

    /// Returns the version of the last operation, or 0 before the first one.
    pub fn version(&self) -> RuleVersion {
        self.version
    }

    /// Returns whether a version is active on all workers.
    pub fn is_applied(&mut self, version: RuleVersion) -> bool {
        version == RuleVersion(0) || self.plane.applied() >= version
    }
}
