//! Operators and functions on values. Every function can be called both ways: `f(x, y)` and `x.f(y)`.

mod call;

use cel::common::ast::operators;

use super::evaluate::Result;
use super::kinds::Kinds;
use super::words;

/// What a function takes at one place.
pub(super) struct Parameter {
    kinds: Kinds,
    /// What it is called in a sentence
    wanted: &'static str,
}

macro_rules! parameters {
    ($($name:ident $kinds:expr, $wanted:literal;)*) => {
        $(const $name: Parameter = Parameter { kinds: $kinds, wanted: $wanted };)*
    };
}

parameters! {
    ANYTHING Kinds::ANY, "a value";
    TEXT Kinds::TEXT, "a string";
    INT Kinds::INT, "an int";
    NUMBER Kinds::NUMBER, "a number";
    TRUTH Kinds::BOOL, "a bool";
    LIST Kinds::LIST, "a list";
    VALUES Kinds::MAP, "a map of values";
    SIZED Kinds::STRING.or(Kinds::LIST).or(Kinds::MAP), "a string, a list or a map";
    HOLDER Kinds::LIST.or(Kinds::MAP), "a list or a map on its right";
    NUMERAL Kinds::NUMBER.or(Kinds::STRING), "a number or a string";
    TRUTH_TEXT Kinds::BOOL.or(Kinds::STRING), "\"true\" or \"false\"";
}

macro_rules! functions {
    ($($variant:ident $name:expr, $least:literal [$($parameter:ident)*] $gives:ident;)*) => {
        /// An operator or a function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Function { $($variant),* }

        impl Function {
            /// The function of that name.
            pub(super) fn of_name(name: &str) -> Option<Self> {
                $(if name == $name { return Some(Function::$variant); })*
                None
            }

            /// The names of all functions, operators left out.
            pub(super) fn names() -> impl Iterator<Item = &'static str> {
                [$($name),*].into_iter().filter(|name: &&str| name.starts_with(|c: char| c.is_ascii_alphabetic()))
            }

            /// How many arguments it takes, at least and at most, the value before its dot included.
            pub(super) fn arity(self) -> (usize, usize) {
                match self { $(Function::$variant => ($least, self.parameters().len())),* }
            }

            fn parameters(self) -> &'static [Parameter] {
                match self { $(Function::$variant => &[$($parameter),*]),* }
            }

            /// What it gives, whatever it is given.
            pub(super) fn result(self) -> Kinds {
                match self { $(Function::$variant => Kinds::$gives),* }
            }

            fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),* }
            }
        }
    };
}

functions! {
    Add operators::ADD, 2 [ANYTHING ANYTHING] ANY;
    Subtract operators::SUBSTRACT, 2 [ANYTHING ANYTHING] NUMBER;
    Multiply operators::MULTIPLY, 2 [ANYTHING ANYTHING] NUMBER;
    Divide operators::DIVIDE, 2 [ANYTHING ANYTHING] NUMBER;
    Modulo operators::MODULO, 2 [ANYTHING ANYTHING] INT;
    Negate operators::NEGATE, 1 [NUMBER] NUMBER;
    Not operators::LOGICAL_NOT, 1 [TRUTH] BOOL;
    Equals operators::EQUALS, 2 [ANYTHING ANYTHING] BOOL;
    NotEquals operators::NOT_EQUALS, 2 [ANYTHING ANYTHING] BOOL;
    Less operators::LESS, 2 [ANYTHING ANYTHING] BOOL;
    LessOrEqual operators::LESS_EQUALS, 2 [ANYTHING ANYTHING] BOOL;
    Greater operators::GREATER, 2 [ANYTHING ANYTHING] BOOL;
    GreaterOrEqual operators::GREATER_EQUALS, 2 [ANYTHING ANYTHING] BOOL;
    In operators::IN, 2 [ANYTHING HOLDER] BOOL;
    NotStrictlyFalse operators::NOT_STRICTLY_FALSE, 1 [ANYTHING] BOOL;
    Size "size", 1 [SIZED] INT;
    Contains "contains", 2 [TEXT TEXT] BOOL;
    StartsWith "startsWith", 2 [TEXT TEXT] BOOL;
    EndsWith "endsWith", 2 [TEXT TEXT] BOOL;
    Matches "matches", 2 [TEXT TEXT] BOOL;
    Int "int", 1 [NUMERAL] INT;
    Double "double", 1 [NUMERAL] DOUBLE;
    Text "string", 1 [ANYTHING] STRING;
    Bool "bool", 1 [TRUTH_TEXT] BOOL;
    Dyn "dyn", 1 [ANYTHING] ANY;
    Type "type", 1 [ANYTHING] STRING;
    Json "json", 1 [TEXT] ANY;
    JsonValid "jsonValid", 1 [TEXT] BOOL;
    Split "split", 2 [TEXT TEXT INT] LIST;
    Join "join", 1 [LIST TEXT] STRING;
    Trim "trim", 1 [TEXT] STRING;
    Replace "replace", 3 [TEXT TEXT TEXT INT] STRING;
    Substring "substring", 2 [TEXT INT INT] STRING;
    IndexOf "indexOf", 2 [TEXT TEXT INT] INT;
    LowerAscii "lowerAscii", 1 [TEXT] STRING;
    UpperAscii "upperAscii", 1 [TEXT] STRING;
    Template "template", 2 [TEXT VALUES] STRING;
    Last "last", 1 [LIST] ANY;
}

impl Function {
    /// Whether it takes any of these at a place.
    pub(super) fn takes(self, place: usize, given: Kinds) -> Result<()> {
        match self.parameters().get(place) {
            Some(parameter) if !parameter.kinds.meets(given) => {
                let error = words::no_argument(self.sign(), parameter.wanted, given);
                let looks_for = self == Function::Contains && place == 0 && given == Kinds::LIST;
                Err(if looks_for { error.advise("write `x in list`") } else { error })
            }
            _ => Ok(()),
        }
    }

    /// How it is written in an expression.
    pub(super) fn sign(self) -> &'static str {
        self.name().trim_matches(['_', '@'])
    }
}

/// The types that values have, by the names that expressions use for them.
pub(super) const TYPES: [&str; 7] = ["null_type", "bool", "int", "double", "string", "list", "map"];
