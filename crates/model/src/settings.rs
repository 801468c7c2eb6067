// SPDX-License-Identifier: Apache-2.0
//! Changes of the datapath's configuration while it runs. Entries stay, with their counters.

use crate::changes::transaction::Transaction;
use crate::config::{CookieMask, Learning};
use crate::marking::MarkLearner;
use crate::model::Model;
use crate::rules::slot::{Life, Mark};
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::{BridgeConfig, BridgePort, EntryId, Nanos, PortNo, TableId};
use std::sync::Arc;

impl<D: DataPlane> Model<D> {
    /// Sets the condition on cookies of low-latency entries, and marks the existing entries anew. Explicit
    /// marks of flow-mods stay.
    pub fn set_low_latency_cookie(&mut self, now: Nanos, cookie: Option<CookieMask>) {
        if self.config.low_latency_cookie != cookie {
            self.config.low_latency_cookie = cookie;
            self.mark_anew(now);
        }
    }

    /// Sets the thresholds of learning. Without learning, entries lose the marks that were learned.
    pub fn set_learning(&mut self, now: Nanos, learning: Option<Learning>) {
        if self.config.learning != learning {
            self.config.learning = learning;
            self.learner = MarkLearner::from(learning, now);
            self.mark_anew(now);
        }
    }

    /// Sets whether a datapath without controllers is a learning switch. Entries of flow files and tools
    /// stay. The default entry is added if table 0 has no entry of its priority and match, or is removed if
    /// it is unchanged.
    pub fn set_fail_mode(&mut self, now: Nanos, standalone: bool) {
        if self.config.standalone == standalone {
            return;
        }
        if !standalone {
            self.set_standalone(now, false);
            return;
        }
        self.config.standalone = true;
        let mut missing = self.default_entries();
        missing.retain(|entry| self.rules.store.find(TableId(0), entry.priority, &entry.matching).is_none());
        // The bundle is refused only if there are too many entries. The datapath then has other flows.
        let _ = self.bundle(now, missing);
    }

    /// Sets the settings of the ports for NORMAL, or removes them. A port whose VLANs change, or that has
    /// more learned MACs than its new limit allows, loses its learned MACs. A port that its storm limits have
    /// closed is opened if they change.
    pub fn set_bridge(&mut self, now: Nanos, bridge: Option<Arc<BridgeConfig>>) {
        let bridge = bridge.filter(|bridge| !bridge.ports.is_empty());
        if self.rules.bridge == bridge {
            return;
        }
        let settings = |of: &Option<Arc<BridgeConfig>>, port| -> BridgePort {
            of.as_ref().map(|of| of.port(port)).unwrap_or_default()
        };
        let before = self.rules.bridge.clone();
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        let ports: Vec<PortNo> = transaction.rules().ports.keys().copied().collect();
        for port in ports {
            let (before, after) = (settings(&before, port), settings(&bridge, port));
            // Fewer addresses may be allowed now. Which of them may stay is not decided here.
            let exceeds = after.mac_limit.is_some_and(|limit| self.macs.counts_of(port).0 > limit);
            if before.vlans != after.vlans || exceeds {
                self.macs.forget_port(port, &mut transaction);
            }
            if before.storm != after.storm {
                self.storms.open(port, &mut transaction);
            }
        }
        transaction.set_bridge(bridge);
        let completed = transaction.complete();
        self.commit(now, completed);
    }

    /// Recomputes which entries are low-latency.
    fn mark_anew(&mut self, now: Nanos) {
        let mut transaction = Transaction::new(&mut self.rules, &self.config, now);
        let count = transaction.rules().store.slots().len();
        for id in (0..count as u32).map(EntryId) {
            let slot = transaction.rules().store.slot(id).filter(|slot| slot.life == Life::Live);
            let Some((entry, mark)) = slot.and_then(|slot| Some((slot.entry.as_ref()?, slot.mark))) else {
                continue;
            };
            if entry.table == MAC_TABLE {
                continue;
            }
            let learned = mark.learned && transaction.config.learning.is_some();
            let by_cookie = transaction.config.is_marked_by_cookie(entry.cookie);
            let low_latency = mark.explicit.unwrap_or(by_cookie || learned);
            if low_latency != entry.low_latency || learned != mark.learned {
                transaction.set_mark(id, Mark { learned, ..mark }, low_latency);
            }
        }
        let completed = transaction.complete();
        self.commit(now, completed);
    }
}
