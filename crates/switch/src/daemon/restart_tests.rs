// SPDX-License-Identifier: Apache-2.0
//! Tests of a start with stores: the links and the MACs of patch ports, rules that reach the workers, ports
//! that fail, and a store that is in use.

use super::crew::Crew;
use super::{Daemon, DaemonError, Stop, open};
use crate::waiting_plane::WaitingPlane;
use config::Config;
use config::trace::TracedPlane;
use dataplane::DataPlane;
use flow::group::{Bucket, Group, GroupType};
use flow::{Action, FlowMod, GroupId, Instructions, Nanos, Next, PortNo, RuleVersion, TableId};
use model::{Change, GroupCommand, Journal, KeptChange, Model, ModelConfig, PortConfig, PortDesc};
use std::path::{Path, PathBuf};
use store::{Durability, RuleStore, StoreClock, StoreConfig};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];

/// Returns an empty folder of this process.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("shunt-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a datapath with a store and one patch port.
fn datapath(folder: &Path, id: u64) -> Config {
    let (socket, store) = (folder.join(format!("{id}.sock")), folder.join(format!("store-{id}")));
    // Each test has its own cable.
    let cable = folder.file_name().unwrap().to_str().unwrap();
    Config::parse(&format!(
        "control = {socket:?}\n[[worker]]\n[[datapath]]\nid = {id}\n[datapath.store]\npath = {store:?}\n\
         [[datapath.port]]\nnumber = 9\nname = \"p9\"\ndriver = \"patch\"\ndevice = \"{cable}\"\n\
         workers = [0]\n"
    ))
    .unwrap()
}

/// Returns the settings of the store of a datapath.
fn settings(folder: &Path, id: u64) -> StoreConfig {
    StoreConfig {
        path: folder.join(format!("store-{id}")),
        durability: Durability::Off,
        datapath_id: id,
        stateless: None,
        snapshot_after_bytes: store::SNAPSHOT_AFTER_BYTES,
    }
}

#[test]
fn patch_ports_of_all_datapaths_are_up_when_their_macs_are_restored() {
    let folder = folder("restart-patch");
    for id in [1, 2] {
        let opened = RuleStore::open(settings(&folder, id), StoreClock::at(Nanos(0))).unwrap();
        let (mut journal, handle) = opened.store.start(|| ()).unwrap();
        let mac = KeptChange::Mac { vid: 0, mac: MAC, port: PortNo(9) };
        journal.record(Nanos(0), RuleVersion(1), vec![mac]);
        drop((journal, handle));
    }
    let (stop, _tell) = Stop::by_hand().unwrap();
    let mut crew = Crew::default();
    let configs = [1, 2].map(|id| datapath(&folder, id));
    let opened: Vec<_> =
        configs.iter().map(|config| Daemon::open(config, || open(config), &mut crew).unwrap()).collect();
    let prepare = |(config, opened)| Daemon::set_up(config, opened, None, &stop).unwrap().unwrap();
    let mut daemons: Vec<_> = configs.iter().zip(opened).map(prepare).collect();
    for (config, daemon) in configs.iter().zip(&mut daemons) {
        let model = daemon.model_handle.here().unwrap();
        let macs: Vec<_> = model.macs(Nanos(0)).iter().map(|learned| (learned.mac, learned.port)).collect();
        assert!(model.port(PortNo(9)).unwrap().link_up, "datapath {}", config.datapath.id);
        assert_eq!(macs, [(MAC, PortNo(9))], "datapath {}", config.datapath.id);
    }
    drop(daemons);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Fills the store of a datapath with a group, with an entry that sends to the group and to table 3, and with
/// the configuration of port 9.
fn fill(folder: &Path, id: u64, port_config: PortConfig) {
    let mut model = Model::new(ModelConfig::default(), WaitingPlane::default(), Nanos(0));
    let desc = PortDesc { number: PortNo(9), ..PortDesc::default() };
    model.add_port(Nanos(0), desc, true).unwrap();
    model.set_port_config(Nanos(0), PortNo(9), port_config).unwrap();
    let bucket = Bucket { actions: vec![Action::output(PortNo(9))], ..Bucket::default() };
    let group = Group { id: GroupId(1), kind: GroupType::Indirect, buckets: vec![bucket] };
    model.change(Nanos(0), Change::Group(GroupCommand::AddOrModify, group)).unwrap();
    let actions = Instructions::apply(vec![Action::Group(GroupId(1))]);
    let instructions = Instructions { next: Some(Next::Table(TableId(3))), ..actions };
    model.flow_mod(Nanos(0), FlowMod { instructions, ..FlowMod::default() }).unwrap();
    let opened = RuleStore::open(settings(folder, id), StoreClock::at(Nanos(0))).unwrap();
    let (mut journal, handle) = opened.store.start(|| ()).unwrap();
    journal.record(Nanos(0), RuleVersion(1), model.kept_state());
    drop((journal, handle));
}

#[test]
fn restored_rules_reach_the_workers() {
    let folder = folder("restart-rules");
    let port_config = PortConfig { no_flood: true, ..PortConfig::default() };
    fill(&folder, 1, port_config);
    let (stop, _tell) = Stop::by_hand().unwrap();
    let (config, mut crew) = (datapath(&folder, 1), Crew::default());
    let opened = Daemon::open(&config, || open(&config), &mut crew).unwrap();
    let mut daemon = Daemon::set_up(&config, opened, None, &stop).unwrap().unwrap();
    let model = daemon.model_handle.here().unwrap();
    let barrier = model.barrier();
    assert!(!model.is_applied(barrier));
    assert_eq!(model.port(PortNo(9)).unwrap().config, port_config);
    // The data plane has counters of a group only after the operation that adds the group. Packets can reach
    // table 3 only through the entry.
    assert!(model.plane_mut().group_counters(GroupId(1)).is_some());
    let workers = model.plane_mut().workers().unwrap();
    assert!(workers.express_tables().any(|table| table == TableId(3)));
    assert!(daemon.put_into_force(&stop));
    assert!(daemon.model_handle.here().unwrap().is_applied(barrier));
    drop(daemon);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_port_that_fails_ends_the_start_and_leaves_the_store() {
    let folder = folder("restart-port");
    fill(&folder, 1, PortConfig::default());
    let (stop, _tell) = Stop::by_hand().unwrap();
    let config = datapath(&folder, 1);
    let refuse = || Err(DaemonError::io("open the port")(std::io::Error::other("of the test")));
    let refused = Daemon::open(&config, refuse, &mut Crew::default());
    assert_eq!(refused.err().unwrap().to_string(), "cannot open the port: of the test");
    let ended = Daemon::open(&config, || panic!("of the test"), &mut Crew::default());
    assert!(matches!(ended.err().unwrap(), DaemonError::ControlEnded));
    let opened = Daemon::open(&config, || open(&config), &mut Crew::default()).unwrap();
    let mut daemon = Daemon::set_up(&config, opened, None, &stop).unwrap().unwrap();
    assert_eq!(daemon.model_handle.here().unwrap().entries_in(TableId(0)), 1);
    drop(daemon);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_store_in_use_ends_the_start_before_a_device_is_opened() {
    let folder = folder("restart-lock");
    let _first = RuleStore::open(settings(&folder, 1), StoreClock::at(Nanos(0))).unwrap();
    let mut is_opened = false;
    let open = || {
        is_opened = true;
        Ok(Vec::new())
    };
    let refused = Daemon::open(&datapath(&folder, 1), open, &mut Crew::default());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("another datapath or process uses this store"), "{error}");
    assert!(!is_opened);
    std::fs::remove_dir_all(folder).unwrap();
}
