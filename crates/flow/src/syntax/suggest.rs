// SPDX-License-Identifier: Apache-2.0
//! Suggests a known name for a mistyped one.

/// Length in bytes of the longest name that is compared.
const NAME_BYTES: usize = 32;

/// Returns `; did you mean "X"?` with the nearest name in `known`, or an empty string if no name is near.
pub(super) fn suggestion(name: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    let limit = (name.len() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|&(away, _)| away <= limit)
        .min_by_key(|&(away, _)| away)
        .map_or_else(String::new, |(_, candidate)| format!("; did you mean \"{candidate}\"?"))
}

/// Returns the edit distance with insertion, deletion, substitution and transposition of neighbours, ignoring
/// case.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > NAME_BYTES || b.len() > NAME_BYTES {
        return usize::MAX;
    }
    let same = |x: u8, y: u8| x.eq_ignore_ascii_case(&y);
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Rows of the distance matrix for the first `i`, `i - 1` and `i - 2` bytes of `a`, over the prefixes of
    // `b`.
    let mut older = [0; NAME_BYTES + 1];
    let mut old: [usize; NAME_BYTES + 1] = std::array::from_fn(|at| at);
    for i in 0..a.len() {
        let mut row = [i + 1; NAME_BYTES + 1];
        for j in 0..b.len() {
            let replaced = old[j] + usize::from(!same(a[i], b[j]));
            row[j + 1] = replaced.min(old[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && same(a[i], b[j - 1]) && same(a[i - 1], b[j]) {
                row[j + 1] = row[j + 1].min(older[j - 1] + 1);
            }
        }
        older = old;
        old = row;
    }
    old[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("dts", "dst"), 1);
        assert_eq!(distance("DL_SRC", "dl_src"), 0);
    }

    /// Computes the edit distance recursively, for comparison.
    fn plain_distance(a: &[u8], b: &[u8]) -> usize {
        let ([.., x], [.., y]) = (a, b) else { return a.len() + b.len() };
        let (shorter_a, shorter_b) = (&a[..a.len() - 1], &b[..b.len() - 1]);
        let mut least = plain_distance(shorter_a, shorter_b) + usize::from(x != y);
        least = least.min(plain_distance(shorter_a, b) + 1).min(plain_distance(a, shorter_b) + 1);
        match (a, b) {
            ([a @ .., u, v], [b @ .., s, t]) if (u, v) == (t, s) => least.min(plain_distance(a, b) + 1),
            _ => least,
        }
    }

    #[test]
    fn distances_equal_those_of_the_definition() {
        // All words of up to four letters over an alphabet of three letters.
        let words: Vec<Vec<u8>> = (0..4).fold(vec![Vec::new()], |words, _| {
            let longer = words.iter().flat_map(|word| b"abc".map(|letter| [&word[..], &[letter]].concat()));
            longer
                .chain(words.iter().cloned())
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect()
        });
        assert_eq!(words.len(), 1 + 3 + 9 + 27 + 81);
        for a in &words {
            for b in &words {
                let [a_text, b_text] = [a, b].map(|word| std::str::from_utf8(word).unwrap());
                assert_eq!(distance(a_text, b_text), plain_distance(a, b), "{a_text} and {b_text}");
            }
        }
    }

    #[test]
    fn names_of_more_than_32_bytes_are_not_compared() {
        let longest = "x".repeat(32);
        assert_eq!(distance(&longest, &longest), 0);
        assert_eq!(distance("", &longest), 32);
        assert_eq!([distance("", &"x".repeat(33)), distance(&"x".repeat(33), "")], [usize::MAX; 2]);
    }

    #[test]
    fn one_letter_in_three_may_be_wrong_and_three_at_most() {
        let near = |name: &str| !suggestion(name, ["abcdefghijklmn"]).is_empty();
        let of = |name: &str, known: &'static str| !suggestion(name, [known]).is_empty();
        assert!(of("a", "ab") && !of("a", "abc"));
        assert!(of("abxyz", "abyz") && !of("abxyz", "abpyq"));
        assert!(of("abcxyz", "abcpqz") && !of("abcxyz", "abcpqr"));
        assert!(near("abcdefghijkxyz") && !near("abcdefghijwxyz"));
        // Among equally near names, the first is suggested.
        let known = ["abcd", "abxy", "abce"];
        assert_eq!(suggestion("abcf", known), "; did you mean \"abcd\"?");
        assert_eq!(suggestion("abce", known), "; did you mean \"abce\"?");
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["nw_dst", "dl_dst", "in_port"];
        assert_eq!(suggestion("nw_dts", known), "; did you mean \"nw_dst\"?");
        assert_eq!(suggestion("banana", known), "");
    }
}
