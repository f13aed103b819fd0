use super::*;

fn search(expression: &str) -> Search {
    Search::new(expression, SearchFlags::default()).expect("an expression")
}

/// The matches in a text, and what their last group is.
fn found(expression: &str, text: &str) -> Vec<(String, String)> {
    let search = search(expression);
    let (mut matches, mut patience) = (search.matches(text, search.groups()), Patience::begin());
    let mut found = Vec::new();
    while let Some(matched) = matches.advance(&mut patience).expect("there is time") {
        found.push((text[matched.whole].to_owned(), text[matched.group].to_owned()));
    }
    found
}

/// The same with the crate that most programs use.
fn expected(expression: &str, text: &str) -> Vec<(String, String)> {
    let regex = regex::Regex::new(expression).expect("an expression");
    let group = regex.captures_len() - 1;
    let pair = |captures: regex::Captures<'_>| {
        let said = |group: usize| captures.get(group).map_or("", |found| found.as_str()).to_owned();
        (said(0), said(group))
    };
    regex.captures_iter(text).map(pair).collect()
}

#[test]
fn matches_are_those_that_everybody_finds() {
    let texts = [
        "",
        "a",
        "aab ab b",
        "Write to jörg.müller@example.org or <b@c.de>, or call +43 660 1234567.",
        "2026-11-26, 4111 1111 1111 1111; sk-0123456789 äöü 日本語 a\u{301} \u{1f600}",
        "z%\n\nfoo bar\nbar",
    ];
    let expressions = [
        "a*",
        "a*?b",
        "",
        "(a)|b",
        "(a|ab)(?:c|bcd)?",
        r"\b",
        r"(?:\b|%)+",
        r"\b\w+\b",
        r"[\w.+-]+@([\w-]+\.[\w.]+)",
        r"\+?\d[\d -]{7,14}\d",
        r"\b(?:\d[ -]*?){13,16}\b",
        r"(\d{4})-\d\d-\d\d",
        "(?m)^(.*)$",
        "^a|b$",
        r"\W+",
        "(?i)JÖRG|ÄÖÜ",
        r"\pL+",
        "(x)?ö",
    ];
    for expression in expressions {
        let search = search(expression);
        for text in texts {
            assert_eq!(found(expression, text), expected(expression, text), "{expression:?} in {text:?}");
            let has = regex::Regex::new(expression).expect("an expression").is_match(text);
            // The second time it has met the states.
            for _ in 0..2 {
                assert_eq!(search.is_in(text), Ok(has), "{expression:?} in {text:?}");
            }
        }
    }
}

#[test]
fn what_people_look_for_is_found_in_megabytes() {
    let text = format!("{}jörg@example.org", "word and another word, 12 of them. ".repeat(100_000));
    for (expression, is_there) in
        [(r"\w+@\w+\.\w+", true), (r"sk-[\w-]{40}", false), ("secret", false), (r"(?:a{100}){100}", false)]
    {
        assert_eq!(search(expression).is_in(&text), Ok(is_there), "{expression}");
    }
}

/// No states are made where words of other letters than ASCII have to be told apart, so that all places are looked at.
#[test]
fn what_would_be_looked_at_for_too_long_is_not() {
    let large = search(r"\b(?:a{100}){100}");
    let text = |bytes: usize| format!("é{}", "c".repeat(bytes));
    assert_eq!(large.is_in(&text(100)), Ok(false));
    assert_eq!(large.is_in(&text(10_000)), Err(TakesTooLong));
    assert_eq!(large.matches(&text(10_000), 0).advance(&mut Patience::begin()), Err(TakesTooLong));
    assert_eq!(search("a").matches("a", 0).advance(&mut Patience::over()), Err(TakesTooLong));
    assert_eq!(search("a").is_in_one("a", &mut Patience::over()), Err(TakesTooLong));
    // It is late, and little was done so far.
    let mut late = Patience { steps: 300, end: Instant::now() };
    assert_eq!([(); 3].map(|()| search("a").is_in_one("a", &mut late)), [Ok(true), Ok(true), Err(TakesTooLong)]);
    assert_eq!(large.steps(usize::MAX), usize::MAX / 16);
}

#[test]
fn what_is_large_is_refused() {
    for (expression, said) in [
        ("(?:a{1000}){1000}".to_owned(), "8388608 bytes"),
        // Each letter of it takes thousands of bytes when it is read.
        (r"\w".repeat(1 << 20), "32768 bytes"),
        // Each of a million letters is looked at for each of them.
        (format!("(?i){}", r"[\s\S]".repeat(4_000)), "50 large classes"),
    ] {
        let refused = Search::new(&expression, SearchFlags::default()).expect_err("it is too large");
        assert!(refused.is_size() && refused.to_string().contains(said), "{refused}");
    }
    assert!(Search::new("(", SearchFlags::default()).is_err_and(|error| !error.is_size()));
}

#[test]
fn expressions_of_a_file_have_a_size_together() {
    let size = search("(?:a{100}){100}").size();
    assert!(size > LEAST);
    begin_file();
    assert_eq!(LEFT.get(), Some(OF_A_FILE));
    LEFT.set(Some(2 * size + LEAST));
    for left in [size + LEAST, LEAST] {
        // One that is known counts like one that is not.
        assert!(Search::kept("(?:a{100}){100}").is_ok());
        assert_eq!(LEFT.get(), Some(left));
    }
    assert!(Search::new("a", SearchFlags::default()).is_ok());
    let spent = Search::kept("(?:a{100}){100}").expect_err("nothing is left");
    assert!(spent.is_size() && spent.to_string().contains("67108864 bytes"), "{spent}");
    // What is read within it counts for it.
    begin_file();
    assert!(Search::new("a", SearchFlags::default()).is_err());
    end_file();
    assert!(Search::new("a", SearchFlags::default()).is_ok());
    // What is too large counts, too, and so does what takes long to be read.
    begin_file();
    assert!(Search::new(r"(?i)[^\s]", SearchFlags::default()).is_ok());
    assert!(LEFT.get().is_some_and(|left| left < OF_A_FILE - 250_000), "{:?}", LEFT.get());
    end_file();
    begin_file();
    assert!(Search::new("(?:a{1000}){1000}", SearchFlags::default()).is_err_and(|error| error.is_size()));
    assert_eq!(LEFT.get(), Some(OF_A_FILE - LARGEST));
    end_file();
}
