// SPDX-License-Identifier: Apache-2.0
//! Reads random items as the files of a store or as the state of a handover. The target adds headers and
//! checksums, so the items reach the decoders.
//!
//! A decoded state must be the same after it is encoded and decoded, and so must be the state of a model that
//! took it. A second start must find the state of the first one. A store must go on after any start, and the
//! next start must then find the state of the model.
#![no_main]

#[path = "../../crates/store/tests/common/fold.rs"]
#[allow(dead_code)]
mod fold;
#[path = "../../crates/store/tests/common/plane.rs"]
mod plane;
#[path = "store/sealed.rs"]
mod sealed;

use flow::stateless::StatelessChange;
use flow::{
    Action, EntryId, FlowEntry, FlowMod, FlowModCommand, GroupId, Instructions, MeterId, Nanos, PortNo,
    Settings, TableId,
};
use fold::Folded;
use libfuzzer_sys::fuzz_target;
use model::{
    Change, CookieMask, EntryOrigin, KeptChange, KeptEntry, KeptState, Learning, Mark, Model, ModelConfig,
    PortDesc, RestoreReport, RestoredInstructions, RestoredPart,
};
use plane::FakePlane;
use sealed::{DATAPATH_ID, FileKind, SealedFile, sealed_files};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use store::{
    Durability, OpenedStore, RuleStore, SNAPSHOT_AFTER_BYTES, StoreClock, StoreConfig, StoreHandle,
    decode_handover, encode_handover,
};

type Fake = Model<FakePlane>;

/// Time at which every model starts.
const START: Nanos = Nanos(400 * 86_400 * 1_000_000_000);
/// Longest time between two readings of the clock, and longest time that a store may need to write changes.
const LIMIT: Duration = Duration::from_secs(600);

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    let first = u64::from(choice >> 2 & 31);
    let kind = if choice & 1 == 0 { FileKind::Log } else { FileKind::Snapshot };
    let files = sealed_files(kind, first, choice >> 7 == 1, data);
    match choice & 3 {
        0 | 1 => starts_twice(&Folder::new(&files, SNAPSHOT_AFTER_BYTES)),
        // With an even number, the changes lead to a snapshot. Otherwise, they stay in the log.
        2 => goes_on(&Folder::new(&files, if first % 2 == 0 { 256 } else { SNAPSHOT_AFTER_BYTES })),
        _ => hands_over(&files[0].bytes),
    }
});

/// Decodes the state of a handover, and hands it over again, without and with a model.
fn hands_over(file: &[u8]) {
    let decode = |bytes: &[u8]| decode_handover(bytes, DATAPATH_ID, START);
    let again = |changes: &[KeptChange]| {
        let (mut bytes, left_out) = encode_handover(changes, DATAPATH_ID, START);
        let (state, lost) = decode(&bytes).expect("a whole state");
        assert_eq!((left_out, lost), (0, 0), "items are lost");
        let at = crc32c::crc32c(&bytes) as usize % bytes.len();
        bytes[at] ^= 1;
        assert!(decode(&bytes).is_none(), "damage at byte {at} is not noticed");
        state
    };
    let Some((state, _)) = decode(file) else { return };
    let decoded = changes_of(state);
    assert_same(&changes_of(again(&decoded)), &decoded);

    let (state, _) = decode(file).expect("the same bytes as before");
    let (model, _) = restored(state);
    let once = model.kept_state();
    let (model, report) = restored(again(&once));
    assert_eq!((report.refused, report.undecodable), (0, 0), "{:?}", report.reasons);
    assert_eq!(report.gone, []);
    assert_same(&model.kept_state(), &once);
}

/// Starts twice with a store. What the first start changes in the folder must not change the state.
fn starts_twice(folder: &Folder) {
    let clock = StoreClock::at(START);
    let start = || {
        let mut opened = folder.open(clock);
        let state = opened.state.take().map(|state| state_of(&restored(state).0));
        (state, opened.report.last, opened.report.undecodable)
    };
    let first = start();
    assert_eq!(start(), first);
}

