// SPDX-License-Identifier: Apache-2.0
//! Tables as a DPDK switch of the paper's kind has them, for comparison only: nothing that forwards uses them. A trie for
//! ternary rules ([`AclTrie`]) and a trie for prefixes ([`LpmTrie`]), both of eight bits a step and both without vector
//! instructions, as scalar `rte_acl` and `rte_lpm6` are.

mod access_list;
mod acl_trie;
mod automaton;
mod engine;
mod lpm_trie;

pub use access_list::{AccessList, AccessRule, FiveTuple, Ports, Prefix, Rows};
pub use acl_trie::{AclTrie, TernaryRows};
pub use engine::maker;
pub use lpm_trie::{LpmTrie, Route};

/// What a lookup answers when nothing matches.
pub const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests;
