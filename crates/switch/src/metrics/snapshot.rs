// SPDX-License-Identifier: Apache-2.0
//! Reports of a datapath at one time, which its control thread collects for the thread that serves HTTP.

use crate::control::{
    CacheReport, ControlState, ControllersReport, CountersReport, DeviceReport, ExpressReport, Ffp,
    LatencyBuckets, MirrorsReport, Ports, StoreReport, Tables, mirrors, show,
};
use dataplane::DataPlane;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Reports of a datapath at one time.
pub struct Snapshot {
    pub ports: Ports,
    pub tables: Tables,
    /// Maximum number of entries of a table.
    pub table_capacity: u32,
    /// Maximum number of entries of the datapath.
    pub capacity: usize,
    pub ffp: Option<Ffp>,
    pub express: Option<ExpressReport>,
    pub cache: Option<CacheReport>,
    pub device: Option<DeviceReport>,
    pub mirrors: Option<MirrorsReport>,
    pub store: Option<StoreReport>,
    /// Number of learned MAC addresses.
    pub macs: usize,
    pub counters: CountersReport,
    pub latencies: Option<LatencyBuckets>,
    pub controllers: ControllersReport,
    /// Number of workers that forward packets of the datapath.
    pub workers: usize,
}

impl Snapshot {
    /// Collects the reports. The time does not depend on the number of flows.
    fn take(state: &mut ControlState<'_>, workers: usize) -> Self {
        (state.refresh)();
        let model = &mut *state.model;
        Self {
            ports: show::ports(model),
            tables: show::tables(model),
            table_capacity: model.plane_mut().table_capabilities().entries,
            capacity: model.config().limits.entries,
            ffp: show::ffp(model),
            express: show::express(model),
            cache: show::cache(model),
            device: show::device(model),
            mirrors: mirrors::mirrors(model, state.mirrors),
            store: state.store.map(show::store),
            macs: model.mac_count(),
            counters: show::counters(model, (state.lost)()),
            latencies: show::latencies(model),
            controllers: (state.controllers)(),
            workers,
        }
    }
}

/// Asks a datapath for its reports.
pub struct MetricsSource {
    datapath_id: u64,
    requests: Sender<SyncSender<Snapshot>>,
    wake: Box<dyn Fn() + Send>,
}

impl MetricsSource {
    /// Returns the ID of the datapath.
    pub(super) fn datapath_id(&self) -> u64 {
        self.datapath_id
    }

    /// Asks for the reports. Returns `None` if the datapath has ended.
    pub(super) fn ask(&self) -> Option<Receiver<Snapshot>> {
        let (answer, snapshot) = sync_channel(1);
        self.requests.send(answer).ok()?;
        (self.wake)();
        Some(snapshot)
    }
}

/// The control thread's end of the requests.
pub struct Inlet {
    sender: Sender<SyncSender<Snapshot>>,
    requests: Receiver<SyncSender<Snapshot>>,
}

impl Inlet {
    pub fn new() -> Self {
        let (sender, requests) = channel();
        Self { sender, requests }
    }

    /// Returns the other end of the requests. `wake` wakes the control thread.
    pub fn source(&self, datapath_id: u64, wake: Box<dyn Fn() + Send>) -> MetricsSource {
        MetricsSource { datapath_id, requests: self.sender.clone(), wake }
    }

    /// Answers the latest request, if there is one. Nobody waits for the answers to earlier requests.
    pub fn answer(&self, state: &mut ControlState<'_>, workers: usize) {
        if let Some(answer) = self.requests.try_iter().last() {
            // The other end may have given up.
            let _ = answer.try_send(Snapshot::take(state, workers));
        }
    }
}
