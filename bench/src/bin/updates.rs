// SPDX-License-Identifier: Apache-2.0
//! Large tables in which rules are replaced one at a time, at a constant rate, while a second thread compiles
//! new bases. Measures the time until a change is applied, and the effect on lookups.
//!
//! The time of a change ends when one worker has applied it. Time is virtual: a change arrives at its
//! scheduled time, waits for earlier changes, and takes its CPU time. Bases are compiled in real time.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use compiled::packet::Packet;
use compiled::{BURST, Rule, compiled, entry, lookups};
use fastrand::Rng;
use flow::{EntryId, FlowEntry};
use shunt_bench::{Bar, Figure, Plan, Pool, ThreadCpu, allowed_cpus, pin_to};
use tables::compile::{Compiled, Job};
use tables::rule_table::{Retired, RuleChange};
use tables::{RuleTable, Table, TableUpdate};

#[path = "tables/compiled.rs"]
mod compiled;

/// Number of bursts before the first key is repeated.
const BURSTS: usize = 1_000;
/// Ratio of all rules to spare rules, which replace other rules later.
const SPARE_PART: usize = 10;
/// Number of times that lookups are compared during a run.
const LOOKS: u32 = 12;
/// Maximum 99th percentile of the time of a change, in microseconds.
const IN_FORCE_US: f64 = 50.0;
/// Minimum lookup speed during changes, relative to a table compiled from the same rules.
const LOOKUPS_LEFT: f64 = 0.8;

/// Writes target/report/updates.jsonl.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only tables whose names contain this text.
    #[arg(long, default_value = "")]
    case: String,
    /// Number of changes per second.
    #[arg(long, default_value_t = 10_000)]
    rate: u32,
    /// Time for which each table is changed, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Number of pairs of windows per comparison of lookups.
    #[arg(long, default_value_t = 20)]
    pairs: usize,
    /// Number of entries in the exact table.
    #[arg(long, default_value_t = 1_000_000)]
    exact: u64,
}

/// Creates the rules of a table.
type Maker = fn(&Arguments) -> Result<Vec<Rule>, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let cpus = allowed_cpus()?;
    let (first, last) = (*cpus.first().ok_or("no CPU is allowed")?, *cpus.last().ok_or("no CPU is allowed")?);
    let (tasks, work) = channel();
    let (sender, done) = channel();
    let compiler = thread::spawn(move || {
        // With a single CPU, both threads share it.
        drop(pin_to(first));
        work_off(&work, &sender);
    });
    pin_to(last)?;
    let bases = Bases { tasks, done };
    let tables: [(&str, Maker); 4] = [
        ("access list", |_| compiled::access_list("acl1_10k")),
        ("IPv4 routes", |_| compiled::routes("ipv4")),
        ("IPv6 routes", |_| compiled::routes("ipv6")),
        ("exact", |arguments| compiled::exact(arguments.exact)),
    ];
    for (name, rules) in tables {
        if name.contains(&arguments.case) {
            run(&arguments, name, rules(&arguments)?, &bases)?;
        }
    }
    drop(bases);
    compiler.join().map_err(|_| "the thread that compiles has panicked")?;
    Ok(())
}

/// A job for the second thread.
enum Task {
    Compile(Job),
    Free(Vec<Retired>),
}

struct Bases {
    tasks: Sender<Task>,
    done: Receiver<Compiled>,
}

fn work_off(work: &Receiver<Task>, done: &Sender<Compiled>) {
    for task in work {
        match task {
            Task::Compile(job) => drop(done.send(job.run())),
            Task::Free(retired) => drop(retired),
        }
    }
}

/// A table that is being changed, with its rules.
struct Changing<'b> {
    rule_table: RuleTable,
    view: Table,
    living: Vec<Arc<FlowEntry>>,
    spare: VecDeque<Rule>,
    bases: &'b Bases,
    /// Whether a base is being compiled.
    waits: bool,
    /// Id of the rule that was deleted last.
    number: u32,
    swaps: usize,
    rng: Rng,
}

impl<'b> Changing<'b> {
    fn new(mut rules: Vec<Rule>, bases: &'b Bases) -> Result<Self, Box<dyn Error>> {
        let mut rng = Rng::with_seed(1);
        rng.shuffle(&mut rules);
        let spare = rules.split_off(rules.len() - rules.len() / SPARE_PART);
        let living: Vec<_> = (0..).zip(rules).map(|(id, rule)| entry(id, rule)).collect();
        let mut rule_table = RuleTable::default();
        let view = compiled(&mut rule_table, &living)?;
        Ok(Self {
            rule_table,
            view,
            living,
            spare: spare.into(),
            bases,
            waits: false,
            number: 0,
            swaps: 0,
            rng,
        })
    }

    /// Deletes a rule, or adds a rule in place of the last deleted rule. Returns the CPU time of the control
    /// side and the worker in nanoseconds.
    fn change(&mut self, number: u32) -> Result<u64, Box<dyn Error>> {
        let change = if number.is_multiple_of(2) {
            let gone = self.living.swap_remove(self.rng.usize(..self.living.len()));
            self.spare.push_back((gone.priority, gone.matching.clone()));
            self.number = gone.id.0;
            RuleChange::Remove(gone.id)
        } else {
            let rule = self.spare.pop_front().ok_or("there are too few rules")?;
            // The new entry reuses the id, as the model does whenever possible.
            let added = entry(self.number, rule);
            self.living.push(Arc::clone(&added));
            RuleChange::Add(added)
        };
        let start = ThreadCpu::now();
        if let Ok(compiled) = self.bases.done.try_recv() {
            self.waits = false;
            self.rule_table.install(compiled);
        }
        let updates = self.rule_table.change(&[change], 1, 1)?;
        let job = self.rule_table.background_job(worker::BACKGROUND_ADDITIONS_MIN);
        self.waits |= job.is_some();
        let retired = self.rule_table.take_retired();
        let mut updates: Vec<TableUpdate> = updates.into_iter().flatten().collect();
        updates.iter_mut().for_each(|update| self.view.apply(update));
        self.swaps += updates.iter().filter(|update| matches!(update, TableUpdate::Swap(_))).count();
        drop(updates);
        job.into_iter().try_for_each(|job| self.bases.tasks.send(Task::Compile(job)))?;
        if !retired.is_empty() {
            self.bases.tasks.send(Task::Free(retired))?;
        }
        Ok(start.elapsed_ns())
    }

