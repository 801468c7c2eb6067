// SPDX-License-Identifier: Apache-2.0
//! Tests of a start with stores: the links and the MACs of patch ports, and a store that is in use.

use super::crew::Crew;
use super::{Daemon, Stop, open};
use config::Config;
use flow::{Nanos, PortNo, RuleVersion};
use model::{Journal, KeptChange};
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
    let cable = format!("restart-{}", std::process::id());
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
    let opened: Vec<_> = configs
        .iter()
        .map(|config| Daemon::open(config, |meanwhile| open(config, meanwhile), &mut crew).unwrap())
        .collect();
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

#[test]
fn a_store_in_use_ends_the_start_before_a_device_is_opened() {
    let folder = folder("restart-lock");
    let _first = RuleStore::open(settings(&folder, 1), StoreClock::at(Nanos(0))).unwrap();
    let mut is_opened = false;
    let open = |_: &mut dyn FnMut()| {
        is_opened = true;
        Ok(Vec::new())
    };
    let refused = Daemon::open(&datapath(&folder, 1), open, &mut Crew::default());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("another datapath or process uses this store"), "{error}");
    assert!(!is_opened);
    std::fs::remove_dir_all(folder).unwrap();
}
