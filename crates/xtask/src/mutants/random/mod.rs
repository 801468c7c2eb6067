// SPDX-License-Identifier: Apache-2.0
//! Random mutants: a sample of small generated changes ([`sites`]). The tests of the mutant's crate run
//! first, then the tests of dependent crates ([`stages`]), until a test fails.
//!
//! The sample depends only on the seed and the names of the mutants. Verdicts are stored in
//! `target/mutants/random.jsonl` ([`results`]), and a second call continues where the first call stopped. The
//! copy of the tree and the build folder are below `target/mutants/random`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::copy::TreeCopy;
use super::runner::{RunOutcome, Runner};
use super::seed;
use crate::{Failure, say, tree};

mod results;
mod sites;
mod stages;

use results::{Equivalents, ResultRow, Results, Verdict};
use sites::Mutant;
use stages::{Stage, Stages};

const EQUIVALENT: &str = "tests/mutations/equivalent.txt";

/// Minimum share of viable mutants that must be caught, in percent.
const BAR_PERCENT: usize = 90;

/// Options of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct RandomOptions {
    /// Number of mutants to test. Mutants that do not compile are not counted.
    count: usize,
    seed: u64,
    crates: Vec<String>,
    /// Whether mutants that were not caught are tested again.
    again: bool,
    /// Whether the sample is printed instead of tested.
    list: bool,
}

impl RandomOptions {
    /// Parses `--random N --seed S [--crates A,B] [--again] [--list]`. Returns `None` for other arguments.
    pub fn parse(words: &[&str]) -> Option<Self> {
        let crates = ["flow", "engines", "tables", "model", "worker"].map(str::to_owned).to_vec();
        let mut options = Self { count: 0, seed: 0, crates, again: false, list: false };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--random" => options.count = words.next()?.parse().ok()?,
                "--seed" => options.seed = words.next()?.parse().ok()?,
                "--crates" => options.crates = words.next()?.split(',').map(str::to_owned).collect(),
                "--again" => options.again = true,
                "--list" => options.list = true,
                _ => return None,
            }
        }
        (options.count > 0).then_some(options)
    }
}

/// Tests a sample. Returns true if enough mutants are caught.
pub fn run(root: &Path, options: &RandomOptions) -> Result<bool, Failure> {
    if options.list {
        for mutant in sample(root, options)?.iter().take(options.count) {
            say(io::stdout(), &format!("{} {}", place(root, mutant), mutant.name()));
        }
        return Ok(true);
    }
    let mutants = root.join("target/mutants");
    let (folder, logs) = (mutants.join("random"), mutants.join("random/logs"));
    fs::create_dir_all(&logs).map_err(|error| format!("{} cannot be created: {error}", logs.display()))?;
    let copy = TreeCopy::make(root, &folder.join("tree"))?;
    allow_warnings(copy.root())?;
    let build = folder.join("build");
    seed::copy_units(&root.join("target/debug"), &build.join("debug"), &seed::own_packages(root)?, None)?;
    let mut judge = Judge {
        runner: Runner::new(copy.root(), &build, &logs)?,
        stages: Stages::read(root)?,
        results: Results::open(&mutants.join("random.jsonl"))?,
        sound: HashMap::new(),
        commit: commit(root)?,
        copy,
    };
    let equivalents = Equivalents::read(&root.join(EQUIVALENT))?;
    let sample = sample(root, options)?;
    let mut summary = Summary::default();
    for mutant in &sample {
        if summary.viable() == options.count {
            break;
        }
        let name = mutant.name();
        let place = place(root, mutant);
        if let Some(reason) = equivalents.reason(&name) {
            summary.equivalent.push(format!("{place} {name}: {reason}"));
            continue;
        }
        let known = judge.results.get(&name);
        let known = known.filter(|row| row.verdict == Verdict::Caught || !options.again).cloned();
        let (row, is_current) = match known {
            Some(row) => {
                let is_current = row.is_of(&judge.commit);
                (row, is_current)
            }
            None => (judge.judge(mutant, &place)?, true),
        };
        summary.add(&row, &place, is_current);
    }
    Ok(summary.print(options))
}

/// Allows the lints that the project denies. A deleted statement may leave a variable unused.
fn allow_warnings(root: &Path) -> Result<(), Failure> {
    let path = root.join("Cargo.toml");
    let fault = |error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(&path).map_err(fault)?;
    fs::write(&path, text.replace("= \"deny\"", "= \"allow\"")).map_err(fault)
}

