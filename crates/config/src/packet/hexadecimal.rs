// SPDX-License-Identifier: Apache-2.0
//! Hexadecimal text of packets. Spaces, colons and line feeds between digits are ignored.

use super::PacketError;
use port::LARGE_FRAME_BYTES;
use std::fmt::Write as _;

/// Parses hexadecimal text.
pub fn parse(text: &str) -> Result<Vec<u8>, PacketError> {
    let digits = text.trim_ascii().trim_start_matches("0x");
    let mut bytes = Vec::with_capacity(digits.len() / 2);
    let mut high = None;
    for c in digits.chars().filter(|c| !c.is_ascii_whitespace() && *c != ':') {
        let Some(digit) = c.to_digit(16) else {
            return Err(PacketError::Hex(format!("'{c}' is not a hexadecimal digit")));
        };
        match high.take() {
            None => high = Some(digit as u8),
            Some(high) => bytes.push(high << 4 | digit as u8),
        }
    }
    if high.is_some() {
        return Err(PacketError::Hex(format!("{} digits; give two for each byte", 2 * bytes.len() + 1)));
    }
    if bytes.len() > LARGE_FRAME_BYTES {
        return Err(PacketError::TooLong(bytes.len()));
    }
    Ok(bytes)
}

/// Formats bytes as hexadecimal digits.
pub fn format(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatted_bytes_parse_back_and_mistakes_are_reported() {
        assert_eq!(parse(" 0x02:00 aB\n").unwrap(), [2, 0, 0xab]);
        assert_eq!(parse(&format(&[0, 255, 16])).unwrap(), [0, 255, 16]);
        assert!(parse("").unwrap().is_empty());
        assert!(parse("012").unwrap_err().to_string().contains("3 digits"));
        assert!(parse("01zz").unwrap_err().to_string().contains("'z'"));
        assert!(parse("0ä").unwrap_err().to_string().contains("'ä'"));
        assert!(parse(&"00".repeat(LARGE_FRAME_BYTES)).is_ok());
        let error = parse(&"00".repeat(LARGE_FRAME_BYTES + 1)).unwrap_err().to_string();
        assert!(error.contains("65601 bytes"), "{error}");
    }
}
