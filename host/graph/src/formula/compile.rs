//! From the parser's tree to ours: names, functions and what is not supported are decided here, once.

use std::ops::Range;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::functions::TYPES;
use super::parse::{Offsets, outside_of_texts};
use super::{Fold, FormulaError, Function, Node, Part, Vocabulary, words};
use crate::suggest::closest;
use crate::value::{Key, List, Number, Value};

type Result<T> = std::result::Result<T, FormulaError>;

pub(super) struct Compiler<'c> {
    source: &'c str,
    vocabulary: &'c Vocabulary,
    offsets: &'c Offsets,
    /// Where brackets open and close
    brackets: Vec<(usize, usize)>,
    /// Variables of comprehensions, the innermost last
    bound: Vec<String>,
    /// How many tests for what may be missing are around
    tested: usize,
    /// How deep the part is that is compiled
    depth: usize,
}

/// How deep a tree may be: evaluation goes as deep, on the stack of whoever evaluates.
const MAX_DEPTH: usize = 200;

impl<'c> Compiler<'c> {
    pub(super) fn new(source: &'c str, vocabulary: &'c Vocabulary, offsets: &'c Offsets) -> Self {
        let brackets = brackets(source);
        Compiler { source, vocabulary, offsets, brackets, bound: Vec::new(), tested: 0, depth: 0 }
    }

    fn error<T>(&self, id: u64, message: impl Into<String>, help: Option<String>) -> Result<T> {
        let range = self.token(id).unwrap_or(0..self.source.len());
        Err(FormulaError { message: message.into(), range, help })
    }

    /// The token that a part is made of, with the name at a bracket or a dot.
    fn token(&self, id: u64) -> Option<Range<usize>> {
        let mut range = self.offsets.range(self.source, id)?;
        // The place of a call is its bracket, and that of a field its dot; names stand around them.
        if matches!(&self.source[range.clone()], "(" | ".") {
            let name = |c: char| c.is_alphanumeric() || c == '_';
            let after = &self.source[range.end..];
            if &self.source[range.clone()] == "." {
                range.end += after.len() - after.trim_start_matches(name).len();
            }
            range.start = self.source[..range.start].trim_end_matches(name).len();
        }
        Some(range)
    }

    /// All of a part: its token, its own parts and the brackets around them.
    fn extent(&self, id: u64, part: &Part) -> Range<usize> {
        let parts = part.parts().into_iter().map(|part| part.range.clone()).filter(|range| !range.is_empty());
        let whole = |one: Range<usize>, other: Range<usize>| one.start.min(other.start)..one.end.max(other.end);
        let Some(mut range) = self.token(id).into_iter().chain(parts).reduce(whole) else { return 0..0 };
        // From the innermost pair to the outermost, in the order in which they close.
        for (open, close) in &self.brackets {
            if range.contains(open) != range.contains(close) {
                range = whole(range, *open..*close + 1);
            }
        }
        range
    }

    pub(super) fn compile(&mut self, tree: &IdedExpr) -> Result<Part> {
        if self.depth >= MAX_DEPTH {
            return self.error(tree.id, format!("the expression is more than {MAX_DEPTH} levels deep"), None);
        }
        self.depth += 1;
        let node = self.compile_part(tree);
        self.depth -= 1;
        let part = Part { node: node?, range: 0..0 };
        Ok(Part { range: self.extent(tree.id, &part), ..part })
    }

    fn compile_part(&mut self, tree: &IdedExpr) -> Result<Node> {
        let id = tree.id;
        match &tree.expr {
            Expr::Literal(literal) => self.literal(id, literal),
            Expr::Ident(name) => self.name(id, name),
            Expr::Select(select) if self.is_state(&select.operand) => {
                self.field(id, &select.field, select.test)?;
                let key = Key::from(select.field.as_str());
                Ok(if select.test { Node::HasName(key) } else { Node::Name(key) })
            }
            Expr::Select(select) => {
                let operand = Box::new(self.compile(&select.operand)?);
                let field = Key::from(select.field.as_str());
                Ok(if select.test { Node::Has { operand, field } } else { Node::Select { operand, field } })
            }
            Expr::Call(call) => self.call(id, call),
            Expr::List(list) if list.optional_indices.is_empty() => {
                Ok(Node::List(list.elements.iter().map(|element| self.compile(element)).collect::<Result<_>>()?))
            }
            Expr::Map(map) => {
                let mut entries = Vec::with_capacity(map.entries.len());
                for entry in &map.entries {
                    let EntryExpr::MapEntry(entry) = &entry.expr else {
                        return self.error(id, "this form of a map is not supported", None);
                    };
                    entries.push((self.compile(&entry.key)?, self.compile(&entry.value)?));
                }
                Ok(Node::Object(entries))
            }
            Expr::Comprehension(fold) => self.fold(fold),
            Expr::List(_) => self.error(id, "optional elements are not supported", None),
            Expr::Struct(message) => {
                let help = Some("build a map: `{\"key\": value}`".to_owned());
                self.error(id, format!("messages of a type (`{}{{...}}`) are not supported", message.type_name), help)
            }
            Expr::Unspecified => self.error(id, "the expression cannot be read", None),
        }
    }

