#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs tools that a fresh Debian 12 lacks: `setup.sh PURPOSE`
#
# PURPOSE is build, deb, dpdk, lint, demo, lab, networks, rtl, test, nightly, bench, bench-peers, fuzz or
# conformance. The script accepts an existing tool from any source.
set -euo pipefail
cd "$(dirname "$0")/.."

# Requirements of each purpose, as command:package. The package is installed if the command is missing.
readonly build_needs=(cc:build-essential make:make git:git)
readonly deb_needs=(dpkg-shlibdeps:dpkg-dev pkg-config:pkg-config pip3:python3-pip)
readonly lint_needs=(shellcheck:shellcheck pkg-config:pkg-config)
readonly demo_needs=(ip:iproute2 ping:iputils-ping iperf3:iperf3 python3:python3)
# Mininet's recommended packages are not installed, because they would start Open vSwitch.
readonly lab_needs=(mn:mininet iperf:iperf npm:npm killall:psmisc ifconfig:net-tools ovs-ofctl:openvswitch-common ethtool:ethtool)
readonly test_needs=(pkg-config:pkg-config pgrep:procps patch:patch tcpdump:tcpdump tshark:tshark strace:strace
    valgrind:valgrind python3:python3 chromium:chromium curl:curl openssl:openssl)
# The steps of `make nightly` that call `make` install further tools themselves.
readonly nightly_needs=(faketime:faketime debootstrap:debootstrap lintian:lintian buildah:buildah setpriv:util-linux)
readonly bench_needs=(valgrind:valgrind python3:python3 ip:iproute2 unshare:util-linux ovs-ofctl:openvswitch-common pkg-config:pkg-config)
readonly peers_needs=(ovs-ofctl:openvswitch-common ovsdb-server:openvswitch-common pkg-config:pkg-config python3:python3
    taskset:util-linux setpriv:util-linux stdbuf:coreutils ldd:libc-bin)
readonly rtl_needs=(verilator:verilator yosys:yosys c++:build-essential python3:python3)
readonly conformance_needs=(ip:iproute2 python3:python3 ethtool:ethtool ovsdb-server:openvswitch-common)

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

install_packages() {
    local as_root=() log
    command -v apt-get >/dev/null ||
        fail "these packages are missing, and apt-get is not available to install them: $*"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            fail "these packages are missing; as root, run: apt-get install $*"
        as_root=(sudo)
    fi

    printf 'setup: installing %s\n' "$*"
    log=$(mktemp)
    # Some packages (tshark, iperf3) ask questions during the installation; the default answers are used.
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends)
    "${apt[@]}" update >"$log" 2>&1 ||
        printf 'setup: some package lists could not be updated; the existing lists are used\n' >&2
    if ! "${apt[@]}" install "$@" >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        fail "apt-get could not install: $*"
    fi
    rm -f "$log"
}

# Installs cargo-fuzz into the repository's target folder only.
install_cargo_fuzz() {
    if command -v cargo-fuzz >/dev/null || [ -x target/tools/bin/cargo-fuzz ]; then return; fi
    printf 'setup: installing cargo-fuzz to target/tools\n'
    cargo install --quiet --locked --root target/tools cargo-fuzz || fail 'cargo could not install cargo-fuzz'
}

# unpack PACKAGE FOLDER: unpacks a package's files without installing it.
unpack() {
    printf 'setup: unpacking %s to target/tools\n' "$1"
    local folder
    folder=$(mktemp -d)
    chmod 755 "$folder"
    (cd "$folder" && apt-get -q download "$1" >log 2>&1) || {
        tail -n 20 "$folder/log" >&2
        rm -rf "$folder"
        fail "apt-get could not download $1"
    }
    mkdir -p "$2"
    dpkg -x "$folder/$1"_*.deb "$2"
    rm -rf "$folder"
}

