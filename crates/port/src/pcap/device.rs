// SPDX-License-Identifier: Apache-2.0
//! The device string of a capture port.

/// Description of a valid device string.
pub(super) const EXPECTED: &str =
    "\"in=FILE\", \"out=FILE\" or both, and \"loop=N\" with in, separated by commas";

/// A parsed device string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Device<'a> {
    pub(super) input: Option<&'a str>,
    pub(super) output: Option<&'a str>,
    /// Number of times that the input is received, or `None` to repeat it without end.
    pub(super) rounds: Option<u64>,
}

impl<'a> Device<'a> {
    /// Parses a device string. The error describes the fault.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let (mut input, mut output, mut rounds) = (None, None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("\"{part}\" is not KEY=VALUE"))?;
            let place = match key {
                "in" => &mut input,
                "out" => &mut output,
                "loop" => &mut rounds,
                _ => return Err(format!("unknown key \"{key}\"")),
            };
            if value.is_empty() {
                return Err(format!("\"{key}\" has no value"));
            }
            if place.replace(value).is_some() {
                return Err(format!("\"{key}\" is given twice"));
            }
        }
        if input.is_none() && rounds.is_some() {
            return Err("\"loop\" without \"in\"".into());
        }
        let rounds = match rounds {
            None => Some(1),
            Some(text) => match text.parse() {
                Ok(0) => None,
                Ok(count) => Some(count),
                Err(_) => return Err(format!("loop \"{text}\" is not a number (0: forever)")),
            },
        };
        Ok(Self { input, output, rounds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_strings_are_parsed_or_refused() {
        assert_eq!(
            Device::parse("in=a.pcap,out=b,loop=3"),
            Ok(Device { input: Some("a.pcap"), output: Some("b"), rounds: Some(3) })
        );
        assert_eq!(Device::parse("out=b"), Ok(Device { input: None, output: Some("b"), rounds: Some(1) }));
        assert_eq!(Device::parse("in=a=b,loop=0").map(|d| (d.input, d.rounds)), Ok((Some("a=b"), None)));
        for (text, part) in [
            ("", "KEY=VALUE"),
            ("a.pcap", "KEY=VALUE"),
            ("in=", "no value"),
            ("from=a", "unknown key \"from\""),
            ("in=a,in=b", "twice"),
            ("out=a,loop=2", "without \"in\""),
            ("in=a,loop=-1", "not a number"),
        ] {
            let error = Device::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
