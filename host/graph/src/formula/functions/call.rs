//! What operators and functions do with values.

use std::cmp::Ordering;

use super::{Function, HOLDER, INT, LIST, NUMBER, SIZED, TEXT, TRUTH, TRUTH_TEXT, VALUES};
use crate::conversation;
use crate::formula::EvaluationError;
use crate::formula::evaluate::{BYTES_A_STEP, Evaluation, Result};
use crate::formula::kinds::Kinds;
use crate::formula::patterns::matches;
use crate::formula::words;
use crate::value::{List, Number, Value, parse_json};

/// The most items of a list that is made of two: as many as can be gone through.
const MAX_ITEMS: usize = 2_000_000;

impl Function {
    /// Calls it; the number of arguments was checked before.
    pub(in crate::formula) fn call(self, evaluation: &mut Evaluation<'_>, arguments: &[Value]) -> Result<Value> {
        for (place, argument) in arguments.iter().enumerate() {
            self.takes(place, Kinds::of(argument))?;
            if let Value::Text(text) = argument {
                evaluation.step(text.len() / BYTES_A_STEP)?;
            }
        }
        let first = arguments.first().unwrap_or(&Value::Null);
        let second = arguments.get(1).unwrap_or(&Value::Null);
        let text = |place: usize| self.text(arguments, place);
        let produced = |evaluation: &mut Evaluation<'_>, text: String| {
            evaluation.produce(text.len())?;
            Ok(Value::from(text))
        };
        match self {
            Function::Add => self.add(evaluation, first, second),
            Function::Subtract | Function::Multiply | Function::Divide | Function::Modulo => {
                self.arithmetic(first, second)
            }
            Function::Negate => match first {
                Value::Number(Number::Int(value)) => {
                    value.checked_neg().map(Value::from).ok_or_else(|| words::beyond_64_bits(self.sign()))
                }
                Value::Number(Number::Float(value)) => number(-value),
                Value::Number(Number::Big(_)) => Err(too_large()),
                other => Err(self.wrong(other, NUMBER.wanted)),
            },
            Function::Not => match first {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                other => Err(self.wrong(other, TRUTH.wanted)),
            },
            Function::Equals => same(evaluation, first, second).map(Value::Bool),
            Function::NotEquals => same(evaluation, first, second).map(|same| Value::Bool(!same)),
            Function::Less => self.compare(first, second).map(|order| Value::Bool(order.is_lt())),
            Function::LessOrEqual => self.compare(first, second).map(|order| Value::Bool(order.is_le())),
            Function::Greater => self.compare(first, second).map(|order| Value::Bool(order.is_gt())),
            Function::GreaterOrEqual => self.compare(first, second).map(|order| Value::Bool(order.is_ge())),
            Function::In => match second {
                Value::List(list) => {
                    evaluation.step(list.len())?;
                    for item in list.iter() {
                        if same(evaluation, item, first)? {
                            return Ok(Value::Bool(true));
                        }
                    }
                    Ok(Value::Bool(false))
                }
                Value::Object(object) => Ok(Value::Bool(first.as_text().is_some_and(|key| object.get(key).is_some()))),
                other => Err(self.wrong(other, HOLDER.wanted)),
            },
            Function::NotStrictlyFalse => Ok(Value::Bool(*first != Value::Bool(false))),
            Function::Size => match first {
                Value::Text(text) => Ok(Value::from(count(text.chars().count()))),
                Value::List(list) => Ok(Value::from(count(list.len()))),
                Value::Object(object) => Ok(Value::from(count(object.len()))),
                other => Err(self.wrong(other, SIZED.wanted)),
            },
            Function::Contains => Ok(Value::Bool(text(0)?.contains(text(1)?))),
            Function::StartsWith => Ok(Value::Bool(text(0)?.starts_with(text(1)?))),
            Function::EndsWith => Ok(Value::Bool(text(0)?.ends_with(text(1)?))),
            Function::Matches => matches(evaluation, text(0)?, text(1)?),
            Function::Int => to_int(first),
            Function::Double => to_double(first),
            Function::Text => {
                let text = shown(evaluation, first)?;
                produced(evaluation, text)
            }
            Function::Bool => match first {
                Value::Bool(_) => Ok(first.clone()),
                Value::Text(text) if matches!(&**text, "true" | "false") => Ok(Value::Bool(&**text == "true")),
                Value::Text(_) => Err(words::no_conversion("bool", "a bool", first)),
                other => Err(self.wrong(other, TRUTH_TEXT.wanted)),
            },
            Function::Dyn => Ok(first.clone()),
            Function::Type => Ok(Value::from(type_value(first))),
            Function::Json => {
                let text = text(0)?;
                evaluation.produce(text.len())?;
                parse_json(text).map_err(|error| EvaluationError::new(format!("`json`: the text is not JSON: {error}")))
            }
            Function::JsonValid => {
                let text = text(0)?;
                evaluation.produce(text.len())?;
                Ok(Value::Bool(parse_json(text).is_ok()))
            }
            Function::Split => {
                let (whole, separator) = (text(0)?, text(1)?);
                evaluation.produce(whole.len())?;
                evaluation.step(whole.len())?;
                let most = match arguments.get(2) {
                    Some(most) => self.int(most)?,
                    None => -1,
                };
                Ok(Value::List(split(whole, separator, most)))
            }
            Function::Join => {
                let Value::List(list) = first else { return Err(self.wrong(first, LIST.wanted)) };
                let separator = if arguments.len() > 1 { text(1)? } else { "" };
                evaluation.step(list.len())?;
                let mut joined = String::new();
                for (place, item) in list.iter().enumerate() {
                    let item = conversation::as_text(item).ok_or_else(|| self.wrong(item, "a list of strings"))?;
                    evaluation.produce(item.len() + separator.len())?;
                    joined.push_str(if place == 0 { "" } else { separator });
                    joined.push_str(item);
                }
                Ok(Value::from(joined))
            }
            Function::Trim => produced(evaluation, text(0)?.trim().to_owned()),
            Function::Replace => {
                let (whole, from, to) = (text(0)?, text(1)?, text(2)?);
                let most = match arguments.get(3) {
                    Some(most) => usize::try_from(self.int(most)?).unwrap_or(usize::MAX),
                    None => usize::MAX,
                };
                // Counted before anything is made: a short text may stand for a very long one.
                let times = whole.matches(from).take(most).count();
                evaluation.produce(whole.len().saturating_add(times.saturating_mul(to.len())))?;
                Ok(Value::from(whole.replacen(from, to, most)))
            }
            Function::Substring => {
                let whole = text(0)?;
                let length = whole.chars().count();
                let start = self.int(second)?;
                let end = match arguments.get(2) {
                    Some(end) => self.int(end)?,
                    None => count(length),
                };
                let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
                let Some((start, end)) = bounds.filter(|(start, end)| start <= end && *end <= length) else {
                    return Err(EvaluationError::new(format!(
                        "`substring`: {start} to {end} is outside of a text of {length} characters"
                    )));
                };
                produced(evaluation, whole.chars().skip(start).take(end - start).collect())
            }
            Function::IndexOf => {
                let (whole, part) = (text(0)?, text(1)?);
                let from = match arguments.get(2) {
                    Some(from) => usize::try_from(self.int(from)?).unwrap_or(0),
                    None => 0,
                };
                let start = whole.char_indices().nth(from).map_or(whole.len(), |(offset, _)| offset);
                let found = whole[start..].find(part).map(|offset| whole[..start + offset].chars().count());
                Ok(Value::from(found.map_or(-1, count)))
            }
            Function::LowerAscii => produced(evaluation, text(0)?.to_ascii_lowercase()),
            Function::UpperAscii => produced(evaluation, text(0)?.to_ascii_uppercase()),
            Function::Template => {
                let Value::Object(values) = second else { return Err(self.wrong(second, VALUES.wanted)) };
                let longest = values.iter().map(|(key, _)| key.len()).max().unwrap_or_default();
                let mut made = String::new();
                let mut rest = text(0)?;
                while let Some((before, after)) = rest.split_once("${") {
                    made.push_str(before);
                    // No name is longer, and one for which nothing is given is text.
                    let end = after.bytes().take(longest + 1).position(|byte| byte == b'}');
                    evaluation.step(end.unwrap_or(longest))?;
                    let given = end.and_then(|end| Some((values.get(&after[..end])?, &after[end + 1..])));
                    let Some((value, after)) = given else {
                        made.push_str("${");
                        rest = after;
                        continue;
                    };
                    let value = shown(evaluation, value)?;
                    evaluation.produce(value.len())?;
                    made.push_str(&value);
                    rest = after;
                }
                made.push_str(rest);
                produced(evaluation, made)
            }
            Function::Last => match first {
                Value::List(list) => {
                    let last = list.len().checked_sub(1).and_then(|last| list.get(last)).cloned();
                    last.ok_or_else(|| EvaluationError::missing("`last`: the list is empty"))
                }
                other => Err(self.wrong(other, LIST.wanted)),
            },
        }
    }

    fn wrong(self, value: &Value, wanted: &str) -> EvaluationError {
        words::no_argument(self.sign(), wanted, Kinds::of(value))
    }

    /// A text: a message of a conversation is its own text where one is needed.
    fn text(self, arguments: &[Value], place: usize) -> Result<&str> {
        let value = arguments.get(place).unwrap_or(&Value::Null);
        conversation::as_text(value).ok_or_else(|| self.wrong(value, TEXT.wanted))
    }

    fn int(self, value: &Value) -> Result<i64> {
        match value {
            Value::Number(Number::Int(value)) => Ok(*value),
            Value::Number(Number::Big(_)) => Err(too_large()),
            other => Err(self.wrong(other, INT.wanted)),
        }
    }

    fn add(self, evaluation: &mut Evaluation<'_>, left: &Value, right: &Value) -> Result<Value> {
        if let (Value::List(left), Value::List(right)) = (left, right) {
            if left.len().saturating_add(right.len()) > MAX_ITEMS {
                return Err(EvaluationError::spent(format!(
                    "the expression makes a list of more than {MAX_ITEMS} items"
                )));
            }
            let mut sum = left.clone();
            sum.extend(right);
            return Ok(Value::List(sum));
        }
        let is_text = matches!(left, Value::Text(_)) || matches!(right, Value::Text(_));
        if is_text && let (Some(left), Some(right)) = (conversation::as_text(left), conversation::as_text(right)) {
            evaluation.produce(left.len() + right.len())?;
            return Ok(Value::from(format!("{left}{right}")));
        }
        self.arithmetic(left, right)
    }

    fn arithmetic(self, left: &Value, right: &Value) -> Result<Value> {
        let sign = self.sign();
        match (left, right) {
            (Value::Number(Number::Int(left)), Value::Number(Number::Int(right))) => {
                if *right == 0 && matches!(self, Function::Divide | Function::Modulo) {
                    return Err(words::no_division());
                }
                let result = match self {
                    Function::Add => left.checked_add(*right),
                    Function::Subtract => left.checked_sub(*right),
                    Function::Multiply => left.checked_mul(*right),
                    Function::Divide => left.checked_div(*right),
                    _ => left.checked_rem(*right),
                };
                result.map(Value::from).ok_or_else(|| words::beyond_64_bits(sign))
            }
            (Value::Number(Number::Float(left)), Value::Number(Number::Float(right))) if self != Function::Modulo => {
                let result = match self {
                    Function::Add => left + right,
                    Function::Subtract => left - right,
                    Function::Multiply => left * right,
                    _ => left / right,
                };
                Number::from_f64(result).map(Value::Number).ok_or_else(|| words::not_finite(sign))
            }
            _ => match (Kinds::of(left), Kinds::of(right)) {
                (Kinds::INT, Kinds::INT) => Err(too_large()),
                (left, right) => Err(words::no_operator(sign, left, right)),
            },
        }
    }

    fn compare(self, left: &Value, right: &Value) -> Result<Ordering> {
        match (left, right) {
            (Value::Number(left), Value::Number(right)) => Ok(left.compare(right)),
            (Value::Text(left), Value::Text(right)) => Ok(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Ok(left.cmp(right)),
            _ => Err(words::no_operator(self.sign(), Kinds::of(left), Kinds::of(right))),
        }
    }
}

