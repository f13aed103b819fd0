//! Evaluation on our own values.

use super::kinds::Kinds;
use super::{EvaluationError, Fold, Node, Part, words};
use crate::conversation::implied_field;
use crate::effort;
use crate::searching::Recent;
use crate::template::Lookup;
use crate::value::{Key, List, Number, Object, Value};

/// How many parts of an expression one evaluation may come to, those of each turn of a loop counted anew.
const MAX_STEPS: u32 = 2_000_000;
/// How many bytes of text one evaluation may make.
const MAX_PRODUCED: usize = 16 << 20;
/// Bytes of a text that are looked at in one step.
pub(super) const BYTES_A_STEP: usize = 1 << 10;
/// Digits of a large integer that are written in one step: it takes time by their square.
const DIGITS_A_STEP: usize = 16;

pub(super) type Result<T> = std::result::Result<T, EvaluationError>;

pub(super) struct Evaluation<'s> {
    scope: &'s dyn Lookup,
    locals: Vec<Value>,
    steps_left: u32,
    is_out_of_steps: bool,
    bytes_left: usize,
    /// What was looked for in texts
    pub(super) recent: Recent,
}

/// The value of an expression, if it can be written out: what is put together of one value again and again shares it in memory alone.
pub(super) fn evaluate(root: &Part, scope: &dyn Lookup) -> Result<Value> {
    let most = u32::try_from(effort::left()).map_or(MAX_STEPS, |left| left.min(MAX_STEPS));
    let mut evaluation = Evaluation::within(scope, most, MAX_PRODUCED);
    let value = evaluation.evaluate(root);
    effort::take(u64::from(most - evaluation.steps_left));
    match value {
        Err(error) if error.spent && most < MAX_STEPS && evaluation.is_out_of_steps => {
            let most = effort::MOST;
            Err(EvaluationError::spent(format!("the expressions of the node take more than {most} steps together")))
        }
        Ok(value @ (Value::List(_) | Value::Object(_))) => match value.check_size() {
            Ok(_) => Ok(value),
            Err(problem) => Err(EvaluationError::spent(format!("its value cannot be used: {problem}"))),
        },
        value => value,
    }
}

impl<'s> Evaluation<'s> {
    pub(super) fn new(scope: &'s dyn Lookup) -> Self {
        Evaluation::within(scope, MAX_STEPS, MAX_PRODUCED)
    }

    /// With bounds of its own, in steps and in bytes of text.
    pub(super) fn within(scope: &'s dyn Lookup, steps: u32, bytes: usize) -> Self {
        Evaluation {
            scope,
            locals: Vec::new(),
            steps_left: steps,
            is_out_of_steps: false,
            bytes_left: bytes,
            recent: Recent::default(),
        }
    }

    /// Evaluates a part that needs nothing of what is around it, inside of loops with this many variables.
    pub(super) fn evaluate_alone(&mut self, part: &Part, locals: usize) -> Result<Value> {
        self.locals.resize(locals, Value::Null);
        let value = self.evaluate(part);
        self.locals.clear();
        value
    }

    /// How many steps were taken so far.
    #[cfg(test)]
    pub(super) fn steps(&self) -> u32 {
        MAX_STEPS - self.steps_left
    }

    /// Takes note of text that is made.
    pub(super) fn produce(&mut self, bytes: usize) -> Result<()> {
        self.has_room(bytes)?;
        self.bytes_left -= bytes;
        Ok(())
    }

    /// Whether so many bytes of text may be made.
    pub(super) fn has_room(&self, bytes: usize) -> Result<()> {
        match bytes <= self.bytes_left {
            true => Ok(()),
            false => {
                Err(EvaluationError::spent(format!("the expression makes more than {MAX_PRODUCED} bytes of text")))
            }
        }
    }

