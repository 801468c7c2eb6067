// SPDX-License-Identifier: Apache-2.0
//! Adds and removes rules one at a time while tables are compiled on another thread. Packets must always be
//! forwarded by the active rules.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flow::{Action, Field, FieldMatch, FlowMod, FlowModCommand, Instructions, Match, Nanos, PortNo};
use model::{Model, ModelConfig, PortDesc};
use port::Queue;
use port::mem;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use worker::{BackgroundTask, PortQueues, Worker, WorkerSet, build};

const STEPS: u64 = 6_000;
/// Number of addresses that rules match.
const ADDRESSES: u32 = 500;

fn packet(address: u32) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
    bytes.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1]);
    bytes.extend(address.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

/// Returns a rule for the prefix of this length in bits.
fn rule(address: u32, length: u32, port: u32, command: FlowModCommand) -> FlowMod {
    let mask = u32::MAX << (32 - length);
    let prefix = FieldMatch { field: Field::Ipv4Dst, value: (address & mask).into(), mask: mask.into() };
    FlowMod {
        command,
        matching: Match::new([FieldMatch::exact(Field::EthType, 0x0800), prefix]).unwrap(),
        priority: 100 + length as u16,
        instructions: Instructions::apply(vec![Action::output(PortNo(port))]),
        ..FlowMod::default()
    }
}

/// Returns a worker with three ports, and the test's ends of these ports.
fn one_worker() -> (WorkerSet, Vec<Worker>, Vec<mem::MemHandle>) {
    let (mut handles, mut ports) = (Vec::new(), Vec::new());
    for number in 1..=3 {
        let (mut queues, handle) = mem::pair(number, 1, 64);
        handles.push(handle);
        ports.push(PortQueues {
            number: PortNo(number),
            queues: vec![(0, Box::new(queues.remove(0)) as Box<dyn Queue>)],
            egress: Vec::new(),
        });
    }
    let (set, workers) =
        build(&worker::WorkerSetConfig { workers: 1, ..worker::WorkerSetConfig::default() }, ports);
    (set, workers, handles)
}

fn model_of(set: WorkerSet) -> Model<WorkerSet> {
    let mut model = Model::new(ModelConfig::default(), set, Nanos(0));
    for number in 1..=3 {
        let desc = PortDesc { number: PortNo(number), name: format!("p{number}"), ..PortDesc::default() };
        model.add_port(Nanos(0), desc, true).unwrap();
    }
    model
}

#[test]
fn an_unchanged_table_is_compiled_with_its_delta() {
    let (mut set, mut workers, mut handles) = one_worker();
    let (tasks, work) = mpsc::channel::<BackgroundTask>();
    set.set_compiler(worker::BACKGROUND_ADDITIONS_MIN, Box::new(move |task| tasks.send(task).unwrap()));
    let mut model = model_of(set);
    let second = 1_000_000_000;
    // The first rule creates a base; the others go to the delta.
    for address in 0..8 {
        model.flow_mod(Nanos(u64::from(address)), rule(address, 32, 2, FlowModCommand::Add)).unwrap();
    }
    while work.try_recv().is_ok() {}
    model.poll(Nanos(second));
    assert!(work.try_recv().is_err(), "the table has changed recently");
    model.poll(Nanos(4 * second));
    work.try_recv().unwrap()();
    model.poll(Nanos(4 * second + 1));
    // Runs the remaining jobs, which free retired objects.
    while let Ok(task) = work.try_recv() {
        task();
    }
    for at in 5..20 {
        model.poll(Nanos(at * second));
    }
    assert!(work.try_recv().is_err(), "the base contains all rules");
    for address in 0..8 {
        assert!(handles[0].push(0, &packet(address)));
        for _ in 0..3 {
            workers[0].turn(Nanos(20 * second));
        }
        assert!(handles[1].pop(0).is_some(), "address {address}");
    }
}

#[test]
fn packets_follow_the_active_rules_during_background_compilation() {
    let (mut set, mut workers, mut handles) = one_worker();
    let (tasks, work) = mpsc::channel::<BackgroundTask>();
    let compiled = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&compiled);
    let thread = thread::spawn(move || {
        for task in work {
            task();
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    set.set_compiler(worker::BACKGROUND_ADDITIONS_MIN, Box::new(move |task| tasks.send(task).unwrap()));
    let mut model = model_of(set);
    let mut rng = fastrand::Rng::with_seed(1);
    // Output port of each prefix.
    let mut rules: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for step in 0..STEPS {
        let length = [32, 30, 28][rng.usize(..3)];
        let prefix = (rng.u32(..ADDRESSES) & u32::MAX << (32 - length), length);
        let port = rng.u32(2..=3);
        let command = if rng.u8(..3) == 0 { FlowModCommand::DeleteStrict } else { FlowModCommand::Add };
        model.flow_mod(Nanos(step), rule(prefix.0, length, port, command)).unwrap();
        if command == FlowModCommand::Add {
            rules.insert(prefix, port);
        } else {
            rules.remove(&prefix);
        }
        let address = rng.u32(..ADDRESSES);
        assert!(handles[0].push(0, &packet(address)));
        while workers[0].turn(Nanos(step)).received == 0 {}
        workers[0].turn(Nanos(step));
        while model.poll(Nanos(step)) {}
        let best =
            [32, 30, 28].iter().find_map(|length| rules.get(&(address & u32::MAX << (32 - length), *length)));
        let found = [2, 3].into_iter().find(|port| handles[*port as usize - 1].pop(0).is_some());
        assert_eq!(found.as_ref(), best, "step {step}");
    }
    drop((model, workers));
    thread.join().unwrap();
    let compiled = compiled.load(Ordering::Relaxed);
    assert!(compiled > 10, "only {compiled} background jobs ran");
}
