//! Which characters of a stranger's text are not seen by whoever reads it: they steer a terminal, turn the direction of writing, or hide
//! words. Whoever shows such a text writes them out, leaves them out, or refuses it.

/// Whether a character does something to a text instead of being part of it: controls, marks that turn the direction of writing,
/// separators of lines that are none, and what Unicode lets programs not draw at all (`Default_Ignorable_Code_Point`): blanks
/// without width, fillers, selectors, and the tags in which a whole text can be hidden. [Joiners](is_joiner) are not among them.
pub fn is_hidden(character: char) -> bool {
    !is_joiner(character)
        && (character.is_control()
            || matches!(character,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'))
}

/// Whether a character is a mark that is drawn over the letter before it. No script needs more than [`MOST_MARKS`] of these in a row; hundreds of
/// them are drawn over the lines around.
pub fn is_mark(character: char) -> bool {
    matches!(character,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}')
}

/// Marks that one letter has at most.
pub const MOST_MARKS: usize = 4;

/// Whether a character cannot be seen and many scripts and emoji cannot be written without it: joiners, and selectors of a form.
pub fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::{is_hidden, is_joiner, is_mark};

    #[test]
    fn what_is_not_seen_is_hidden() {
        for hidden in [
            '\0',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{17b4}',
            '\u{180e}',
            '\u{200b}',
            '\u{200e}',
            '\u{2028}',
            '\u{202e}',
            '\u{2066}',
            '\u{206a}',
            '\u{3164}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{1bca0}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e01ef}',
        ] {
            assert!(is_hidden(hidden) && !is_joiner(hidden), "{hidden:?}");
        }
    }

    #[test]
    fn marks_are_those_over_a_letter() {
        assert!(['\u{301}', '\u{489}', '\u{20dd}', '\u{fe2f}'].into_iter().all(is_mark));
        assert!(!"\u{e9} हिन्दी ไทย \u{5e9}\u{5b8}\u{fe0f}".chars().any(is_mark));
    }

    #[test]
    fn what_is_written_is_seen() {
        for text in [
            "plain äöü 漢字 ไทย हिन्दी 한국어",
            "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f}",
            "می\u{200c}خواهم",
            "− – … “”\u{a0}\u{3000}",
        ] {
            assert!(!text.chars().any(is_hidden), "{text}");
        }
    }
}
