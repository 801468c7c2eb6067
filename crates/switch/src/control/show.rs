// SPDX-License-Identifier: Apache-2.0
//! Short answers, each built in a single step.

use super::latency::{LaneLatency, LatencyBuckets};
use super::protocol::{
    CacheCounts, CachePort, CacheReport, CountersReport, DeviceReport, ExaminedField, ExpressCounts,
    ExpressReport, ExpressWorker, FastTable, Ffp, Limit, MacRow, Macs, PlanForm, PortRow, Ports, QueueRow,
    StatelessReport, StoreReport, TableRow, Tables,
};
use crate::log;
use crate::plane::Plane;
use config::PortCacheMode;
use config::stateless_form::StatelessForm;
use config::trace::{DEVICE, TracedPlane};
use dataplane::DropCounts;
use device::plane::DeviceState;
use device::session::SessionCounters;
use flow::bridge::PortVlans;
use flow::{DropReason, Field, Nanos, TableId};
use model::Model;
use model::agent::LostMessages;
use port_cache::{MissFigures, MissUsage, PortCacheConfig, SearcherKind};
use std::collections::BTreeMap;
use store::StoreHandle;

const SECOND_NS: Nanos = Nanos(1_000_000_000);

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

pub fn ports(model: &mut Model<Plane>) -> Ports {
    let list: Vec<_> = model.ports().cloned().collect();
    let row = |port: model::Port| {
        let c = model.port_counters(port.desc.number).unwrap_or_default();
        PortRow {
            number: port.desc.number.0,
            up: port.is_up(),
            link_up: port.link_up,
            mac: mac_text(port.desc.mac),
            speed_mbps: port.desc.speed_kbps / 1_000,
            rx_packets: c.rx_packets,
            rx_bytes: c.rx_bytes,
            rx_dropped: c.rx_dropped,
            tx_packets: c.tx_packets,
            tx_bytes: c.tx_bytes,
            tx_dropped: c.tx_dropped,
            dropped: c.by_name.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            vlans: vlans(model, port.desc.number),
            blocked: port.is_blocked,
            macs: model.mac_counts(port.desc.number).0,
            macs_refused: model.mac_counts(port.desc.number).1,
            queues: model.queues(port.desc.number).into_iter().map(queue).collect(),
            name: port.desc.name,
        }
    };
    Ports { ports: list.into_iter().map(row).collect() }
}

/// Returns the VLANs of a port, unless it is a trunk of all VLANs.
fn vlans(model: &Model<Plane>, port: flow::PortNo) -> Option<String> {
    let vlans = model.bridge()?.port(port).vlans;
    (vlans != PortVlans::default()).then(|| vlans.to_string())
}

fn queue(queue: dataplane::PortQueue) -> QueueRow {
    let settings = queue.settings;
    QueueRow {
        queue: settings.id,
        min_rate_kbps: settings.min_rate_kbps,
        max_rate_kbps: settings.max_rate_kbps,
        priority: settings.priority,
        limit_frames: settings.limit_frames,
        waiting: queue.waiting,
        tx_packets: queue.tx_packets,
        tx_bytes: queue.tx_bytes,
        dropped: queue.dropped,
    }
}

pub fn tables(model: &mut Model<Plane>) -> Tables {
    let used =
        model.tables().into_iter().filter(|t| t.table == TableId(0) || t.active != 0 || t.lookups != 0);
    let row = |stats: model::TableStats| {
        let workers = model.plane_mut().workers();
        let (engine, compiled_bytes) = workers.map_or((DEVICE, 0), |workers| workers.engine(stats.table));
        TableRow {
            table: stats.table,
            entries: stats.active,
            lookups: stats.lookups,
            matches: stats.matches,
            engine: engine.to_owned(),
            compiled_bytes,
        }
    };
    Tables { tables: used.map(row).collect() }
}

pub fn ffp(model: &mut Model<Plane>) -> Option<Ffp> {
    let totals = model.totals();
    let plane = model.plane_mut().workers()?;
    let row = |(table, lut): (TableId, Option<worker::LutState>)| {
        let way = match lut {
            Some(_) => "lut",
            None if plane.is_bypassed(table) => "bypassed",
            None => "shared",
        };
        let figures = lut.map(|lut| lut.figures).unwrap_or_default();
        let costs = plane.lookup_costs(table);
        FastTable {
            table,
            way: way.to_owned(),
            key_bits: lut.map_or(0, |lut| lut.key_bits),
            bytes: lut.map_or(0, |lut| lut.bytes),
            records: figures.records,
            hits: figures.hits,
            normal_hits: figures.normal_hits,
            misses: figures.misses,
            verified: figures.verified,
            walked: figures.walked,
            learned: figures.learned,
            evicted: figures.evicted,
            displaced: figures.displaced,
            refused: figures.refused,
            cleaned: figures.cleaned,
            extract_ps: costs.extract_ps,
            probe_ps: costs.probe_ps,
            lookup_ps: costs.lookup_ps,
        }
    };
    Some(Ffp {
        lut_entries: plane.lut_entries(),
        consistency: plane.consistency().to_string(),
        received: totals.received,
        fast: totals.fast,
        tables: plane.fast_tables().map(row).collect(),
    })
}

