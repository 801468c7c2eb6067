// SPDX-License-Identifier: Apache-2.0
//! From text to the file's structure; the parser's complaints become mistakes with a line.

use super::Mistake;
use super::file::File;

pub fn read(text: &str) -> Result<File, Mistake> {
    toml::from_str(text).map_err(|error| Mistake {
        line: error.span().map(|span| line_of(text, span.start)),
        key: String::new(),
        problem: error.message().replace('\n', "; "),
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}
