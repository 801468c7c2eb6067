// SPDX-License-Identifier: Apache-2.0
//! Virtual clock, links, faults, replay, oracle runs.
