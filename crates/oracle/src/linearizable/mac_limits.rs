// SPDX-License-Identifier: Apache-2.0
//! Limits of learned addresses: a port never has more addresses than its limit, in any version of the rules.

use flow::PortNo;
use reference::{Reference, RuleSource};

/// Checks the ports under the present rules. Returns the number of ports that are at their limits.
pub(super) fn check_mac_limits(reference: &Reference) -> Result<usize, String> {
    let mut full = 0;
    let settings = reference.bridge().map(|bridge| &bridge.ports).into_iter().flatten();
    let limits = settings.filter_map(|(port, settings)| Some((*port, settings.mac_limit?)));
    for (port, limit) in limits {
        full += usize::from(check(port, reference.learned_at(port), limit as usize)?);
    }
    Ok(full)
}

fn check(port: PortNo, learned: usize, limit: usize) -> Result<bool, String> {
    if learned > limit {
        return Err(format!("port {port} has {learned} learned addresses, but its limit is {limit}"));
    }
    Ok(learned == limit)
}
