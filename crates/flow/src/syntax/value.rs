// SPDX-License-Identifier: Apache-2.0
//! Parsers of values: numbers, addresses, ports, and a match field's value with its mask.

use super::ParseOptions;
use super::error::{Fault, Parsed};
use crate::{Field, PortNo, port_no};
use std::net::Ipv6Addr;

/// Notation of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Decimal,
    Hex { digits: usize },
    Mac,
    Ipv4,
    Ipv6,
    Port,
}

/// Returns the notation that ovs-ofctl uses for `field`.
pub(super) fn form(field: Field) -> Form {
    match field {
        Field::InPort | Field::InPhyPort => Form::Port,
        Field::EthDst | Field::EthSrc | Field::ArpSha | Field::ArpTha | Field::NdSll | Field::NdTll => {
            Form::Mac
        }
        Field::Ipv4Src | Field::Ipv4Dst | Field::ArpSpa | Field::ArpTpa => Form::Ipv4,
        Field::Ipv6Src | Field::Ipv6Dst | Field::NdTarget => Form::Ipv6,
        Field::EthType => Form::Hex { digits: 4 },
        Field::Ipv6Flabel => Form::Hex { digits: 5 },
        Field::Metadata | Field::TunnelId | Field::Ipv6Exthdr | Field::Slice(_) => Form::Hex { digits: 1 },
        _ => Form::Decimal,
    }
}

/// Parses a decimal number, or a hexadecimal number after `0x`. Returns `None` for other text, a leading zero
/// or an overflow.
pub(super) fn number(text: &str) -> Option<u128> {
    let bytes = text.as_bytes();
    match bytes {
        [b'0', b'x' | b'X', digits @ ..] => {
            if digits.is_empty() || digits.len() > 32 {
                return None;
            }
            digits.iter().try_fold(0u128, |sum, &b| Some(sum << 4 | u128::from(char::from(b).to_digit(16)?)))
        }
        [] | [b'0', _, ..] => None,
        _ if bytes.len() <= 19 => {
            let digit = |b: u8| b.is_ascii_digit().then(|| u64::from(b - b'0'));
            bytes.iter().try_fold(0u64, |sum, &b| Some(sum * 10 + digit(b)?)).map(u128::from)
        }
        _ => bytes.iter().all(u8::is_ascii_digit).then(|| text.parse().ok()).flatten(),
    }
}

/// Parses a number of at most `most`.
pub(super) fn number_to(text: &str, most: u128) -> Parsed<'_, u128> {
    match number(text) {
        Some(n) if n <= most => Ok(n),
        Some(_) => Err(Fault::new(text, format!("is too large; the maximum is {most} ({most:#x})"))),
        None => Err(Fault::new(
            text,
            "is not a number; write decimal digits without a leading zero, or 0x and hexadecimal digits",
        )),
    }
}

/// Parses a number that must be in the range of its type.
pub(super) fn integer<'t, T: TryFrom<u128> + Into<u128> + Bounded>(text: &'t str) -> Parsed<'t, T> {
    let n = number_to(text, T::GREATEST.into())?;
    // `number_to` has checked the range.
    T::try_from(n).map_err(|_| Fault::new(text, "is too large"))
}

/// Integer types with their greatest value.
pub(super) trait Bounded {
    const GREATEST: Self;
}

macro_rules! bounded { ($($t:ty)*) => { $(impl Bounded for $t { const GREATEST: Self = <$t>::MAX; })* } }
bounded! { u8 u16 u32 u64 }

/// Parses `00:11:22:33:44:55`, one or two digits per byte.
pub(super) fn mac(text: &str) -> Option<u128> {
    let mut sum = 0u64;
    let mut parts = 0;
    for part in text.as_bytes().split(|&b| b == b':') {
        let byte = match part {
            [a] => hex_digit(*a)?,
            [a, b] => hex_digit(*a)? << 4 | hex_digit(*b)?,
            _ => return None,
        };
        sum = sum << 8 | byte;
        parts += 1;
        if parts > 6 {
            return None;
        }
    }
    (parts == 6).then_some(u128::from(sum))
}

fn hex_digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

/// Parses `10.0.0.1`.
pub(super) fn ipv4(text: &str) -> Option<u128> {
    let mut sum = 0u32;
    let mut parts = 0;
    for part in text.as_bytes().split(|&b| b == b'.') {
        if part.is_empty() || part.len() > 3 || (part.len() > 1 && part[0] == b'0') {
            return None;
        }
        let byte = part.iter().try_fold(0u32, |n, b| Some(n * 10 + char::from(*b).to_digit(10)?))?;
        parts += 1;
        if byte > 255 || parts > 4 {
            return None;
        }
        sum = sum << 8 | byte;
    }
    (parts == 4).then_some(u128::from(sum))
}

fn ipv6(text: &str) -> Option<u128> {
    text.parse::<Ipv6Addr>().ok().map(u128::from)
}

/// Parses a port: a number, a reserved name (in any case), or a port's name.
pub(super) fn port<'t>(text: &'t str, options: ParseOptions<'_>) -> Parsed<'t, PortNo> {
    if text.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && let Some(n) = number(text).and_then(|n| u32::try_from(n).ok())
    {
        return Ok(PortNo(n));
    }
    let bare = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
    if let Some(port) = (options.port_names)(bare) {
        return Ok(port);
    }
    reserved_port(text).ok_or_else(|| {
        Fault::new(
            text,
            "is not a port; write a number (32 bits), the name of a port, or LOCAL, IN_PORT, NORMAL, FLOOD, ALL, \
             CONTROLLER",
        )
    })
}

