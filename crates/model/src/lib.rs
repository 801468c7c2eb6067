// SPDX-License-Identifier: Apache-2.0
//! The switch as a controller sees it.
