//! Calculates expressions exactly, with units, fractions and percentages.
//!
//! `0.1 + 0.2` is `0.3`, `2^100` has all its digits, `5 ft 3 in to cm` is a length, `1/3` says that it is not exact.
//! The arithmetic is that of [`fend_core`]: rational numbers of any size, which become approximate only where a root
//! or a function of angles makes them so.

use hotcell_plugin::{Error, Value, plugin, tool};

plugin! { tools: [calculate] }

/// Digits after the point that can be asked for.
const MOST_PLACES: u8 = 100;

/// What an expression comes to.
#[derive(Debug, PartialEq, Value)]
struct Answer {
    /// The number with its unit, as text, so that no digit is lost.
    result: String,
    /// Whether digits were cut off or rounded.
    approximate: bool,
}

/// Calculates an expression exactly and gives the result as text.
///
/// Understands `+ - * / ^ % ! ( )`, functions such as `sqrt`, `log10`, `sin`, `abs`, `floor`, units and their
/// conversion (`3 miles to km`, `90 min to hours`), other bases (`0xff`, `255 to hex`) and variables
/// (`rate = 0.19; 1200 * rate`) and percentages (`4.5% of 1200`). Currencies are not converted.
#[tool(read_only)]
fn calculate(
    /// The expression, such as `(19.99 * 3) * 1.19` or `5 ft 3 in to cm`.
    expression: &str,
    /// Digits after the point at most, up to 100; otherwise as many as it takes, and about ten where that has no end.
    places: Option<u8>,
) -> Result<Answer, Error> {
    let expression = match places {
        Some(places) if places > MOST_PLACES => {
            return Err(Error::invalid_input(format!("{places} places are more than the {MOST_PLACES} there can be")));
        }
        Some(places) => match expression.rsplit_once(';') {
            Some((before, last)) => format!("{before}; ({last}) to {places} dp"),
            None => format!("({expression}) to {places} dp"),
        },
        None => expression.to_owned(),
    };
    let mut context = fend_core::Context::new();
    context.disable_rng();
    let result = fend_core::evaluate(&expression, &mut context)
        .map_err(|problem| Error::invalid_input(format!("the expression cannot be calculated: {problem}")))?;
    let result = result.get_main_result();
    match result.strip_prefix("approx. ") {
        Some(result) => Ok(Answer { result: result.to_owned(), approximate: true }),
        None if result.is_empty() => Err(Error::invalid_input("the expression is empty or comes to nothing")),
        None => Ok(Answer { result: result.to_owned(), approximate: false }),
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::{Json, json};

    use super::{PLUGIN, calculate};

    fn result(expression: &str) -> Result<String, String> {
        calculate(expression, None).map(|answer| answer.result).map_err(|error| error.to_string())
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(result("0.1 + 0.2"), Ok("0.3".to_owned()));
        assert_eq!(result("(19.99 * 3) * 1.19"), Ok("71.3643".to_owned()));
        assert_eq!(result("2^100"), Ok("1267650600228229401496703205376".to_owned()));
    }

    #[test]
    fn units_are_converted() {
        assert_eq!(result("90 min to hours"), Ok("1.5 hours".to_owned()));
        assert_eq!(result("4.5% of 1200"), Ok("54".to_owned()));
        let answer = calculate("rate = 0.19; 10 * rate / 3", Some(3)).map(|answer| answer.result);
        assert_eq!(answer, Ok("0.633".to_owned()));
    }

    #[test]
    fn what_has_no_end_is_marked() {
        let third = calculate("1/3", Some(4)).map(|answer| (answer.result, answer.approximate));
        assert_eq!(third, Ok(("0.3333".to_owned(), true)));
    }

    #[test]
    fn mistakes_are_the_callers() {
        for (arguments, part) in [
            (json!({"expression": "2 +"}), "cannot be calculated"),
            (json!({"expression": "1/0"}), "cannot be calculated"),
            (json!({"expression": "roll d6"}), "cannot be calculated"),
            (json!({"expression": ""}), "empty"),
            (json!({"expression": "1", "places": 101}), "more than the 100"),
            (json!({"expression": 5}), "argument `expression` must be a text; it is the number `5`"),
            (json!({"expresion": "1"}), "argument `expresion` is not known; known here: `expression`, `places`"),
        ] {
            let error =
                PLUGIN.call_tool("calculate", arguments).map_or_else(|error| error.to_string(), |_| String::new());
            assert!(error.starts_with("invalid-input") && error.contains(part), "`{part}` is not in `{error}`");
        }
        assert_eq!(
            PLUGIN.call_tool("calculate", json!({"expression": "1"})).map(|answer| answer["approximate"].clone()),
            Ok(Json::Bool(false))
        );
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
