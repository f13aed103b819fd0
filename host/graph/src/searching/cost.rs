//! What an expression costs, in the one place that decides how large it may be and how much is searched with it.
//!
//! Two machines search for it. One makes states of the expression as it meets them, and is fast as long as it meets few; what it may make
//! is counted by [`Cost`]. The other one keeps all places of the expression at which a match may be, and looks at each of them for each
//! byte: its steps are known before it begins.

use regex_automata::hybrid::dfa;
use regex_automata::nfa::thompson::NFA;
use regex_syntax::hir::{Hir, HirKind};

/// Bytes of the longest expression as it is written: a class like `\w` takes two of them, and thousands when it is read.
pub(super) const LONGEST: usize = 32 << 10;
/// Bytes of the largest expression as it is compiled. What `\w` stands for in all scripts takes some ten thousand, wherever it is repeated.
pub(super) const LARGEST: usize = 8 << 20;
/// Large classes of an expression that ignores case: each letter of one is looked at when it is read, and `[\s\S]` has a million.
pub(crate) const MOST_FOLDED: usize = 50;
/// Bytes that such a class counts for, beside those that it takes when it is compiled.
const OF_A_FOLDED: usize = 256 << 10;
/// Bytes of all expressions of a file as they are compiled, and for how many a small one counts.
pub(super) const OF_A_FILE: usize = 64 << 20;
pub(super) const LEAST: usize = 8 << 10;

/// Steps of one search that looks at all places: about a second. One step is one place for one byte.
pub(super) const MOST_STEPS: usize = 64 << 20;
/// Bytes of an expression for which room is made in the time of one step.
const BEGUN_A_STEP: usize = 32;
/// Looks at places of an expression while states are made of them, which takes as long as steps do.
const MOST_LOOKS: usize = 32 << 20;
/// Bytes of states that are remembered at once, unless the expression needs more for a few.
const REMEMBERED: usize = 512 << 10;
/// Bytes that a state has beside its transitions, at least.
const OF_A_STATE: usize = 44;

/// Bytes of an expression that are compiled in one step of a formula, and steps of a search that count as one of them.
const COMPILED_A_STEP: usize = 64;
const SEARCHED_A_STEP: usize = 16;
/// Steps of a formula in which it turns out that an expression is too large.
pub(crate) const MOST_COMPILING: usize = LARGEST / COMPILED_A_STEP;

/// What an expression costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes that it counts for
    pub(super) size: usize,
    /// Bytes that reading it counts for
    reading: usize,
    /// At how many places of it a match may be at once
    places: usize,
}

impl Cost {
    /// The cost of an expression with so many classes that ignore case.
    pub(super) fn of(expression: &Hir, program: &NFA, folded: usize) -> Self {
        Cost {
            size: program.memory_usage().max(LEAST),
            reading: folded.saturating_mul(OF_A_FOLDED),
            places: places(expression).max(1),
        }
    }

    /// Bytes that it counts for in its file.
    pub(super) fn of_file(self) -> usize {
        self.size.saturating_add(self.reading)
    }

    /// Steps of a search of so many bytes that looks at all places.
    pub(super) fn steps(self, bytes: usize) -> usize {
        bytes.saturating_mul(self.places)
    }

    /// Steps that a search of so many bytes takes at worst, however it is searched. Beginning one takes time by itself: there is room to be
    /// made for all of the program.
    pub(super) fn at_worst(self, bytes: usize) -> usize {
        self.steps(bytes).saturating_add(self.size / BEGUN_A_STEP)
    }

    /// Steps of a formula that it counts for.
    pub(super) fn counted(self, bytes: usize) -> usize {
        self.at_worst(bytes) / SEARCHED_A_STEP
    }

    /// Steps of a formula in which it was compiled.
    pub(super) fn compiling(self) -> usize {
        self.of_file() / COMPILED_A_STEP
    }
}

/// How states are made of a program, or none if the first few of them may already take too long: then the search gives up, rather than
/// making states for a text that always needs others.
pub(super) fn states(program: &NFA) -> Option<dfa::Config> {
    let config = dfa::Config::new().unicode_word_boundary(true);
    let room = config.get_minimum_cache_capacity(program).ok()?.max(REMEMBERED);
    let most_at_once = room / ((4usize << program.byte_classes().stride2()) + OF_A_STATE);
    // A state has a byte at least for each place that it stands for, and only ways between them take none.
    let ways = program.states().iter().filter(|state| state.is_epsilon()).count();
    let looks = most_at_once.saturating_mul(ways + 1).saturating_add(room);
    let again = (MOST_LOOKS / looks).checked_sub(1)?;
    Some(config.cache_capacity(room).minimum_cache_clear_count(Some(again)))
}

