//! Giving each expectation a candidate of its own, whatever the order.

/// Pairs `expectations` with `candidates` so that as many as possible have a candidate that `matches` and no
/// candidate is used twice. Gives the candidate of each expectation.
///
/// Taking the first candidate that fits is not enough: a loose expectation could take the only candidate of a strict
/// one. A pair is therefore given up again where the expectation that holds it finds another.
pub fn pair(expectations: usize, candidates: usize, matches: impl Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let fits: Vec<Vec<usize>> = (0..expectations)
        .map(|expectation| (0..candidates).filter(|candidate| matches(expectation, *candidate)).collect())
        .collect();
    let mut holder: Vec<Option<usize>> = vec![None; candidates];
    for expectation in 0..expectations {
        let mut tried = vec![false; candidates];
        place(expectation, &fits, &mut holder, &mut tried);
    }
    let mut pairs = vec![None; expectations];
    for (candidate, expectation) in holder.into_iter().enumerate() {
        if let Some(expectation) = expectation {
            pairs[expectation] = Some(candidate);
        }
    }
    pairs
}

fn place(expectation: usize, fits: &[Vec<usize>], holder: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for &candidate in &fits[expectation] {
        if tried[candidate] {
            continue;
        }
        tried[candidate] = true;
        let is_free = match holder[candidate] {
            None => true,
            Some(other) => place(other, fits, holder, tried),
        };
        if is_free {
            holder[candidate] = Some(expectation);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::pair;

    /// Rows are expectations, columns candidates; `x` where they match.
    fn pairs(rows: &[&str]) -> Vec<Option<usize>> {
        let candidates = rows.first().map_or(0, |row| row.len());
        pair(rows.len(), candidates, |row, column| rows[row].as_bytes()[column] == b'x')
    }

    #[test]
    fn a_loose_expectation_leaves_the_only_candidate_to_a_strict_one() {
        assert_eq!(pairs(&["xx", "x."]), [Some(1), Some(0)]);
        assert_eq!(pairs(&["xx.", "x.x", "x.."]), [Some(1), Some(2), Some(0)]);
    }

    #[test]
    fn nothing_is_used_twice() {
        assert_eq!(pairs(&["x", "x"]), [Some(0), None]);
        assert_eq!(pairs(&[".."]), [None]);
        assert!(pairs(&[]).is_empty());
    }
}