pub fn express(model: &mut Model<Plane>) -> Option<ExpressReport> {
    let plane = model.plane_mut().workers()?;
    let plan = plane.express_plan();
    let examined = |(field, mask): &(Field, u128)| ExaminedField {
        field: field.to_string(),
        mask: format!("{mask:#x}"),
        bits: mask.count_ones(),
        whole: *mask == field.full_mask(),
    };
    let plan = PlanForm {
        version: plan.version().0,
        previous: plane.express_previous().map(|version| version.0),
        tables: plane.express_tables().collect(),
        examined: plan.examined().iter().map(examined).collect(),
        examined_bits: plan.examined_bits(),
        key_bytes: plan.length_bytes(),
        record: plan.fit().name().to_owned(),
    };
    let worker = |(worker, state): (usize, worker::ExpressState)| ExpressWorker {
        worker,
        bypassed_now: state.is_bypassed,
        counts: express_counts(&state),
    };
    let workers: Vec<_> = plane.express_states().enumerate().map(worker).collect();
    let mut sum = ExpressCounts::default();
    workers.iter().for_each(|worker| sum.add(&worker.counts));
    Some(ExpressReport { enabled: plane.express_records() > 0, plan, workers, sum })
}

fn express_counts(state: &worker::ExpressState) -> ExpressCounts {
    let worker::ExpressState { figures, size, .. } = state;
    ExpressCounts {
        records: figures.records,
        room: size.records as u64,
        bytes: size.bytes as u64,
        hits: figures.hits,
        misses: figures.misses,
        bypassed: figures.bypassed,
        learned: figures.learned,
        renewed: figures.renewed,
        verified: figures.verified,
        upheld: figures.upheld,
        inherited: figures.inherited,
        displaced: figures.displaced,
        refused: figures.refused,
    }
}

pub fn store(store: &StoreHandle) -> StoreReport {
    let status = store.status();
    let state = match &status.trouble {
        Some(_) => "failing",
        None if status.kept < status.recorded => "behind",
        None => "complete",
    };
    StoreReport {
        path: store.path().display().to_string(),
        state: state.to_owned(),
        trouble: status.trouble,
        recorded: status.recorded,
        kept: status.kept,
        queued: status.queued as u64,
        log_bytes: status.log_bytes,
        snapshot_bytes: status.snapshot_bytes,
        snapshots: status.snapshots,
        skipped: status.skipped,
        left_out: status.left_out,
    }
}

pub fn cache(model: &mut Model<Plane>) -> Option<CacheReport> {
    let plane = model.plane_mut().workers()?;
    let mode = PortCacheMode::of(plane.port_cache());
    let Some(PortCacheConfig { limits, searcher, service_ns, .. }) = plane.port_cache().copied() else {
        let (ports, sum) = (Vec::new(), CacheCounts::default());
        return Some(CacheReport {
            mode: mode.to_string(),
            searcher: "none".to_owned(),
            entries: 0,
            queue: 0,
            records: 0,
            bytes: 0,
            ports,
            sum,
        });
    };
    let searcher = match searcher {
        SearcherKind::Worker if !plane.reaches_search_worker() => "worker (given up)",
        SearcherKind::Worker => "worker",
        SearcherKind::Own if service_ns > Nanos::ZERO => "lab",
        SearcherKind::Own => "inline",
    };
    let port =
        |(worker, port, figures, usage)| CachePort { worker, port, counts: cache_counts(&figures, &usage) };
    let ports: Vec<_> = plane.port_caches().map(port).collect();
    let mut sum = CacheCounts::default();
    ports.iter().for_each(|port| sum.add(&port.counts));
    Some(CacheReport {
        mode: mode.to_string(),
        searcher: searcher.to_owned(),
        entries: limits.entries.into(),
        queue: limits.queue.into(),
        records: limits.records.into(),
        bytes: limits.bytes.into(),
        ports,
        sum,
    })
}

