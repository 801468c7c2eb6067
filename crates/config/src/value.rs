// SPDX-License-Identifier: Apache-2.0
//! Parsers of values such as durations and cookies. Each error message ends with a fix.

use flow::Nanos;
use model::CookieMask;
use std::ops::RangeInclusive;

/// Checks that a number is in a range.
///
/// # Errors
///
/// Returns a sentence that states the range.
pub fn in_range(value: i64, range: RangeInclusive<i64>) -> Result<u64, String> {
    match u64::try_from(value) {
        Ok(number) if range.contains(&value) => Ok(number),
        _ => Err(format!("{value} is out of range; use {} to {}", range.start(), range.end())),
    }
}

/// Parses a duration such as `50us`, `200ms`, `5s`, `10m` or `1h`.
///
/// # Errors
///
/// Returns a sentence with a correct value.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not a duration; use a number and its unit, such as \"100us\", \"200ms\", \"5s\", \"10m\" or \"1h\""
        )
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ns: u64 = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number
        .checked_mul(unit_ns)
        .map(Nanos)
        .ok_or_else(|| format!("\"{text}\" is too long; a duration is at most 584 years"))
}

/// Parses `VALUE/MASK`, both decimal or hexadecimal with `0x`.
///
/// # Errors
///
/// Returns a sentence with a correct value.
pub fn cookie(text: &str) -> Result<CookieMask, String> {
    let number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => part.parse().ok(),
    };
    let parts = text.split_once('/').and_then(|(value, mask)| Some((number(value)?, number(mask)?)));
    let Some((value, mask)) = parts else {
        return Err(format!(
            "\"{text}\" is not a cookie with mask; write two 64-bit numbers, such as \"0x4c4c000000000000/0xffff000000000000\""
        ));
    };
    if mask == 0 {
        return Err(format!(
            "\"{text}\" has an empty mask, which makes every entry low-latency; name at least one bit"
        ));
    }
    if value & !mask != 0 {
        return Err(format!(
            "\"{text}\" has value bits outside its mask, so no cookie fits; clear them: \"{:#x}/{mask:#x}\"",
            value & mask
        ));
    }
    Ok(CookieMask { value, mask })
}

/// Checks a port name, which must differ from all port numbers and reserved names.
///
/// # Errors
///
/// Returns a sentence with a correct value.
pub fn port_name(text: &str) -> Result<(), String> {
    /// OFP_MAX_PORT_NAME_LEN minus the final zero byte.
    const BYTES: usize = 15;
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if text.is_empty() || text.len() > BYTES || !text.bytes().all(legal) {
        return Err(format!(
            "\"{text}\" is not a port name; use 1 to {BYTES} of the characters a-z A-Z 0-9 _ - ."
        ));
    }
    if !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return Err(format!("\"{text}\" looks like a port number; add a letter, such as \"p{text}\""));
    }
    let reserved = (flow::port_no::MAX.0..=flow::port_no::ANY.0)
        .map(flow::PortNo)
        .filter_map(flow::port_no::reserved_name)
        .any(|name| name.eq_ignore_ascii_case(text));
    if reserved {
        return Err(format!("\"{text}\" is a reserved port of OpenFlow; use another name, such as \"p1\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("200ms"), Ok(Nanos(200_000_000)));
        assert_eq!(duration("10m"), Ok(Nanos(600_000_000_000)));
        for wrong in ["", "5", "s", "5 s", "-1s", "1.5s", "5d"] {
            assert!(duration(wrong).unwrap_err().contains("such as"), "{wrong}");
        }
        assert!(duration("99999999999999h").unwrap_err().contains("too long"));
    }

    #[test]
    fn cookies_have_no_bits_outside_their_masks() {
        assert_eq!(cookie("0x4c/0xff"), Ok(CookieMask { value: 0x4c, mask: 0xff }));
        assert_eq!(cookie("3/3"), Ok(CookieMask { value: 3, mask: 3 }));
        for wrong in ["", "1", "0x/1", "x/1", "1/2/3", "0x10000000000000000/1"] {
            assert!(cookie(wrong).unwrap_err().contains("two 64-bit numbers"), "{wrong}");
        }
        assert!(cookie("0/0").unwrap_err().contains("empty mask"));
        assert!(cookie("0x13/0xf0").unwrap_err().contains("\"0x10/0xf0\""));
    }

    #[test]
    fn port_names_are_neither_numbers_nor_reserved() {
        for good in ["p1", "veth-1.2", "a234567890123_4"] {
            assert_eq!(port_name(good), Ok(()), "{good}");
        }
        for wrong in ["", "a b", "a,b", "a2345678901234567", "12", "normal", "IN_PORT", "ANY"] {
            assert!(port_name(wrong).is_err(), "{wrong}");
        }
    }
}
