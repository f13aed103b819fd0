//! Two rankings as one.
//!
//! Reciprocal rank fusion adds up, over the rankings, one by the place in each. It compares places only, since the scores
//! of words and of vectors have no common measure. Left at that, a chunk that has one frequent word of a question counts as
//! much as one with its error code. So a place among the words counts by the share of the question that the chunk has.
//! The numbers were chosen on the corpus of `tests/quality`, in the middle of a range where the result hardly changes.

use std::collections::BTreeMap;

/// How much the first places count more than the later ones: the smaller, the more.
const SMOOTHING: f64 = 10.0;
/// How much a place among the words counts, for a chunk that has the whole question. More than one among the vectors:
/// whoever asks for `F-202` wants what has that, and vectors hardly tell it from `F-212`.
const WORDS: f64 = 1.5;

/// The chunks of both rankings with their scores, best first. Those by words have their share of the question, from 0 to
/// 1. Ties go to the better place among the vectors, then to the lower number.
pub(super) fn fuse(words: &[(i64, f64)], vectors: &[i64]) -> Vec<(i64, f64)> {
    // For each chunk its score and its place among the vectors.
    let mut chunks: BTreeMap<i64, (f64, usize)> = BTreeMap::new();
    for (place, &chunk) in vectors.iter().enumerate() {
        chunks.entry(chunk).or_insert((score(place), place));
    }
    for (place, &(chunk, share)) in words.iter().enumerate() {
        chunks.entry(chunk).or_insert((0.0, usize::MAX)).0 += WORDS * share.powi(2) * score(place);
    }
    let mut fused: Vec<_> = chunks.into_iter().collect();
    fused.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    fused.into_iter().map(|(chunk, (score, _))| (chunk, score)).collect()
}

fn score(place: usize) -> f64 {
    1.0 / (SMOOTHING + place as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_count_by_what_they_have() {
        let order = |words: &[(i64, f64)], vectors: &[i64]| {
            fuse(words, vectors).into_iter().map(|(chunk, _)| chunk).collect::<Vec<_>>()
        };
        assert_eq!(order(&[], &[]), [] as [i64; 0]);
        assert_eq!(order(&[(3, 0.1), (1, 0.1)], &[]), [3, 1]);
        // Found by both before found by one.
        assert_eq!(order(&[(7, 1.0), (2, 1.0)], &[9, 2]), [2, 7, 9]);
        // A small share does not turn the order of the vectors round.
        assert_eq!(order(&[(4, 0.2), (7, 0.2)], &[5, 4]), [5, 4, 7]);
        // Ties.
        assert_eq!(order(&[(4, 0.0), (3, 0.0)], &[]), [3, 4]);
        let first = fuse(&[(1, 0.5)], &[1])[0].1;
        assert!((first - 1.375 / 11.0).abs() < 1e-12);
    }
}
