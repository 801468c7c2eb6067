# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The steps of `make nightly` in the order in which they run: `step NAME COMMAND`. scripts/nightly.sh reads this list. A step
# exits with 0 when it passed, ends when it gets SIGTERM, and leaves nothing behind. What takes hours is split into several
# steps or can continue by itself, because an interrupted step starts again from its beginning.
#
# Sizes come from the environment; the Makefile documents them.

: "${NIGHTLY_CASES:=20000}" "${NIGHTLY_MUTANTS:=60}" "${NIGHTLY_SEED:=18}" "${FUZZ_SECONDS:=600}"

# The oracle at length: NIGHTLY_CASES rule sets from seed 100,001 on, in equal parts of at most 2,000. Fewer than 200 in a part
# may miss what the test demands of all of them together.
parts=$(((NIGHTLY_CASES + 1999) / 2000))
for ((part = 1; part <= parts; part++)); do
    cases=$(((NIGHTLY_CASES + parts - 1) / parts))
    step "oracle-$part" \
        "ORACLE_SEED=$((100001 + (part - 1) * cases)) ORACLE_CASES=$cases cargo test --package sim --test oracle -- --nocapture"
done

# Faults: every patch of tests/mutations, then random ones. The latter continue by themselves.
step mutations "cargo xtask mutants --all"
step mutants "cargo xtask mutants --random $NIGHTLY_MUTANTS --seed $NIGHTLY_SEED"
step mutants-pipeline "cargo xtask mutants --random $((NIGHTLY_MUTANTS / 3 + 1)) --seed $NIGHTLY_SEED --crates pipeline"

# The daemon's threads, 120 runs of 10 s.
step threads "THREADS_SEED=1001 THREADS_RUNS=20 THREADS_MS=10000 cargo test --package switch --test threads -- --nocapture"

# A switch whose log fails, 10 minutes for each way to fail. Stalls of more than 50 ms fail it.
step broken-log "cargo build --quiet --release --package shunt && SHUNT=target/release/shunt scripts/tests/test_broken_log.sh 600"

# Models of threads with more interruptions than in CI.
step loom "LOOM_MAX_PREEMPTIONS=5 make --no-print-directory loom"

step fuzz "make --no-print-directory fuzz FUZZ_SECONDS=$FUZZ_SECONDS"
step conformance "make --no-print-directory conformance"
step networks "make --no-print-directory networks"
