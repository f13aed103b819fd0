//! The value of an expression.

use std::cell::Cell;

use super::methods::{self, Function};
use super::node::{Node, Operator};
use super::text::is_true;
use super::values::{compare, equal, kind, minus, number};
use crate::effort;
use crate::template::Lookup;
use crate::value::{List, Object, Value};

/// Bytes of values that the operations of one expression look at. They take less than a second.
const MAX_LOOKED_AT: usize = 256 << 20;
/// Bytes that count as one step among all expressions that are evaluated together.
const BYTES_A_STEP: usize = 128;
/// As many bytes an item of a list counts that is passed without a look into it.
const AN_ITEM: usize = 4;

/// The value of an expression, if it can be written out.
pub(super) fn evaluate(node: &Node, scope: &dyn Lookup) -> Result<Value, String> {
    let value = value(node, scope)?;
    if matches!(value, Value::List(_) | Value::Object(_)) {
        value.check_size().map_err(|problem| format!("its value cannot be used: {problem}"))?;
    }
    Ok(value)
}

/// Whether an expression is true. Nobody writes its value out, so that a list of the state is not gone through.
pub(super) fn holds(node: &Node, scope: &dyn Lookup) -> Result<bool, String> {
    value(node, scope).map(|value| is_true(&value))
}

fn value(node: &Node, scope: &dyn Lookup) -> Result<Value, String> {
    let together = usize::try_from(effort::left()).map_or(usize::MAX, |left| left.saturating_mul(BYTES_A_STEP));
    let most = together.min(MAX_LOOKED_AT);
    let evaluation = Evaluation { scope, most, left: Cell::new(most) };
    let value = evaluation.value(node);
    effort::take(((most - evaluation.left.get()) / BYTES_A_STEP) as u64);
    value
}

struct Evaluation<'s> {
    scope: &'s dyn Lookup,
    /// How much may be looked at
    most: usize,
    /// How much may still be looked at
    left: Cell<usize>,
}

