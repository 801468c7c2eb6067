// SPDX-License-Identifier: Apache-2.0
//! The plainest interpreter of the flow model: the oracle.
