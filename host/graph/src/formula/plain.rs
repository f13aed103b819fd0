//! What an expression is that computes nothing: a fixed value, a name, texts and names one after the other. Whoever has to
//! say it in another language needs to know no more of CEL.

use super::evaluate::Evaluation;
use super::{Formula, Function, Node, Part};
use crate::state::State;
use crate::value::{Key, Number, Value};

/// A value that is fixed, or taken from where it is.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    /// Always this
    Value(Value),
    /// What is at this place
    Place(Place),
    /// The texts of these, one after the other
    Joined(Vec<Plain>),
    /// A list of these
    List(Vec<Plain>),
    /// An object of these
    Object(Vec<(Key, Plain)>),
}

/// A place in the state, or in what is bound beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name
    pub root: Key,
    /// The way from there
    pub steps: Vec<Step>,
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The entry of an object
    Entry(Key),
    /// The first item of a list
    First,
    /// The last item of a list
    Last,
}

/// A condition on whether what is at a place is one of some fixed values.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// The place
    pub place: Place,
    /// The values, of one kind: texts, truths or ints
    pub values: Vec<Value>,
    /// Whether it is true where one of them is there; otherwise it is true where none is
    pub holds: bool,
}

impl Formula {
    /// What it is, if it computes nothing.
    pub fn plain(&self) -> Option<Plain> {
        plain(&self.0.root)
    }

    /// The place and the fixed values, if it only looks whether there is one of them.
    pub fn membership(&self) -> Option<Membership> {
        membership(&self.0.root)
    }

    /// The place of a list, if it only looks whether that has an item.
    pub fn has_items(&self) -> Option<Place> {
        has_items(&self.0.root)
    }
}

fn plain(part: &Part) -> Option<Plain> {
    if let Some(value) = fixed(part) {
        return Some(Plain::Value(value));
    }
    match &part.node {
        Node::Name(_) | Node::Select { .. } | Node::Index(..) | Node::Call(Function::Last, _) => {
            place(part).map(Plain::Place)
        }
        Node::Call(Function::Add, operands) => {
            let mut texts = Vec::new();
            operands.iter().try_for_each(|operand| join(operand, &mut texts))?;
            // Of names alone nobody knows whether they are texts or numbers.
            let is_text =
                |operand: &Part| matches!(plain(operand), Some(Plain::Value(Value::Text(_)) | Plain::Joined(_)));
            operands.iter().any(is_text).then_some(Plain::Joined(texts))
        }
        Node::Call(Function::Template, arguments) => template(arguments),
        Node::Call(Function::Text, arguments) => match plain(arguments.first()?)? {
            at @ Plain::Place(_) => Some(Plain::Joined(vec![at])),
            text @ Plain::Joined(_) => Some(text),
            _ => None,
        },
        Node::List(items) => items.iter().map(plain).collect::<Option<_>>().map(Plain::List),
        Node::Object(entries) => {
            let entry = |(key, value): &(Part, Part)| Some((fixed(key)?.as_text()?.into(), plain(value)?));
            entries.iter().map(entry).collect::<Option<_>>().map(Plain::Object)
        }
        _ => None,
    }
}

/// The value of a part that needs nothing from outside.
fn fixed(part: &Part) -> Option<Value> {
    is_closed(part).then(|| Evaluation::new(&State::default()).evaluate(part).ok()).flatten()
}

fn is_closed(part: &Part) -> bool {
    !matches!(part.node, Node::Name(_) | Node::HasName(_) | Node::StateIndex(_))
        && part.parts().into_iter().all(is_closed)
}

/// The operands of `+` between texts, those of its own operands among them.
fn join(part: &Part, texts: &mut Vec<Plain>) -> Option<()> {
    if let (Node::Call(Function::Add, operands), None) = (&part.node, fixed(part)) {
        return operands.iter().try_for_each(|operand| join(operand, texts));
    }
    match plain(part)? {
        text @ (Plain::Place(_) | Plain::Value(Value::Text(_))) => texts.push(text),
        Plain::Joined(more) => texts.extend(more),
        _ => return None,
    }
    Some(())
}

