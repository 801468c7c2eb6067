// SPDX-License-Identifier: Apache-2.0
//! Table engines and the choice among them.