# The package is not installed, because it would start its own controller.
unpack_testcontroller() {
    if command -v ovs-testcontroller >/dev/null || [ -x target/tools/bin/ovs-testcontroller ]; then return; fi
    local folder
    folder=$(mktemp -d)
    unpack openvswitch-testcontroller "$folder"
    mkdir -p target/tools/bin
    cp "$folder/usr/bin/ovs-testcontroller" target/tools/bin/
    rm -rf "$folder"
}

# Installs the headers, libraries and drivers of DPDK, and libclang, which reads the headers.
install_dpdk() {
    local packages=() clang
    pkg-config --exists 'libdpdk >= 22.11' || packages+=(libdpdk-dev)
    clang=$(compgen -G '/usr/lib/llvm-*/lib/libclang[-.][0-9s]*' || true)
    [ -n "$clang" ] || packages+=(libclang-dev)
    if [ "${#packages[@]}" -gt 0 ]; then install_packages "${packages[@]}"; fi
}

# The package is not installed, because it would start its own server.
unpack_etcd() {
    if command -v etcd >/dev/null || [ -x target/tools/bin/etcd ]; then return; fi
    local folder
    folder=$(mktemp -d)
    unpack etcd-server "$folder"
    mkdir -p target/tools/bin
    cp "$folder/usr/bin/etcd" target/tools/bin/
    rm -rf "$folder"
}

# The package is not installed, because it would start its own server. The programs need no other files.
unpack_prometheus() {
    if command -v prometheus >/dev/null || [ -x target/tools/bin/prometheus ]; then return; fi
    local folder
    folder=$(mktemp -d)
    unpack prometheus "$folder"
    mkdir -p target/tools/bin
    cp "$folder/usr/bin/prometheus" "$folder/usr/bin/promtool" target/tools/bin/
    rm -rf "$folder"
}

# The package is not installed, because it would start its own switch. The libraries come with
# openvswitch-common.
unpack_vswitchd() {
    if command -v ovs-vsctl >/dev/null || [ -d target/tools/ovs ]; then return; fi
    unpack openvswitch-switch target/tools/ovs
}

# The packages are not installed, because they would start a switch and replace an installed Open vSwitch.
# Also unpacks testpmd.
unpack_peers() {
    local vswitchd=target/tools/ovs-dpdk/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk
    [ -d target/tools/ovs-dpdk ] || unpack openvswitch-switch-dpdk target/tools/ovs-dpdk
    [ -d target/tools/dpdk ] || unpack dpdk-dev target/tools/dpdk
    # Install the libraries of both programs. Those of DPDK come with libdpdk-dev.
    if ldd "$vswitchd" target/tools/dpdk/usr/bin/dpdk-testpmd | grep 'not found' >/dev/null; then
        install_packages libbpf1 libcap-ng0 libnuma1 libssl3 libunbound8 libxdp1 ibverbs-providers libbsd0 libelf1 \
            libfdt1 libibverbs1 libjansson4 libpcap0.8 zlib1g
    fi
}

# can_make_environments PYTHON: returns whether this Python can create environments and build C extensions.
can_make_environments() {
    "$1" -c 'import ensurepip, os, sysconfig, venv
raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null
}

# install_client NAME: creates the Python environment of a controller.
install_client() {
    install_environment "$1" "lab/controllers/requirements-$1.txt"
}

# install_environment NAME LIST: creates a Python environment in target/tools/NAME from a list of packages. An
# environment is replaced if the list has changed or its Python is missing.
install_environment() {
    local name=$1 folder=target/tools/$1 list=$2 python=/usr/bin/python3
    if cmp -s "$list" "$folder/installed.txt" && "$folder/bin/python" -c '' 2>/dev/null; then return; fi
    if ! can_make_environments "$python"; then
        python=python3
        can_make_environments "$python" || {
            install_packages python3-venv python3-dev
            python=/usr/bin/python3
        }
    fi
    printf 'setup: installing %s to %s\n' "$name" "$folder"
    local log
    log=$(mktemp)
    mkdir -p target/tools
    # Install the build requirements of some packages first. Otherwise pip would download them for each
    # package.
    if ! {
        "$python" -m venv --clear "$folder" &&
            "$folder/bin/pip" install --no-deps setuptools==80.9.0 wheel==0.45.1 pbr==7.1.3 &&
            "$folder/bin/pip" install --no-deps --no-build-isolation -r "$list"
    } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -rf "$log" "$folder"
        fail "pip could not install $list"
    fi
    rm -f "$log"
    cp "$list" "$folder/installed.txt"
}

