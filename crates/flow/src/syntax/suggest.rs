// SPDX-License-Identifier: Apache-2.0
//! The known name nearest to a mistyped one.

/// Longest name that is compared.
const NAME_BYTES: usize = 32;

/// `; did you mean "X"?` with the nearest of `known`, or nothing if none is near.
pub(super) fn suggestion(name: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    let limit = (name.len() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|&(away, _)| away <= limit)
        .min_by_key(|&(away, _)| away)
        .map_or_else(String::new, |(_, candidate)| format!("; did you mean \"{candidate}\"?"))
}

/// Levenshtein distance in bytes, letters compared without case.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > NAME_BYTES || b.len() > NAME_BYTES {
        return usize::MAX;
    }
    let mut row = [0; NAME_BYTES + 1];
    for (at, cell) in row.iter_mut().enumerate() {
        *cell = at;
    }
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replace = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("DL_SRC", "dl_src"), 0);
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["nw_dst", "dl_dst", "in_port"];
        assert_eq!(suggestion("nw_dts", known), "; did you mean \"nw_dst\"?");
        assert_eq!(suggestion("banana", known), "");
    }
}
