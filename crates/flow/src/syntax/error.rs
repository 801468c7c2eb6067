// SPDX-License-Identifier: Apache-2.0
//! Parse errors and their location.

/// Reason why a text was refused, with its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Line number in the file, counted from 1. `None` for a single flow.
    pub line: Option<u32>,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// The refused text, or an empty text if something is missing.
    pub text: String,
    /// Description of the mistake and how to correct it.
    pub problem: String,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        write!(f, "column {}: ", self.column)?;
        if !self.text.is_empty() {
            write!(f, "\"{}\": ", self.text)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for SyntaxError {}

/// Error during parsing; `at` points into the parsed text.
#[derive(Debug)]
pub(super) struct Fault<'t> {
    pub at: &'t str,
    pub problem: Box<str>,
}

/// Maximum number of characters of the refused text that an error quotes.
const TEXT_CHARS: usize = 60;

impl<'t> Fault<'t> {
    pub fn new(at: &'t str, problem: impl Into<Box<str>>) -> Self {
        Self { at, problem: problem.into() }
    }

    /// Converts to the public error type. `line` is the text that contains `at`.
    pub fn locate(self, line: &str, number: Option<u32>) -> SyntaxError {
        let offset = (self.at.as_ptr() as usize).wrapping_sub(line.as_ptr() as usize);
        let before = line.get(..offset).unwrap_or(line);
        let mut text: String = self.at.chars().take(TEXT_CHARS).collect();
        if text.len() < self.at.len() {
            text.push_str("...");
        }
        SyntaxError {
            line: number,
            column: u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX),
            text,
            problem: self.problem.into(),
        }
    }
}

/// Result of a parser.
pub(super) type Parsed<'t, T> = Result<T, Fault<'t>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error for the part of a line that begins at this byte.
    fn at(line: &str, from: usize) -> SyntaxError {
        Fault::new(&line[from..], "is wrong").locate(line, Some(7))
    }

    #[test]
    fn an_error_gives_the_column_in_characters() {
        assert_eq!((at("abc", 0).column, at("abc", 2).column, at("abc", 3).column), (1, 3, 4));
        let wide = at("\u{e9}\u{1F980}=x", 7);
        assert_eq!((wide.column, wide.text.as_str()), (4, "x"));
        assert_eq!(at("ab", 1).to_string(), "line 7, column 2: \"b\": is wrong");
        assert_eq!(at("ab", 2).to_string(), "line 7, column 3: is wrong");
        assert_eq!(SyntaxError { line: None, ..at("ab", 1) }.to_string(), "column 2: \"b\": is wrong");
    }

    #[test]
    fn an_error_quotes_at_most_60_characters() {
        for (characters, kept, end) in [(59, 59, ""), (60, 60, ""), (61, 60, "..."), (90, 60, "...")] {
            let text = at(&"\u{e9}".repeat(characters), 0).text;
            assert_eq!(text, "\u{e9}".repeat(kept) + end, "{characters} characters");
        }
    }
}
