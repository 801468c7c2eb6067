// SPDX-License-Identifier: Apache-2.0
//! Tables of the kind that the paper's DPDK switch uses, for comparison only: a trie for ternary rules
//! ([`AclTrie`]) and a trie for prefixes ([`LpmTrie`]). Both consume eight bits per step without vector
//! instructions, like scalar `rte_acl` and `rte_lpm6`.

mod access_list;
mod acl_trie;
mod automaton;
mod engine;
mod lpm_trie;

pub use access_list::{AccessList, AccessRule, FiveTuple, Ports, Prefix, Rows};
pub use acl_trie::{AclTrie, TernaryRows};
pub use engine::maker;
pub use lpm_trie::{LpmTrie, Route};

/// Result of a lookup without a match.
pub const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
