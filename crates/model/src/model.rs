// SPDX-License-Identifier: Apache-2.0
//! The type [`Model`]: its parts, and how a change passes from one part to the next.
//!
//! Each part owns its state, has its own file, and gets other parts as parameters. The other methods of
//! `Model` are in `requests.rs` (changes), `port_changes.rs` (changes of ports), `poll.rs` (time and events),
//! `queries.rs` and `stats.rs` (answers), and `trace/`.

use crate::async_messages::{AsyncMessage, AsyncMessageDrops, AsyncQueue, PortReason};
use crate::changes::completed::{Changed, Completed, Step};
use crate::changes::transaction::Transaction;
use crate::changes::{self, Change};
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::expiry::Expiry;
use crate::kept::{self, Keeping, KeptChange};
use crate::macs::Macs;
use crate::marking::MarkLearner;
use crate::port::Port;
use crate::removals::{Dying, Removals};
use crate::rules::Rules;
use crate::rules::slot::Life;
use crate::storms::{StormNotice, Storms};
use crate::trace::counts::TraceCounts;
use crate::versioned_plane::VersionedPlane;
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::{Action, FlowMod, Instructions, Nanos, Operation, PortNo, RuleVersion, Settings, port_no};
use frame::Frame;
use std::collections::BTreeMap;

/// One datapath as controllers see it, on top of a data plane.
#[derive(Debug)]
pub struct Model<D: DataPlane> {
    pub(crate) config: ModelConfig,
    pub(crate) plane: VersionedPlane<D>,
    pub(crate) rules: Rules,
    pub(crate) expiry: Expiry,
    pub(crate) removals: Removals,
    pub(crate) macs: Macs,
    pub(crate) storms: Storms,
    pub(crate) learner: MarkLearner,
    pub(crate) async_messages: AsyncQueue,
    settings: Settings,
    pub(crate) keeping: Keeping,
    /// Counts of the comparisons of recorded packets with the rules.
    pub(crate) trace_counts: TraceCounts,
}

impl<D: DataPlane> Model<D> {
    /// Creates a datapath without ports. A standalone datapath starts with an entry that forwards by NORMAL.
    #[must_use]
    pub fn new(config: ModelConfig, plane: D, now: Nanos) -> Self {
        let tables = plane.table_capabilities().tables;
        let mut model = Self {
            plane: VersionedPlane::new(plane),
            rules: Rules::new(tables),
            expiry: Expiry::default(),
            removals: Removals::default(),
            macs: Macs::default(),
            storms: Storms::default(),
            learner: MarkLearner::from(config.learning, now),
            async_messages: AsyncQueue::new(config.limits.async_messages),
            settings: Settings::default(),
            keeping: Keeping::default(),
            config,
            trace_counts: TraceCounts::default(),
        };
        // The bundle is refused only if the limit of entries is 0. The table then stays empty.
        let _ = model.bundle(now, model.default_entries());
        model
    }

    /// Returns the flow-mods that a fresh datapath starts with.
    pub(crate) fn default_entries(&self) -> Vec<FlowMod> {
        let normal = FlowMod {
            priority: 0,
            instructions: Instructions::apply(vec![Action::output(port_no::NORMAL)]),
            ..FlowMod::default()
        };
        if self.config.standalone { vec![normal] } else { Vec::new() }
    }

    /// Returns the configuration of the datapath.
    #[must_use]
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Returns the settings that apply to every packet.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Changes the settings that apply to every packet. Submits an operation if they differ from the current
    /// ones.
    pub fn set_settings(&mut self, settings: Settings) {
        let before = std::mem::replace(&mut self.settings, settings);
        if settings != before {
            self.plane.submit(Operation::Settings(settings));
        }
        if settings.drop_fragments != before.drop_fragments {
            self.note_setting(KeptChange::DropFragments(settings.drop_fragments));
        }
    }

    /// Reports a change outside of transactions to the journal. It has the time 0, because only entries need
    /// a time.
    pub(crate) fn note_setting(&mut self, change: KeptChange) {
        self.keeping.record(Nanos::ZERO, self.plane.version(), vec![change]);
    }

    /// Returns the data plane.
    pub fn plane_mut(&mut self) -> &mut D {
        self.plane.get_mut()
    }

    /// Returns the version of the last change. Once [`Model::is_applied`] returns true for this version, all
    /// changes so far are active.
    #[must_use]
    pub fn barrier(&self) -> RuleVersion {
        self.plane.version()
    }

    /// Returns whether a version is active on all workers.
    pub fn is_applied(&mut self, version: RuleVersion) -> bool {
        self.plane.is_applied(version)
    }

    /// Takes the next asynchronous message for controllers from the queue.
    pub fn next_async_message(&mut self) -> Option<AsyncMessage> {
        let next = self.async_messages.pop();
        if next.is_none() {
            self.end_waits();
        }
        next
    }

    /// Returns the numbers of asynchronous messages dropped because the queue was full.
    #[must_use]
    pub fn async_message_drops(&self) -> AsyncMessageDrops {
        self.async_messages.drops()
    }

    /// Returns the frame of a packet-in to the data plane.
    pub fn recycle(&mut self, frame: Frame) {
        self.plane.get_mut().recycle(frame);
    }

