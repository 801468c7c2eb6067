// SPDX-License-Identifier: Apache-2.0
//! Reads flow files of any size in bounded memory, and rejects files that are not text.

use std::io::{self, BufRead, Read};

/// Maximum length in bytes of a line of a flow file.
pub const LINE_BYTES: usize = 65_536;

/// Default size in bytes of the pieces of a flow file.
pub const PIECE_BYTES: usize = 64 * 1_024;

/// Reads a flow file in pieces of whole lines and passes each to `take`. All pieces except the last have at
/// least `piece_bytes` bytes.
///
/// # Errors
/// Returns an error of the reader or of `take`, or an error if the text is not UTF-8.
pub fn read_pieces(
    mut reader: impl BufRead,
    piece_bytes: usize,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<()> {
    let mut piece = Vec::with_capacity(piece_bytes + 1_024);
    let mut lines = 0_u32;
    loop {
        let start = piece.len();
        let got = reader.by_ref().take(LINE_BYTES as u64 + 1).read_until(b'\n', &mut piece)?;
        lines = lines.saturating_add(1);
        if got > LINE_BYTES || std::str::from_utf8(&piece[start..]).is_err() {
            let wrong = if got > LINE_BYTES { "is too long" } else { "is not UTF-8 text" };
            let sentence = format!(
                "line {lines}: {wrong}; a flow file has one flow per line, such as in_port=1,actions=output:2"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        if piece.len() >= piece_bytes || (got == 0 && !piece.is_empty()) {
            take(std::str::from_utf8(&piece).unwrap_or_default())?;
            piece.clear();
        }
        if got == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_text_is_refused_with_the_line() {
        let mut pieces = Vec::new();
        let mut read = |bytes: &[u8]| {
            read_pieces(bytes, 4, |piece| {
                pieces.push(piece.to_owned());
                Ok(())
            })
        };
        assert!(read(b"one\ntwo\nthree").is_ok());
        let error = read(b"one\n\xff\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: is not UTF-8 text"), "{error}");
        let error = read(&vec![b'x'; LINE_BYTES + 1]).unwrap_err().to_string();
        assert!(error.starts_with("line 1: is too long"), "{error}");
        assert_eq!(pieces, ["one\n", "two\n", "three", "one\n"]);
    }

    #[test]
    fn a_line_has_at_most_65_536_bytes() {
        let mut line = vec![b'x'; 65_535];
        line.push(b'\n');
        let mut lengths = Vec::new();
        let mut read = |bytes: &[u8]| {
            read_pieces(bytes, 1, |piece| {
                lengths.push(piece.len());
                Ok(())
            })
        };
        assert!(read(&[&line[..], &line[..]].concat()).is_ok());
        let error = read(&[&line[..], b"x", &line[..]].concat()).unwrap_err().to_string();
        assert!(error.starts_with("line 2: is too long"), "{error}");
        assert_eq!(lengths, [65_536; 3]);
    }

    #[test]
    fn a_piece_ends_with_the_line_that_fills_it() {
        for (piece_bytes, expected) in [
            (1, &["ab\n", "cd\n", "e"][..]),
            (3, &["ab\n", "cd\n", "e"]),
            (4, &["ab\ncd\n", "e"]),
            (9, &["ab\ncd\ne"]),
        ] {
            let mut pieces = Vec::new();
            let take = |piece: &str| {
                pieces.push(piece.to_owned());
                Ok(())
            };
            read_pieces(&b"ab\ncd\ne"[..], piece_bytes, take).unwrap();
            assert_eq!(pieces, expected, "{piece_bytes} bytes");
        }
    }
}
