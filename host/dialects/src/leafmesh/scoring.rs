//! How well a mesh does what its scenarios expect.

use std::time::Duration;

use serde_json::Value;

/// How much a scenario that takes all of its time loses.
const LATENCY: f64 = 0.5;

/// The score of a scenario that came to its end with this output, after so long.
pub fn score(expected: &Value, output: Option<&Value>, took: Duration, limit: Duration) -> f64 {
    let took = took.as_secs_f64() / limit.as_secs_f64();
    matches(expected, output) * (1.0 - LATENCY * took.min(1.0))
}

/// What scores come to, each with its weight; nothing where no weight is more than 0.
pub fn fitness(scores: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let sums =
        scores.into_iter().fold((0.0, 0.0), |(weights, sum), (weight, score)| (weights + weight, sum + weight * score));
    (sums.0 > 0.0).then(|| sums.1 / sums.0)
}

/// How much of what is expected is there: the part of its keys whose values are the same.
fn matches(expected: &Value, output: Option<&Value>) -> f64 {
    let Some(expected) = expected.as_object().filter(|expected| !expected.is_empty()) else { return 1.0 };
    let got = |name: &String| output.and_then(|output| output.get(name));
    let met = expected.iter().filter(|(name, value)| got(name).is_some_and(|got| same(value, got))).count();
    met as f64 / expected.len() as f64
}

/// Whether two values are the same; `1` and `1.0` are.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{fitness, matches, score};

    #[test]
    fn every_key_that_is_met_counts_the_same() {
        for (expected, output, score) in [
            (json!({"a": 1}), json!({"a": 1.0, "b": 2}), 1.0),
            (json!({"a": 1, "b": [1, {"c": null}]}), json!({"a": 2, "b": [1.0, {"c": null}]}), 0.5),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}}), 0.0),
            (json!({"a": "1"}), json!({"a": 1}), 0.0),
            (json!({}), json!(null), 1.0),
            (json!({"a": null}), json!({}), 0.0),
        ] {
            assert_eq!(matches(&expected, Some(&output)), score, "{expected} {output}");
        }
        assert_eq!(matches(&json!({"a": 1}), None), 0.0);
    }

    #[test]
    fn time_and_weights_count() {
        let second = Duration::from_secs(1);
        assert_eq!(score(&json!({}), None, second, 2 * second), 0.75);
        assert_eq!(score(&json!({}), None, 9 * second, 2 * second), 0.5);
        assert_eq!(fitness([(1.0, 1.0), (3.0, 0.0)]), Some(0.25));
        assert_eq!(fitness([(0.0, 1.0)]), None);
    }
}
