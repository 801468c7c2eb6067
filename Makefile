# SPDX-License-Identifier: Apache-2.0
# The project's commands. A command installs missing tools (scripts/setup.sh), and removes its processes and
# namespaces when it ends.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

.PHONY: build
build: ## build the `shunt` command in target/release
	scripts/setup.sh build
	cargo build --release --package shunt

.PHONY: dpdk
dpdk: ## build the `shunt` command with DPDK ports
	scripts/setup.sh dpdk
	cargo build --release --package shunt --features dpdk

# The packages are in target/deb: the switch with and without DPDK, and the controller as a wheel.
.PHONY: deb
deb: ## make Debian packages of the switch, and a wheel of the controller
	scripts/setup.sh deb
	cargo build --release --package shunt
	cargo build --release --package shunt --features dpdk --target-dir target/dpdk
	packaging/deb.sh target/deb
	python3 -m pip wheel --quiet --no-deps --wheel-dir target/deb ./controller

.PHONY: rtl-switch
rtl-switch: ## build the `shunt` command with the simulated device, and `shunt-device`
	scripts/setup.sh rtl
	cargo build --release --package shunt --features rtl
	cargo build --release --package device_sim --features device --bin shunt-device

.PHONY: demo
demo: ## run the demo: four hosts around one switch, traffic, counters; needs root
	scripts/setup.sh demo
	cargo build --release --package shunt
	scripts/demo.sh

# DPDK ports, the simulated device, and the simulated data plane alone.
test_features := shunt/dpdk,shunt/rtl,device_sim/datapath

# The released program and the tests of `port` are built without these features, all other tests with them.
# Crates are compiled once for all tests of a profile: the release builds of all tests name the same two
# packages, and planted faults use what `cargo test --no-run` compiled, except crates with the feature `rtl`,
# which planted faults do not need. The unit tests are compiled while the tests of namespaces wait.
# SIM_PROGRAMS and SIM_CASES limit the comparison of the RTL with the reference; `make rtl` and `make nightly`
# run more.
.PHONY: test
test: ## run every test: documentation, namespaces, mutations, unit and integration tests; needs root
	scripts/setup.sh test
	cargo build --release --package shunt --package shunt-bench --bin shunt --bin forward
	scripts/tests/run.sh scripts/tests $(MAKE) --no-print-directory test-beside
	$(MAKE) --no-print-directory loom
	cargo xtask mutants --features shunt/dpdk
	cargo test --package port --lib --quiet
	SIM_PROGRAMS=4 SIM_CASES=5 cargo test --workspace --features $(test_features) --lib --bins --tests

.PHONY: test-beside
test-beside: ## compile the unit tests, and run the tests of the documentation
	cargo test --workspace --features $(test_features) --lib --bins --tests --no-run --quiet
	cargo test --workspace --features $(test_features) --doc --quiet

# LOOM_MAX_PREEMPTIONS is the maximum number of preemptions in an interleaving (default: 3). The units are in
# `target`, from where they are copied for planted faults.
.PHONY: loom
loom: ## test the protocols between threads under every interleaving with few preemptions
	scripts/setup.sh build
	CARGO_TARGET_DIR=target cargo test --quiet --locked --manifest-path loom/Cargo.toml --lib

.PHONY: bench
bench: ## run every benchmark that bench/programs.py lists, then print the tables of target/report
	scripts/setup.sh bench
	cargo build --release --package shunt --package shunt-bench
	programs=$$(bench/programs.py); for program in $$programs; do \
		cargo run --quiet --release --package shunt-bench --bin "$$program"; \
	done
	cargo run --quiet --release --package shunt-bench --bin shunt-bench

# RTL_STEPS is a list of the steps of rtl/check.sh.
RTL_STEPS ?= lint simulate reference device volume faults prove synthesise report
.PHONY: rtl
rtl: ## check the hardware pipeline: lint, simulation, planted faults, proofs, synthesis, report
	scripts/setup.sh rtl
	rtl/check.sh $(RTL_STEPS)

# FIGURES is quick, usual or full. A quick run takes minutes, a full run hours. RULES is the number of rules
# in each of the two large tables.
FIGURES ?= usual
RULES ?= 1000
quick_figures := 6 1 60 20000
usual_figures := 40 3 300 1000000
full_figures := 200 7 800 100000000
figure_runs = $($(FIGURES)_figures)
lanes = cargo run --quiet --release --package shunt-bench --bin lanes -- --rules $(RULES) \
	--rounds $(word 2,$(figure_runs)) --windows $(word 3,$(figure_runs))
