#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The hardware pipeline passes lint and its test benches. The unit tests compare it with the reference.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The benches `tcam`, `tcam_paged` and those of the whole data plane, and more programs, run in `make rtl` and
# `make nightly`. Tests of the crate `device_sim` simulate the whole data plane, too.
RTL_BENCHES='nic_shell hit_counter device control' \
    make --no-print-directory rtl RTL_STEPS='lint simulate'
