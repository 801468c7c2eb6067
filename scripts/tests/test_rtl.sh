#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The hardware pipeline passes lint, its test benches and the comparison with the reference.
set -euo pipefail
cd "$(dirname "$0")/../.."
make --no-print-directory rtl RTL_STEPS='lint simulate reference'
