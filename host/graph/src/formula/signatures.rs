//! What operators and functions give, by what is known of their arguments.

use super::EvaluationError;
use super::functions::Function;
use super::kinds::Kinds;
use super::patterns::compiled;
use super::types::ValueType;
use super::words;
use crate::value::{Number, Value};

type Result<T> = std::result::Result<T, EvaluationError>;

impl Function {
    /// What is known of the result.
    ///
    /// # Errors
    /// When it fails with all arguments of these types.
    pub(super) fn check(self, arguments: &[ValueType]) -> Result<ValueType> {
        for (place, argument) in arguments.iter().enumerate() {
            self.takes(place, argument.kinds())?;
        }
        let [first, rest @ ..] = arguments else { return Ok(ValueType::of_kinds(self.result())) };
        let second = rest.first();
        match (self, second) {
            (
                Function::Add | Function::Subtract | Function::Multiply | Function::Divide | Function::Modulo,
                Some(second),
            ) => self.check_arithmetic(first, second),
            (Function::Less | Function::LessOrEqual | Function::Greater | Function::GreaterOrEqual, Some(second)) => {
                let kinds = self.of_pairs(first, second, |left, right| {
                    let number = left.meets(Kinds::NUMBER) && right.meets(Kinds::NUMBER);
                    let same = left == right && left.meets(Kinds::STRING.or(Kinds::BOOL));
                    (number || same).then_some(Kinds::BOOL)
                })?;
                Ok(ValueType::of_kinds(kinds))
            }
            (Function::Matches, Some(second)) => {
                if let Some(Value::Text(pattern)) = second.exact() {
                    // A pattern that is none fails with every text.
                    compiled(pattern)?;
                }
                Ok(ValueType::of_kinds(self.result()))
            }
            (Function::Negate, _) if first.kinds().within(Kinds::NUMBER) => Ok(ValueType::of_kinds(first.kinds())),
            (Function::Last, _) => Ok(first.items()),
            (Function::Split, _) => Ok(ValueType::list_of(ValueType::string())),
            // Whoever writes `dyn` does not want to be told.
            (Function::Dyn, _) => Ok(ValueType::any()),
            _ => Ok(ValueType::of_kinds(self.result())),
        }
    }

    fn check_arithmetic(self, left: &ValueType, right: &ValueType) -> Result<ValueType> {
        let kinds = self.of_pairs(left, right, |left, right| match (left, right) {
            (Kinds::INT, Kinds::INT) => Some(Kinds::INT),
            (Kinds::DOUBLE, Kinds::DOUBLE) if self != Function::Modulo => Some(Kinds::DOUBLE),
            (Kinds::LIST, Kinds::LIST) if self == Function::Add => Some(Kinds::LIST),
            (Kinds::STRING, other) | (other, Kinds::STRING) if self == Function::Add && other.meets(Kinds::TEXT) => {
                Some(Kinds::STRING)
            }
            _ => None,
        })?;
        let divides = matches!(self, Function::Divide | Function::Modulo);
        if divides && kinds == Kinds::INT && matches!(right.exact(), Some(Value::Number(Number::Int(0)))) {
            return Err(words::no_division());
        }
        Ok(if kinds == Kinds::LIST { left.followed_by(right) } else { ValueType::of_kinds(kinds) })
    }

    /// What an operator gives for every pair of kinds that it takes; an error if there is none.
    fn of_pairs(
        self,
        left: &ValueType,
        right: &ValueType,
        rule: impl Fn(Kinds, Kinds) -> Option<Kinds>,
    ) -> Result<Kinds> {
        let of_left = |one: Kinds| right.kinds().each().map(move |other| (one, other));
        let pairs = left.kinds().each().flat_map(of_left);
        let kinds = pairs.filter_map(|(one, other)| rule(one, other)).fold(Kinds::NONE, Kinds::or);
        if kinds.is_empty() {
            return Err(words::no_operator(self.sign(), left.kinds(), right.kinds()));
        }
        Ok(kinds)
    }
}
