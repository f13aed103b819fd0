//! From tokens to a tree.

mod atoms;

use std::ops::Range;

use super::lex::{Kind, Token};
use super::node::{Node, Operator};
use super::slice::Slice;
use super::{PythonProblem, STATE};
use crate::value::{Number, Value};

/// How deeply expressions may be nested.
const MAX_DEPTH: usize = 64;

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
                Err(self.problem(format!("`{whole}` alone is not a value; name one of its fields: `{whole}.name`")))
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
}
