//! Evaluation on our own values.

use super::{EvaluationError, Fold, Node};
use crate::template::Lookup;
use crate::value::{Key, List, Number, Object, Value};

/// How many parts of an expression one evaluation may come to, those of each turn of a loop counted anew.
const MAX_STEPS: u32 = 2_000_000;
/// How many bytes of text one evaluation may make.
const MAX_PRODUCED: usize = 16 << 20;

pub(super) type Result<T> = std::result::Result<T, EvaluationError>;

pub(super) struct Evaluation<'s> {
    scope: &'s dyn Lookup,
    locals: Vec<Value>,
    steps_left: u32,
    bytes_left: usize,
}

impl<'s> Evaluation<'s> {
    pub(super) fn new(scope: &'s dyn Lookup) -> Self {
        Evaluation { scope, locals: Vec::new(), steps_left: MAX_STEPS, bytes_left: MAX_PRODUCED }
    }

    /// How many steps were taken so far.
    #[cfg(test)]
    pub(super) fn steps(&self) -> u32 {
        MAX_STEPS - self.steps_left
    }

    /// Takes note of text that is made.
    pub(super) fn produce(&mut self, bytes: usize) -> Result<()> {
        match self.bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(EvaluationError::spent(format!("the expression makes more than {MAX_PRODUCED} bytes of text"))),
        }
    }

    /// Takes note of work that is not a part of the expression.
    pub(super) fn step(&mut self, steps: usize) -> Result<()> {
        match u32::try_from(steps).ok().and_then(|steps| self.steps_left.checked_sub(steps)) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => Err(EvaluationError::spent(format!("the expression takes more than {MAX_STEPS} steps"))),
        }
    }

    pub(super) fn evaluate(&mut self, node: &Node) -> Result<Value> {
        self.step(1)?;
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Name(name) => self.name(name),
            Node::Local(place) => Ok(self.locals.get(*place).cloned().unwrap_or_default()),
            Node::Select { operand, field } => select(&self.evaluate(operand)?, field),
            Node::Has { operand, field } => match self.evaluate(operand)? {
                Value::Object(object) => Ok(Value::Bool(object.get(field).is_some())),
                other => Err(no_fields(&other, field)),
            },
            Node::HasName(name) => Ok(Value::Bool(self.scope.lookup(name).is_some())),
            Node::Index(operand, index) => {
                let (operand, index) = (self.evaluate(operand)?, self.evaluate(index)?);
                self::index(&operand, &index)
            }
            Node::StateIndex(index) => match self.evaluate(index)? {
                Value::Text(name) => self.name(&name),
                other => Err(EvaluationError::new(format!(
                    "a field of the state is named by a text, not by {}",
                    article(&other)
                ))),
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
    fn logic(&mut self, left: &Node, right: &Node, decides: bool) -> Result<Value> {
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

    fn object(&mut self, entries: &[(Node, Node)]) -> Result<Value> {
        let mut object = Object::default();
        for (key, value) in entries {
            let key = match self.evaluate(key)? {
                Value::Text(key) => key,
                other => {
                    return Err(EvaluationError::new(format!(
                        "the keys of a map have to be texts, not {}",
                        article(&other)
                    )));
                }
            };
            if object.get(&key).is_some() {
                return Err(EvaluationError::new(format!("the key `{key}` occurs twice in one map")));
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
            other => {
                return Err(EvaluationError::new(format!(
                    "only a list or a map can be gone through, not {}",
                    article(other)
                )));
            }
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
fn is_logic(step: &Node) -> bool {
    matches!(step, Node::And(..) | Node::Or(..))
}

/// Whether the accumulator of such a loop does not depend on an item that failed.
fn decided(step: &Node, accumulator: &Value) -> bool {
    match step {
        Node::And(..) => *accumulator == Value::Bool(false),
        Node::Or(..) => *accumulator == Value::Bool(true),
        _ => false,
    }
}

fn truth(value: &Value) -> Result<bool> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(EvaluationError::new(format!("a condition has to be true or false, not {}", article(other)))),
    }
}

fn select(operand: &Value, field: &Key) -> Result<Value> {
    let Value::Object(object) = operand else { return Err(no_fields(operand, field)) };
    object.get(field).cloned().ok_or_else(|| no_key(object, field))
}

fn no_fields(operand: &Value, field: &str) -> EvaluationError {
    EvaluationError::new(format!("`{field}` is looked for in {}, which has no fields", article(operand)))
}

fn no_key(object: &Object, key: &str) -> EvaluationError {
    let near = crate::suggest::closest(key, object.iter().map(|(key, _)| &**key));
    let near = near.map(|near| format!("; there is `{near}`")).unwrap_or_default();
    EvaluationError::missing(format!("there is no key `{key}`{near}"))
}

fn index(operand: &Value, index: &Value) -> Result<Value> {
    match (operand, index) {
        (Value::Object(object), Value::Text(key)) => object.get(key).cloned().ok_or_else(|| no_key(object, key)),
        (Value::List(list), Value::Number(Number::Int(at))) => {
            let item = usize::try_from(*at).ok().and_then(|at| list.get(at));
            item.cloned().ok_or_else(|| {
                EvaluationError::missing(format!("the index {at} is outside of a list of {} items", list.len()))
            })
        }
        (Value::List(_), other) => {
            Err(EvaluationError::new(format!("a list is indexed by an int, not by {}", article(other))))
        }
        (Value::Object(_), other) => {
            Err(EvaluationError::new(format!("a map is indexed by a text, not by {}", article(other))))
        }
        (other, _) => Err(EvaluationError::new(format!("{} cannot be indexed", article(other)))),
    }
}

/// A value's type as CEL calls it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(Number::Float(_)) => "double",
        Value::Number(_) => "int",
        Value::Text(_) => "string",
        Value::List(_) => "list",
        Value::Object(_) => "map",
    }
}

pub(super) fn article(value: &Value) -> String {
    match type_name(value) {
        "null" => "null".to_owned(),
        "int" => "an int".to_owned(),
        name => format!("a {name}"),
    }
}
