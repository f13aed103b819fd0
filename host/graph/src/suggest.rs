//! "Did you mean": the one place that decides which known word an unknown one was probably meant to be.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::{formula, searching, types};

/// Bytes of the longest word that is compared. Comparing takes time and memory by the product of both lengths, and nobody mistypes
/// a word that is longer.
const LONGEST: usize = 128;
/// Candidates that are compared at most.
const MOST_COMPARED: usize = 1_000;
/// Pairs of letters that are compared for one word.
const MOST_LETTERS: u64 = 2_000_000;
/// Pairs of letters that are compared for all words of a file, which take less than a second. Whoever wrote fifty wrong names gets
/// advice for each of them.
const MOST_LETTERS_OF_A_FILE: u64 = 20_000_000;

thread_local! {
    /// Pairs of letters that are left for the file that this thread reads
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// While it lives, what is compared on this thread counts for one file: when that was enough, no word is like another one. Whatever reads a
/// file of a stranger begins with one, since a small file may have any number of wrong names, and of regular expressions and conditions of
/// types, which count in the same way. What begins within another one counts for that.
#[derive(Debug)]
pub struct Courtesy {
    before: Option<u64>,
    /// It belongs to this thread
    here: PhantomData<*const ()>,
}

impl Courtesy {
    /// Begins one.
    #[must_use]
    pub fn for_a_file() -> Self {
        let before = LEFT.get();
        LEFT.set(Some(before.unwrap_or(MOST_LETTERS_OF_A_FILE)));
        searching::begin_file();
        types::begin_file();
        formula::begin_file();
        Courtesy { before, here: PhantomData }
    }
}

impl Drop for Courtesy {
    fn drop(&mut self) {
        if self.before.is_none() {
            LEFT.set(None);
            searching::end_file();
            types::end_file();
            formula::end_file();
        }
    }
}

/// The candidate that is most like `word`, if one is like it: the same but for case, or within a third of its letters
/// by the number of letters to insert, remove, replace or swap. Of many candidates the first thousand are looked at, of long ones
/// fewer, and words of more than 128 bytes are like no other.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let of_file = LEFT.get();
    let allowed = of_file.map_or(MOST_LETTERS, |left| left.min(MOST_LETTERS));
    if word.len() > LONGEST || allowed == 0 {
        return None;
    }
    let lower = word.to_lowercase();
    let letters = lower.chars().count();
    let tolerance = (letters / 3).max(1);
    let mut left = allowed;
    let mut nearest: Option<(usize, &str)> = None;
    for candidate in candidates.into_iter().take(MOST_COMPARED) {
        let length = candidate.chars().take(LONGEST + 1).count();
        if candidate.len() > LONGEST || length.abs_diff(letters) > tolerance {
            continue;
        }
        match left.checked_sub((letters * length) as u64) {
            Some(rest) => left = rest,
            None => {
                left = 0;
                break;
            }
        }
        let distance = strsim::osa_distance(&lower, &candidate.to_lowercase());
        let is_like = distance <= tolerance && distance < length;
        if is_like && nearest.is_none_or(|(least, _)| distance < least) {
            nearest = Some((distance, candidate));
        }
    }
    if let Some(before) = of_file {
        LEFT.set(Some(before.saturating_sub(allowed - left)));
    }
    nearest.map(|(_, candidate)| candidate)
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
    use super::{Courtesy, advise_field, closest};

    /// Sixty wrong names of a hundred letters each, among as many right ones, are forty million pairs.
    #[test]
    fn what_is_compared_for_one_file_has_an_end() {
        let near = |at: usize, end: char| format!("{}{at:03}{end}", "n".repeat(100));
        let names: Vec<String> = (0..60).map(|at| near(at, 'a')).collect();
        let all = || names.iter().map(String::as_str);
        let advised = || (0..60).filter(|at| closest(&near(*at, 'b'), all()).is_some()).count();
        assert_eq!(advised(), 60);
        let courtesy = Courtesy::for_a_file();
        let within = Courtesy::for_a_file();
        let number = advised();
        assert!(0 < number && number < 40, "{number}");
        drop(within);
        assert_eq!(advised(), 0);
        drop(courtesy);
        assert_eq!(advised(), 60);
    }

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
