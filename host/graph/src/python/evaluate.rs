//! The value of an expression.

use super::methods;
use super::node::{Node, Operator};
use super::text::is_true;
use super::values::{compare, equal, kind, minus, number};
use crate::template::Lookup;
use crate::value::{Object, Value};

pub(super) fn evaluate(node: &Node, scope: &dyn Lookup) -> Result<Value, String> {
    let all = |nodes: &[Node]| nodes.iter().map(|node| evaluate(node, scope)).collect::<Result<Vec<_>, _>>();
    match node {
        Node::Value(value) => Ok(value.clone()),
        Node::Key(key) => Ok(scope.lookup(key).cloned().unwrap_or_default()),
        Node::State => Err("the state alone is not a value".to_owned()),
        Node::List(items) => Ok(Value::List(all(items)?.into_iter().collect())),
        Node::Object(entries) => {
            let mut object = Object::default();
            for (key, node) in entries {
                object.insert(key.clone(), evaluate(node, scope)?);
            }
            Ok(Value::Object(object))
        }
        Node::Not(of) => Ok(Value::Bool(!is_true(&evaluate(of, scope)?))),
        Node::Minus(of) => minus(&evaluate(of, scope)?),
        Node::And(left, right) => {
            let left = evaluate(left, scope)?;
            if is_true(&left) { evaluate(right, scope) } else { Ok(left) }
        }
        Node::Or(left, right) => {
            let left = evaluate(left, scope)?;
            if is_true(&left) { Ok(left) } else { evaluate(right, scope) }
        }
        Node::Compare(first, rest) | Node::CompareAlike(first, rest) => {
            let is_strict = matches!(node, Node::CompareAlike(..));
            let mut left = evaluate(first, scope)?;
            for (operator, right) in rest {
                let right = evaluate(right, scope)?;
                if is_strict {
                    check_order(*operator, &left, &right)?;
                }
                if !holds(*operator, &left, &right)? {
                    return Ok(Value::Bool(false));
                }
                left = right;
            }
            Ok(Value::Bool(true))
        }
        Node::Add(left, right) => add(evaluate(left, scope)?, evaluate(right, scope)?),
        Node::Subtract(left, right) => {
            let (left, right) = (evaluate(left, scope)?, evaluate(right, scope)?);
            match (number(&left), number(&right)) {
                (Some(_), Some(_)) => add(left, minus(&right)?),
                _ => Err(unfit("-", &left, &right)),
            }
        }
        Node::Entry(of, key) => match evaluate(of, scope)? {
            Value::Object(object) => Ok(object.get(key).cloned().unwrap_or_default()),
            // What is not there is nothing, and so are its entries.
            Value::Null => Ok(Value::Null),
            other => Err(format!("{} has no entry `{key}`", kind(&other))),
        },
        Node::Index(of, at) => methods::index(&evaluate(of, scope)?, &evaluate(at, scope)?),
        Node::Slice(of, slice) => slice.of(&evaluate(of, scope)?),
        Node::Either { condition, then, otherwise } => {
            let holds = is_true(&evaluate(condition, scope)?);
            evaluate(if holds { then } else { otherwise }, scope)
        }
        Node::Call(function, arguments) => methods::call(*function, &all(arguments)?),
        Node::IsInstance(of, types) => Ok(Value::Bool(methods::is_instance(&evaluate(of, scope)?, types))),
        Node::Method(of, name, arguments) => methods::method(&evaluate(of, scope)?, name, &all(arguments)?),
    }
}

fn holds(operator: Operator, left: &Value, right: &Value) -> Result<bool, String> {
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
