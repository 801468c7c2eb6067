#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the targets of fuzz/ for SECONDS each: fuzz.sh SECONDS [TARGET...]
#
# Without TARGET, all targets run. They start from the committed seeds and the corpus of earlier runs. The run
# stops at the first finding, which is in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/target/tools/bin:$PATH
# The sanitizer is an unstable compiler flag; this variable makes the stable compiler accept it.
export RUSTC_BOOTSTRAP=1

seconds=${1:?usage: fuzz.sh SECONDS [TARGET...]}
shift
targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
    for source in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$source" .rs)"); done
fi
for target in "${targets[@]}"; do
    printf '== fuzz %s, %s s\n' "$target" "$seconds"
    mkdir -p "fuzz/corpus/$target"
    options=(-max_total_time="$seconds" -print_final_stats=1 -verbosity=0)
    [ ! -e "fuzz/$target.dict" ] || options+=(-dict="fuzz/$target.dict")
    cargo fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- "${options[@]}" 2>&1 |
        sed '/# Uses: [0-9]*$/d'
done
