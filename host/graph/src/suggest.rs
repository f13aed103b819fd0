//! "Did you mean": the one place that decides which known word an unknown one was probably meant to be.

/// Bytes of the longest word that is compared. Comparing takes time and memory by the product of both lengths, and nobody mistypes
/// a word that is longer.
const LONGEST: usize = 128;
/// Candidates that are compared at most.
const MOST_COMPARED: usize = 1_000;

/// The candidate that is most like `word`, if one is like it: the same but for case, or within a third of its letters
/// by the number of letters to insert, remove, replace or swap. Of many candidates the first thousand are looked at, and
/// words of more than 128 bytes are like no other.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase();
    let tolerance = (lower.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .take(MOST_COMPARED)
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (strsim::osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= tolerance && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Fields that are listed where none is like the one that was written. A longer list helps nobody who reads a message.
const MOST_LISTED: usize = 24;
/// Fields that are offered because they share a word with the one that was written.
const MOST_OFFERED: usize = 3;

/// What to write in place of a field that is none: the one that is most like it, or all that there are. Where these are many,
/// those that have its words among theirs (`agent_type` for `type`), or theirs among its own (`prompt` for `system_prompt`).
pub fn advise_field<'a>(word: &str, fields: impl IntoIterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for field in fields {
        if !known.contains(&field) {
            known.push(field);
        }
    }
    if let Some(near) = closest(word, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    if known.len() <= MOST_LISTED {
        return format!("its fields are {}", quoted(&known).join(", "));
    }
    let lower = word.to_lowercase();
    let is_within = |inner: &str, outer: &str| format!("_{outer}_").contains(&format!("_{inner}_"));
    let is_related = |field: &&str| is_within(&lower, field) || is_within(field, &lower);
    let related: Vec<&str> = known.iter().copied().filter(is_related).take(MOST_OFFERED).collect();
    match known.len() {
        _ if !related.is_empty() => format!("did you mean {}?", quoted(&related).join(" or ")),
        count => format!("it has {count} fields, which the documentation of the language lists"),
    }
}

#[cfg(test)]
mod tests {
    use super::{advise_field, closest};

    #[test]
    fn who_wrote_another_name_is_offered_what_is_near_and_no_long_list() {
        let few = ["agent_type", "communication_type", "prompt"];
        let numbered: Vec<String> = (0..90).map(|number| format!("f{number}x")).collect();
        let many = || numbered.iter().map(String::as_str).chain(few);
        assert_eq!(advise_field("promt", many()), "did you mean `prompt`?");
        assert_eq!(advise_field("type", few), "its fields are `agent_type`, `communication_type`, `prompt`");
        assert_eq!(advise_field("Type", many()), "did you mean `agent_type` or `communication_type`?");
        assert_eq!(advise_field("system_prompt", many()), "did you mean `prompt`?");
        assert_eq!(advise_field("role", many()), "it has 93 fields, which the documentation of the language lists");
    }

    /// Both words would take a table of 100 gigabytes.
    #[test]
    fn words_of_a_stranger_are_not_compared_at_any_length() {
        let (long, other) = ("b".repeat(120_000), format!("{}c", "b".repeat(120_000)));
        assert_eq!(closest(&long, [&*other]), None);
        assert_eq!(closest("output", [&*long, "ouput"]), Some("ouput"));
        let last = format!("{}x", "b".repeat(127));
        assert_eq!(closest(&"b".repeat(128), [&*last]), Some(&*last));
        let many: Vec<String> =
            (0..2_000).map(|number| format!("unlike{number}")).chain(["ouput".to_owned()]).collect();
        assert_eq!(closest("output", many.iter().map(String::as_str)), None);
    }

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