/// Starts with a store as the switch does, changes the rules, and starts again.
fn goes_on(folder: &Folder) {
    let clock = StoreClock::at(START);
    let OpenedStore { store, state, report } = folder.open(clock);
    let (mut model, first) = match state {
        Some(state) => {
            let groups: BTreeSet<GroupId> = state.groups.iter().map(|group| group.id).collect();
            let meters: BTreeSet<MeterId> = state.meters.iter().map(|meter| meter.id).collect();
            if (groups.len(), meters.len()) != (state.groups.len(), state.meters.len()) {
                // Two items have the same ID, so the number of an item differs from that in its message. The
                // files of a switch do not contain such items, and the model can remove only one of them.
                return;
            }
            let (model, restored) = restored(state);
            let changes = model.kept_state();
            let entries = changes.iter().filter(|change| matches!(change, KeptChange::Entry(_))).count();
            if entries != restored.flows {
                // Two entries have the same match and priority, which the files of a switch do not contain.
                // The model keeps one of them, and the store both.
                return;
            }
            let is_replaced = |change: &KeptChange| matches!(change, KeptChange::Stateless(_));
            let stateless = changes.into_iter().filter(|change| !report.is_same_base && is_replaced(change));
            (model, restored.gone.into_iter().chain(stateless).collect())
        }
        None => {
            let model = fresh();
            let first = model.kept_state();
            (model, first)
        }
    };
    let (journal, handle) = store.start(|| ()).expect("threads");
    model.attach_journal(START, Box::new(journal), first);
    change(&mut model);
    settle(&mut model, &handle);
    let (expected, recorded) = (state_of(&model), handle.status().recorded);
    drop(model);
    drop(handle);
    let mut opened = folder.open(clock);
    assert_eq!((opened.report.last, opened.report.lost), (recorded, Some(0)), "{:?}", opened.report);
    let state = opened.state.take().expect("a whole state");
    assert_eq!(state_of(&restored(state).0), expected);
}

/// Makes changes, each of which is a transaction. The rules may refuse some of them.
fn change(model: &mut Fake) {
    let flow_mod = |command, port| FlowMod {
        command,
        table: Some(TableId(0)),
        priority: 0xffff,
        instructions: Instructions::apply(vec![Action::output(PortNo(port))]),
        ..FlowMod::default()
    };
    for port in 1..=3 {
        let _ = model.flow_mod(START, flow_mod(FlowModCommand::Add, port));
    }
    // Changes all entries of the table, which keep their serial numbers.
    let _ = model.flow_mod(START, flow_mod(FlowModCommand::Modify, 4));
    let drop_fragments = !model.settings().drop_fragments;
    model.set_settings(Settings { drop_fragments, ..model.settings() });
    let _ = model.change(START, Change::Stateless(StatelessChange::Off));
}

