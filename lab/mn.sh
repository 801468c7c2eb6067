#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs Mininet with Shunt as its switch: mn.sh OPTION...
#
# Example: lab/mn.sh --topo tree,2 --test pingall. Mininet's clean-up kills processes by name and deletes
# files of /tmp. Private namespaces limit this to the processes and files of this run. Needs root, `make`
# before, and the programs that `scripts/setup.sh lab` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
# Use the real path of the checkout, which may be below /tmp or reached through a symbolic link.
cd -P .
export PATH=$PATH:/usr/sbin:/sbin
# Mininet and its controllers create temporary files in a private /tmp.
export TMPDIR=/tmp

# inside OPTION...: runs as the first process of the namespaces; all their processes end with it.
# Folders below /tmp that Mininet needs stay visible: the checkout, and the folder of the program in SHUNT.
# Each is opened before the new /tmp hides it, and mounted at the same path afterwards.
# shellcheck disable=SC2016 # expanded by the inner shell
readonly inside='
    checkout=$PWD
    declare -A kept
    for folder in "$checkout" ${SHUNT:+"$(dirname "$(realpath "$SHUNT")")"}; do
        case $folder in
            /tmp/*) exec {kept[$folder]}<"$folder" ;;
        esac
    done
    mount -t tmpfs tmpfs /tmp
    for folder in "${!kept[@]}"; do
        mkdir -p "$folder"
        mount --no-canonicalize --bind "/proc/self/fd/${kept[$folder]}" "$folder"
        exec {kept[$folder]}<&-
    done
    cd "$checkout"
    # Mininet can start a controller only by a path without spaces.
    if [ -d target/tools/bin ]; then
        tools=$(mktemp -d /tmp/tools-XXXXXX)
        mount --bind target/tools/bin "$tools"
        PATH=$tools:$PATH
    fi
    ip link set lo up
    exec mn --custom lab/shunt_mininet.py,lab/topologies.py --switch shunt "$@"'

# The child runs in the background, so that traps run immediately. Ctrl-C also reaches Mininet, which then
# removes its network.
setpriv --pdeathsig KILL env --default-signal=INT,QUIT unshare --mount --pid --net --fork --kill-child --mount-proc \
    bash -euo pipefail -c "$inside" mn "$@" <&0 &
readonly child=$!
interrupted=
trap 'interrupted=130' INT
trap 'interrupted=143; kill -KILL "$child"' TERM
trap 'interrupted=129; kill -KILL "$child"' HUP
status=0
while :; do
    wait "$child" && status=0 || status=$?
    kill -0 "$child" 2>/dev/null || break
done
exit "${interrupted:-$status}"