    /// Takes note that all parts of a value are gone through. They may be more than there is memory for, where many of them are one.
    pub(super) fn visit(&mut self, value: &Value) -> Result<()> {
        self.step(1)?;
        match value {
            Value::Text(text) => self.step(text.len() / BYTES_A_STEP),
            Value::List(items) => items.iter().try_for_each(|item| self.visit(item)),
            Value::Object(object) => object.iter().try_for_each(|(_, item)| self.visit(item)),
            Value::Number(number) => self.step(number.digits() / DIGITS_A_STEP),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    /// Takes note of work that is not a part of the expression.
    pub(super) fn step(&mut self, steps: usize) -> Result<()> {
        match u32::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps)) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.is_out_of_steps = true;
                Err(EvaluationError::spent(format!("the expression takes more than {MAX_STEPS} steps")))
            }
        }
    }

    pub(super) fn evaluate(&mut self, part: &Part) -> Result<Value> {
        self.step(1)?;
        match &part.node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Name(name) => self.name(name),
            Node::Local(place) => Ok(self.locals.get(*place).cloned().unwrap_or_default()),
            Node::Select { operand, field } => select(&self.evaluate(operand)?, field),
            Node::Has { operand, field } => match self.evaluate(operand)? {
                Value::Object(object) => {
                    let is_there = object.get(field).is_some();
                    Ok(Value::Bool(is_there || implied_field(&Value::Object(object), field).is_some()))
                }
                other => Err(words::no_fields(Kinds::of(&other), field)),
            },
            Node::HasName(name) => Ok(Value::Bool(self.scope.lookup(name).is_some())),
            Node::Index(operand, index) => {
                let (operand, index) = (self.evaluate(operand)?, self.evaluate(index)?);
                self::index(&operand, &index)
            }
            Node::StateIndex(index) => match self.evaluate(index)? {
                Value::Text(name) => self.name(&name),
                other => Err(words::no_name_of_a_field(Kinds::of(&other))),
            },
            Node::And(left, right) => self.logic(left, right, false),
            Node::Or(left, right) => self.logic(left, right, true),
            Node::Choose(parts) => {
                let [condition, then, otherwise] = &**parts;
                if truth(&self.evaluate(condition)?)? { self.evaluate(then) } else { self.evaluate(otherwise) }
            }
            Node::Default(value, otherwise) => match self.evaluate(value) {
                Err(error) if error.missing => self.evaluate(otherwise),
                result => result,
            },
            Node::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| self.evaluate(argument)).collect::<Result<Vec<_>>>()?;
                function.call(self, &arguments)
            }
            Node::List(items) => {
                Ok(Value::List(items.iter().map(|item| self.evaluate(item)).collect::<Result<List>>()?))
            }
            Node::Object(entries) => self.object(entries),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn name(&self, name: &str) -> Result<Value> {
        let missing = || EvaluationError::missing(format!("`{name}` has no value"));
        self.scope.lookup(name).cloned().ok_or_else(missing)
    }

    /// `&&` and `||`: what one side decides does not depend on the other, even if that fails.
    fn logic(&mut self, left: &Part, right: &Part, decides: bool) -> Result<Value> {
        let left = self.evaluate(left).and_then(|value| truth(&value));
        match left {
            Ok(value) if value == decides => return Ok(Value::Bool(decides)),
            Err(error) if error.spent => return Err(error),
            _ => {}
        }
        let right = self.evaluate(right).and_then(|value| truth(&value));
        match (left, right) {
            (_, Ok(value)) if value == decides => Ok(Value::Bool(decides)),
            (_, Err(error)) if error.spent => Err(error),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(_), Ok(_)) => Ok(Value::Bool(!decides)),
        }
    }

    fn object(&mut self, entries: &[(Part, Part)]) -> Result<Value> {
        let mut object = Object::default();
        for (key, value) in entries {
            let key = match self.evaluate(key)? {
                Value::Text(key) => key,
                other => return Err(words::no_map_key(Kinds::of(&other))),
            };
            if object.get(&key).is_some() {
                return Err(words::key_twice(&key));
            }
            let value = self.evaluate(value)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    fn fold(&mut self, fold: &Fold) -> Result<Value> {
        let range = self.evaluate(&fold.range)?;
        let start = self.evaluate(&fold.start)?;
        let place = self.locals.len();
        self.locals.push(start);
        let result = self.go_through(fold, &range, place).and_then(|()| self.evaluate(&fold.result));
        self.locals.truncate(place);
        result
    }

    fn go_through(&mut self, fold: &Fold, range: &Value, place: usize) -> Result<()> {
        let keys = |object: &Object| object.iter().map(|(key, _)| Value::Text(key.clone())).collect::<List>();
        let items = match range {
            Value::List(items) => items.clone(),
            Value::Object(object) => {
                self.step(object.len())?;
                keys(object)
            }
            other => return Err(words::not_gone_through(Kinds::of(other))),
        };
        // An error of one item counts only if no other item decides.
        let mut held: Option<EvaluationError> = None;
        for item in items.iter() {
            self.locals.truncate(place + 1);
            self.locals.push(item.clone());
            if !truth(&self.evaluate(&fold.condition)?)? {
                held = None;
                break;
            }
            match self.evaluate(&fold.step) {
                Ok(value) => self.locals[place] = value,
                Err(error) if !error.spent && is_logic(&fold.step) => held = held.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        self.locals.truncate(place + 1);
        match held {
            Some(error) if !decided(&fold.step, &self.locals[place]) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether a loop's step combines truths, as `all` and `exists` do.
pub(super) fn is_logic(step: &Part) -> bool {
    matches!(step.node, Node::And(..) | Node::Or(..))
}

/// Whether the accumulator of such a loop does not depend on an item that failed.
fn decided(step: &Part, accumulator: &Value) -> bool {
    match step.node {
        Node::And(..) => *accumulator == Value::Bool(false),
        Node::Or(..) => *accumulator == Value::Bool(true),
        _ => false,
    }
}

fn truth(value: &Value) -> Result<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(words::no_condition(Kinds::of(other))),
    }
}

fn select(operand: &Value, field: &Key) -> Result<Value> {
    let Value::Object(object) = operand else { return Err(words::no_fields(Kinds::of(operand), field)) };
    let found = object.get(field).cloned().or_else(|| implied_field(operand, field));
    found.ok_or_else(|| words::no_key(object, field))
}

fn index(operand: &Value, index: &Value) -> Result<Value> {
    match (operand, index) {
        (Value::Object(object), Value::Text(key)) => {
            let found = object.get(key).cloned().or_else(|| implied_field(operand, key));
            found.ok_or_else(|| words::no_key(object, key))
        }
        (Value::List(list), Value::Number(Number::Int(at))) => {
            let item = usize::try_from(*at).ok().and_then(|at| list.get(at));
            item.cloned().ok_or_else(|| words::outside(*at, Some(list.len())))
        }
        _ => Err(words::no_index(Kinds::of(operand), Kinds::of(index))),
    }
}