pub fn device(model: &mut Model<Plane>) -> Option<DeviceReport> {
    let plane = &model.plane_mut().device()?.plane;
    let (state, wrong_size, rewrites) = match plane.state() {
        DeviceState::Silent => ("silent", None, 0),
        DeviceState::WrongSize { ppus, entries } => ("wrong size", Some((ppus, entries)), 0),
        DeviceState::Reading => ("reading", None, 0),
        DeviceState::Ready { rewrites } => ("ready", None, rewrites),
    };
    let SessionCounters { malformed, unexpected, repeated, dropped, unsent } = plane.session().counters();
    let session = [
        ("malformed", malformed),
        ("unexpected", unexpected),
        ("repeated", repeated),
        ("packet_ins_dropped", dropped),
        ("packet_outs_dropped", unsent),
    ];
    let owned = |(name, count): (&str, u64)| (name.to_owned(), count);
    Some(DeviceReport {
        state: state.to_owned(),
        fault: plane.link().fault().map(str::to_owned),
        tables: plane.layout().sizes(),
        entries: plane.layout().entries(),
        wrong_size,
        rewrites,
        pending: plane.session().pending(),
        session: session.map(owned).into(),
        counters: plane.device_counters().map(owned).collect(),
    })
}

fn cache_counts(figures: &MissFigures, usage: &MissUsage) -> CacheCounts {
    CacheCounts {
        pending: usage.pending,
        negative: usage.negative,
        waiting: usage.followers,
        waiting_bytes: usage.bytes,
        packets: figures.arrived(),
        hits: figures.hits,
        new: figures.searched,
        merged: figures.merged,
        passed: figures.passed,
        uncached: figures.uncached,
        dropped: figures.dropped,
        forced: figures.forced,
        retried: figures.retried,
        timed_out: figures.timed_out,
        stale: figures.stale,
        sent: figures.sent,
        answered: figures.answered,
        outdated: figures.outdated,
        fallen_back: figures.fallen_back,
        released: figures.released,
        evicted: figures.evicted,
        asked: figures.asked,
        returned: figures.returned,
        unquenched: figures.unquenched,
        unanswered: figures.unanswered,
    }
}

pub fn stateless(model: &mut Model<Plane>) -> StatelessReport {
    /// Drop reasons that apply to tagged packets only.
    const REASONS: [DropReason; 6] = [
        DropReason::UntrustedTag,
        DropReason::MalformedTag,
        DropReason::NoLabel,
        DropReason::HopLimit,
        DropReason::NoGate,
        DropReason::OverMtu,
    ];
    let totals = model.totals();
    let count = |reason: &DropReason| (reason.name().to_owned(), totals.dropped.of(*reason));
    StatelessReport {
        lane: model.stateless().map(|config| StatelessForm::from(&**config)),
        received: totals.received,
        taken: totals.stateless,
        dropped: REASONS.iter().map(count).collect(),
    }
}

pub fn counters(model: &mut Model<Plane>, lost: LostMessages) -> CountersReport {
    let totals = model.totals();
    let traced = model.trace_counts();
    let workers = model.plane_mut().workers();
    let (latencies, usages) =
        workers.map(|workers| (workers.latencies(), workers.usages())).unwrap_or_default();
    let limits = usages.into_iter().map(|(place, usage)| Limit {
        of: place.to_string(),
        name: usage.name.to_owned(),
        used: usage.used,
        limit: usage.limit,
    });
    let by_name = |counts: &DropCounts| -> BTreeMap<String, u64> {
        counts.by_reason().map(|(reason, count)| (reason.name().to_owned(), count)).collect()
    };
    CountersReport {
        received: totals.received,
        forwarded: totals.forwarded,
        consumed: totals.consumed,
        stateless: totals.stateless,
        held: totals.held,
        held_back: totals.held_back,
        dropped: by_name(&totals.dropped),
        copies: totals.copies,
        copies_dropped: by_name(&totals.copies_dropped),
        traced: [("recorded", traced.recorded), ("compared", traced.compared), ("faults", traced.faults)]
            .map(|(name, count)| (name.to_owned(), count))
            .into(),
        controllers_lost: lost.by_name().map(|(name, count)| (name.to_owned(), count)).into(),
        log_lines_written: log::counts().written,
        log_lines_lost: log::counts().lost_by_name(),
        limits: limits.collect(),
        lanes: by_lane(LaneLatency::of(&latencies.low_latency), LaneLatency::of(&latencies.normal)),
        gaps: latencies.gaps,
        stolen_ns: latencies.stolen_ns.0,
    }
}

fn by_lane<T>(low_latency: T, normal: T) -> BTreeMap<String, T> {
    [("low_latency".to_owned(), low_latency), ("normal".to_owned(), normal)].into()
}

pub fn latencies(model: &mut Model<Plane>) -> Option<LatencyBuckets> {
    let reported = model.plane_mut().workers()?.latencies();
    Some(LatencyBuckets {
        lanes: by_lane(reported.low_latency.into(), reported.normal.into()),
        gaps: reported.gaps,
        stolen_ns: reported.stolen_ns.0,
    })
}

pub fn macs(model: &mut Model<Plane>, now: Nanos) -> Macs {
    let row = |mac: model::Mac| MacRow {
        vid: mac.vid,
        mac: mac_text(mac.mac),
        port: mac.port,
        age_s: mac.age_ns / SECOND_NS,
    };
    Macs { macs: model.macs(now).into_iter().map(row).collect() }
}
