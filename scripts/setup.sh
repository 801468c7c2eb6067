#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what a fresh Debian 12 lacks: `setup.sh build|lint|demo|test`. Says nothing when nothing is missing.
# A tool that is already there is used as it is, wherever it came from.
set -euo pipefail

# command:package, by purpose. A command is what is checked; its package is what is installed.
readonly build_needs=(cc:build-essential make:make git:git)
readonly lint_needs=(shellcheck:shellcheck)
readonly demo_needs=(ip:iproute2 ping:iputils-ping iperf3:iperf3 python3:python3)
readonly test_needs=(pgrep:procps patch:patch tcpdump:tcpdump tshark:tshark ethtool:ethtool strace:strace)

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

purpose=${1:-}
case "$purpose" in
    build) needs=("${build_needs[@]}") ;;
    lint) needs=("${build_needs[@]}" "${lint_needs[@]}") ;;
    demo) needs=("${build_needs[@]}" "${demo_needs[@]}") ;;
    test) needs=("${build_needs[@]}" "${demo_needs[@]}" "${test_needs[@]}") ;;
    *)
        printf 'usage: %s build|lint|demo|test\n' "$0" >&2
        exit 2
        ;;
esac

command -v cargo >/dev/null ||
    fail 'cargo is not on the PATH; install Rust first (rustup.rs), then run this again'

# Debian keeps network tools in sbin, which an ordinary user's PATH may lack.
PATH=$PATH:/usr/sbin:/sbin
missing=()
for need in "${needs[@]}"; do
    command -v "${need%%:*}" >/dev/null || missing+=("${need##*:}")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

command -v apt-get >/dev/null ||
    fail "these packages are missing and there is no apt-get to install them with: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
        fail "these packages are missing; as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
fi

printf 'setup: installing %s\n' "${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Some of these packages ask questions (tshark, iperf3); the answers are the defaults.
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@" >>"$log" 2>&1
}
apt update || printf 'setup: the package lists could not all be refreshed; going on with those there are\n' >&2
if ! apt install "${missing[@]}"; then
    tail -n 20 "$log" >&2
    fail "apt-get could not install: ${missing[*]}"
fi