/// Returns the reserved port with this name, in any case of letters.
pub(super) fn reserved_port(text: &str) -> Option<PortNo> {
    (port_no::IN_PORT.0..=port_no::ANY.0)
        .map(PortNo)
        .find(|&port| port_no::reserved_name(port).is_some_and(|name| name.eq_ignore_ascii_case(text)))
}

/// Parses a field's value and mask: `VALUE`, `VALUE/MASK` or `ADDRESS/PREFIX`. `*` and `ANY` mean mask 0. As
/// in ovs-ofctl, bits outside the mask are cleared.
pub(super) fn field_value<'t>(
    field: Field,
    text: &'t str,
    options: ParseOptions<'_>,
) -> Parsed<'t, (u128, u128)> {
    if text == "*" || text.eq_ignore_ascii_case("any") {
        return Ok((0, 0));
    }
    let full = field.full_mask();
    let (value_text, mask_text) = match text.split_once('/') {
        Some((value, mask)) => (value, Some(mask)),
        None => (text, None),
    };
    let form = literal_form(field, value_text);
    let value = literal(form, value_text, full, options)?;
    let mask = match mask_text {
        None => full,
        Some(mask) if matches!(form, Form::Ipv4 | Form::Ipv6) && !matches!(field, Field::Slice(_)) => {
            address_mask(form, mask, u32::from(field.location().length_bits))?
        }
        Some(mask) => literal(literal_form(field, mask), mask, full, options)?,
    };
    Ok((value & mask, mask))
}

/// Returns the notation of a value. A slice as long as an address may be written as an address.
fn literal_form(field: Field, text: &str) -> Form {
    match field {
        Field::Slice(s) if s.length_bits == 48 && text.contains(':') => Form::Mac,
        Field::Slice(s) if s.length_bits == 128 && text.contains(':') => Form::Ipv6,
        Field::Slice(s) if s.length_bits == 32 && text.contains('.') => Form::Ipv4,
        named => form(named),
    }
}

fn literal<'t>(form: Form, text: &'t str, full: u128, options: ParseOptions<'_>) -> Parsed<'t, u128> {
    match form {
        Form::Decimal | Form::Hex { .. } => number_to(text, full),
        Form::Port => port(text, options).map(|port| u128::from(port.0)),
        Form::Mac => {
            mac(text).ok_or_else(|| Fault::new(text, "is not a MAC address; write 00:11:22:33:44:55"))
        }
        Form::Ipv4 => ipv4(text).ok_or_else(|| Fault::new(text, "is not an IPv4 address; write 10.0.0.1")),
        Form::Ipv6 => ipv6(text).ok_or_else(|| Fault::new(text, "is not an IPv6 address; write 2001:db8::1")),
    }
}

/// Parses the mask of an address: a prefix length, or an address.
fn address_mask(form: Form, text: &str, length: u32) -> Parsed<'_, u128> {
    if let Some(prefix) = number(text) {
        if prefix > u128::from(length) {
            return Err(Fault::new(
                text,
                format!("is too long for a prefix, which has at most {length} bits"),
            ));
        }
        let full = u128::MAX >> (128 - length);
        // A plain shift by 128 bits would overflow.
        return Ok(full & !full.checked_shr(prefix as u32).unwrap_or(0));
    }
    let mask = if form == Form::Ipv4 { ipv4(text) } else { ipv6(text) };
    mask.ok_or_else(|| {
        Fault::new(text, format!("is not a mask; write a prefix length (0 to {length}) or an address"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(field: Field, text: &str) -> Option<(u128, u128)> {
        field_value(field, text, ParseOptions::default()).ok()
    }

    #[test]
    fn numbers() {
        assert_eq!((number("0"), number("17"), number("0x1F")), (Some(0), Some(17), Some(31)));
        assert_eq!(number("340282366920938463463374607431768211455"), Some(u128::MAX));
        for bad in ["", "010", "0x", "1a", "-1", "340282366920938463463374607431768211456", "+1", "0x0_1"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn addresses_and_masks() {
        assert_eq!(of(Field::Ipv4Src, "10.1.2.3/8"), Some((0x0a00_0000, 0xff00_0000)));
        assert_eq!(of(Field::Ipv4Src, "10.1.2.3/0"), Some((0, 0)));
        assert_eq!(of(Field::Ipv4Src, "10.1.2.3/255.0.255.0"), Some((0x0a00_0200, 0xff00_ff00)));
        assert_eq!(of(Field::Ipv6Src, "fe80::1/10"), Some((0xfe80 << 112, 0xffc0 << 112)));
        assert_eq!(of(Field::Ipv6Src, "::/0"), Some((0, 0)));
        assert_eq!(of(Field::Ipv6Src, "::1/128"), Some((1, u128::MAX)));
        assert_eq!(of(Field::EthSrc, "01:80:c2:0:0:f/ff:00:00:00:00:00"), Some((1 << 40, 0xff << 40)));
        assert_eq!(of(Field::InPort, "local"), Some((0xffff_fffe, 0xffff_ffff)));
        assert_eq!(of(Field::IpDscp, "*"), Some((0, 0)));
        for (field, bad) in [
            (Field::Ipv4Src, "10.0.0.256"),
            (Field::Ipv4Src, "10.0.0.1/33"),
            (Field::Ipv4Src, "10.0.0"),
            (Field::EthSrc, "1:2:3:4:5"),
            (Field::EthSrc, "1:2:3:4:5:6:7"),
            (Field::EthSrc, "001:2:3:4:5:6"),
            (Field::IpDscp, "64"),
            (Field::InPort, "nowhere"),
            (Field::Ipv6Src, "fe80:::1"),
        ] {
            assert_eq!(of(field, bad), None, "{bad}");
        }
    }
}
