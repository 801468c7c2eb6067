// SPDX-License-Identifier: Apache-2.0
//! Ownership of the model. The control thread owns the model, and lends it to another thread for a
//! long-running change (docs/adr/0010).

use super::DaemonError;
use super::thread::ControlWake;
use crate::channels::{OffloadedDone, OffloadedWork};
use crate::plane::Plane;
use crate::sandbox::{self, ThreadKind};
use model::Model;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

type OwnedModel = Box<Model<Plane>>;

/// Handle of the model. While the model is lent, a thread has it.
pub struct ModelHandle {
    /// The model, or `None` while it is lent.
    model: Option<OwnedModel>,
    /// Where the model returns, while it is lent.
    result: Option<Receiver<(OwnedModel, OffloadedDone)>>,
    control: Arc<ControlWake>,
}

impl ModelHandle {
    pub fn new(model: Model<Plane>, control: Arc<ControlWake>) -> Self {
        Self { model: Some(Box::new(model)), result: None, control }
    }

    /// Returns the model, or `None` while it is lent.
    pub fn here(&mut self) -> Option<&mut Model<Plane>> {
        self.model.as_deref_mut()
    }

    /// Returns whether the model is lent.
    pub fn is_lent(&self) -> bool {
        self.model.is_none()
    }

    /// Lends the model to a new thread, which ends after the long-running change. If the system refuses a
    /// thread, the change is done before the function returns.
    pub fn lend(&mut self, work: OffloadedWork) {
        let Some(model) = self.model.take() else { return };
        let (work_in, work_out) = channel::<(OwnedModel, OffloadedWork)>();
        let (result_in, result) = channel();
        self.result = Some(result);
        let control = Arc::clone(&self.control);
        let report = result_in.clone();
        let run = move || {
            // A change does the same here as on the control thread: it may start the thread that compiles
            // tables, or open a device again for a worker that sleeps.
            sandbox::enter(ThreadKind::Control);
            let Ok((mut model, work)) = work_out.recv() else { return };
            let done = work.run(&mut model);
            if report.send((model, done)).is_ok() {
                control.wake.wake();
            }
        };
        let unsent = match thread::Builder::new().name("long-work".into()).spawn(run) {
            Ok(_) => work_in.send((model, work)).err().map(|unsent| unsent.0),
            Err(_) => Some((model, work)),
        };
        if let Some((mut model, work)) = unsent {
            let done = work.run(&mut model);
            if result_in.send((model, done)).is_ok() {
                self.control.wake.wake();
            }
        }
    }

    /// Takes the model back if the change is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread has ended without returning the model.
    pub fn take_back(&mut self) -> Result<Option<OffloadedDone>, DaemonError> {
        let Some(result) = &self.result else { return Ok(None) };
        match result.try_recv() {
            Ok((model, done)) => {
                (self.model, self.result) = (Some(model), None);
                Ok(Some(done))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(DaemonError::LongWorkEnded),
        }
    }
}