/// State may hold integers of any size, and CEL knows those of 64 bits.
fn too_large() -> EvaluationError {
    EvaluationError::new("an int beyond 64 bits cannot be calculated with")
}

fn type_value(value: &Value) -> &'static str {
    match Kinds::of(value).name() {
        "null" => "null_type",
        name => name,
    }
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn number(value: f64) -> Result<Value> {
    Number::from_f64(value).map(Value::Number).ok_or_else(|| EvaluationError::new("the number is not finite"))
}

/// Whether two values are the same. What may be is compared part by part. A message is compared with a text by its own, as it is
/// joined with one.
fn same(evaluation: &mut Evaluation<'_>, one: &Value, other: &Value) -> Result<bool> {
    if let (Value::Text(_), Value::Object(_)) | (Value::Object(_), Value::Text(_)) = (one, other) {
        return match (conversation::as_text(one), conversation::as_text(other)) {
            (Some(one), Some(other)) if one.len() == other.len() => {
                evaluation.step(one.len() / BYTES_A_STEP)?;
                Ok(one == other)
            }
            _ => Ok(false),
        };
    }
    let may_be = match (one, other) {
        (Value::Text(one), Value::Text(other)) => one.len() == other.len(),
        (Value::List(one), Value::List(other)) => one.len() == other.len(),
        (Value::Object(one), Value::Object(other)) => one.len() == other.len(),
        _ => false,
    };
    if may_be {
        evaluation.visit(one)?;
    }
    Ok(one == other)
}