/// A text in which `${name}` stands for values that are given with it.
fn template(arguments: &[Part]) -> Option<Plain> {
    let [text, values] = arguments else { return None };
    let (text, Plain::Object(values)) = (fixed(text)?, plain(values)?) else { return None };
    let mut texts = Vec::new();
    let mut rest = text.as_text()?;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        texts.push(Plain::Value(before.into()));
        match values.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)? {
            Plain::Value(value @ (Value::Text(_) | Value::Bool(_) | Value::Number(Number::Int(_)))) => {
                texts.push(Plain::Value(Value::text(value.to_display())));
            }
            Plain::Joined(more) => texts.extend(more.iter().cloned()),
            place @ Plain::Place(_) => texts.push(place.clone()),
            _ => return None,
        }
        rest = after;
    }
    texts.push(Plain::Value(rest.into()));
    Some(Plain::Joined(texts))
}

fn place(part: &Part) -> Option<Place> {
    let onwards = |operand: &Part, step: Step| {
        let mut place = place(operand)?;
        place.steps.push(step);
        Some(place)
    };
    match &part.node {
        Node::Name(name) => Some(Place { root: name.clone(), steps: Vec::new() }),
        Node::Select { operand, field } => onwards(operand, Step::Entry(field.clone())),
        Node::Call(Function::Last, arguments) => onwards(arguments.first()?, Step::Last),
        Node::Index(operand, index) => match fixed(index) {
            Some(Value::Text(key)) => onwards(operand, Step::Entry(key)),
            Some(Value::Number(Number::Int(0))) => onwards(operand, Step::First),
            Some(_) => None,
            None => (one_before_the_end(index)? == place(operand)?).then(|| onwards(operand, Step::Last))?,
        },
        _ => None,
    }
}

/// The list of which this is `size(list) - 1`.
fn one_before_the_end(part: &Part) -> Option<Place> {
    let Node::Call(Function::Subtract, operands) = &part.node else { return None };
    let [size, one] = &operands[..] else { return None };
    let Node::Call(Function::Size, list) = &size.node else { return None };
    (fixed(one)? == Value::from(1)).then(|| place(list.first()?))?
}

fn has_items(part: &Part) -> Option<Place> {
    let Node::Call(function, operands) = &part.node else { return None };
    let [left, right] = &operands[..] else { return None };
    let (size, least) = match function {
        Function::Greater | Function::NotEquals => (left, (fixed(right)?, 0)),
        Function::GreaterOrEqual => (left, (fixed(right)?, 1)),
        Function::Less => (right, (fixed(left)?, 0)),
        _ => return None,
    };
    let Node::Call(Function::Size, list) = &size.node else { return None };
    (least.0 == Value::from(least.1)).then(|| place(list.first()?))?
}

fn membership(part: &Part) -> Option<Membership> {
    match &part.node {
        Node::Call(Function::Not, operands) => {
            let inner = membership(operands.first()?)?;
            Some(Membership { holds: !inner.holds, ..inner })
        }
        Node::Call(function @ (Function::Equals | Function::NotEquals), operands) => {
            let [left, right] = &operands[..] else { return None };
            let (place, value) = match (fixed(left), fixed(right)) {
                (None, Some(value)) => (place(left)?, value),
                (Some(value), None) => (place(right)?, value),
                _ => return None,
            };
            of_one_kind(place, vec![value], *function == Function::Equals)
        }
        Node::Call(Function::In, operands) => {
            let [operand, list] = &operands[..] else { return None };
            of_one_kind(place(operand)?, fixed(list)?.as_list()?.iter().cloned().collect(), true)
        }
        Node::Or(left, right) => both(left, right, true),
        Node::And(left, right) => both(left, right, false),
        _ => of_one_kind(place(part)?, vec![Value::Bool(true)], true),
    }
}

/// Two conditions on one place: true where one of all values is there, or where none is.
fn both(left: &Part, right: &Part, holds: bool) -> Option<Membership> {
    let (left, right) = (membership(left)?, membership(right)?);
    let fit = left.place == right.place && left.holds == holds && right.holds == holds;
    fit.then(|| of_one_kind(left.place, left.values.into_iter().chain(right.values).collect(), holds))?
}

fn of_one_kind(place: Place, values: Vec<Value>, holds: bool) -> Option<Membership> {
    let is_text = |value: &Value| matches!(value, Value::Text(_));
    let is_truth = |value: &Value| matches!(value, Value::Bool(_));
    let is_int = |value: &Value| matches!(value, Value::Number(Number::Int(_)));
    let fit = values.iter().all(is_text) || values.iter().all(is_truth) || values.iter().all(is_int);
    (fit && !values.is_empty()).then_some(Membership { place, values, holds })
}
