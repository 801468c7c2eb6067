// SPDX-License-Identifier: Apache-2.0
//! Scanner that splits a flow into items: `key`, `key=value`, `key:value`, `key(arguments)`,
//! `key(arguments)=value`.

use super::error::{Fault, Parsed};

/// An item. All its parts are slices of the scanned text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'t> {
    /// Text of the whole item.
    pub whole: &'t str,
    /// Text before `=`, `:` or `(`.
    pub key: &'t str,
    /// Text in the parentheses after the key.
    pub arguments: Option<&'t str>,
    /// Text after `=` or `:`.
    pub value: Option<&'t str>,
}

impl<'t> Item<'t> {
    /// Returns the value or, without one, the arguments: `group:3` and `group(3)` are equivalent.
    pub fn argument(&self) -> Option<&'t str> {
        self.value.or(self.arguments)
    }

    /// Returns an error at this item.
    pub fn refuse(&self, problem: impl Into<Box<str>>) -> Fault<'t> {
        Fault::new(self.whole, problem)
    }
}

/// Iterates over the items of a text.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b',' | b' ' | b'\t' | b'\r' | b'\n')
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    // Offsets are next to an ASCII byte or at an end, so they are character boundaries.
    fn part(&self, from: usize) -> &'t str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    /// Returns the text that has not been scanned yet.
    pub fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next item, or `None` at the end.
    pub fn item(&mut self) -> Parsed<'t, Option<Item<'t>>> {
        while self.peek().is_some_and(is_separator) {
            self.at += 1;
        }
        let start = self.at;
        if self.peek().is_none() {
            return Ok(None);
        }
        while self.peek().is_some_and(|b| !is_separator(b) && !matches!(b, b'=' | b':' | b'(' | b')')) {
            self.at += 1;
        }
        let key = self.part(start);
        let mut arguments = None;
        if self.peek() == Some(b'(') {
            let open = self.at;
            self.skip_parentheses()?;
            arguments = self.text.get(open + 1..self.at - 1);
        }
        let mut value = None;
        if matches!(self.peek(), Some(b'=' | b':')) {
            self.at += 1;
            let from = self.at;
            while let Some(byte) = self.peek() {
                match byte {
                    b'(' => self.skip_parentheses()?,
                    b')' => break,
                    b if is_separator(b) => break,
                    _ => self.at += 1,
                }
            }
            value = Some(self.part(from));
        }
        let whole = self.part(start);
        if self.peek().is_some_and(|b| !is_separator(b)) {
            return Err(Fault::new(self.rest(), "is not expected here; separate items by commas"));
        }
        if key.is_empty() {
            return Err(Fault::new(whole, "has no name before it; write name=value"));
        }
        Ok(Some(Item { whole, key, arguments, value }))
    }

    /// Skips white space and a `=` after a key without a value. Returns whether there was a `=`.
    pub fn late_equals(&mut self) -> bool {
        let rest = self.rest();
        let trimmed = rest.trim_ascii_start();
        let found = trimmed.starts_with('=');
        if found {
            self.at += rest.len() - trimmed.len() + 1;
        }
        found
    }

    /// Skips the text from an opening parenthesis to the closing one.
    fn skip_parentheses(&mut self) -> Parsed<'t, ()> {
        let open = self.at;
        let mut depth = 0u32;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'(' => depth += 1,
                b')' if depth == 1 => return Ok(()),
                b')' => depth -= 1,
                _ => {}
            }
        }
        Err(Fault::new(self.part(open), "has no closing parenthesis; add )"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_end_at_separators_outside_parentheses() {
        let text = "tcp, a=b:c\t slice(l3,1,2)=3/4 group:5 set_field:1->slice(l4,0,8),w(x(1),y)";
        let mut scanner = Scanner::new(text);
        let mut seen = Vec::new();
        while let Some(i) = scanner.item().unwrap() {
            seen.push((i.key, i.arguments, i.value));
        }
        assert_eq!(
            seen,
            [
                ("tcp", None, None),
                ("a", None, Some("b:c")),
                ("slice", Some("l3,1,2"), Some("3/4")),
                ("group", None, Some("5")),
                ("set_field", None, Some("1->slice(l4,0,8)")),
                ("w", Some("x(1),y"), None),
            ]
        );
    }

    #[test]
    fn unbalanced_text_is_refused() {
        for text in ["a(b", "a)", "(a)", "=3", "a=(", "a(b)c", "a=b)"] {
            assert!(Scanner::new(text).item().is_err(), "{text}");
        }
    }
}