    /// Returns the time at which the next timer or the next learning step is due. [`Model::poll`] must also
    /// be called when the data plane has reported events or applied operations.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Nanos> {
        let learning = self.config.learning.map(|_| self.learner.due());
        self.expiry.next_deadline().into_iter().chain(learning).chain(self.storms.next_opening()).min()
    }

    /// Takes the next notice about a port that a storm limit closed, or that was opened again.
    pub fn next_storm_notice(&mut self) -> Option<StormNotice> {
        self.storms.take_notice()
    }

    /// Applies one request. The request is active once the version returned by [`Model::barrier`] is applied.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the request. In that case nothing is changed.
    pub fn change(&mut self, now: Nanos, change: Change) -> Result<Changed, ModelError> {
        self.transact(now, |transaction| changes::apply(transaction, change))
    }

    /// Applies all requests in order, or none of them. No packet is forwarded with only some of them in
    /// effect.
    ///
    /// # Errors
    /// Returns the index of the first refused request and the reason. In that case nothing is changed.
    pub fn bundle<C: Into<Change>>(
        &mut self,
        now: Nanos,
        changes: impl IntoIterator<Item = C>,
    ) -> Result<Changed, (usize, ModelError)> {
        let changes = changes.into_iter();
        // Most changes in large bundles are additions.
        let expected = changes.size_hint().0.min(self.config.limits.entries);
        self.rules.store.reserve(expected);
        let mut count = 0_usize;
        let done: Result<Changed, BundleError> = self.transact(now, |transaction| {
            transaction.reserve(expected);
            for change in changes {
                changes::apply(transaction, change.into())
                    .map_err(|error| BundleError(Some(count), error))?;
                count += 1;
            }
            Ok(())
        });
        // The data plane refuses the bundle as a whole, which is reported for the last request.
        done.map_err(|BundleError(at, error)| (at.unwrap_or(count.saturating_sub(1)), error))
    }

    /// Commits a transaction, or rolls it back if `apply` fails.
    pub(crate) fn transact<E: From<ModelError>>(
        &mut self,
        now: Nanos,
        apply: impl FnOnce(&mut Transaction<'_>) -> Result<(), E>,
    ) -> Result<Changed, E> {
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        let done = apply(&mut transaction).and_then(|()| {
            let (changes, others) = transaction.operations();
            self.plane.get_mut().check(changes, others).map_err(|refusal| ModelError::Plane(refusal).into())
        });
        match done {
            Ok(()) => {
                let completed = transaction.complete();
                Ok(self.commit(now, completed))
            }
            Err(error) => {
                transaction.roll_back();
                Err(error)
            }
        }
    }

    /// Submits a complete transaction to the data plane, and reports it to the other parts of the model.
    pub(crate) fn commit(&mut self, now: Nanos, mut completed: Completed) -> Changed {
        let kept = match self.keeping.is_on() {
            true => kept::changes_of(&completed, &self.rules),
            false => Vec::new(),
        };
        if let Some(operation) = completed.take_operation(&self.rules) {
            self.plane.submit(operation);
        }
        let version = self.plane.version();
        self.keeping.record(now, version, kept);
        let store = &mut self.rules.store;
        let mut ports = BTreeMap::new();
        for step in completed.log {
            match step {
                Step::Added(id) => {
                    let Some(slot) = store.slot_mut(id).filter(|s| s.life == Life::Fresh) else { continue };
                    slot.life = Life::Live;
                    // The timer of a learned MAC was armed when the MAC was learned.
                    if slot.entry.as_ref().is_some_and(|e| e.table != MAC_TABLE) {
                        self.expiry.arm(&self.config, store, id, Nanos(0));
                    }
                }
                Step::Removed { id, was, reason, heir } => {
                    self.removals.push(Dying { version, removed_ns: now, id, reason, heir });
                    // If the count of stale timers is too high, they are only discarded earlier than
                    // necessary.
                    if let Some(entry) = store.entry(id)
                        && (was == Life::Live || entry.table == MAC_TABLE)
                    {
                        self.expiry.entry_gone(entry);
                    }
                }
                // The change is reported relative to the port's state before the transaction.
                Step::Port(before) => drop(ports.entry(before.desc.number).or_insert(before)),
                Step::Modified(_) | Step::Group(..) | Step::Meter(..) => {}
            }
        }
        for before in ports.values() {
            self.port_changed(now, before);
        }
        completed.changed
    }

    /// Handles the consequences of committed changes to a port. `before` is its state before the first
    /// change.
    fn port_changed(&mut self, now: Nanos, before: &Port) {
        let number = before.desc.number;
        let Some(after) = self.rules.ports.get(&number).filter(|after| *after != before).cloned() else {
            return;
        };
        if before.is_up() && !after.is_up() {
            self.forget_macs_of(now, number);
        }
        if before.is_blocked && !after.is_blocked {
            self.storms.opened(number);
        }
        self.async_messages.port_status(PortReason::Modify, after);
    }

    /// Removes all learned MACs of a port.
    pub(crate) fn forget_macs_of(&mut self, now: Nanos, port: PortNo) {
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        self.macs.forget_port(port, &mut transaction);
        let completed = transaction.complete();
        self.commit(now, completed);
    }
}

/// Refused request of a bundle: its index, or `None` if the data plane refused all together.
struct BundleError(Option<usize>, ModelError);

impl From<ModelError> for BundleError {
    fn from(error: ModelError) -> Self {
        Self(None, error)
    }
}
