//! From tokens to a tree.

use std::ops::Range;

use super::lex::{Kind, Token};
use super::methods::{self, Function};
use super::slice::Slice;
use super::{PythonProblem, STATE};
use crate::suggest::closest;
use crate::value::{Key, Number, Value};

/// How deeply expressions may be nested.
const MAX_DEPTH: usize = 64;

/// Words that name nothing.
const RESERVED: [&str; 15] = [
    "and", "or", "not", "in", "is", "lambda", "for", "if", "else", "while", "import", "await", "yield", "def", "class",
];

#[derive(Debug, PartialEq)]
pub(super) enum Node {
    Value(Value),
    /// The value under a key of the state
    Key(Key),
    /// The state itself: only its entries are values
    State,
    List(Vec<Node>),
    Object(Vec<(Key, Node)>),
    Not(Box<Node>),
    Minus(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    /// A chain: each operator stands between two neighbours
    Compare(Box<Node>, Vec<(Operator, Node)>),
    /// The same, where only numbers and only texts have an order
    CompareAlike(Box<Node>, Vec<(Operator, Node)>),
    Add(Box<Node>, Box<Node>),
    Subtract(Box<Node>, Box<Node>),
    /// An entry by a dot
    Entry(Box<Node>, Key),
    Index(Box<Node>, Box<Node>),
    Slice(Box<Node>, Slice),
    /// The first value where the condition holds, otherwise the second
    Either {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Call(Function, Vec<Node>),
    /// Whether a value is of one of these types
    IsInstance(Box<Node>, Vec<&'static str>),
    Method(Box<Node>, &'static str, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Is,
    IsNot,
}

impl Node {
    /// The keys of the state that it reads.
    pub(super) fn keys(&self, into: &mut Vec<Key>) {
        let mut all = |nodes: &[Node]| nodes.iter().for_each(|node| node.keys(into));
        match self {
            Node::Value(_) | Node::State => {}
            Node::Key(key) => into.push(key.clone()),
            Node::List(items) | Node::Call(_, items) => all(items),
            Node::Object(entries) => entries.iter().for_each(|(_, node)| node.keys(into)),
            Node::Not(of) | Node::Minus(of) | Node::Entry(of, _) | Node::Slice(of, _) | Node::IsInstance(of, _) => {
                of.keys(into)
            }
            Node::Either { condition, then, otherwise } => {
                condition.keys(into);
                then.keys(into);
                otherwise.keys(into);
            }
            Node::And(left, right)
            | Node::Or(left, right)
            | Node::Add(left, right)
            | Node::Subtract(left, right)
            | Node::Index(left, right) => {
                left.keys(into);
                right.keys(into);
            }
            Node::Compare(first, rest) | Node::CompareAlike(first, rest) => {
                first.keys(into);
                rest.iter().for_each(|(_, node)| node.keys(into));
            }
            Node::Method(of, _, arguments) => {
                of.keys(into);
                arguments.iter().for_each(|node| node.keys(into));
            }
        }
    }
}

/// What an expression may name, and with it how much of the language it may use.
#[derive(Clone, Copy)]
pub(super) enum Names<'a> {
    /// `state`, and what these names call a key of the state
    Known(&'a [(&'a str, &'a str)]),
    /// The entries of one object, each by its own name or behind that of the object. Nothing is called or computed
    Entries(&'a str),
}

pub(super) fn parse(source: &str, tokens: &[Token], names: Names<'_>) -> Result<Node, PythonProblem> {
    let (names, entries_of) = match names {
        Names::Known(names) => (names, None),
        Names::Entries(object) => (&[][..], Some(object)),
    };
    let mut parser = Parser { source, tokens, names, entries_of, at: 0, depth: 0 };
    let node = parser.expression()?;
    match &parser.now().kind {
        Kind::End => Ok(node),
        Kind::Word(word) if matches!(word.as_str(), "for" | "if" | "lambda" | "while") => {
            Err(parser.problem(format!("`{word}` is not supported in conditions")))
        }
        _ => Err(parser.unexpected()),
    }
}

/// What stands in brackets behind a value.
enum Bracketed {
    Index(Node),
    Slice(Slice),
}

struct Parser<'a> {
    source: &'a str,
    tokens: &'a [Token],
    names: &'a [(&'a str, &'a str)],
    /// The name of the object whose entries are all that it sees
    entries_of: Option<&'a str>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn now(&self) -> &Token {
        // The last token is the end, behind which nothing steps.
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn problem(&self, message: String) -> PythonProblem {
        PythonProblem { message, range: self.now().range.clone() }
    }

    fn unexpected(&self) -> PythonProblem {
        let range: Range<usize> = self.now().range.clone();
        match &self.now().kind {
            Kind::End => self.problem("the expression ends too early".to_owned()),
            Kind::Refused(message) => self.problem(message.clone()),
            _ => self.problem(format!("`{}` is not expected here", &self.source[range])),
        }
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.now().kind, Kind::Sign(found) if found == sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(&self.now().kind, Kind::Word(found) if found == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn needs_sign(&mut self, sign: &str) -> Result<(), PythonProblem> {
        if self.takes_sign(sign) {
            return Ok(());
        }
        match &self.now().kind {
            Kind::Word(word) if word == "for" => {
                Err(self.problem("there are no loops in conditions (`for`)".to_owned()))
            }
            _ => Err(self.unexpected()),
        }
    }

    fn expression(&mut self) -> Result<Node, PythonProblem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.problem(format!("the expression is nested more than {MAX_DEPTH} deep")));
        }
        let mut node = self.or()?;
        if self.entries_of.is_none() && self.takes_word("if") {
            let condition = Box::new(self.or()?);
            if !self.takes_word("else") {
                return Err(self.unexpected());
            }
            let otherwise = Box::new(self.expression()?);
            node = Node::Either { condition, then: Box::new(node), otherwise };
        }
        self.depth -= 1;
        Ok(node)
    }

    fn or(&mut self) -> Result<Node, PythonProblem> {
        let mut left = self.and()?;
        while self.takes_word("or") {
            left = Node::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, PythonProblem> {
        let mut left = self.not()?;
        while self.takes_word("and") {
            left = Node::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Node, PythonProblem> {
        let mut is_negated = false;
        let mut any = false;
        while self.takes_word("not") {
            (is_negated, any) = (!is_negated, true);
        }
        let node = self.comparison()?;
        Ok(match (any, is_negated) {
            (false, _) => node,
            (true, true) => Node::Not(Box::new(node)),
            (true, false) => Node::Not(Box::new(Node::Not(Box::new(node)))),
        })
    }

    fn comparison(&mut self) -> Result<Node, PythonProblem> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(operator) = self.operator()? {
            rest.push((operator, self.sum()?));
        }
        Ok(match (rest.is_empty(), self.entries_of) {
            (true, _) => first,
            (false, None) => Node::Compare(Box::new(first), rest),
            (false, Some(_)) => Node::CompareAlike(Box::new(first), rest),
        })
    }

    fn operator(&mut self) -> Result<Option<Operator>, PythonProblem> {
        const SIGNS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        for (sign, operator) in SIGNS {
            if self.takes_sign(sign) {
                return Ok(Some(operator));
            }
        }
        if self.takes_word("in") {
            return Ok(Some(Operator::In));
        }
        if self.takes_word("not") {
            return if self.takes_word("in") { Ok(Some(Operator::NotIn)) } else { Err(self.unexpected()) };
        }
        if self.entries_of.is_none() && self.takes_word("is") {
            return Ok(Some(if self.takes_word("not") { Operator::IsNot } else { Operator::Is }));
        }
        Ok(None)
    }

    fn sum(&mut self) -> Result<Node, PythonProblem> {
        if self.entries_of.is_some() {
            return self.entry_or_value();
        }
        let mut left = self.sign()?;
        loop {
            if self.takes_sign("+") {
                left = Node::Add(Box::new(left), Box::new(self.sign()?));
            } else if self.takes_sign("-") {
                left = Node::Subtract(Box::new(left), Box::new(self.sign()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn sign(&mut self) -> Result<Node, PythonProblem> {
        let mut is_negative = false;
        loop {
            if self.takes_sign("-") {
                is_negative = !is_negative;
            } else if !self.takes_sign("+") {
                break;
            }
        }
        let node = self.reference()?;
        Ok(if is_negative { Node::Minus(Box::new(node)) } else { node })
    }

    /// A value, or an entry of the one object that is seen.
    fn entry_or_value(&mut self) -> Result<Node, PythonProblem> {
        if self.takes_sign("-") {
            return match self.now().kind.clone() {
                Kind::Number(number) => {
                    self.at += 1;
                    Ok(Node::Minus(Box::new(Node::Value(Value::Number(number)))))
                }
                _ => Err(self.unexpected()),
            };
        }
        let mut node = self.atom()?;
        while matches!(node, Node::State | Node::Key(_) | Node::Entry(..) | Node::Index(..)) {
            let step = if self.takes_sign(".") {
                let Kind::Word(name) = self.now().kind.clone() else { return Err(self.unexpected()) };
                Value::text(name)
            } else if self.takes_sign("[") {
                match self.now().kind.clone() {
                    Kind::Text(key) => Value::text(key),
                    Kind::Number(index @ Number::Int(_)) if node != Node::State => Value::Number(index),
                    _ => return Err(self.unexpected()),
                }
            } else {
                break;
            };
            let is_index = matches!(self.now().kind, Kind::Text(_) | Kind::Number(_));
            self.at += 1;
            if is_index {
                self.needs_sign("]")?;
            }
            node = match (node, step) {
                (Node::State, Value::Text(key)) => Node::Key(key),
                (of, Value::Text(key)) => Node::Entry(Box::new(of), key),
                (of, index) => Node::Index(Box::new(of), Box::new(Node::Value(index))),
            };
        }
        match node {
            Node::State => {
                let whole = self.entries_of.unwrap_or(STATE);
                Err(self.problem(format!("`{whole}` alone is no value; name one of its fields: `{whole}.name`")))
            }
            node => Ok(node),
        }
    }

    /// A value with what follows it: entries, indexes, calls.
    fn reference(&mut self) -> Result<Node, PythonProblem> {
        let mut node = self.atom()?;
        loop {
            if self.takes_sign(".") {
                let name = self.name()?;
                node = if self.takes_sign("(") {
                    self.method(node, &name)?
                } else if node == Node::State {
                    Node::Key(name.as_str().into())
                } else {
                    Node::Entry(Box::new(node), name.as_str().into())
                };
            } else if self.takes_sign("[") {
                node = match (node, self.within_brackets()?) {
                    (Node::State, Bracketed::Index(Node::Value(Value::Text(key)))) => Node::Key(key),
                    (Node::State, _) => {
                        return Err(self.problem("the state takes the name of an entry in brackets".to_owned()));
                    }
                    (node, Bracketed::Index(index)) => Node::Index(Box::new(node), Box::new(index)),
                    (node, Bracketed::Slice(slice)) => Node::Slice(Box::new(node), slice),
                };
            } else if matches!(self.now().kind, Kind::Sign("(")) {
                return Err(self.problem("only functions and methods that are known can be called".to_owned()));
            } else {
                return Ok(node);
            }
        }
    }

    /// What stands behind an opening bracket, and the closing one.
    fn within_brackets(&mut self) -> Result<Bracketed, PythonProblem> {
        let begins = self.at;
        if let Some(slice) = self.slice()? {
            return Ok(Bracketed::Slice(slice));
        }
        self.at = begins;
        if let Kind::Text(key) = &self.now().kind
            && key.starts_with('_')
        {
            return Err(self.hidden(key));
        }
        let index = self.expression()?;
        self.needs_sign("]")?;
        Ok(Bracketed::Index(index))
    }

    /// The bounds of a part and the closing bracket behind them, or nothing where no `:` follows the first one. Bounds are
    /// whole numbers.
    fn slice(&mut self) -> Result<Option<Slice>, PythonProblem> {
        let from = self.bound();
        if !self.takes_sign(":") {
            return Ok(None);
        }
        let to = self.bound();
        let step_stands = self.at + 1;
        let step = if self.takes_sign(":") { self.bound() } else { None };
        if step == Some(0) {
            self.at = step_stands;
            return Err(self.problem("the step of a part cannot be 0".to_owned()));
        }
        self.needs_sign("]")?;
        Ok(Some(Slice { from, to, step }))
    }

    fn bound(&mut self) -> Option<i64> {
        let begins = self.at;
        let is_negative = self.takes_sign("-");
        if !is_negative {
            self.takes_sign("+");
        }
        match self.now().kind {
            Kind::Number(Number::Int(bound)) => {
                self.at += 1;
                Some(if is_negative { -bound } else { bound })
            }
            _ => {
                self.at = begins;
                None
            }
        }
    }

    fn hidden(&self, name: &str) -> PythonProblem {
        self.problem(format!("`{name}` cannot be reached: names that begin with `_` are not entries"))
    }

    /// The name behind a dot.
    fn name(&mut self) -> Result<String, PythonProblem> {
        match &self.now().kind {
            Kind::Word(name) if name.starts_with('_') => Err(self.hidden(name)),
            Kind::Word(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn method(&mut self, of: Node, name: &str) -> Result<Node, PythonProblem> {
        let known = methods::METHODS.iter().find(|(known, _)| *known == name);
        let Some((method, counts)) = known else {
            let near = closest(name, methods::METHODS.iter().map(|(known, _)| *known));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(self.problem(format!("the method `{name}` is not supported in conditions{near}")));
        };
        let arguments = self.arguments()?;
        if !counts.contains(&arguments.len()) {
            return Err(self.problem(format!("`{name}` takes {}", methods::how_many(counts))));
        }
        // The state is an object of which only entries are there.
        match (of, *method, &arguments[..]) {
            (Node::State, "get", [Node::Value(Value::Text(key))]) => Ok(Node::Key(key.clone())),
            (Node::State, "get", [Node::Value(Value::Text(key)), _]) => {
                let key = Node::Key(key.clone());
                let mut arguments = arguments;
                let default = arguments.pop().unwrap_or(Node::Value(Value::Null));
                Ok(Node::Call(Function::OrElse, vec![key, default]))
            }
            (Node::State, ..) => Err(self.problem(format!("`{name}` of the whole state is not supported"))),
            (of, method, _) => Ok(Node::Method(Box::new(of), method, arguments)),
        }
    }

    /// What stands behind an opening bracket, up to the closing one.
    fn arguments(&mut self) -> Result<Vec<Node>, PythonProblem> {
        self.list(")")
    }

    fn list(&mut self, end: &'static str) -> Result<Vec<Node>, PythonProblem> {
        let mut items = Vec::new();
        while !self.takes_sign(end) {
            items.push(self.expression()?);
            if !self.takes_sign(",") {
                self.needs_sign(end)?;
                break;
            }
        }
        Ok(items)
    }

    /// The entries of an object up to its end. Their names are texts.
    fn object(&mut self) -> Result<Node, PythonProblem> {
        let mut entries = Vec::new();
        while !self.takes_sign("}") {
            let Kind::Text(key) = self.now().kind.clone() else { return Err(self.unexpected()) };
            self.at += 1;
            self.needs_sign(":")?;
            entries.push((key.into(), self.expression()?));
            if !self.takes_sign(",") {
                self.needs_sign("}")?;
                break;
            }
        }
        Ok(Node::Object(entries))
    }

    fn atom(&mut self) -> Result<Node, PythonProblem> {
        let token = self.now().clone();
        match token.kind {
            Kind::Number(number) => {
                self.at += 1;
                Ok(Node::Value(Value::Number(number)))
            }
            Kind::Text(text) => {
                self.at += 1;
                let mut whole = text;
                // Texts that stand beside each other are one.
                while let (None, Kind::Text(more)) = (self.entries_of, &self.now().kind) {
                    whole.push_str(more);
                    self.at += 1;
                }
                Ok(Node::Value(Value::text(whole)))
            }
            Kind::Sign("(") => {
                self.at += 1;
                let mut items = Vec::new();
                let mut is_tuple = false;
                while self.entries_of.is_some() || !self.takes_sign(")") {
                    items.push(self.expression()?);
                    if self.entries_of.is_none() && self.takes_sign(",") {
                        is_tuple = true;
                    } else {
                        self.needs_sign(")")?;
                        break;
                    }
                }
                match items.pop() {
                    Some(only) if items.is_empty() && !is_tuple => Ok(only),
                    last => Ok(Node::List(items.into_iter().chain(last).collect())),
                }
            }
            Kind::Sign("[") => {
                self.at += 1;
                self.list("]").map(Node::List)
            }
            Kind::Sign("{") if self.entries_of.is_none() => {
                self.at += 1;
                self.object()
            }
            Kind::Word(word) => self.word(&word),
            Kind::Sign(_) | Kind::Refused(_) | Kind::End => Err(self.unexpected()),
        }
    }

    fn word(&mut self, word: &str) -> Result<Node, PythonProblem> {
        let value = match word {
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            "None" => Some(Value::Null),
            "true" if self.entries_of.is_some() => Some(Value::Bool(true)),
            "false" if self.entries_of.is_some() => Some(Value::Bool(false)),
            "null" | "none" if self.entries_of.is_some() => Some(Value::Null),
            _ => None,
        };
        if let Some(value) = value {
            self.at += 1;
            return Ok(Node::Value(value));
        }
        if let Some(whole) = self.entries_of {
            if RESERVED.contains(&word) {
                return Err(self.unexpected());
            }
            self.at += 1;
            return Ok(if word == whole { Node::State } else { Node::Key(word.into()) });
        }
        if word == STATE {
            self.at += 1;
            let goes_on = matches!(self.now().kind, Kind::Sign("." | "["));
            return if goes_on {
                Ok(Node::State)
            } else {
                self.at -= 1;
                Err(self.problem("`state` alone is no value; name one of its entries: `state.name`".to_owned()))
            };
        }
        if let Some((_, key)) = self.names.iter().find(|(name, _)| *name == word) {
            self.at += 1;
            return Ok(Node::Key((*key).into()));
        }
        let is_called = matches!(self.tokens.get(self.at + 1).map(|token| &token.kind), Some(Kind::Sign("(")));
        if is_called {
            return self.function(word);
        }
        let known = [STATE].into_iter().chain(self.names.iter().map(|(name, _)| *name));
        let all: Vec<String> = known.map(|name| format!("`{name}`")).collect();
        let is_loop =
            matches!(self.tokens.get(self.at + 1).map(|token| &token.kind), Some(Kind::Word(next)) if next == "for");
        Err(self.problem(match word {
            _ if is_loop => "there are no loops in conditions (`for`)".to_owned(),
            "lambda" | "for" | "if" | "else" | "import" | "await" | "yield" => {
                format!("`{word}` is not supported in conditions")
            }
            _ => format!("there is no `{word}` here: conditions see {} (`state.{word}`?)", all.join(", ")),
        }))
    }

    fn function(&mut self, word: &str) -> Result<Node, PythonProblem> {
        if word == "isinstance" {
            return self.is_instance();
        }
        let Some((_, function, counts)) = methods::FUNCTIONS.iter().find(|(name, ..)| *name == word) else {
            let near = closest(word, methods::FUNCTIONS.iter().map(|(name, ..)| *name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(self.problem(format!("the function `{word}` is not supported in conditions{near}")));
        };
        self.at += 2;
        let arguments = self.arguments()?;
        if !counts.contains(&arguments.len()) {
            return Err(self.problem(format!("`{word}` takes {}", methods::how_many(counts))));
        }
        Ok(Node::Call(*function, arguments))
    }

    fn is_instance(&mut self) -> Result<Node, PythonProblem> {
        self.at += 2;
        let value = self.expression()?;
        self.needs_sign(",")?;
        let mut types = Vec::new();
        let is_tuple = self.takes_sign("(");
        loop {
            let Kind::Word(word) = &self.now().kind else { return Err(self.unexpected()) };
            let Some(known) = methods::TYPES.iter().find(|known| *known == word) else {
                return Err(self.problem(format!("`{word}` is no type that conditions know")));
            };
            types.push(*known);
            self.at += 1;
            let has_more = is_tuple && self.takes_sign(",") && !matches!(self.now().kind, Kind::Sign(")"));
            if !has_more {
                break;
            }
        }
        if is_tuple {
            self.needs_sign(")")?;
        }
        self.needs_sign(")")?;
        Ok(Node::IsInstance(Box::new(value), types))
    }
}

/// A whole number as an index.
pub(super) fn as_index(value: &Value) -> Option<i64> {
    match value {
        Value::Number(Number::Int(index)) => Some(*index),
        Value::Bool(value) => Some(i64::from(*value)),
        _ => None,
    }
}
