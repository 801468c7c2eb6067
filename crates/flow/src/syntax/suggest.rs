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

/// Bytes to add, drop, replace or swap with their neighbour to come from one name to the other; letters are compared
/// without case.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > NAME_BYTES || b.len() > NAME_BYTES {
        return usize::MAX;
    }
    let same = |x: u8, y: u8| x.eq_ignore_ascii_case(&y);
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Distances of the first i bytes of `a` to each beginning of `b`, for i and the two before.
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

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["nw_dst", "dl_dst", "in_port"];
        assert_eq!(suggestion("nw_dts", known), "; did you mean \"nw_dst\"?");
        assert_eq!(suggestion("banana", known), "");
    }
}
