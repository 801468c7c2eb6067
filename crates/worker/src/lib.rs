// SPDX-License-Identifier: Apache-2.0
//! A worker's loop, and the set of workers behind DataPlane.