    fn literal(&self, id: u64, literal: &LiteralValue) -> Result<Node> {
        let value = match literal {
            LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
            LiteralValue::Int(value) => Value::Number(Number::Int(*value.inner())),
            LiteralValue::Double(value) => match Number::from_f64(*value.inner()) {
                Some(number) => Value::Number(number),
                None => return self.error(id, "the number is too large", None),
            },
            LiteralValue::String(text) => Value::from(text.inner()),
            LiteralValue::Null => Value::Null,
            LiteralValue::UInt(_) => {
                let help = Some("leave the `u` out: state has no unsigned numbers".to_owned());
                return self.error(id, "unsigned numbers are not supported", help);
            }
            LiteralValue::Bytes(_) => return self.error(id, "bytes are not supported; use a text", None),
        };
        Ok(Node::Constant(value))
    }

    fn is_state(&self, tree: &IdedExpr) -> bool {
        let Expr::Ident(name) = &tree.expr else { return false };
        !self.bound.contains(name) && self.vocabulary.state.as_deref() == Some(name.as_str())
    }

    fn name(&self, id: u64, name: &str) -> Result<Node> {
        if let Some(place) = self.bound.iter().rposition(|bound| bound == name) {
            return Ok(Node::Local(place));
        }
        let vocabulary = self.vocabulary;
        if vocabulary.locals.iter().any(|local| *local.name == *name) {
            return Ok(Node::Name(name.into()));
        }
        let is_field = vocabulary.fields.get(name).is_some();
        if vocabulary.bare && is_field {
            return Ok(Node::Name(name.into()));
        }
        if let Some((_, value)) = vocabulary.constants.iter().find(|(constant, _)| **constant == *name) {
            return Ok(Node::Constant(value.clone()));
        }
        if vocabulary.state.as_deref() == Some(name) {
            let help =
                vocabulary.fields.names().next().map(|field| format!("name one of its fields: `{name}.{field}`"));
            return self.error(id, format!("`{name}` as a whole cannot be a value"), help);
        }
        if vocabulary.bare && self.tested > 0 {
            return Ok(Node::Name(name.into()));
        }
        let locals = vocabulary.locals.iter().map(|local| &*local.name);
        let known = locals.chain(vocabulary.constants.iter().map(|(name, _)| &**name));
        let known = known.chain(vocabulary.fields.names().filter(|_| vocabulary.bare));
        let help = match (closest(name, known), &vocabulary.state) {
            (_, Some(state)) if is_field => format!("did you mean `{state}.{name}`?"),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, _) => format!("a text needs quotes of its own: `\"{name}\"`"),
        };
        self.error(id, format!("there is nothing called `{name}`"), Some(help))
    }

    /// A key of the state that is written out has to be one that the state declares, unless it is tested for.
    fn field(&self, id: u64, name: &str, test: bool) -> Result<()> {
        let fields = &self.vocabulary.fields;
        if test || self.tested > 0 || fields.get(name).is_some() {
            return Ok(());
        }
        let error = words::no_state_field(fields.names(), name);
        self.error(id, error.message, error.advice)
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Result<Node> {
        let name = &*call.func_name;
        let pair = |compiler: &mut Self| -> Result<(Box<Part>, Box<Part>)> {
            let [left, right] = &call.args[..] else { return compiler.error(id, "an operand is missing", None) };
            Ok((Box::new(compiler.compile(left)?), Box::new(compiler.compile(right)?)))
        };
        match name {
            operators::LOGICAL_AND => return pair(self).map(|(left, right)| Node::And(left, right)),
            operators::LOGICAL_OR => return pair(self).map(|(left, right)| Node::Or(left, right)),
            operators::CONDITIONAL => {
                let parts = call.args.iter().map(|part| self.compile(part)).collect::<Result<Vec<_>>>()?;
                let parts: [Part; 3] = match parts.try_into() {
                    Ok(parts) => parts,
                    Err(_) => return self.error(id, "an operand is missing", None),
                };
                return Ok(Node::Choose(Box::new(parts)));
            }
            operators::INDEX => return self.index(id, &call.args),
            "default" => return self.default(id, call),
            _ => {}
        }
        let receiver = call.target.as_deref();
        // `"key" in state` looks for a key without making a value of the whole state.
        if let (operators::IN, [key, state]) = (name, &call.args[..])
            && self.is_state(state)
        {
            return match &key.expr {
                Expr::Literal(LiteralValue::String(key)) => Ok(Node::HasName(key.inner().into())),
                _ => self.error(key.id, "the name of a field has to be written out here", None),
            };
        }
        // A name of a type is one only where it is compared with a type.
        let compares_types = matches!(name, operators::EQUALS | operators::NOT_EQUALS | operators::IN)
            && call.args.iter().any(|argument| matches!(&argument.expr, Expr::Call(call) if call.func_name == "type"));
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        for argument in receiver.into_iter().chain(&call.args) {
            let types = compares_types.then(|| type_names(argument)).flatten();
            arguments.push(match types {
                Some(types) => {
                    let part = Part { node: Node::Constant(types), range: 0..0 };
                    Part { range: self.extent(argument.id, &part), ..part }
                }
                None => self.compile(argument)?,
            });
        }
        let Some(function) = Function::of_name(name) else {
            let help = match name {
                "timestamp" | "duration" | "uint" | "bytes" => {
                    Some(format!("`{name}` of CEL is not supported; state has no such values"))
                }
                _ => closest(name, Function::names()).map(|near| format!("did you mean `{near}`?")),
            };
            return self.error(id, format!("there is no function `{name}`"), help);
        };
        let (least, most) = function.arity();
        if !(least..=most).contains(&arguments.len()) {
            let takes = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let has = arguments.len();
            return self.error(
                id,
                format!("`{name}` takes {takes} arguments, the value before its dot included, not {has}"),
                None,
            );
        }
        Ok(Node::Call(function, arguments))
    }

    fn index(&mut self, id: u64, arguments: &[IdedExpr]) -> Result<Node> {
        let [operand, index] = arguments else { return self.error(id, "an index is missing", None) };
        if !self.is_state(operand) {
            return Ok(Node::Index(Box::new(self.compile(operand)?), Box::new(self.compile(index)?)));
        }
        if let Expr::Literal(LiteralValue::String(key)) = &index.expr {
            self.field(index.id, key.inner(), false)?;
            return Ok(Node::Name(key.inner().into()));
        }
        Ok(Node::StateIndex(Box::new(self.compile(index)?)))
    }

    fn default(&mut self, id: u64, call: &CallExpr) -> Result<Node> {
        let mut parts: Vec<&IdedExpr> = call.target.as_deref().into_iter().collect();
        parts.extend(&call.args);
        let [value, otherwise] = parts[..] else {
            return self.error(id, "`default` takes a value and what is used where it is missing", None);
        };
        self.tested += 1;
        let value = self.compile(value);
        self.tested -= 1;
        Ok(Node::Default(Box::new(value?), Box::new(self.compile(otherwise)?)))
    }

    fn fold(&mut self, fold: &ComprehensionExpr) -> Result<Node> {
        let range = self.compile(&fold.iter_range)?;
        let start = self.compile(&fold.accu_init)?;
        self.bound.extend([fold.accu_var.clone(), fold.iter_var.clone()]);
        let parts = (|| Ok((self.compile(&fold.loop_cond)?, self.compile(&fold.loop_step)?)))();
        // What comes out sees the accumulator and not the last item.
        self.bound.pop();
        let result = parts.and_then(|parts| Ok((parts, self.compile(&fold.result)?)));
        self.bound.pop();
        let ((condition, step), result) = result?;
        Ok(Node::Fold(Box::new(Fold { range, start, condition, step, result })))
    }
}

/// Pairs of brackets outside of texts, in the order in which they close.
fn brackets(source: &str) -> Vec<(usize, usize)> {
    let (mut open, mut pairs) = (Vec::new(), Vec::new());
    for (place, byte) in outside_of_texts(source) {
        match byte {
            b'(' | b'[' | b'{' => open.push(place),
            b')' | b']' | b'}' => pairs.extend(open.pop().map(|open| (open, place))),
            _ => {}
        }
    }
    pairs
}

/// The names of types that an operand stands for: one, or a list of them.
fn type_names(tree: &IdedExpr) -> Option<Value> {
    match &tree.expr {
        Expr::Ident(name) => TYPES.contains(&name.as_str()).then(|| Value::from(name.as_str())),
        Expr::List(list) => list.elements.iter().map(type_names).collect::<Option<List>>().map(Value::List),
        _ => None,
    }
}
