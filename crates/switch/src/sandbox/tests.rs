// SPDX-License-Identifier: Apache-2.0
//! Tests of the limits. Those that install filters do so in a process of their own.

use super::calls::{ArgumentLimit, CALLS, OLDER_CALLS};
use super::filter::ThreadFilter;
use super::*;
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGSYS;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable that makes [`in_a_process_of_its_own`] do something.
const CASE: &str = "SHUNT_SANDBOX_CASE";

/// Returns a call's row in docs/security.md.
fn row(call: &calls::AllowedCall) -> String {
    let threads = match call.threads {
        all if all == ThreadKind::ALL => "all".to_owned(),
        some => some.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", "),
    };
    let limit = match call.limit {
        ArgumentLimit::Any => String::new(),
        ArgumentLimit::OneOf(_, values) => {
            format!("only {}", values.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", "))
        }
        ArgumentLimit::Without(_, _, name) => format!("without {name}"),
        ArgumentLimit::With(_, _, name) => format!("with {name}"),
    };
    format!("| `{}` | {threads} | {limit} |", call.name)
}

#[test]
fn the_page_about_security_has_the_table_of_calls() {
    let page = include_str!("../../../../docs/security.md");
    let page = page.split("| call | threads | arguments |").nth(1).unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| `") && line.ends_with(" |")).collect();
    let expected: Vec<String> = CALLS.iter().chain(OLDER_CALLS).map(row).collect();
    // Other machines lack the older calls.
    if cfg!(target_arch = "x86_64") {
        assert_eq!(rows, expected, "write these rows into docs/security.md:\n{}\n", expected.join("\n"));
    }
}

#[test]
fn each_kind_of_thread_has_a_call_once() {
    for kind in ThreadKind::ALL {
        let mut names: Vec<_> =
            CALLS.iter().chain(OLDER_CALLS).filter(|call| call.threads.contains(&kind)).collect();
        names.sort_by_key(|call| call.number);
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0].number == pair[1].number).collect();
        assert!(twice.is_empty(), "{kind}: {twice:?}");
        assert!(ThreadFilter::compile(kind, SeccompMode::On).unwrap().is_some());
        assert!(ThreadFilter::compile(kind, SeccompMode::Off).unwrap().is_none());
    }
}

/// A worker has the shortest list of the threads that talk to devices. These calls would let a packet's
/// sender who controls a worker leave the process.
#[test]
fn workers_may_not_open_files_or_connections_or_start_programs() {
    let calls: Vec<_> =
        CALLS.iter().chain(OLDER_CALLS).filter(|call| call.threads.contains(&ThreadKind::Worker)).collect();
    for forbidden in
        ["openat", "connect", "accept4", "listen", "clone", "unlink", "ptrace", "execve", "prctl"]
    {
        assert!(calls.iter().all(|call| call.name != forbidden), "workers may call {forbidden}");
    }
    let everyone = CALLS.iter().chain(OLDER_CALLS);
    for forbidden in ["execve", "execveat", "ptrace", "fork", "vfork", "mount", "setuid", "kexec_load"] {
        assert!(everyone.clone().all(|call| call.name != forbidden), "a thread may call {forbidden}");
    }
}

fn configs(seccomp: &str) -> Vec<Config> {
    let text = format!("[security]\nseccomp = \"{seccomp}\"\n[[worker]]\n[[datapath]]\nid = 1\n");
    Config::parse_all(&text).unwrap()
}

/// Calls that every thread makes.
fn usual_calls() {
    // This must come first: once a large block has been freed, malloc returns less heap memory to the kernel.
    grow_and_shrink_heap();
    let mut bytes = vec![0_u8; 1 << 20];
    bytes.resize(1 << 24, 1);
    thread::sleep(Duration::from_millis(1));
    thread::yield_now();
    drop(bytes);
    assert!(Instant::now().elapsed() < Duration::from_secs(60));
}

/// What the threads of each case do.
fn act(case: &str) {
    let of = |kind, action: fn()| {
        let run = move || {
            enter(kind);
            usual_calls();
            action();
        };
        thread::spawn(run).join().unwrap();
    };
    match case {
        "worker opens a file" => of(ThreadKind::Worker, || drop(File::open("/dev/null"))),
        "worker connects" => of(ThreadKind::Worker, || drop(std::net::TcpStream::connect("127.0.0.1:9"))),
        "worker starts a program" => of(ThreadKind::Worker, || drop(Command::new("true").status())),
        "control starts a program" => of(ThreadKind::Control, || drop(Command::new("true").status())),
        "control writes a file" => of(ThreadKind::Control, || drop(File::create("/dev/null"))),
        "reload starts a program" => of(ThreadKind::Reload, || drop(Command::new("true").status())),
        "log opens a file" => of(ThreadKind::Log, || drop(File::open("/dev/null"))),
        "metrics writes a file" => of(ThreadKind::Metrics, || drop(File::create("/dev/null"))),
        "task asks for limits" => of(ThreadKind::Task, || _ = getrlimit(Resource::Nofile)),
        "threads do their work" => {
            of(ThreadKind::Worker, || drop(port::wait::Wake::new()));
            of(ThreadKind::Control, || {
                drop(File::open("/dev/null").unwrap());
                thread::spawn(|| {
                    enter(ThreadKind::Task);
                    usual_calls();
                })
                .join()
                .unwrap();
            });
            of(ThreadKind::Reload, || drop(File::create("/dev/null").unwrap()));
            of(ThreadKind::Metrics, || drop(fs::read_to_string("/proc/self/status").unwrap()));
            of(ThreadKind::Store, || drop(File::create("/dev/null").unwrap()));
            of(ThreadKind::Log, || crate::log::say("a line"));
        }
        "capabilities" => {
            of(ThreadKind::Metrics, || print_capabilities("metrics"));
            // Workers may not open /proc, so another thread of the kind's capabilities does.
            let control = || print_capabilities("control");
            of(ThreadKind::Control, control);
        }
        other => panic!("{other}"),
    }
    println!("the end of {case}");
}

fn print_capabilities(kind: &str) {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    // The test program has begun a line.
    println!();
    for line in status.lines().filter(|line| line.starts_with("Cap") || line.starts_with("NoNewPrivs")) {
        println!("{kind} {}", line.replace('\t', " "));
    }
}

/// Acts if another test has started this process for it.
#[test]
fn in_a_process_of_its_own() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (seccomp, case) = case.split_once(": ").unwrap();
    prepare_c_library().unwrap();
    begin(&configs(seccomp)).unwrap();
    act(case);
}

fn child(case: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::tests::in_a_process_of_its_own", "--nocapture", "--test-threads=1"])
        .env(CASE, case)
        .output()
        .unwrap()
}

#[test]
fn a_forbidden_call_ends_the_process_with_a_line() {
    for case in [
        "worker opens a file",
        "worker connects",
        "worker starts a program",
        "control starts a program",
        "control writes a file",
        "reload starts a program",
        "log opens a file",
        "metrics writes a file",
        "task asks for limits",
    ] {
        let kind = case.split(' ').next().unwrap();
        let output = child(&format!("on: {case}"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.signal(), Some(SIGSYS), "{case}: {text}");
        let says = format!("shunt: a thread of kind {kind} made the system call ");
        let has_line = text.contains(&says) && text.contains("; the switch ends\n");
        // The C library blocks signals while it starts a program, so the kernel ends the process itself.
        assert!(has_line || case.ends_with("starts a program"), "{case}: {text}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("the end of"), "{case}");
        // Without a filter, the case does nothing bad.
        let output = child(&format!("off: {case}"));
        assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // The kernel only logs.
    assert!(child("log: worker opens a file").status.success());
}

#[test]
fn a_thread_that_cannot_start_is_not_blamed_on_the_filters() {
    // No address space has room for this stack.
    let error = in_thread(Builder::new().stack_size(1 << 60), || ()).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("cannot run a thread") && !message.contains("seccomp"), "{message}");
}

#[test]
fn listed_calls_are_allowed() {
    let output = child("on: threads do their work");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("the end of threads do their work"));
}

#[test]
fn threads_keep_the_capabilities_of_their_kind() {
    let output = child("off: capabilities");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let has = |kind: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{kind} {key}: ")));
        u64::from_str_radix(line.unwrap().rsplit(' ').next().unwrap(), 16).unwrap()
    };
    for key in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        assert_eq!(has("metrics", key), 0, "{text}");
    }
    assert_eq!((has("control", "CapInh"), has("control", "CapAmb")), (0, 0), "{text}");
    let allowed = ThreadKind::Control.capabilities(false).bits();
    assert_eq!(has("control", "CapPrm") & !allowed, 0, "{text}");
    assert_eq!(has("control", "NoNewPrivs"), 1, "{text}");
    if nix::unistd::geteuid().is_root() {
        assert_eq!(has("control", "CapEff") & 1 << 13, 1 << 13, "CAP_NET_RAW is missing: {text}");
    }
}
