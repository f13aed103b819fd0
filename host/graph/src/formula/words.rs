//! What is said where values do not go together. The check says it of what is known before a run, evaluation of the
//! values that are there: one sentence for both.

use super::EvaluationError;
use super::kinds::Kinds;
use crate::suggest::closest;
use crate::value::{Object, Value};

pub(super) fn no_condition(given: Kinds) -> EvaluationError {
    EvaluationError::new(format!("a condition has to be true or false, not {given}"))
}

pub(super) fn no_fields(given: Kinds, field: &str) -> EvaluationError {
    EvaluationError::new(format!("`{field}` is looked for in {given}, which has no fields"))
}

pub(super) fn no_key(object: &Object, key: &str) -> EvaluationError {
    no_key_of(object.iter().map(|(key, _)| &**key), key)
}

pub(super) fn no_key_of<'k>(known: impl Iterator<Item = &'k str>, key: &str) -> EvaluationError {
    let error = EvaluationError::missing(format!("there is no key `{key}`"));
    match closest(key, known) {
        Some(near) => error.advise(format!("there is `{near}`")),
        None => error,
    }
}

pub(super) fn no_index(operand: Kinds, index: Kinds) -> EvaluationError {
    let indexed = match (operand.meets(Kinds::LIST), operand.meets(Kinds::MAP)) {
        (true, false) => "a list is indexed by an int",
        (false, true) => "a map is indexed by a text",
        (true, true) => "a list is indexed by an int and a map by a text",
        (false, false) => return EvaluationError::new(format!("{operand} cannot be indexed")),
    };
    EvaluationError::new(format!("{indexed}, not by {index}"))
}

/// `length` is that of the list, where it is known.
pub(super) fn outside(index: i64, length: Option<usize>) -> EvaluationError {
    let of = length.map_or_else(|| "every list".to_owned(), |length| format!("a list of {length} items"));
    let error = EvaluationError::missing(format!("the index {index} is outside of {of}"));
    if index < 0 { error.advise("count from the end with `size`: `x[size(x) - 1]`") } else { error }
}

pub(super) fn no_name_of_a_field(given: Kinds) -> EvaluationError {
    EvaluationError::new(format!("a field of the state is named by a text, not by {given}"))
}

pub(super) fn no_map_key(given: Kinds) -> EvaluationError {
    EvaluationError::new(format!("the keys of a map have to be texts, not {given}"))
}

pub(super) fn key_twice(key: &str) -> EvaluationError {
    EvaluationError::new(format!("the key `{key}` occurs twice in one map"))
}

pub(super) fn not_gone_through(given: Kinds) -> EvaluationError {
    EvaluationError::new(format!("only a list or a map can be gone through, not {given}"))
}

pub(super) fn no_argument(name: &str, wanted: &str, given: Kinds) -> EvaluationError {
    EvaluationError::new(format!("`{name}` takes {wanted}, not {given}"))
}

pub(super) fn no_division() -> EvaluationError {
    EvaluationError::new("there is no division by 0")
}

/// Says what to write instead, where that is known.
pub(super) fn no_operator(sign: &str, left: Kinds, right: Kinds) -> EvaluationError {
    let error = EvaluationError::new(format!("there is no `{sign}` of {left} and {right}"));
    let either = |one: Kinds, other: Kinds| (left == one && right == other) || (left == other && right == one);
    let scalar = Kinds::NUMBER.or(Kinds::BOOL);
    let beside_a_text = |kinds: Kinds, text: Kinds| text == Kinds::STRING && kinds.within(scalar);
    if either(Kinds::INT, Kinds::DOUBLE) {
        error.advise("put `double(...)` around the int")
    } else if sign == "+" && (beside_a_text(left, right) || beside_a_text(right, left)) {
        error.advise("put `string(...)` around what is not a string")
    } else if left == Kinds::NULL || right == Kinds::NULL {
        error.advise("test for `null` first")
    } else {
        error
    }
}

pub(super) fn beyond_64_bits(sign: &str) -> EvaluationError {
    EvaluationError::new(format!("the result of `{sign}` is an int beyond 64 bits"))
}

/// State has no infinities and nothing that is no number.
pub(super) fn not_finite(sign: &str) -> EvaluationError {
    EvaluationError::new(format!("the result of `{sign}` is not a finite number"))
}

pub(super) fn no_conversion(name: &str, wanted: &str, value: &Value) -> EvaluationError {
    const SHOWN: usize = 40;
    let mut text = value.to_json();
    if let Some((end, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(end);
        text.push('…');
    }
    EvaluationError::new(format!("`{name}` cannot make {wanted} of {text}"))
}

pub(super) fn no_result(wanted: &str, given: Kinds) -> EvaluationError {
    EvaluationError::new(format!("it has to give {wanted}, not {given}"))
}

pub(super) fn not_as_declared(declared: Kinds, given: Kinds) -> EvaluationError {
    let error = EvaluationError::new(format!("it gives {given}, and the field is declared to hold {declared}"));
    match (declared, given) {
        (Kinds::DOUBLE, Kinds::INT) => error.advise("put `double(...)` around it"),
        (Kinds::INT, Kinds::DOUBLE) => error.advise("put `int(...)` around it"),
        (Kinds::STRING, _) => error.advise("put `string(...)` around it"),
        _ => error,
    }
}

pub(super) fn no_state_field<'k>(known: impl Iterator<Item = &'k str>, name: &str) -> EvaluationError {
    let error = EvaluationError::new(format!("the state has no field `{name}`"));
    match closest(name, known) {
        Some(near) => error.advise(format!("did you mean `{near}`?")),
        None => error,
    }
}
