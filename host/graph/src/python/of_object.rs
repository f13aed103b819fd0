//! Conditions on one object, which are closed where something is missing.

use std::fmt;
use std::sync::Arc;

use super::lex;
use super::node::Node;
use super::parse::{self, Names};
use super::text::is_true;
use super::{PythonProblem, evaluate};
use crate::template::Lookup;
use crate::value::{Key, Number, Object, Value};

/// A condition on the entries of one object: comparisons, `and`, `or`, `not` and `in`, and nothing that calls or computes. It
/// does not hold if anything that it names is not there, whatever the rest says.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectCondition {
    source: Arc<str>,
    root: Arc<Node>,
    paths: Arc<[Vec<Step>]>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Entry(Key),
    Index(usize),
}

/// Why a condition neither holds nor fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmet {
    /// It names this, which is not there
    Missing(String),
    /// An operation does not go with its values; says which
    Unfit(String),
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::Missing(path) => write!(f, "there is no `{path}`"),
            Unmet::Unfit(problem) => f.write_str(problem),
        }
    }
}

impl ObjectCondition {
    /// Reads a condition. Entries are named by themselves or behind the name of the object.
    ///
    /// # Errors
    /// When it is none. The place is that of the first character that cannot stand there.
    pub fn parse(source: &str, object: &str) -> Result<Self, PythonProblem> {
        let root = parse::parse(source, &lex::tokens(source)?, Names::Entries(object))?;
        let mut paths = Vec::new();
        collect(&root, &mut paths);
        Ok(ObjectCondition { source: source.trim().into(), root: Arc::new(root), paths: paths.into() })
    }

    /// The condition as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The entries of the object that it names, each once.
    pub fn entries(&self) -> Vec<Key> {
        let mut entries: Vec<Key> = Vec::new();
        for path in &*self.paths {
            if let Some(Step::Entry(entry)) = path.first()
                && !entries.contains(entry)
            {
                entries.push(entry.clone());
            }
        }
        entries
    }

    /// Whether it holds.
    ///
    /// # Errors
    /// When something is missing, or the values do not go with the operations. Either means that it does not hold.
    pub fn holds(&self, object: &Object) -> Result<bool, Unmet> {
        if let Some(path) = self.paths.iter().find(|path| !is_there(object, path)) {
            return Err(Unmet::Missing(written(path)));
        }
        let value = evaluate::evaluate(&self.root, &Entries(object)).map_err(Unmet::Unfit)?;
        Ok(is_true(&value))
    }
}

struct Entries<'a>(&'a Object);

impl Lookup for Entries<'_> {
    fn lookup(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// All paths, the longest of each that starts at one place.
fn collect(node: &Node, into: &mut Vec<Vec<Step>>) {
    if let Some(path) = path(node) {
        return into.push(path);
    }
    match node {
        Node::List(items) => items.iter().for_each(|item| collect(item, into)),
        Node::Not(of) | Node::Minus(of) => collect(of, into),
        Node::And(left, right) | Node::Or(left, right) => {
            collect(left, into);
            collect(right, into);
        }
        Node::CompareAlike(first, rest) => {
            collect(first, into);
            rest.iter().for_each(|(_, node)| collect(node, into));
        }
        // The parser makes nothing else of such a condition.
        _ => {}
    }
}

fn path(node: &Node) -> Option<Vec<Step>> {
    match node {
        Node::Key(key) => Some(vec![Step::Entry(key.clone())]),
        Node::Entry(of, key) => {
            let mut path = path(of)?;
            path.push(Step::Entry(key.clone()));
            Some(path)
        }
        Node::Index(of, at) => {
            let Node::Value(Value::Number(Number::Int(at))) = &**at else { return None };
            let mut path = path(of)?;
            path.push(Step::Index(usize::try_from(*at).ok()?));
            Some(path)
        }
        _ => None,
    }
}

fn is_there(object: &Object, path: &[Step]) -> bool {
    let Some((Step::Entry(first), rest)) = path.split_first() else { return false };
    let Some(mut value) = object.get(first) else { return false };
    for step in rest {
        let next = match (step, value) {
            (Step::Entry(key), Value::Object(object)) => object.get(key),
            (Step::Index(at), Value::List(list)) => list.get(*at),
            _ => None,
        };
        let Some(next) = next else { return false };
        value = next;
    }
    true
}

fn written(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Entry(key) if text.is_empty() => text.push_str(key),
            Step::Entry(key) => text.extend([".", key]),
            Step::Index(at) => text.push_str(&format!("[{at}]")),
        }
    }
    text
}
