//! Compares two texts, by lines or by words, with [`similar`].

use hotcell_plugin::{Error, Value, plugin, tool};
use similar::{ChangeTag, TextDiff};

plugin! { tools: [compare] }

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
#[value(rename_all = "lowercase")]
enum Unit {
    /// Whole lines; the difference is a unified diff.
    Lines,
    /// Words; the difference is the text with `[-what went-]` and `{+what came+}`.
    Words,
}

/// How two texts differ.
#[derive(Debug, PartialEq, Value)]
struct Difference {
    /// Whether they are the same.
    equal: bool,
    /// How much they have in common, from 0 to 1.
    similarity: f64,
    /// How many lines or words went.
    removed: usize,
    /// How many lines or words came.
    added: usize,
    /// The difference; empty where there is none.
    difference: String,
}

/// Shows how a text became another.
#[tool(read_only)]
fn compare(
    /// The text before.
    old: &str,
    /// The text after.
    new: &str,
    /// Whether to compare lines or words.
    #[value(default = "lines")]
    by: Unit,
    /// How many lines that stayed the same to show around each change.
    #[value(default = 3)]
    context: u16,
) -> Result<Difference, Error> {
    let diff = match by {
        Unit::Lines => TextDiff::from_lines(old, new),
        Unit::Words => TextDiff::from_words(old, new),
    };
    // White space between words is a change of its own and not counted as a word.
    let counts = |change: &similar::Change<&str>| by == Unit::Lines || !change.value().trim().is_empty();
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag && counts(change)).count();
    let (removed, added) = (count(ChangeTag::Delete), count(ChangeTag::Insert));
    let difference = match by {
        _ if old == new => String::new(),
        Unit::Lines => diff.unified_diff().context_radius(usize::from(context)).header("old", "new").to_string(),
        Unit::Words => marked(&diff),
    };
    let similarity = (f64::from(diff.ratio()) * 1000.0).round() / 1000.0;
    Ok(Difference { equal: old == new, similarity, removed, added, difference })
}

/// The new text with what went and came marked; neighbours of one kind share their marks.
fn marked(diff: &TextDiff<'_, '_, str>) -> String {
    let mut text = String::new();
    let mut open = ChangeTag::Equal;
    for change in diff.iter_all_changes() {
        if change.tag() != open {
            text.push_str(close(open));
            text.push_str(match change.tag() {
                ChangeTag::Equal => "",
                ChangeTag::Delete => "[-",
                ChangeTag::Insert => "{+",
            });
            open = change.tag();
        }
        text.push_str(change.value());
    }
    text.push_str(close(open));
    text
}

fn close(tag: ChangeTag) -> &'static str {
    match tag {
        ChangeTag::Equal => "",
        ChangeTag::Delete => "-]",
        ChangeTag::Insert => "+}",
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::json;

    use super::{PLUGIN, Unit, compare};

    #[test]
    fn lines_give_a_unified_diff() {
        let difference = compare("a\nb\nc\n", "a\nB\nc\n", Unit::Lines, 1).map(|difference| difference.difference);
        assert_eq!(difference, Ok("--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n".to_owned()));
    }

    #[test]
    fn words_are_marked_in_place() {
        let difference = compare("the red house", "the blue house", Unit::Words, 0);
        assert_eq!(
            difference.map(|it| (it.removed, it.added, it.difference)),
            Ok((1, 1, "the [-red-]{+blue+} house".to_owned()))
        );
    }

    #[test]
    fn equal_texts_have_no_difference() {
        let answer = PLUGIN.call_tool("compare", json!({"old": "x", "new": "x"}));
        assert_eq!(answer, Ok(json!({"equal": true, "similarity": 1, "removed": 0, "added": 0, "difference": ""})));
    }

    #[test]
    fn another_unit_is_refused_with_those_there_are() {
        let answer = PLUGIN.call_tool("compare", json!({"old": "x", "new": "x", "by": "letters"}));
        let message = answer.map_or_else(|error| error.message().to_owned(), |_| String::new());
        assert_eq!(message, "argument `by` must be one of `lines`, `words`; it is the text `letters`");
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