# Installs the graph library of the controller's status page.
install_cytoscape() {
    local version=3.35.0 folder=target/tools/web
    grep -q "\"version\": \"$version\"" "$folder/node_modules/cytoscape/package.json" 2>/dev/null && return
    printf 'setup: installing Cytoscape.js to %s\n' "$folder"
    mkdir -p "$folder"
    npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "cytoscape@$version" ||
        fail 'npm could not install cytoscape'
}

purpose=${1:-}
# `make nightly` needs everything that the tests need, and the tools of its own steps.
case "$purpose" in nightly) extra_needs=("${nightly_needs[@]}") purpose=test ;; *) extra_needs=() ;; esac
case "$purpose" in
    build | fuzz) needs=("${build_needs[@]}") ;;
    lint) needs=("${build_needs[@]}" "${lint_needs[@]}" "${rtl_needs[@]}") ;;
    deb) needs=("${build_needs[@]}" "${deb_needs[@]}") ;;
    dpdk) needs=("${build_needs[@]}" pkg-config:pkg-config) ;;
    demo) needs=("${build_needs[@]}" "${demo_needs[@]}") ;;
    bench) needs=("${build_needs[@]}" "${bench_needs[@]}") ;;
    bench-peers) needs=("${build_needs[@]}" "${peers_needs[@]}") ;;
    conformance) needs=("${conformance_needs[@]}") ;;
    networks) needs=("${build_needs[@]}" python3:python3) ;;
    lab) needs=("${build_needs[@]}" "${demo_needs[@]}" "${lab_needs[@]}") ;;
    rtl) needs=("${build_needs[@]}" "${rtl_needs[@]}") ;;
    test) needs=("${build_needs[@]}" "${demo_needs[@]}" "${lab_needs[@]}" "${test_needs[@]}" "${rtl_needs[@]}") ;;
    *)
        printf 'usage: %s build|deb|dpdk|lint|demo|lab|networks|rtl|test|nightly|bench|bench-peers|fuzz|conformance\n' "$0" >&2
        exit 2
        ;;
esac

command -v cargo >/dev/null ||
    fail 'cargo is not on the PATH; install Rust first, then run this again'

# Debian installs network tools in sbin, which an ordinary user's PATH may not contain.
PATH=$PATH:/usr/sbin:/sbin
missing=()
for need in "${needs[@]}" "${extra_needs[@]}"; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi
if [ "$purpose" = fuzz ]; then install_cargo_fuzz; fi
if [ "$purpose" = lab ] || [ "$purpose" = test ]; then
    unpack_testcontroller
    unpack_vswitchd
    install_cytoscape
fi
# The planners run in the environment of os-ken, which has networkx.
case "$purpose" in networks | lab | test | bench) install_client os-ken ;; esac
if [ "$purpose" = test ]; then
    unpack_etcd
    unpack_prometheus
    install_client faucet
fi
case "$purpose" in rtl | test) install_environment rtl rtl/requirements.txt ;; esac
if [ "$purpose" = bench ]; then
    unpack_vswitchd
    # Libraries for bench/dpdk.
    pkg-config --exists libdpdk || install_packages libdpdk-dev
fi
case "$purpose" in deb | dpdk | lint | test | bench-peers) install_dpdk ;; esac
if [ "$purpose" = bench-peers ]; then
    unpack_vswitchd
    unpack_peers
fi
if [ "$purpose" = conformance ]; then
    unpack_vswitchd
    install_client ryu
fi
