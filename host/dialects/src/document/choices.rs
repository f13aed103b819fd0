//! Fields whose values are bounded: one of a few words, numbers between others.

use std::ops::RangeInclusive;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;

use super::Need::Optional;
use super::{Fields, SourceText, Spanned};

impl Fields<'_, '_> {
    /// One of a few words; none, with an error, if it is another.
    pub fn word(&mut self, name: &'static str, known: &[&'static str]) -> Option<&'static str> {
        let text = self.text(name, Optional)?;
        let found = known.iter().find(|word| **word == &*text).copied();
        if found.is_none() {
            let error = self.unknown_word(name, &text, known);
            self.reader().report(error);
        }
        found
    }

    /// The error of a word that is none of those there are.
    pub fn unknown_word(&self, name: &str, text: &SourceText, known: &[&str]) -> Diagnostic {
        let help = match closest(text, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it is one of `{}`", known.join("`, `")),
        };
        self.error(format!("`{name}` cannot be `{}`", &**text), &text.span).help(help)
    }

    /// A whole number within bounds; none, with an error, if it is out of them.
    pub fn between(&mut self, name: &'static str, least: u32, most: u32) -> Option<u32> {
        let count: Spanned<u32> = self.count(name, Optional)?;
        if (least..=most).contains(&count.value) {
            return Some(count.value);
        }
        let bounds = if most == u32::MAX { format!("at least {least}") } else { format!("from {least} to {most}") };
        let error = self.error(format!("`{name}` must be {bounds}, not {}", count.value), &count.span);
        self.reader().report(error);
        None
    }

    /// A number within bounds; none, with an error, if it is out of them.
    pub fn within(&mut self, name: &'static str, bounds: RangeInclusive<f64>) -> Option<f64> {
        let number = self.number(name, Optional)?;
        if bounds.contains(&number.value) {
            return Some(number.value);
        }
        let (least, most) = bounds.into_inner();
        let error = self.error(format!("`{name}` must be from {least} to {most}, not {}", number.value), &number.span);
        self.reader().report(error);
        None
    }
}