impl Evaluation<'_> {
    fn value(&self, node: &Node) -> Result<Value, String> {
        let all = |nodes: &[Node]| nodes.iter().map(|node| self.value(node)).collect::<Result<Vec<_>, _>>();
        match node {
            Node::Value(value) => Ok(value.clone()),
            Node::Key(key) => Ok(self.scope.lookup(key).cloned().unwrap_or_default()),
            Node::State => Err("the state alone is not a value".to_owned()),
            Node::List(items) => Ok(Value::List(all(items)?.into_iter().collect())),
            Node::Object(entries) => {
                let mut object = Object::default();
                for (key, node) in entries {
                    object.insert(key.clone(), self.value(node)?);
                }
                Ok(Value::Object(object))
            }
            Node::Not(of) => Ok(Value::Bool(!is_true(&self.value(of)?))),
            Node::Minus(of) => minus(&self.value(of)?),
            Node::And(left, right) => {
                let left = self.value(left)?;
                if is_true(&left) { self.value(right) } else { Ok(left) }
            }
            Node::Or(left, right) => {
                let left = self.value(left)?;
                if is_true(&left) { Ok(left) } else { self.value(right) }
            }
            Node::Compare(first, rest) | Node::CompareAlike(first, rest) => {
                let is_strict = matches!(node, Node::CompareAlike(..));
                let mut left = self.value(first)?;
                for (operator, right) in rest {
                    let right = self.value(right)?;
                    if is_strict {
                        check_order(*operator, &left, &right)?;
                    }
                    if !self.holds(*operator, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Node::Add(left, right) => add(self.value(left)?, self.value(right)?),
            Node::Subtract(left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                match (number(&left), number(&right)) {
                    (Some(_), Some(_)) => add(left, minus(&right)?),
                    _ => Err(unfit("-", &left, &right)),
                }
            }
            Node::Entry(of, key) => match self.value(of)? {
                Value::Object(object) => Ok(object.get(key).cloned().unwrap_or_default()),
                // What is not there is nothing, and so are its entries.
                Value::Null => Ok(Value::Null),
                other => Err(format!("{} has no entry `{key}`", kind(&other))),
            },
            Node::Index(of, at) => {
                let of = self.value(of)?;
                self.look_at_text(&of)?;
                methods::index(&of, &self.value(at)?)
            }
            Node::Slice(of, slice) => {
                let of = self.value(of)?;
                self.look_at(&of)?;
                slice.of(&of)
            }
            Node::Either { condition, then, otherwise } => {
                let holds = is_true(&self.value(condition)?);
                self.value(if holds { then } else { otherwise })
            }
            Node::Call(function, arguments) => {
                let arguments = all(arguments)?;
                for argument in &arguments {
                    match function {
                        // They do not look into lists.
                        Function::Len | Function::Bool | Function::OrElse => self.look_at_text(argument)?,
                        _ => self.look_at(argument)?,
                    }
                }
                methods::call(*function, &arguments)
            }
            Node::IsInstance(of, types) => Ok(Value::Bool(methods::is_instance(&self.value(of)?, types))),
            Node::Method(of, name, arguments) => {
                let (of, arguments) = (self.value(of)?, all(arguments)?);
                // What is under one key of an object is found without looking at the others.
                if *name != "get" {
                    self.look_at(&of)?;
                    arguments.iter().try_for_each(|argument| self.look_at(argument))?;
                }
                methods::method(&of, name, &arguments)
            }
        }
    }

    fn holds(&self, operator: Operator, left: &Value, right: &Value) -> Result<bool, String> {
        match (operator, left, right) {
            (Operator::In | Operator::NotIn, _, Value::Object(_)) => {}
            (Operator::In | Operator::NotIn, Value::Text(text), Value::List(items)) => {
                self.take(searched(items, text))?;
            }
            (Operator::In | Operator::NotIn, ..) => self.look_at(right)?,
            // They differ, and are not looked into.
            (Operator::Equal | Operator::NotEqual | Operator::Is | Operator::IsNot, ..)
                if length(left) != length(right) => {}
            // Values of two kinds, such as a list and nothing, are not compared any further.
            (_, Value::Text(_), Value::Text(_))
            | (_, Value::List(_), Value::List(_))
            | (_, Value::Object(_), Value::Object(_)) => self.look_at(left)?,
            _ => {}
        }
        Ok(match operator {
            Operator::Equal => equal(left, right),
            Operator::NotEqual => !equal(left, right),
            Operator::Is => is_same(left, right),
            Operator::IsNot => !is_same(left, right),
            Operator::In => contains(right, left)?,
            Operator::NotIn => !contains(right, left)?,
            Operator::Less => compare(left, right)?.is_lt(),
            Operator::LessOrEqual => compare(left, right)?.is_le(),
            Operator::Greater => compare(left, right)?.is_gt(),
            Operator::GreaterOrEqual => compare(left, right)?.is_ge(),
        })
    }

    /// Takes note that an operation goes through a value.
    fn look_at(&self, value: &Value) -> Result<(), String> {
        self.take(value.check_size().map_err(|problem| format!("a value cannot be used: {problem}"))?)
    }

    fn take(&self, size: usize) -> Result<(), String> {
        let left = self.left.get().checked_sub(size);
        self.left.set(left.ok_or_else(|| match self.most {
            MAX_LOOKED_AT => format!("it looks at more than {MAX_LOOKED_AT} bytes of values"),
            _ => "the expressions of the node look at too much together".to_owned(),
        })?);
        Ok(())
    }

    fn look_at_text(&self, value: &Value) -> Result<(), String> {
        if matches!(value, Value::Text(_)) { self.look_at(value) } else { Ok(()) }
    }
}

/// How much is looked at where a text is looked for in a list: only texts of the same length are compared with it.
fn searched(items: &List, text: &str) -> usize {
    let of_one = |item: &Value| match item {
        Value::Text(other) if other.len() == text.len() => AN_ITEM + text.len(),
        _ => AN_ITEM,
    };
    items.iter().map(of_one).fold(0, usize::saturating_add)
}

/// The length of what has one: values of two lengths are not equal.
fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => Some(text.len()),
        Value::List(items) => Some(items.len()),
        Value::Object(object) => Some(object.len()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Refuses to order anything but two numbers or two texts.
fn check_order(operator: Operator, left: &Value, right: &Value) -> Result<(), String> {
    use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let orders = matches!(operator, Less | LessOrEqual | Greater | GreaterOrEqual);
    let is_alike = matches!((left, right), (Value::Number(_), Value::Number(_)) | (Value::Text(_), Value::Text(_)));
    if orders && !is_alike {
        return Err(format!("{} and {} have no order", kind(left), kind(right)));
    }
    Ok(())
}

/// Whether two values are one: of those that have no parts, equal ones of one kind are.
fn is_same(left: &Value, right: &Value) -> bool {
    left.kind() == right.kind() && left == right
}

fn contains(whole: &Value, part: &Value) -> Result<bool, String> {
    match (whole, part) {
        (Value::List(list), part) => Ok(list.iter().any(|item| equal(item, part))),
        (Value::Text(text), Value::Text(part)) => Ok(text.contains(&**part)),
        (Value::Object(object), Value::Text(key)) => Ok(object.get(key).is_some()),
        (Value::Object(_), _) => Ok(false),
        (whole, part) => Err(format!("`in` cannot look for {} in {}", kind(part), kind(whole))),
    }
}

fn add(left: Value, right: Value) -> Result<Value, String> {
    match (&left, &right) {
        (Value::Text(first), Value::Text(second)) => methods::bounded(format!("{first}{second}")),
        (Value::List(first), Value::List(second)) => {
            if first.len().saturating_add(second.len()) > methods::MAX_ITEMS {
                return Err(methods::list_too_long());
            }
            let mut list = first.clone();
            list.extend(second);
            Ok(Value::List(list))
        }
        _ => match (number(&left), number(&right)) {
            (Some(first), Some(second)) => {
                first.add(&second).map(Value::Number).ok_or_else(|| "the sum is too large".to_owned())
            }
            _ => Err(unfit("+", &left, &right)),
        },
    }
}

fn unfit(operator: &str, left: &Value, right: &Value) -> String {
    format!("`{operator}` does not go with {} and {}", kind(left), kind(right))
}
