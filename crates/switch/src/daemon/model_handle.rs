// SPDX-License-Identifier: Apache-2.0
//! Ownership of the model. The control thread owns the model, and lends it to another thread for a
//! long-running change (docs/adr/0010).

use super::DaemonError;
use super::thread::ControlWake;
use crate::channels::{OffloadedDone, OffloadedWork};
use crate::plane::Plane;
use model::Model;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::{io, thread};

type OwnedModel = Box<Model<Plane>>;

/// Handle of the model and of the thread for long-running changes.
pub struct ModelHandle {
    /// The model, or `None` while it is lent.
    model: Option<OwnedModel>,
    tasks: Sender<(OwnedModel, OffloadedWork)>,
    results: Receiver<(OwnedModel, OffloadedDone)>,
}

impl ModelHandle {
    /// Starts the thread, which sleeps until it gets the model.
    pub fn new(model: Model<Plane>, control: Arc<ControlWake>) -> io::Result<Self> {
        let (tasks, tasks_out) = channel::<(OwnedModel, OffloadedWork)>();
        let (results_in, results) = channel();
        thread::Builder::new().name("long-work".into()).spawn(move || {
            for (mut model, work) in tasks_out {
                let done = work.run(&mut model);
                if results_in.send((model, done)).is_err() {
                    return;
                }
                control.wake.wake();
            }
        })?;
        Ok(Self { model: Some(Box::new(model)), tasks, results })
    }

    /// Returns the model, or `None` while it is lent.
    pub fn here(&mut self) -> Option<&mut Model<Plane>> {
        self.model.as_deref_mut()
    }

    /// Lends the model for a long-running change.
    pub fn lend(&mut self, work: OffloadedWork) -> Result<(), DaemonError> {
        match self.model.take() {
            Some(model) => self.tasks.send((model, work)).map_err(|_| DaemonError::LongWorkEnded),
            None => Ok(()),
        }
    }

    /// Takes the model back if the change is complete.
    pub fn take_back(&mut self) -> Result<Option<OffloadedDone>, DaemonError> {
        match self.results.try_recv() {
            Ok((model, done)) => {
                self.model = Some(model);
                Ok(Some(done))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(DaemonError::LongWorkEnded),
        }
    }
}