.PHONY: figures
figures: ## measure and draw figures 11 to 16 and tables 3 and 4 of the composite pipeline's paper
	scripts/setup.sh bench
	cargo build --release --package shunt-bench --bin ffp --bin lanes
	cargo run --quiet --release --package shunt-bench --bin ffp -- --part against --windows $(word 1,$(figure_runs))
	$(lanes) --part mixed
	$(lanes) --part round-trip --packets $(word 4,$(figure_runs))
	$(lanes) --part approaches
	bench/paper_figures.py --rules $(RULES)

# With STEPS=1, the program is single-stepped and uses the CPU's widest vectors. Otherwise, callgrind counts
# the instructions.
STEPS ?=
.PHONY: instructions
instructions: ## count the instructions per packet, exactly
	scripts/setup.sh bench
	bench/instructions.py $(if $(STEPS),--steps,--check)

# FULL=1 measures all rows (takes hours). PEERS is a list of options for bench/peers/run.py.
FULL ?=
PEERS ?=
.PHONY: bench-peers
bench-peers: ## compare Shunt with Open vSwitch with DPDK, testpmd and DPDK's libraries; needs root
	scripts/setup.sh bench-peers
	cargo build --release --package shunt --features dpdk
	cargo build --release --package shunt-bench
	cargo build --release --package shunt-bench --features dpdk --bin macswap
	bench/peers/run.py $(if $(FULL),--full) $(PEERS)
	bench/peers/scale.py
	bench/peers/stages.py
	bench/peers/pages.py 1200 cargo run --quiet --release --package shunt-bench --bin libraries -- $(if $(FULL),,--quick --windows 20)
	bench/peers/plot.py
	cargo run --quiet --release --package shunt-bench --bin shunt-bench -- target/report/{peers,scale,libraries,stages}.jsonl

.PHONY: networks
networks: ## simulate large networks in virtual time, and run many datapaths; writes figures to target/report
	scripts/setup.sh networks
	cargo build --release --package shunt
	bench/networks.py
	bench/protected.py
	bench/datapaths.py
	bench/loaded.py
	bench/gates.py

.PHONY: lab
lab: ## run the experiments of lab/; writes figures to target/report; needs root
	scripts/setup.sh lab
	cargo build --release --package shunt
	lab/mininet.py
	lab/lanes.py
	lab/rtt.py
	lab/keyflow.py
	lab/fat_tree.py
	lab/jitter.py
	lab/virtual_jitter.py
	lab/first_packet.py
	lab/remote_control.py
	lab/discovery.py
	lab/failures.py

.PHONY: lab-cache
lab-cache: ## run the experiments with the port cache in virtual time; writes plots to target/report/port-cache
	scripts/setup.sh networks
	cargo build --release --package port-cache-lab --package shunt
	lab/port_cache/figures.py

# CONFORMANCE is a list of options for scripts/conformance/ryu.sh.
CONFORMANCE ?=
.PHONY: conformance
conformance: ## run the 991 cases of the Ryu switch test tool against the release build; needs root
	scripts/setup.sh conformance
	cargo build --release --package shunt
	scripts/conformance/ryu.sh $(CONFORMANCE)

# FUZZ_SECONDS is the time in seconds for each target of fuzz/.
FUZZ_SECONDS ?= 600
.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZ_SECONDS each, with the address sanitizer
	scripts/setup.sh fuzz
	scripts/fuzz.sh $(FUZZ_SECONDS)

# NIGHTLY is a list of step names, or of patterns such as 'oracle-*' (default: all steps). NIGHTLY_CASES is
# the number of rule sets for the oracle, NIGHTLY_MUTANTS the number of random mutants, and NIGHTLY_SEED their
# seed. The next call continues an interrupted run.
NIGHTLY ?=
NIGHTLY_CASES ?= 20000
NIGHTLY_MUTANTS ?= 60
NIGHTLY_SEED ?= 18
.PHONY: nightly
nightly: export NIGHTLY_CASES := $(NIGHTLY_CASES)
nightly: export NIGHTLY_MUTANTS := $(NIGHTLY_MUTANTS)
nightly: export NIGHTLY_SEED := $(NIGHTLY_SEED)
nightly: export FUZZ_SECONDS := $(FUZZ_SECONDS)
nightly: ## run the checks that take hours (scripts/nightly/steps.sh); resumable; needs root
	scripts/setup.sh nightly
	cargo build --release --package shunt
	set -f; scripts/nightly.sh $(NIGHTLY)

# CI sets CLIPPY to switch incremental compilation off: a fresh clone would write 1 GB that nothing reads.
CLIPPY ?= cargo clippy
.PHONY: lint
lint: ## check format, clippy, tidy and shell scripts
	scripts/setup.sh lint
	cargo fmt --all --check
	cargo fmt --manifest-path loom/Cargo.toml --check
	$(CLIPPY) --workspace --all-targets --features $(test_features),shunt-bench/dpdk
	$(CLIPPY) --package port --all-targets
	cargo xtask tidy
	shellcheck .ci/run $$(git ls-files '*.sh')
