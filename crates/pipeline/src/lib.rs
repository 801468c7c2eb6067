// SPDX-License-Identifier: Apache-2.0
//! One worker's forwarding.