/// Waits until the store has written all changes. The model answers its requests for the state.
fn settle(model: &mut Fake, handle: &StoreHandle) {
    let end = Instant::now() + LIMIT;
    loop {
        model.poll(START);
        let status = handle.status();
        assert_eq!(status.trouble, None);
        if status.kept == status.recorded && status.queued == 0 && !status.is_snapshot_pending {
            return;
        }
        assert!(Instant::now() < end, "{status:?}");
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// A folder in memory, which is removed at the end.
struct Folder {
    path: PathBuf,
    snapshot_after_bytes: u64,
}

impl Folder {
    /// Returns a folder with these files. An earlier file of the same name is replaced.
    fn new(files: &[SealedFile], snapshot_after_bytes: u64) -> Self {
        let path = Path::new("/dev/shm").join(format!("shunt-fuzz-store-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a new folder");
        for file in files {
            std::fs::write(path.join(file.name()), &file.bytes).expect("a new file");
        }
        Self { path, snapshot_after_bytes }
    }

    /// Opens the folder as a store.
    fn open(&self, clock: StoreClock) -> OpenedStore {
        let config = StoreConfig {
            path: self.path.clone(),
            durability: Durability::Off,
            datapath_id: DATAPATH_ID,
            stateless: None,
            snapshot_after_bytes: self.snapshot_after_bytes,
        };
        let opened = RuleStore::open(config, clock).expect("damaged files are no error");
        let problems = &opened.report.problems;
        assert!(!problems.iter().any(|problem| problem.contains("os error")), "{problems:?}");
        opened
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Returns a model with ports but without rules.
fn fresh() -> Fake {
    let config = ModelConfig {
        standalone: true,
        low_latency_cookie: Some(CookieMask { value: 1, mask: 1 }),
        learning: Some(Learning { min_pps: 1_000, window: Nanos(1_000_000_000), min_timeout: Nanos(0) }),
        ..ModelConfig::default()
    };
    let mut model = Model::new(config, FakePlane::default(), START);
    for number in (1..=4).map(PortNo) {
        let desc = PortDesc { number, name: format!("p{number}"), ..PortDesc::default() };
        model.add_port(START, desc, true).expect("a new port");
    }
    model
}

/// Restores a state into a model.
fn restored(state: KeptState) -> (Fake, RestoreReport) {
    let mut model = fresh();
    let report = model.restore(START, state);
    (model, report)
}

/// Returns the state of a model in a form that can be compared. Times of addition that are centuries ahead
/// are limited, because the times in files are limited, too.
fn state_of(model: &Fake) -> Folded {
    let mut changes = model.kept_state();
    for change in &mut changes {
        if let KeptChange::Entry(kept) = change {
            kept.created_ns = kept.created_ns.min(Nanos(1 << 62));
        }
    }
    let mut folded = Folded::default();
    folded.apply(&changes);
    folded
}

/// Returns a state as the changes that set it.
fn changes_of(state: KeptState) -> Vec<KeptChange> {
    let mut changes =
        vec![KeptChange::DropFragments(state.drop_fragments), KeptChange::Standalone(state.standalone)];
    changes.extend(state.stateless.map(KeptChange::Stateless));
    changes.extend(state.tables.map(KeptChange::Tables));
    changes.extend(state.ports.into_iter().map(|(port, config)| KeptChange::Port(port, config)));
    changes.extend(state.meters.into_iter().map(|meter| KeptChange::Meter(meter.into())));
    changes.extend(state.groups.into_iter().map(|group| KeptChange::Group(group.into())));
    changes.extend(state.macs.into_iter().map(|(vid, mac, port)| KeptChange::Mac { vid, mac, port }));
    let mut lists: BTreeMap<usize, Vec<RestoredInstructions>> = BTreeMap::new();
    for RestoredPart { list, instructions, entries } in state.entries.parts {
        let list = lists.entry(list).or_default();
        list.extend(instructions);
        changes.extend(entries.into_iter().map(|entry| {
            let RestoredInstructions { table, instructions, explicit, .. } = list[entry.instructions].clone();
            let EntryOrigin { serial, created_ns, learned } = entry.origin;
            let entry = FlowEntry {
                id: EntryId::default(),
                table,
                priority: entry.priority,
                matching: entry.matching,
                instructions,
                idle_timeout_s: entry.idle_timeout_s,
                hard_timeout_s: entry.hard_timeout_s,
                cookie: entry.cookie,
                flags: entry.flags,
                low_latency: false,
            };
            let (entry, mark) = (entry.into(), Mark { explicit, learned });
            KeptChange::Entry(KeptEntry { entry, serial, created_ns, mark })
        }));
    }
    changes
}

/// Asserts that a state is the same after a handover. Entries are as old as before or, because the clock was
/// read again, a little older.
fn assert_same(after: &[KeptChange], before: &[KeptChange]) {
    let (mut folded, mut expected) = (Folded::default(), Folded::default());
    folded.apply(after);
    expected.apply(before);
    folded.forget_times();
    expected.forget_times();
    assert_eq!(folded, expected);
    let created = |changes: &[KeptChange]| -> Vec<u64> {
        let entries = changes.iter().filter_map(|change| match change {
            KeptChange::Entry(kept) => Some(kept.created_ns.0),
            _ => None,
        });
        entries.collect()
    };
    for (after, before) in created(after).into_iter().zip(created(before)) {
        let age = before.checked_sub(after).expect("an entry is younger than before");
        assert!(u128::from(age) <= LIMIT.as_nanos(), "an entry is {age} ns older than before");
    }
}
