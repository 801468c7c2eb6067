# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The steps of `make nightly` in the order in which they run: `step NAME COMMAND`. scripts/nightly.sh reads
# this list.
#
# A step exits with 0 when it passed, ends on SIGTERM, and removes its temporary files and processes. An
# interrupted step starts again, so work of several hours is split into steps or can continue by itself.
#
# Sizes come from the environment; the Makefile documents them.

: "${NIGHTLY_CASES:=20000}" "${NIGHTLY_MUTANTS:=60}" "${NIGHTLY_SEED:=18}" "${FUZZ_SECONDS:=600}"

# A long run of the oracle: NIGHTLY_CASES rule sets from seed 100,001 on, in equal parts of at most 2,000 rule
# sets. Parts of fewer than 200 rule sets may fail requirements on all rule sets together.
parts=$(((NIGHTLY_CASES + 1999) / 2000))
for ((part = 1; part <= parts; part++)); do
    cases=$(((NIGHTLY_CASES + parts - 1) / parts))
    step "oracle-$part" \
        "ORACLE_SEED=$((100001 + (part - 1) * cases)) ORACLE_CASES=$cases cargo test --package oracle --test oracle -- --nocapture"
done

# Faults: first every patch of tests/mutations, then random mutants. An interrupted run of random mutants
# continues where it stopped.
step mutations "cargo xtask mutants --all"
step mutants "cargo xtask mutants --random $NIGHTLY_MUTANTS --seed $NIGHTLY_SEED"
step mutants-pipeline "cargo xtask mutants --random $((NIGHTLY_MUTANTS / 3 + 1)) --seed $NIGHTLY_SEED --crates actions,keys,stateless,backlog,port_cache,pipeline"

# Threads of the daemon: 5 tests, each with 20 seeds and 2 numbers of workers: 200 runs of 10 s.
step threads "THREADS_SEED=1001 THREADS_RUNS=20 THREADS_MS=10000 cargo test --package switch --test threads -- --nocapture"

# A switch whose log fails, for 10 minutes with each kind of failure. Stalls of more than 50 ms are failures.
step broken-log "cargo build --quiet --release --package shunt && SHUNT=$PWD/target/release/shunt scripts/tests/test_broken_log.sh 600"

# Packages: made, checked by lintian, and used in a clean Debian.
step packages "scripts/nightly/test_packages.sh"

# Models of threads, with more preemptions than in CI.
step loom "LOOM_MAX_PREEMPTIONS=5 make --no-print-directory loom"

# Frames and port drivers with the address sanitizer.
step asan "scripts/asan.sh"

step fuzz "make --no-print-directory fuzz FUZZ_SECONDS=$FUZZ_SECONDS"
step conformance "make --no-print-directory conformance"
step networks "make --no-print-directory networks"

# The store: 10,000 damaged files, 200 kills of a process, and kills of a switch: at 200 random times, and with
# 100,000 rules.
step store "STORE_PROGRAMS=400 STORE_CASES=10000 STORE_KILLS=100 cargo test --release --package store"
step restart "cargo build --quiet --release --package shunt && SHUNT=$PWD/target/release/shunt RESTART_FLOWS=100000 RESTART_GROUPS=1000 RESTART_KILLS=20 RESTART_LOSS_MS=50 RESTART_SEED=$NIGHTLY_SEED scripts/tests/test_restart.sh"
step restart-kills "cargo build --quiet --release --package shunt && SHUNT=$PWD/target/release/shunt RESTART_KILLS=200 RESTART_LOSS_MS=50 RESTART_SEED=$NIGHTLY_SEED scripts/tests/test_restart.sh"

# 1,000 reloads under traffic, and 20 upgrades at 200,000 packets/s with 100,000 rules.
step reload "cargo build --quiet --release --package shunt && SHUNT_TEST_PROGRAM=$PWD/target/release/shunt RELOAD_SEED=$NIGHTLY_SEED scripts/tests/test_reload.sh 1000"
step upgrade "cargo build --quiet --release --package shunt && SHUNT_TEST_PROGRAM=$PWD/target/release/shunt scripts/nightly/test_upgrade_load.sh 20"

# Jumps of the time of day, and the cost of scrapes with a million flows.
step clock "cargo build --quiet --release --package shunt && SHUNT=$PWD/target/release/shunt scripts/nightly/test_clock.sh"
step scrape "cargo build --quiet --release --package shunt && SHUNT=$PWD/target/release/shunt scripts/nightly/test_scrape.sh"

# POF: 10 million messages, a million packets, and a storm of FLOW_MODs on 100,000 entries.
step pof-messages "POF_MESSAGES=10000000 cargo test --release --package pof_agent --test agent random"
step pof-packets "POF_PACKETS=1000000 cargo test --release --package switch --test pof equivalence"
step pof-storm "POF_STORM=100000 POF_STORM_RATE=60000 POF_STORM_MIN=50000 cargo test --release --package switch --test pof storm -- --nocapture"

# The benches of the hardware pipeline that `make test` leaves out, random programs, and faults planted into its RTL.
step rtl "RTL_BENCHES='tcam tcam_paged datapath datapath_4_ppus' make --no-print-directory rtl RTL_STEPS='simulate volume all_faults prove'"
# More than 10,000,000 frames of compiled flow tables equal `reference`, and 6,750,000 frames of random programs
# equal the software model. The captures beside the repository are compared with `reference`, if they exist.
captures=""
[ ! -d ../shared/data/pcap ] || captures="DEVICE_CAPTURES=${PWD@Q}/../shared/data/pcap DEVICE_CAPTURES_MIN=8500"
step rtl-reference "$captures SIM_PROGRAMS=2500 SIM_FRAMES_MIN=6750000 SIM_CASES=4600 SIM_CASE_FRAMES_MIN=10000001 cargo test --release --package device_sim --features datapath -- --nocapture"
step rtl-device "SIM_DEVICE_CASES=300 cargo test --release --package device_sim --features device"

# Every value of the paper's figures must be in the benchmarks' reports.
step figures "make --no-print-directory figures FIGURES=quick"
