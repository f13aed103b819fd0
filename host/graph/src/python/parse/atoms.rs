//! What an expression is made of: values, names, calls.

use super::Parser;
use crate::python::lex::Kind;
use crate::python::methods::{self, Function};
use crate::python::node::Node;
use crate::python::{PythonProblem, STATE};
use crate::suggest::closest;
use crate::value::Value;

/// Words that name nothing.
const RESERVED: [&str; 15] = [
    "and", "or", "not", "in", "is", "lambda", "for", "if", "else", "while", "import", "await", "yield", "def", "class",
];

impl Parser<'_> {
    pub(super) fn method(&mut self, of: Node, name: &str) -> Result<Node, PythonProblem> {
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

    pub(super) fn atom(&mut self) -> Result<Node, PythonProblem> {
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
                Err(self.problem("`state` alone is not a value; name one of its entries: `state.name`".to_owned()))
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
                return Err(self.problem(format!("`{word}` is not a type that conditions know")));
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
