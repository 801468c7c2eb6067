// SPDX-License-Identifier: Apache-2.0
//! Fail mode standalone: while no controller is connected, the datapath forwards by learned MAC addresses.

use flow::Nanos;

/// Time without a controller after which standalone mode starts, in ns. A controller that restarts sooner
/// finds its flows unchanged.
const PATIENCE_NS: Nanos = Nanos(5_000_000_000);

/// Decides when standalone mode starts and ends.
#[derive(Debug)]
pub struct Fallback {
    /// Whether controllers are configured and the fail mode is standalone.
    enabled: bool,
    /// Time at which the last controller was lost, or `None` while a controller is connected.
    lost_ns: Option<Nanos>,
}

impl Fallback {
    pub fn new(enabled: bool) -> Self {
        Self { enabled, lost_ns: None }
    }

    /// Enables or disables the mode.
    pub fn set_enabled(&mut self, enabled: bool) {
        if enabled != self.enabled {
            *self = Self { enabled, lost_ns: None };
        }
    }

    /// Returns `Some` if standalone mode must start (`true`) or end (`false`).
    pub fn step(&mut self, connected: bool, standalone: bool, now: Nanos) -> Option<bool> {
        if connected {
            self.lost_ns = None;
            return standalone.then_some(false);
        }
        if !self.enabled {
            return None;
        }
        let lost = *self.lost_ns.get_or_insert(now);
        (!standalone && now.saturating_sub(lost) >= PATIENCE_NS).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standalone_mode_ends_with_a_controller_and_returns_after_a_delay() {
        let mut fallback = Fallback::new(true);
        assert_eq!(fallback.step(false, true, Nanos(0)), None);
        assert_eq!(fallback.step(true, true, Nanos(1)), Some(false));
        assert_eq!(fallback.step(true, false, Nanos(2)), None);
        assert_eq!(fallback.step(false, false, Nanos(3)), None);
        assert_eq!(fallback.step(true, false, PATIENCE_NS), None);
        assert_eq!(fallback.step(false, false, PATIENCE_NS + Nanos(3)), None);
        assert_eq!(fallback.step(false, false, 2 * PATIENCE_NS + Nanos(3)), Some(true));
        // The default flow of a switch that had no controllers is deleted when the first one connects.
        assert_eq!(Fallback::new(false).step(true, true, Nanos(0)), Some(false));
        assert_eq!(Fallback::new(false).step(false, false, PATIENCE_NS), None);
    }
}
