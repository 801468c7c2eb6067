// SPDX-License-Identifier: Apache-2.0
//! Reduces Rust source to code. Comments, literals and test-only items become spaces, so line numbers do not
//! change.

/// Returns `source` with comments, string literals and character literals replaced by spaces.
pub fn without_words(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = token_end(bytes, at);
        match end {
            Some(end) => {
                blank(&mut out, at, end);
                at = end;
            }
            None => at += 1,
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns `code` (without comments and literals) with every item under `#[cfg(test)]` or
/// `#[cfg(all(test, ..))]` replaced by spaces.
pub fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    for start in test_attributes(code) {
        blank(&mut out, start, item_end(code.as_bytes(), start));
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the names of the modules in separate files that `code` (without comments and literals) declares
/// for tests only.
pub fn test_modules(code: &str) -> Vec<String> {
    let declared = |start: usize| {
        let item = &code[start..item_end(code.as_bytes(), start)];
        let name = item.trim_end().strip_suffix(';')?.rsplit_once("mod ")?.1;
        Some(name.trim().to_owned())
    };
    test_attributes(code).filter_map(declared).collect()
}

fn test_attributes(code: &str) -> impl Iterator<Item = usize> {
    let starts = ["#[cfg(test)]", "#[cfg(all(test"].map(|attribute| code.match_indices(attribute));
    starts.into_iter().flatten().map(|(start, _)| start)
}

fn blank(out: &mut [u8], from: usize, to: usize) {
    for byte in &mut out[from..to] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Returns the end of the item whose attributes begin at `start`: its closing brace, or a semicolon before
/// any brace.
fn item_end(code: &[u8], start: usize) -> usize {
    let mut braces = 0usize;
    let mut brackets = 0usize;
    for (at, byte) in code.iter().enumerate().skip(start) {
        match byte {
            b'{' => braces += 1,
            b'}' if braces <= 1 => return at + 1,
            b'}' => braces -= 1,
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets = brackets.saturating_sub(1),
            b';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns the end of the comment or literal that begins at `at`, or `None` if none begins there.
fn token_end(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return Some(find(bytes, at, b"\n").unwrap_or(bytes.len()));
    }
    if rest.starts_with(b"/*") {
        return Some(comment_end(bytes, at));
    }
    match rest.first()? {
        b'"' => Some(quoted_end(bytes, at + 1, b'"')),
        b'r' if !continues_name(bytes, at) => raw_end(bytes, at),
        b'\'' => char_end(bytes, at),
        _ => None,
    }
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes[from..].windows(what.len()).position(|window| window == what).map(|offset| from + offset)
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the end of `r"..."`, `r#"..."#` and so on, but not of `r#name`.
fn raw_end(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'#'; hashes + 1];
    close[0] = b'"';
    Some(find(bytes, open + 1, &close).map_or(bytes.len(), |end| end + close.len()))
}

/// Returns the end of a character literal, or `None` for a lifetime.
fn char_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        return Some(quoted_end(bytes, at + 1, b'\''));
    }
    let text = std::str::from_utf8(&bytes[at + 1..]).ok()?;
    let width = text.chars().next()?.len_utf8();
    text[width..].starts_with('\'').then_some(at + 1 + width + 1)
}

/// Returns whether the letter at `at` continues a name (as the `r` of `for`); `br` and `cr` do not count.
fn continues_name(bytes: &[u8], at: usize) -> bool {
    let letter = |at: usize| bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_';
    match at {
        0 => false,
        1 => letter(0) && !matches!(bytes[0], b'b' | b'c'),
        _ => letter(at - 1) && (letter(at - 2) || !matches!(bytes[at - 1], b'b' | b'c')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_spaces_and_lines_stay() {
        let source = "a(\"x\\\"unwrap(\"); // format!\n/* b /* c */ d */ e('\\'', '\"', \"f\n\") g<'h>(r#\"i\"j\"#) for\"k\"";
        let code = without_words(source);
        assert_eq!(code.lines().count(), source.lines().count());
        assert_eq!(code.len(), source.len());
        let words: Vec<&str> = code.split_whitespace().collect();
        assert_eq!(words, ["a(", ");", "e(", ",", ",", ")", "g<'h>(", ")", "for"]);
    }

    #[test]
    fn test_items_become_spaces() {
        let code = "fn a() {}\n#[cfg(test)]\n#[x(y)]\nmod t { fn b() { c() } }\nfn d() {}\n#[cfg(test)]\nuse e;\nfn f() {}";
        let shipped = without_tests(code);
        let words: Vec<&str> = shipped.split_whitespace().collect();
        assert_eq!(words, ["fn", "a()", "{}", "fn", "d()", "{}", "fn", "f()", "{}"]);
        assert_eq!(shipped.lines().count(), code.lines().count());
    }

    #[test]
    fn test_modules_in_separate_files_are_listed() {
        let code = "mod a;\n#[cfg(test)]\nmod b;\n#[cfg(test)]\nmod c { }\n#[cfg(all(test, unix))]\npub(crate) mod d;\n";
        assert_eq!(test_modules(code), ["b", "d"]);
    }
}