    /// Waits until the current compilation of a base has finished, and discards the base.
    fn end(self) -> Result<(), Box<dyn Error>> {
        if self.waits {
            drop(self.bases.done.recv()?);
        }
        Ok(())
    }

    /// Compares lookups in the current table with lookups in a table compiled from the same rules. Returns
    /// the median ratio, and adds all pairs to `pool`.
    fn look(&mut self, pairs: usize, pool: &mut Pool) -> Result<f64, Box<dyn Error>> {
        let fresh = compiled(&mut RuleTable::default(), &self.living)?;
        let rng = &mut self.rng;
        let packets: Vec<Packet> = (0..BURSTS * BURST)
            .map(|_| {
                let rule = &self.living[rng.usize(..self.living.len())];
                Packet::matching(rng, &rule.matching)
            })
            .collect();
        let keys = |table: &Table| -> Vec<u64> {
            packets.iter().flat_map(|packet| packet.key(table.plan())).collect()
        };
        let (keys, fresh_keys) = (keys(&self.view), keys(&fresh));
        for (now, then) in
            keys.chunks(BURST * self.view.plan().words()).zip(fresh_keys.chunks(BURST * fresh.plan().words()))
        {
            let mut found = [[EntryId::NONE; BURST]; 2];
            self.view.lookup(now, &mut found[0]);
            fresh.lookup(then, &mut found[1]);
            let priority =
                |id: EntryId| self.living.iter().find(|entry| entry.id == id).map(|entry| entry.priority);
            // Among equal rules, the one added first is hit. A new compilation may order equal rules
            // differently.
            if let Some(at) = (0..BURST).find(|&at| found[0][at] != found[1][at])
                && priority(found[0][at]) != priority(found[1][at])
            {
                return Err(
                    "a lookup finds a different rule than in a table compiled from the same rules".into()
                );
            }
        }
        let plan = Plan { attempts_max: 20 * pairs, ..Plan::new(pairs) };
        let found = pool.run(&plan, &mut lookups(&self.view, &keys), &mut lookups(&fresh, &fresh_keys))?;
        Ok(found.unwrap_or(f64::NAN))
    }
}

fn run(arguments: &Arguments, name: &str, rules: Vec<Rule>, bases: &Bases) -> Result<(), Box<dyn Error>> {
    let mut table = Changing::new(rules, bases)?;
    let case =
        format!("{name} of {}, {} changes/s for {} s", table.living.len(), arguments.rate, arguments.seconds);
    let distance = Duration::from_secs(1) / arguments.rate;
    let (changes, looks) = (arguments.rate * arguments.seconds, LOOKS.min(arguments.seconds));
    let (mut latencies_us, mut pool) = (Vec::with_capacity(changes as usize), Pool::default());
    let mut ratios = Vec::new();
    let mut free_ns = 0;
    let mut start = Instant::now();
    for number in 0..changes {
        let due = distance * number;
        while start.elapsed() < due {
            thread::sleep(Duration::from_micros(500));
        }
        let due_ns = due.as_nanos() as u64;
        free_ns = due_ns.max(free_ns) + table.change(number)?;
        latencies_us.push((free_ns - due_ns) as f64 / 1e3);
        if (number + 1) % (changes / looks) == 0 {
            let pause = Instant::now();
            ratios.push(table.look(arguments.pairs, &mut pool)?);
            start += pause.elapsed();
        }
    }
    let swaps = table.swaps;
    table.end()?;
    latencies_us.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| latencies_us[((latencies_us.len() - 1) as f64 * part) as usize];
    writeln!(
        io::stdout(),
        "{case}: in force after {:.1} us at the median, {:.1} at p99, {:.0} at p99.9, {:.0} at most; {swaps} bases",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )?;
    let folder = Path::new("target/report");
    for (figure, part, bar) in [
        ("in force, median", 0.5, None),
        ("in force, p99", 0.99, Some(IN_FORCE_US)),
        ("in force, p99.9", 0.999, None),
    ] {
        let figure = Figure::limited(figure, &case, "us", &[at(part)], bar).ok_or("no changes")?;
        figure.append(folder, "updates")?;
    }
    let look = pool.sum_up()?;
    let figure = Figure::new(
        "lookups amid changes, by freshly compiled",
        &case,
        "M/CPU-s",
        &look,
        Bar::AtLeast(LOOKUPS_LEFT),
    );
    figure.append(folder, "updates")?;
    writeln!(
        io::stdout(),
        "{case}: lookups {:.1} and {:.1} M/CPU-s, ratio {:.2} ({:.2} to {:.2}) of all, medians {:.2?}",
        look.ours.median,
        look.peer.median,
        look.ratio,
        look.low,
        look.high,
        ratios
    )?;
    Ok(())
}
