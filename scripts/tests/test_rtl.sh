#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The hardware pipeline passes lint and its test benches. The unit tests compare it with the reference.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The benches `tcam`, `tcam_paged`, `datapath` and `datapath_4_ppus`, and more programs, run in `make rtl` and
# `make nightly`.
RTL_BENCHES='nic_shell hit_counter device control datapath_cells' \
    make --no-print-directory rtl RTL_STEPS='lint simulate'
