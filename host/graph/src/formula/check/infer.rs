//! What is known of the value of each part, from the smallest to the whole.

use super::{Checker, Finding, Result};
use crate::formula::evaluate::is_logic;
use crate::formula::functions::Function;
use crate::formula::kinds::Kinds;
use crate::formula::types::ValueType;
use crate::formula::{EvaluationError, Fold, Node, Part, Variable, words};
use crate::value::{Key, Number, Value};

impl Checker<'_> {
    /// What is known of the value of a part.
    ///
    /// # Errors
    /// When evaluating it always fails.
    pub(super) fn infer(&mut self, part: &Part) -> Result<ValueType> {
        if !self.exact || !stands_alone(part, self.locals.len()) {
            return self.infer_part(part);
        }
        let error = match self.evaluation.evaluate_alone(part, self.locals.len()) {
            Ok(value) => return Ok(ValueType::of_value(value)),
            Err(error) if error.spent => return self.infer_part(part),
            Err(error) => error,
        };
        // A smaller part may be to blame.
        let doubts = self.doubts.len();
        let inner = self.infer_part(part);
        self.doubts.truncate(doubts);
        Err(inner.err().unwrap_or_else(|| Finding::new(part, error)))
    }

    fn infer_part(&mut self, part: &Part) -> Result<ValueType> {
        let failed = |error: EvaluationError| Finding::new(part, error);
        match &part.node {
            Node::Constant(value) if self.exact => Ok(ValueType::of_value(value.clone())),
            Node::Constant(value) => Ok(ValueType::of_kinds(Kinds::of(value))),
            Node::Name(name) => Ok(self.name(name)),
            Node::Local(place) => Ok(self.locals.get(*place).cloned().unwrap_or(ValueType::any())),
            Node::HasName(_) => Ok(ValueType::bool()),
            Node::Has { operand, field } | Node::Select { operand, field } => {
                let operand = self.infer(operand)?;
                if !operand.kinds().meets(Kinds::MAP) {
                    return Err(failed(words::no_fields(operand.kinds(), field)));
                }
                let selects = matches!(part.node, Node::Select { .. });
                if selects { entry(&operand, field).map_err(failed) } else { Ok(ValueType::bool()) }
            }
            Node::Index(operand, index) => {
                let (operand, index) = (self.infer(operand)?, self.infer(index)?);
                at(&operand, &index).map_err(failed)
            }
            Node::StateIndex(index) => {
                let index = self.infer(index)?;
                if !index.kinds().meets(Kinds::STRING) {
                    return Err(failed(words::no_name_of_a_field(index.kinds())));
                }
                Ok(ValueType::any())
            }
            Node::And(left, right) => self.logic(left, right, false),
            Node::Or(left, right) => self.logic(left, right, true),
            Node::Choose(parts) => {
                let [condition, then, otherwise] = &**parts;
                match self.truth(condition)? {
                    Some(true) => self.infer(then),
                    Some(false) => self.infer(otherwise),
                    None => {
                        let (then, otherwise) = (self.infer(then), self.infer(otherwise));
                        self.either(then, otherwise)
                    }
                }
            }
            Node::Default(value, otherwise) => {
                let (value, otherwise) = (self.infer(value), self.infer(otherwise));
                match value {
                    // What is missing is what `default` is for. What fails otherwise may come after something missing.
                    Err(finding) if finding.error.missing => otherwise,
                    value => self.either(value, otherwise),
                }
            }
            Node::Call(function, arguments) => {
                let arguments = self.infer_all(arguments)?;
                function.check(&arguments).map_err(failed)
            }
            Node::List(items) => Ok(ValueType::of_items(self.infer_all(items)?)),
            Node::Object(entries) => self.object(entries),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn infer_all(&mut self, parts: &[Part]) -> Result<Vec<ValueType>> {
        parts.iter().map(|part| self.infer(part)).collect()
    }

    fn name(&self, name: &Key) -> ValueType {
        let local = self.vocabulary.locals.iter().find(|local| local.name == *name);
        match local.or_else(|| self.vocabulary.fields.get(name)) {
            Some(Variable { holds, enforced: true, .. }) => holds.clone(),
            Some(Variable { holds, .. }) if self.trusting && !self.asked.contains(name) => holds.clone(),
            _ => ValueType::any(),
        }
    }

    /// What a condition is, where it is always the same.
    fn truth(&mut self, part: &Part) -> Result<Option<bool>> {
        let found = self.infer(part)?;
        if !found.kinds().meets(Kinds::BOOL) {
            return Err(Finding::new(part, words::no_condition(found.kinds())));
        }
        Ok(match found.exact() {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        })
    }

    /// Of two parts one is evaluated, and nobody knows which: it fails for sure only if both do.
    fn either(&mut self, one: Result<ValueType>, other: Result<ValueType>) -> Result<ValueType> {
        match (one, other) {
            (Ok(one), Ok(other)) => Ok(one.join(other)),
            (Err(finding), Err(_)) => Err(finding),
            (Err(finding), Ok(known)) | (Ok(known), Err(finding)) => {
                self.doubts.push(finding);
                Ok(known)
            }
        }
    }

    /// `&&` and `||`: an operand that fails does not count where the other one decides, on whichever side it is.
    fn logic(&mut self, left: &Part, right: &Part, decides: bool) -> Result<ValueType> {
        let (left, right) = (self.truth(left), self.truth(right));
        let never_decides = |side: &Result<Option<bool>>| match side {
            Ok(known) => *known == Some(!decides),
            Err(_) => true,
        };
        match (left, right) {
            (Ok(_), Ok(_)) => {}
            (Err(finding), other) | (other, Err(finding)) if never_decides(&other) => return Err(finding),
            (Err(finding), _) | (_, Err(finding)) => self.doubts.push(finding),
        }
        Ok(ValueType::bool())
    }

    fn object(&mut self, entries: &[(Part, Part)]) -> Result<ValueType> {
        let mut known: Option<Vec<(Key, ValueType)>> = Some(Vec::with_capacity(entries.len()));
        for (key, value) in entries {
            let name = self.infer(key)?;
            if !name.kinds().meets(Kinds::STRING) {
                return Err(Finding::new(key, words::no_map_key(name.kinds())));
            }
            let value = self.infer(value)?;
            known = match (known, name.exact()) {
                (Some(known), Some(Value::Text(name))) if known.iter().any(|(other, _)| other == name) => {
                    return Err(Finding::new(key, words::key_twice(name)));
                }
                (Some(mut known), Some(Value::Text(name))) => {
                    known.push((name.clone(), value));
                    Some(known)
                }
                _ => None,
            };
        }
        Ok(known.map_or(ValueType::map(), ValueType::of_entries))
    }

    fn fold(&mut self, fold: &Fold) -> Result<ValueType> {
        let range = self.infer(&fold.range)?;
        let item = match (range.kinds().meets(Kinds::LIST), range.kinds().meets(Kinds::MAP)) {
            (true, true) => range.items().join(ValueType::string()),
            (true, false) => range.items(),
            (false, true) => ValueType::string(),
            (false, false) => return Err(Finding::new(&fold.range, words::not_gone_through(range.kinds()))),
        };
        let start = self.infer(&fold.start)?.accumulating();
        self.locals.extend([start.clone(), item]);
        let turn = self.truth(&fold.condition).and_then(|_| self.infer(&fold.step));
        self.locals.pop();
        let end = match turn {
            Ok(step) => Ok(start.join(step)),
            // `all` and `exists` go on: another item may decide.
            Err(finding) if range.length().is_some_and(|items| items > 0) && !is_logic(&fold.step) => Err(finding),
            Err(finding) => {
                self.doubts.push(finding);
                Ok(start)
            }
        };
        let result = end.and_then(|end| {
            if let Some(accumulator) = self.locals.last_mut() {
                *accumulator = end;
            }
            self.infer(&fold.result)
        });
        self.locals.pop();
        result
    }
}

/// What is under a key of a map.
fn entry(operand: &ValueType, key: &str) -> Result<ValueType, EvaluationError> {
    let Some(entries) = operand.entries() else { return Ok(ValueType::any()) };
    match entries.iter().find(|(name, _)| **name == *key) {
        Some((_, known)) => Ok(known.clone()),
        None => Err(words::no_key_of(entries.iter().map(|(name, _)| &**name), key)),
    }
}

/// What is at an index of a list or a map.
fn at(operand: &ValueType, index: &ValueType) -> Result<ValueType, EvaluationError> {
    let (of_list, of_map) = (
        operand.kinds().meets(Kinds::LIST) && index.kinds().meets(Kinds::INT),
        operand.kinds().meets(Kinds::MAP) && index.kinds().meets(Kinds::STRING),
    );
    if !of_list && !of_map {
        return Err(words::no_index(operand.kinds(), index.kinds()));
    }
    match index.exact() {
        Some(Value::Text(key)) => entry(operand, key),
        Some(Value::Number(Number::Int(place))) => match (usize::try_from(*place), operand.length()) {
            (Ok(place), Some(length)) if place < length => Ok(operand.item(place).cloned().unwrap_or(ValueType::any())),
            (Ok(_), None) => Ok(operand.items()),
            (_, length) => Err(words::outside(*place, length)),
        },
        _ if of_map => Ok(ValueType::any()),
        _ => Ok(operand.items()),
    }
}

/// Whether a part takes nothing from outside, where this many variables of loops are around it.
fn stands_alone(part: &Part, locals: usize) -> bool {
    match &part.node {
        Node::Name(_) | Node::HasName(_) | Node::StateIndex(_) => false,
        Node::Local(place) => *place >= locals,
        _ => part.parts().into_iter().all(|part| stands_alone(part, locals)),
    }
}

/// Collects the names of which an expression asks the type: what it does with them depends on the answer.
pub(super) fn names_asked_about(part: &Part, found: &mut Vec<Key>) {
    if let Node::Call(Function::Type, arguments) = &part.node
        && let [Part { node: Node::Name(name), .. }] = &arguments[..]
    {
        found.push(name.clone());
    }
    part.parts().into_iter().for_each(|part| names_asked_about(part, found));
}