/// How many classes of an expression are looked at letter by letter when it is read, because they may ignore case and may be large, by
/// how it is written: some that are small are among them, and none is left out.
pub(crate) fn folded(expression: &str, ignores_case: bool) -> usize {
    let sets_it = |flags: &str| {
        let mut letters = flags.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'-');
        letters.any(|letter| letter == b'i')
    };
    if !ignores_case && !expression.split('?').skip(1).any(sets_it) {
        return 0;
    }
    // What stands behind this may be a comment, in which brackets are none.
    let everywhere = expression.contains('#');
    let (mut depth, mut number, mut is_range) = (0_usize, 0, false);
    let mut letters = expression.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_within = everywhere || depth > 0;
        let ends_range = is_range && !letter.is_ascii();
        is_range = letter == '-' || is_range && letter.is_whitespace();
        match letter {
            '\\' => {
                let kind = letters.next().unwrap_or_default();
                let is_large = is_within && "wWdDsSxuU".contains(kind);
                number += usize::from(is_large || matches!(kind, 'p' | 'P'));
            }
            '[' => {
                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                let is_negated = letters.next_if_eq(&'^').is_some();
                number += usize::from(is_within && is_negated);
                depth += 1;
                while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
                // At the beginning of a class, this is a letter of it.
                let _ = letters.next_if_eq(&']');
            }
            ']' => depth = depth.saturating_sub(1),
            // All but those of a class with a name.
            ':' => number += usize::from(is_within && letters.peek() == Some(&'^')),
            _ => number += usize::from(is_within && ends_range),
        }
    }
    number
}

/// At how many places of an expression a match may be at once; none for what is no expression without more than those.
pub(crate) fn places_of(expression: &str) -> Option<usize> {
    regex_syntax::parse(expression).ok().map(|read| places(&read))
}

/// At how many places of an expression a match may be at once. All letters of a class are one place: a text is searched letter by letter,
/// so that a match is never within one at several places.
fn places(expression: &Hir) -> usize {
    let all = |parts: &[Hir]| parts.iter().map(places).fold(0, usize::saturating_add);
    match expression.kind() {
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Capture(capture) => places(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) => all(parts),
        HirKind::Alternation(parts) => all(parts).saturating_add(parts.len()),
        HirKind::Repetition(repetition) => {
            let least = repetition.min as usize;
            let (times, ways) = match repetition.max {
                Some(most) => (most as usize, (most as usize).saturating_sub(least)),
                None => (least.max(1), 1),
            };
            places(&repetition.sub).saturating_mul(times).saturating_add(ways)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(expression: &str) -> usize {
        super::places_of(expression).expect("an expression")
    }

    #[test]
    fn places_are_those_of_the_expression_and_not_of_the_letters_that_it_stands_for() {
        for (expression, expected) in [
            ("a", 1),
            ("abc", 3),
            (r"\w", 1),
            (r"\w+@\w+\.\w+", 8),
            (r"sk-[\w-]{40}", 43),
            (r"\d{4}-\d\d-\d\d", 10),
            ("a{2,5}", 8),
            ("(?:ab?|cd)", 7),
            ("(?:a{100}){100}", 10_000),
        ] {
            assert_eq!(places_of(expression), expected, "{expression}");
        }
        assert!(places_of(r"(?:a{1000}){1000}") >= 1_000_000);
    }

    #[test]
    fn large_classes_that_ignore_case_are_counted() {
        for (expression, ignores_case, expected) in [
            (r"[\s\S]\pL", false, 0),
            (r"[\s\S]\pL", true, 3),
            (r"(?i)password\s*[:=]\s*[^,;]+\w", false, 0),
            (r"(?i)[\w.]+@[^\s.]+", false, 2),
            ("(?i)[a-z0-9_-]|[a-\u{10ffff}]|[a - \u{fffd}]|ü-ü", false, 2),
            (r"(?i)[a-\x{10ffff}]|[][^a]]|[[^a]b]", false, 3),
            (r"(?s-i:\PL)", false, 1),
            ("(?i)[[:^alpha:]][[:alpha:]]:^", false, 1),
            (r"a(?P<id>[\w])b?", false, 0),
            ("(?x)( ?i)[a # ]\n \\w]", false, 1),
        ] {
            assert_eq!(folded(expression, ignores_case), expected, "{expression}");
        }
    }

    /// What people look for is searched for in megabytes, even where no states can be made of it.
    #[test]
    fn ordinary_expressions_search_long_texts() {
        for expression in [
            r"[\w.+-]+@[\w-]+\.[\w.]+",
            r"\+?\d[\d -]{7,14}\d",
            r"\b(?:\d[ -]*?){13,16}\b",
            r"sk-[\w-]{40}",
            r"(?i)\b(?:password|secret|token)\s*[:=]\s*\S+",
            r"\d{4}-\d{2}-\d{2}",
        ] {
            let cost = places_of(expression);
            assert!((1 << 20) * cost <= MOST_STEPS, "{expression}: {cost}");
        }
    }
}
