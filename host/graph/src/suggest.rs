//! "Did you mean": the one place that decides which known word an unknown one was probably meant to be.

/// The candidate that is most like `word`, if one is like it: the same but for case, or within a third of its letters
/// by the number of letters to insert, remove, replace or swap.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let tolerance = (lower.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= tolerance && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn typos_are_found_and_strangers_are_not() {
        let fields = ["output", "next", "on_other", "options", "id", "x"];
        for (word, expected) in [
            ("ouput", Some("output")),
            ("Output", Some("output")),
            ("onother", Some("on_other")),
            ("nxet", Some("next")),
            ("option", Some("options")),
            ("fallback", None),
            ("y", None),
            ("", None),
        ] {
            assert_eq!(closest(word, fields), expected, "{word}");
        }
    }
}
