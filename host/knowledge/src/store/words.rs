//! From a question to the words that are looked up.
//!
//! A question is data. Each of its words is put in quotes, so that nothing in it is an operator of the index's query
//! language.

use std::collections::HashSet;

use rusqlite::{Connection, Row};

use super::schema::to_integer;

/// The most words of a question that are looked up.
const MOST: usize = 96;

/// English words that say nothing about a subject. They are looked up only where a question has no others.
const COMMON: &str = " a about after all also am an and any are as at be been before being both but by can could did do \
does doing for from had has have having he her here him his how i if in into is it its just me might more most must my \
no nor not of off on once only or other our out over own s same shall she should so some such t than that the their \
them then there these they this those through to too under until up us very was we were what when where which while \
who whom why will with would you your ";

/// The terms to look up for `question`, each as an expression that finds the chunks with it; none if it has no words.
///
/// A word with marks in it, such as `E-4021` or `parse_config`, is looked up as a whole and in its parts, so that a chunk
/// that has it as it is comes before one that has only a part.
pub(super) fn terms(question: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let (mut telling, mut common) = (Vec::new(), Vec::new());
    for word in question.split_whitespace() {
        let word = word.trim_matches(|edge: char| !edge.is_alphanumeric()).to_lowercase();
        let parts: Vec<&str> =
            word.split(|mark: char| !mark.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let whole = parts.join(" ");
        let whole = (parts.len() > 1).then_some(whole.as_str());
        for term in whole.into_iter().chain(parts) {
            if telling.len() < MOST && common.len() < MOST && seen.insert(term.to_owned()) {
                let terms = if is_common(term) { &mut common } else { &mut telling };
                terms.push(format!("\"{term}\""));
            }
        }
    }
    if telling.is_empty() { common } else { telling }
}

/// The chunks with any of the words of `question`, the `count` best, best first, each with how much of the question it has:
/// from 0 to 1, where rare words are more of it than frequent ones, and words that are nowhere the most.
pub(super) fn matching(connection: &Connection, question: &str, count: usize) -> rusqlite::Result<Vec<(i64, f64)>> {
    let terms = terms(question);
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let total: f64 = connection.query_row("SELECT count(*) FROM chunks", [], |row| row.get::<_, i64>(0))? as f64;
    let mut frequency = connection.prepare_cached("SELECT count(*) FROM words WHERE words MATCH ?1")?;
    let (mut whole, mut rare) = (0.0, Vec::new());
    for term in &terms {
        let with_it = frequency.query_row([term], |row| row.get::<_, i64>(0))? as f64;
        // The weight that the index gives to a term, so that the sum can be compared with its scores.
        whole += ((total - with_it + 0.5) / (with_it + 0.5)).ln().max(1e-6);
        // What is in half of the chunks has no weight, and costs the most.
        if with_it > 0.0 && with_it <= total / 2.0 {
            rare.push(term.as_str());
        }
    }
    let expression = if rare.is_empty() { terms.join(" OR ") } else { rare.join(" OR ") };
    let mut best = connection
        .prepare_cached("SELECT rowid, bm25(words) FROM words WHERE words MATCH ?1 ORDER BY 2, 1 LIMIT ?2")?;
    let share = |row: &Row<'_>| Ok((row.get(0)?, (-row.get::<_, f64>(1)? / whole).clamp(0.0, 1.0)));
    best.query_map((expression, to_integer(count)), share)?.collect()
}

fn is_common(word: &str) -> bool {
    COMMON.contains(&format!(" {word} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted() {
        for (question, expected) in [
            ("", ""),
            ("?? -- \" ' *", ""),
            ("What is the float?", "\"float\""),
            ("to be or not to be", "\"to\" OR \"be\" OR \"or\" OR \"not\""),
            ("Error E-4021!", "\"error\" OR \"e 4021\" OR \"e\" OR \"4021\""),
            ("parse_config parse", "\"parse config\" OR \"parse\" OR \"config\""),
            (
                "\"a\" OR NEAR(x, 2) AND text:y*",
                "\"near x\" OR \"near\" OR \"x\" OR \"2\" OR \"text y\" OR \"text\" OR \"y\"",
            ),
            ("-x ^y {z}", "\"x\" OR \"y\" OR \"z\""),
            ("東京 Größe", "\"東京\" OR \"größe\""),
        ] {
            assert_eq!(terms(question).join(" OR "), expected, "{question}");
        }
        let long = (0..10_000).map(|number| format!("w{number} ")).collect::<String>();
        assert_eq!(terms(&long).len(), MOST);
    }
}