/// The text that stands for a value, unless it is too long to be made.
fn shown(evaluation: &mut Evaluation<'_>, value: &Value) -> Result<String> {
    evaluation.visit(value)?;
    evaluation.has_room(texts(value))?;
    Ok(display(value))
}

/// Bytes of all texts in a value, and of its large integers.
fn texts(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Number(number) => number.digits(),
        Value::List(items) => items.iter().map(texts).fold(0, usize::saturating_add),
        Value::Object(object) => object.iter().map(|(_, item)| texts(item)).fold(0, usize::saturating_add),
        Value::Null | Value::Bool(_) => 0,
    }
}

/// The text that stands for a value.
fn display(value: &Value) -> String {
    conversation::as_text(value).map_or_else(|| value.to_display().into_owned(), str::to_owned)
}

fn to_int(value: &Value) -> Result<Value> {
    let wrong = || words::no_conversion("int", "an int", value);
    match value {
        Value::Number(Number::Int(_)) => Ok(value.clone()),
        // The bounds of 64 bits as floating point numbers; the upper one itself is beyond them.
        Value::Number(Number::Float(float))
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(float) =>
        {
            Ok(Value::from(*float as i64))
        }
        Value::Text(text) => text.parse::<i64>().map(Value::from).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

fn to_double(value: &Value) -> Result<Value> {
    let wrong = || words::no_conversion("double", "a double", value);
    match value {
        Value::Number(value) => number(value.to_f64()),
        Value::Text(text) => text.parse().map_err(|_| wrong()).and_then(number),
        _ => Err(wrong()),
    }
}

fn split(text: &str, separator: &str, most: i64) -> List {
    let of_characters = |text: &str| text.chars().map(|c| Value::from(c.to_string())).collect::<List>();
    match usize::try_from(most) {
        Ok(0) => List::default(),
        Ok(most) => text.splitn(most, separator).map(Value::from).collect(),
        Err(_) if separator.is_empty() => of_characters(text),
        Err(_) => text.split(separator).map(Value::from).collect(),
    }
}