/// Returns all mutants of the crates in an order determined by the seed.
fn sample(root: &Path, options: &RandomOptions) -> Result<Vec<Mutant>, Failure> {
    let mut all = Vec::new();
    for path in tree::paths(root)? {
        let is_wanted = options.crates.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        if is_wanted && !is_test && path.ends_with(".rs") {
            let text = fs::read_to_string(root.join(&path)).map_err(|error| format!("{path}: {error}"))?;
            all.extend(sites::find(&path, &text)?);
        }
    }
    if all.is_empty() {
        return Err(format!("there is nothing to change in {}", options.crates.join(", ")));
    }
    all.sort_by_cached_key(|mutant| (rank(options.seed, &mutant.name()), mutant.name()));
    Ok(all)
}

/// Returns a hash of seed and name (FNV-1a, mixed). The sample consists of the mutants with the lowest
/// hashes.
fn rank(seed: u64, name: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    let bytes = seed.to_be_bytes().into_iter().chain(name.bytes());
    let hash: u64 =
        bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn place(root: &Path, mutant: &Mutant) -> String {
    let text = fs::read_to_string(root.join(&mutant.path)).unwrap_or_default();
    format!("{}:{}", mutant.path, mutant.line(&text))
}

/// Returns the current commit, with a suffix if there are uncommitted changes.
fn commit(root: &Path) -> Result<String, Failure> {
    let output = Command::new("git")
        .args(["describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git could not be started: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// State of a test run over mutants.
struct Judge {
    copy: TreeCopy,
    runner: Runner,
    stages: Stages,
    results: Results,
    /// Whether each stage passes on the unmodified code.
    sound: HashMap<Stage, bool>,
    commit: String,
}

impl Judge {
    fn judge(&mut self, mutant: &Mutant, place: &str) -> Result<ResultRow, Failure> {
        let started = Instant::now();
        let of = mutant.path.split('/').nth(1).unwrap_or_default();
        let text = fs::read_to_string(self.copy.root().join(&mutant.path))
            .map_err(|error| format!("{}: {error}", mutant.path))?;
        let changed = mutant.apply(&text)?;
        let (mut verdict, mut by) = (Verdict::Missed, String::new());
        for stage in self.stages.of(of) {
            if !self.is_sound(&stage)? {
                say(io::stdout(), &format!("mutants: the unmodified code does not pass `{}`", stage.name()));
                continue;
            }
            let found = self.copy.edited(&mutant.path, &changed, || run_stage(&self.runner, &stage))?;
            if let Some((found, why)) = found {
                verdict = found;
                by = format!("{}: {why}", stage.name());
                break;
            }
        }
        let row = ResultRow {
            mutant: mutant.name(),
            place: place.to_owned(),
            verdict,
            by,
            seconds: started.elapsed().as_secs(),
            commit: self.commit.clone(),
        };
        say(io::stdout(), &format!("{verdict:?} {:5} s  {place} {} ({})", row.seconds, row.mutant, row.by));
        self.results.add(row.clone())?;
        Ok(row)
    }

    /// Returns whether the unmodified code passes a stage, which is tested once per commit.
    fn is_sound(&mut self, stage: &Stage) -> Result<bool, Failure> {
        if let Some(sound) = self.sound.get(stage) {
            return Ok(*sound);
        }
        let started = Instant::now();
        let name = format!("no change: {}", stage.name());
        let known = self.results.get(&name).filter(|row| row.is_of(&self.commit));
        let sound = match known {
            Some(row) => row.verdict == Verdict::Missed,
            None => {
                let found = run_stage(&self.runner, stage)?;
                let (verdict, by) = found.unwrap_or((Verdict::Missed, String::new()));
                self.results.add(ResultRow {
                    mutant: name,
                    place: String::new(),
                    verdict,
                    by,
                    seconds: started.elapsed().as_secs(),
                    commit: self.commit.clone(),
                })?;
                verdict == Verdict::Missed
            }
        };
        self.sound.insert(stage.clone(), sound);
        Ok(sound)
    }
}

/// Builds and runs the tests of a stage. Returns `None` if they pass.
fn run_stage(runner: &Runner, stage: &Stage) -> Result<Option<(Verdict, String)>, Failure> {
    let mut built = runner.run("build", &stage.build(), &[])?;
    if has_failed(&built) && !is_refused(&runner.log("build")?) {
        // The failure may be caused by files of an interrupted build, or by a temporary lack of memory.
        runner.run("clean", &stages::clean(), &[])?;
        built = runner.run("build", &stage.build(), &[])?;
    }
    match built {
        RunOutcome::TooSlow => return Ok(Some((Verdict::Timeout, "the build took too long".into()))),
        RunOutcome::Failed(_) | RunOutcome::NoResult => {
            let log = runner.log("build")?;
            if !is_refused(&log) {
                return Err(format!(
                    "a build failed twice for a reason other than the code:\n{}",
                    end_of(&log)
                ));
            }
            return Ok(Some((Verdict::Unviable, "it does not compile".into())));
        }
        RunOutcome::Passed | RunOutcome::NothingRan => {}
    }
    let first = run_tests(runner, stage)?;
    // A test failure that does not recur is not a detection, so the tests are run again.
    match first {
        Some((Verdict::Caught, _)) => run_tests(runner, stage),
        other => Ok(other),
    }
}

fn has_failed(outcome: &RunOutcome) -> bool {
    matches!(outcome, RunOutcome::Failed(_) | RunOutcome::NoResult)
}

/// Returns whether the compiler rejected the code. A build that fails for another reason, such as a full
/// disk, does not count.
fn is_refused(log: &str) -> bool {
    const OTHER_ERRORS: &[&str] = &[
        "error: linking with",
        "error: internal compiler error",
        "error: failed to",
        "error: could not execute process",
        "memory allocation of",
    ];
    // No space left on the device, no memory, or a process killed by a signal.
    const OTHER_REASONS: &[&str] = &["(os error 28)", "(os error 12)", "(signal: "];
    let has_errors = |line: &str| {
        let (_, reason) = line.strip_prefix("error: could not compile ")?.split_once(" due to ")?;
        Some(reason.contains("previous error"))
    };
    let is_other = |line: &str| {
        OTHER_ERRORS.iter().any(|start| line.starts_with(start))
            || OTHER_REASONS.iter().any(|sign| line.contains(sign))
    };
    log.lines().any(|line| has_errors(line) == Some(true)) && !log.lines().any(is_other)
}

fn end_of(log: &str) -> String {
    const LINES: usize = 20;
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// Runs compiled tests. Returns `None` if they pass.
fn run_tests(runner: &Runner, stage: &Stage) -> Result<Option<(Verdict, String)>, Failure> {
    Ok(match runner.run("test", &stage.run(), &[])? {
        RunOutcome::Passed | RunOutcome::NothingRan => None,
        RunOutcome::Failed(tests) => Some((Verdict::Caught, tests.join(", "))),
        RunOutcome::TooSlow => Some((Verdict::Timeout, "the tests took too long".into())),
        RunOutcome::NoResult if runner.log("test")?.contains("SIGXCPU") => {
            let why = format!("a test took more than {} s of CPU time", stage.processor_s);
            Some((Verdict::Timeout, why))
        }
        RunOutcome::NoResult => Some((Verdict::Caught, "a test process died".into())),
    })
}

/// Summary of the verdicts of a sample.
#[derive(Default)]
struct Summary {
    caught: usize,
    /// Number of caught or missed mutants that were tested at another commit, or with uncommitted changes.
    of_other_commits: usize,
    unviable: usize,
    missed: Vec<String>,
    timeouts: Vec<String>,
    equivalent: Vec<String>,
}

impl Summary {
    fn viable(&self) -> usize {
        self.caught + self.missed.len() + self.timeouts.len() + self.equivalent.len()
    }

    fn add(&mut self, row: &ResultRow, place: &str, is_current: bool) {
        let line = || format!("{place} {} {}", row.mutant, row.by).trim_end().to_owned();
        if matches!(row.verdict, Verdict::Caught | Verdict::Missed) {
            self.of_other_commits += usize::from(!is_current);
        }
        match row.verdict {
            Verdict::Caught => self.caught += 1,
            Verdict::Unviable => self.unviable += 1,
            Verdict::Missed => self.missed.push(line()),
            Verdict::Timeout => self.timeouts.push(line()),
        }
    }

    /// Prints the summary as a table. Returns true if enough mutants are caught.
    fn print(&self, options: &RandomOptions) -> bool {
        for (title, lines) in
            [("missed", &self.missed), ("timeout", &self.timeouts), ("equivalent", &self.equivalent)]
        {
            for line in lines {
                say(io::stdout(), &format!("{title:10} {line}"));
            }
        }
        let judged = self.caught + self.missed.len();
        let enough = judged > 0 && self.caught * 100 >= judged * BAR_PERCENT;
        let percent = self.caught as f64 * 100.0 / judged.max(1) as f64;
        let summary = format!(
            "mutants of {}, seed {}: {} caught of {judged} ({percent:.1} %, at least {BAR_PERCENT} % are required; {} tested \
             at other commits); apart from these {} timeouts, {} equivalent, {} that do not compile",
            options.crates.join(", "),
            options.seed,
            self.caught,
            self.of_other_commits,
            self.timeouts.len(),
            self.equivalent.len(),
            self.unviable,
        );
        say(io::stdout(), &summary);
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options =
            RandomOptions::parse(&["--random", "60", "--seed", "18", "--crates", "flow,pipeline"]).unwrap();
        assert_eq!((options.count, options.seed, options.again, options.list), (60, 18, false, false));
        assert!(RandomOptions::parse(&["--random", "60", "--list"]).unwrap().list);
        assert_eq!(options.crates, ["flow", "pipeline"]);
        for wrong in [&["--seed", "1"][..], &["--random"], &["--random", "x"], &["--random", "1", "--fast"]] {
            assert_eq!(RandomOptions::parse(wrong), None);
        }
    }

    #[test]
    fn code_that_does_not_compile_is_distinguished_from_other_build_failures() {
        let refused =
            "error[E0308]: mismatched types\nerror: could not compile `tables` (lib) due to 1 previous error";
        assert!(is_refused(refused));
        assert!(is_refused(&format!("{refused}; 2 warnings emitted\n")));
        assert!(is_refused("error: could not compile `flow` (lib test) due to 3 previous errors\n"));
        for other in [
            "error: linking with `cc` failed: exit status: 1\n",
            "error: could not compile `tables` (lib)\n\nCaused by:\n  process didn't exit successfully: `rustc` (signal: 9, \
             SIGKILL: kill)\n",
            "error: failed to write /build/libtables.rmeta: No space left on device (os error 28)\n",
            "memory allocation of 65536 bytes failed\n",
            "error: could not execute process `rustc` (never executed)\n",
        ] {
            assert!(!is_refused(other), "{other}");
            // The error may be a consequence of another compiler process that failed at the same time.
            assert!(!is_refused(&format!("{other}{refused}\n")), "{other}");
        }
        assert!(!is_refused(""));
    }

    #[test]
    fn verdicts_of_other_commits_are_counted() {
        let row = |verdict, commit: &str| ResultRow {
            mutant: "a".into(),
            place: "a.rs:1".into(),
            verdict,
            by: String::new(),
            seconds: 1,
            commit: commit.into(),
        };
        let mut summary = Summary::default();
        for (verdict, commit) in [
            (Verdict::Caught, "new"),
            (Verdict::Caught, "old"),
            (Verdict::Missed, "old"),
            (Verdict::Timeout, "old"),
            (Verdict::Unviable, "old"),
        ] {
            summary.add(&row(verdict, commit), "a.rs:1", row(verdict, commit).is_of("new"));
        }
        assert_eq!((summary.caught, summary.missed.len(), summary.of_other_commits), (2, 1, 2));
        // Uncommitted changes are unknown, so the verdict does not count as current.
        assert!(!row(Verdict::Caught, "new-dirty").is_of("new-dirty"));
    }

    #[test]
    fn the_sample_depends_on_seed_and_names_only() {
        let names: Vec<String> = (0..1_000).map(|at| format!("mutant {at}")).collect();
        let lowest = |seed: u64| {
            let mut sorted: Vec<&String> = names.iter().collect();
            sorted.sort_by_key(|name| rank(seed, name));
            sorted[..10].iter().map(|name| (*name).clone()).collect::<Vec<_>>()
        };
        assert_eq!(lowest(1), lowest(1));
        assert_ne!(lowest(1), lowest(2));
        let below = names.iter().filter(|name| rank(18, name) < u64::MAX / 4).count();
        assert!((200..300).contains(&below), "{below} of 1,000 in the lowest quarter");
    }

    #[test]
    fn ninety_percent_must_be_caught_and_other_verdicts_do_not_count() {
        let options = RandomOptions::parse(&["--random", "60"]).unwrap();
        let missed = vec!["a".to_owned()];
        let timeouts = vec!["b".to_owned(); 5];
        let mut summary = Summary { caught: 9, missed, timeouts, unviable: 7, ..Summary::default() };
        assert!(summary.print(&options));
        assert_eq!(summary.viable(), 15);
        summary.caught = 8;
        assert!(!summary.print(&options));
        assert!(!Summary::default().print(&options));
    }
}
