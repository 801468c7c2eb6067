// SPDX-License-Identifier: Apache-2.0
//! Bytes in text: hex digits, `0*N` for `N` zero bytes, and `"text"`.

#![allow(missing_docs, clippy::unwrap_used)]

pub fn bytes<'a>(words: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        if let Some(count) = word.strip_prefix("0*") {
            bytes.resize(bytes.len() + count.parse::<usize>().unwrap(), 0);
        } else if let Some(text) = word.strip_prefix('"') {
            bytes.extend_from_slice(text.strip_suffix('"').unwrap().as_bytes());
        } else {
            let pairs = word.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
            bytes.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
        }
    }
    bytes
}
