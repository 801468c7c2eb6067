// SPDX-License-Identifier: Apache-2.0
//! The thread that reads the kernel's reports about the ports' interfaces and wakes the control thread.
//! Reading may block on a kernel lock, so neither the control thread nor a worker may read the reports.

use super::thread::ControlWake;
use crate::sandbox::{self, ThreadKind};
use port::links::{LinkWatch, WatchedLink};
use port::wait::Wake;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

/// Minimum time between two reports to the control thread. Changes in this time are merged into one report.
const REPORT_PERIOD: Duration = Duration::from_millis(1);

/// State that the thread shares with the control thread.
struct Shared {
    links: Mutex<Vec<WatchedLink>>,
    /// Names of interfaces that the thread has to watch from now on. `None` after it has taken them.
    names: Mutex<Option<Vec<String>>>,
    changed: AtomicBool,
    stop: AtomicBool,
    wake: Wake,
}

/// Handle of the thread. Dropping it ends the thread.
pub struct LinkThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    control: Arc<ControlWake>,
}

impl LinkThread {
    /// Watches the interfaces with these names in the calling thread's network namespace. If `names` is
    /// empty, no thread is started.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn start(names: Vec<String>, control: Arc<ControlWake>) -> io::Result<Self> {
        let mut shared = Shared {
            links: Mutex::default(),
            names: Mutex::default(),
            changed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: Wake::new()?,
        };
        if names.is_empty() {
            return Ok(Self { shared: Arc::new(shared), thread: None, control });
        }
        let watch = LinkWatch::new(names)?;
        shared.links = Mutex::new(watch.links().to_vec());
        let shared = Arc::new(shared);
        let (ours, waker) = (Arc::clone(&shared), Arc::clone(&control));
        let thread = thread::Builder::new().name("links".into()).spawn(move || {
            sandbox::enter(ThreadKind::Task);
            run(watch, &ours, &waker);
        })?;
        Ok(Self { shared, thread: Some(thread), control })
    }

    /// Watches the interfaces with these names from now on.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if there was no thread and it cannot be started.
    pub fn set_names(&mut self, names: Vec<String>) -> io::Result<()> {
        if self.thread.is_none() {
            *self = Self::start(names, Arc::clone(&self.control))?;
            return Ok(());
        }
        *self.shared.names.lock().unwrap_or_else(PoisonError::into_inner) = Some(names);
        self.shared.wake.wake();
        Ok(())
    }

    /// Returns whether a link changed since the last call.
    pub fn take_changed(&self) -> bool {
        self.shared.changed.swap(false, Ordering::AcqRel)
    }

    /// Returns the links as the thread last reported them.
    pub fn links(&self) -> Vec<WatchedLink> {
        self.shared.links.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for LinkThread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake.wake();
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread, which the panic hook has already logged.
            let _ = thread.join();
        }
    }
}

fn run(mut watch: LinkWatch, shared: &Shared, control: &ControlWake) {
    while !shared.stop.load(Ordering::Acquire) {
        let waited = watch.wait(shared.wake.as_fd());
        // Cleared before the names are taken, so that names that come later wake the thread again.
        shared.wake.clear();
        let names = shared.names.lock().unwrap_or_else(PoisonError::into_inner).take();
        let has_names = names.is_some();
        if let Some(names) = names {
            watch.set_names(names);
        }
        match waited.map(|changed| changed || has_names) {
            Ok(false) => {}
            Ok(true) => {
                let links = watch.links().to_vec();
                *shared.links.lock().unwrap_or_else(PoisonError::into_inner) = links;
                shared.changed.store(true, Ordering::Release);
                control.wake.wake();
                thread::sleep(REPORT_PERIOD);
            }
            // If waiting failed, try again after a pause.
            Err(_) => thread::sleep(REPORT_PERIOD * 100),
        }
    }
}
