#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mn.sh OPTION...: Mininet with Shunt as its switch, in namespaces of its own, as in: lab/mn.sh --topo tree,2 --test pingall
# Mininet itself ends processes by name and deletes files of /tmp when it cleans up; in here that meets only its own.
# Needs root, `make` before, and what `scripts/setup.sh lab` installs.
set -euo pipefail
cd "$(dirname "$0")/.."
# Where the checkout really is: it may be below /tmp, or be reached through a symbolic link.
cd -P .
export PATH=$PATH:/usr/sbin:/sbin
# Mininet and its controllers make their temporary files in a /tmp of their own.
export TMPDIR=/tmp

# inside OPTION...: the first process of the namespaces; their end is the end of all that runs in them.
# Folders below /tmp that Mininet needs stay visible: the checkout, and the folder of the program in SHUNT. Each is opened
# before the new /tmp hides it, and mounted at its place afterwards.
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
    # Mininet starts a controller by a path without spaces only.
    if [ -d target/tools/bin ]; then
        tools=$(mktemp -d /tmp/tools-XXXXXX)
        mount --bind target/tools/bin "$tools"
        PATH=$tools:$PATH
    fi
    ip link set lo up
    exec mn --custom lab/shunt_mininet.py --switch shunt "$@"'

# In the background, so that a signal is answered at once; Ctrl-C is for Mininet, which takes its network down.
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
