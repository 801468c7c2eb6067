// SPDX-License-Identifier: Apache-2.0
//! Checks of the storm limits of ports.

use crate::file::{RateSection, StormSection};
use crate::mistakes::Mistakes;
use crate::packet_in::limit;
use crate::value::duration;
use flow::Nanos;
use flow::bridge::{StormLimit, StormLimits};
use std::ops::RangeInclusive;

/// Time for which a port is closed, unless the file has another one.
const REOPEN: &str = "5m";
/// Range of this time.
const REOPEN_RANGE: RangeInclusive<Nanos> = Nanos(100_000_000)..=Nanos(86_400_000_000_000);

/// Checks the storm limits at `key`.
pub fn storm(key: &str, section: &StormSection, mistakes: &mut Mistakes) -> Option<StormLimits> {
    let mut limit_of = |name: &str, rate: &Option<RateSection>| {
        let rate = limit(&format!("{key}.{name}"), rate.as_ref()?, mistakes);
        Some(StormLimit { rate: rate.rate, burst: rate.burst })
    };
    let broadcast = limit_of("broadcast", &section.broadcast);
    let multicast = limit_of("multicast", &section.multicast);
    let unknown_unicast = limit_of("unknown_unicast", &section.unknown_unicast);
    let has_limit = broadcast.is_some() || multicast.is_some() || unknown_unicast.is_some();
    if !has_limit && *section != StormSection::default() {
        mistakes
            .wrong(key, "has no limit; write broadcast = { rate = 1000, burst = 100 }, or omit the table");
    }
    let time = duration(section.reopen.as_deref().unwrap_or(REOPEN)).and_then(|time| {
        let problem = "is out of range; use \"100ms\" to \"24h\"";
        if REOPEN_RANGE.contains(&time) { Ok(time) } else { Err(problem.to_owned()) }
    });
    let time = mistakes.at(format!("{key}.reopen"), time);
    let shut = match section.action.as_deref() {
        Some("shut") => Some(time?),
        Some("drop") | None => {
            if section.reopen.is_some() {
                mistakes.wrong(format!("{key}.reopen"), "has no effect; write action = \"shut\", or omit it");
            }
            None
        }
        Some(other) => {
            let problem = format!("there is no action \"{other}\"; use \"drop\" or \"shut\"");
            mistakes.wrong(format!("{key}.action"), problem);
            None
        }
    };
    Some(StormLimits { broadcast, multicast, unknown_unicast, shut })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    /// Reads a file with one port that has these storm limits.
    fn read(settings: &str) -> Result<StormLimits, String> {
        let text = format!(
            "control = \"/tmp/a.sock\"\n[[worker]]\n[[datapath]]\nid = 1\n[[datapath.port]]\nnumber = 1\n\
             name = \"p1\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n[datapath.port.storm]\n{settings}"
        );
        match Config::parse(&text) {
            Ok(config) => Ok(config.datapath.ports[0].bridge.storm),
            Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        }
    }

    #[test]
    fn limits_have_a_rate_and_a_burst() {
        let limit = |rate, burst| Some(StormLimit { rate, burst });
        let drop = StormLimits { broadcast: limit(100, 100), ..StormLimits::default() };
        assert_eq!(read("broadcast = { rate = 100 }\naction = \"drop\""), Ok(drop));
        let shut = StormLimits {
            multicast: limit(50, 7),
            unknown_unicast: limit(1, 1),
            shut: Some(Nanos(30_000_000_000)),
            ..StormLimits::default()
        };
        let text = "multicast = { rate = 50, burst = 7 }\nunknown_unicast = { rate = 1 }\n\
                    action = \"shut\"\nreopen = \"30s\"";
        assert_eq!(read(text), Ok(shut));
        let usual = read("broadcast = { rate = 1 }\naction = \"shut\"").unwrap();
        assert_eq!(usual.shut, Some(Nanos(300_000_000_000)));
    }

    #[test]
    fn mistakes_are_described() {
        for (text, expected) in [
            ("broadcast = { rate = 0 }", ".storm.broadcast.rate: 0 is out of range"),
            ("broadcast = {}", ".storm.broadcast.rate: is missing"),
            ("action = \"shut\"", ".storm: has no limit"),
            (
                "broadcast = { rate = 1 }\naction = \"explode\"",
                ".storm.action: there is no action \"explode\"",
            ),
            ("broadcast = { rate = 1 }\nreopen = \"5s\"", ".storm.reopen: has no effect"),
            (
                "broadcast = { rate = 1 }\naction = \"shut\"\nreopen = \"1us\"",
                ".storm.reopen: is out of range",
            ),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
