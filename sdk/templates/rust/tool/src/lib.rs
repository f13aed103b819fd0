//! A tool in Rust.

use std::collections::BTreeSet;

use hotcell_plugin::{Error, Value, log, plugin, tool};

/// What was counted.
#[derive(Debug, PartialEq, Value)]
pub struct Count {
    /// How many words there are.
    words: usize,
}

/// Counts the words of a text.
#[tool(read_only)]
pub fn count_words(
    /// The text to count in.
    text: &str,
    /// Count words that occur several times only once.
    #[value(default = false)]
    distinct: bool,
) -> Result<Count, Error> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return Err(Error::invalid_input("there are no words in `text`"));
    }
    log::debug!("{} words", words.len());
    let count = if distinct { words.iter().collect::<BTreeSet<_>>().len() } else { words.len() };
    Ok(Count { words: count })
}

plugin! {
    name: "{{name}}",
    tools: [count_words],
}

#[cfg(test)]
mod tests {
    use super::{Count, count_words};

    #[test]
    fn words_are_counted_once_if_asked() {
        assert_eq!(count_words("a b a", false), Ok(Count { words: 3 }));
        assert_eq!(count_words("a b a", true), Ok(Count { words: 2 }));
        assert!(count_words(" ", false).is_err());
    }
}
