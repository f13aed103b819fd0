//! JSON schemas of strangers: plugins, servers, models and files bring them, and native code works with them.
//!
//! A schema of a few lines can ask for more steps than there is time (`$ref`s that double), for more stack than a thread has
//! (a chain of 100,000 of them) or for gigabytes (patterns that repeat). So there is one way to compile a schema, which says
//! beforehand how much work it is, and one to hold a value against it, which does so for what the value multiplies.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError};
use serde_json::{Map, Value};

mod kept;
mod patterns;
mod survey;

use patterns::Patterns;
use survey::Survey;

/// Bytes that a pattern may take compiled.
const MAX_PATTERN_COMPILED: usize = 512 << 10;
/// Steps of holding a value against a schema, and how deep they may lie in each other.
const MAX_STEPS: u64 = 5_000_000;
const MAX_STEP_DEPTH: usize = 400;

/// Keywords whose values are data and no schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keywords with schemas by name: what stands in them is no keyword, whatever it is called.
const NAMED: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];
/// Keywords whose value is a schema that applies to the same value.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of such schemas.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with schemas by name, which apply where nothing but a `$ref` leads.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// References.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Why a schema cannot be used.
#[derive(Debug)]
pub enum SchemaProblem {
    /// It asks for too much; says of what.
    TooMuch(String),
    /// It is not a valid schema, or refers to something that it does not hold. Nothing is fetched.
    Invalid(Box<ValidationError<'static>>),
}

impl fmt::Display for SchemaProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMuch(what) => f.write_str(what),
            Self::Invalid(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SchemaProblem {}

fn too_much<T>(what: impl Into<String>) -> Result<T, SchemaProblem> {
    Err(SchemaProblem::TooMuch(what.into()))
}

/// A compiled schema.
#[derive(Debug)]
pub struct JsonSchema {
    validator: jsonschema::Validator,
    schema: Value,
    /// What a value of one node costs at most; none for a schema that refers to itself, where it depends on the value.
    expanded: Option<u64>,
    patterns: Patterns,
}

impl JsonSchema {
    /// The same as [`JsonSchema::compile`] for a schema that is used again and again: of those used last, the compiled ones are
    /// kept for the whole process.
    ///
    /// # Errors
    /// As there.
    pub fn compiled(schema: &Value) -> Result<Arc<Self>, SchemaProblem> {
        kept::compiled(schema)
    }

    /// Compiles a schema that is complete in itself.
    ///
    /// # Errors
    /// When it is no schema, refers to what it does not hold, or asks for too much work.
    pub fn compile(schema: &Value) -> Result<Self, SchemaProblem> {
        let (expanded, patterns) = Survey::of(schema)?;
        let options =
            PatternOptions::fancy_regex().size_limit(MAX_PATTERN_COMPILED).dfa_size_limit(MAX_PATTERN_COMPILED);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(options)
            .build(schema)
            .map_err(|error| SchemaProblem::Invalid(Box::new(error)))?;
        Ok(Self { validator, schema: schema.clone(), expanded, patterns })
    }

    /// The compiled schema itself, for who needs its errors as they are. None for one that refers to itself: how much work that
    /// is depends on the value, which [`JsonSchema::problems`] looks at.
    pub fn into_validator(self) -> Option<jsonschema::Validator> {
        self.expanded.is_some().then_some(self.validator)
    }

    /// What is wrong with a value, the first `most` of it. Nothing for a value that fits.
    pub fn problems(&self, value: &Value, most: usize) -> Vec<String> {
        self.said(value, most, &|error| error.to_string())
    }

    /// The same, each with the path to its place in front.
    pub fn problems_by_place(&self, value: &Value, most: usize) -> Vec<String> {
        self.said(value, most, &|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{path}: {error}"),
        })
    }

    /// The properties of an object that the schema does not let in, whatever their values: it is closed, and they are none of
    /// those that it names. Nothing where finding out would take too many steps; [`JsonSchema::problems`] says so then.
    pub fn unexpected(&self, value: &Value) -> Vec<String> {
        if self.check_work(value).is_err() {
            return Vec::new();
        }
        let of_the_object = self.validator.iter_errors(value).filter(|error| error.instance_path().as_str().is_empty());
        let named = of_the_object.map(|error| match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected.clone(),
            _ => Vec::new(),
        });
        named.flatten().collect()
    }

    fn said(&self, value: &Value, most: usize, say: &dyn Fn(ValidationError<'_>) -> String) -> Vec<String> {
        match self.check_work(value) {
            Ok(()) => self.validator.iter_errors(value).take(most).map(say).collect(),
            Err(problem) => vec![problem],
        }
    }

    /// Whether holding this value against the schema is work of reasonable size.
    fn check_work(&self, value: &Value) -> Result<(), String> {
        // No text is looked at more often than for each part of the schema.
        let of_one = self.patterns.all_steps(value).saturating_add(count(value));
        if self.expanded.is_some_and(|expanded| expanded.saturating_mul(of_one) <= MAX_STEPS) {
            return Ok(());
        }
        let targets = Targets::of(&self.schema);
        let patterns = &self.patterns;
        let mut walk = Walk { targets: &targets, patterns, known: HashMap::new(), open: HashSet::new(), work: 0 };
        match walk.steps(&self.schema, value, 0) {
            Ok(steps) if steps <= MAX_STEPS => Ok(()),
            _ => {
                Err("it cannot be checked: the schema takes too many steps for a value of its size and depth"
                    .to_owned())
            }
        }
    }
}

/// The values that a value is compared with, which goes through all that they consist of.
fn compared(schema: &Map<String, Value>) -> u64 {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    listed.chain(schema.get("const")).map(count).sum()
}

/// Whether a text has to be a regular expression.
fn is_for_patterns(schema: &Map<String, Value>) -> bool {
    schema.get("format").is_some_and(|format| format == "regex")
}

/// The values that a value consists of.
fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(entries) => 1 + entries.values().map(count).sum::<u64>(),
        _ => 1,
    }
}

/// What the references of a schema lead to.
struct Targets<'v> {
    root: &'v Value,
    /// The address of the schema itself
    own: &'v str,
    anchors: HashMap<&'v str, &'v Value>,
}

impl<'v> Targets<'v> {
    fn of(root: &'v Value) -> Self {
        let own = root.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#')).unwrap_or_default();
        let mut targets = Self { root, own, anchors: HashMap::new() };
        targets.find_anchors(root);
        targets
    }

    fn find_anchors(&mut self, value: &'v Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.find_anchors(item)),
            Value::Object(entries) => {
                let own = ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| entries.get(*key)?.as_str());
                self.anchors.extend(own.map(|name| (name, value)));
                entries.values().for_each(|inner| self.find_anchors(inner));
            }
            _ => {}
        }
    }

    /// None where it is not within the schema, which compiling it says.
    fn find(&self, reference: &str) -> Option<&'v Value> {
        let fragment = reference.strip_prefix(self.own).unwrap_or(reference);
        let pointer = fragment.strip_prefix('#').unwrap_or(fragment);
        match pointer {
            "" => Some(self.root),
            _ if pointer.starts_with('/') => {
                self.root.pointer(pointer).or_else(|| self.root.pointer(&decoded(pointer)))
            }
            anchor => self.anchors.get(anchor).copied(),
        }
    }
}

/// A pointer without what URLs write as `%` and two digits.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn references(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    REFERENCES.iter().filter_map(|key| schema.get(*key).and_then(Value::as_str))
}

/// Goes through a schema and a value as holding the one against the other does, without doing it.
struct Walk<'a, 'v> {
    targets: &'a Targets<'v>,
    patterns: &'a Patterns,
    /// By the addresses of schema and value
    known: HashMap<(*const Value, *const Value), u64>,
    open: HashSet<(*const Value, *const Value)>,
    /// What this itself has done
    work: u64,
}

/// It is too much.
struct Beyond;

impl<'v> Walk<'_, 'v> {
    fn steps(&mut self, schema: &'v Value, value: &Value, depth: usize) -> Result<u64, Beyond> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(known) = self.known.get(&pair) {
            return Ok(*known);
        }
        self.work += 1;
        if depth > MAX_STEP_DEPTH || self.work > MAX_STEPS {
            return Err(Beyond);
        }
        if !self.open.insert(pair) {
            return Ok(1);
        }
        let compared = compared(keywords);
        self.work = self.work.saturating_add(compared);
        let required = keywords.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        let mut steps = (1 + required as u64).saturating_add(compared);
        let targets: Vec<&'v Value> =
            references(keywords).filter_map(|reference| self.targets.find(reference)).collect();
        let single = IN_PLACE.iter().filter_map(|key| keywords.get(*key));
        let listed = IN_PLACE_LISTS.iter().filter_map(|key| keywords.get(*key)?.as_array()).flatten();
        let dependent = ["dependentSchemas", "dependencies"].iter().filter_map(|key| keywords.get(*key)?.as_object());
        let in_place = targets.into_iter().chain(single).chain(listed).chain(dependent.flat_map(Map::values));
        for inner in in_place {
            steps = steps.saturating_add(self.steps(inner, value, depth + 1)?);
        }
        match value {
            Value::Object(entries) => {
                let named = |key: &str| keywords.get(key).and_then(Value::as_object);
                let patterns: Vec<&'v Value> = named("patternProperties").into_iter().flat_map(Map::values).collect();
                let others = ["additionalProperties", "unevaluatedProperties"].map(|key| keywords.get(key));
                let looked_for: Vec<&String> = named("patternProperties").into_iter().flat_map(Map::keys).collect();
                for (name, inner) in entries {
                    for pattern in &looked_for {
                        steps = steps.saturating_add(self.patterns.steps(pattern, name.len()));
                    }
                    let own = named("properties").and_then(|properties| properties.get(name));
                    for applied in own.into_iter().chain(patterns.iter().copied()).chain(others.into_iter().flatten()) {
                        steps = steps.saturating_add(self.steps(applied, inner, depth + 1)?);
                    }
                }
                steps = steps.saturating_add(entries.len() as u64);
                // Names of properties are texts: their schema has nothing to go into but patterns.
                if keywords.contains_key("propertyNames") {
                    let names = entries.keys().map(|name| self.patterns.all_steps_of(name.len()));
                    steps = names.fold(steps, u64::saturating_add);
                }
            }
            Value::Array(items) => {
                let lists = ["items", "prefixItems"].map(|key| keywords.get(key).and_then(Value::as_array));
                let all = ["items", "additionalItems", "contains", "unevaluatedItems"].map(|key| keywords.get(key));
                for (index, inner) in items.iter().enumerate() {
                    let placed = lists.into_iter().flatten().filter_map(|list| list.get(index));
                    for applied in placed.chain(all.into_iter().flatten()) {
                        steps = steps.saturating_add(self.steps(applied, inner, depth + 1)?);
                    }
                }
            }
            Value::String(text) => {
                let pattern = keywords.get("pattern").and_then(Value::as_str);
                let looked_at = pattern.map_or(0, |pattern| self.patterns.steps(pattern, text.len()));
                steps = steps.saturating_add(looked_at);
                if is_for_patterns(keywords) {
                    steps = steps.saturating_add(patterns::steps_of_reading(text.len()));
                }
            }
            _ => {}
        }
        self.open.remove(&pair);
        self.known.insert(pair, steps);
        Ok(steps)
    }
}

#[cfg(test)]
mod tests;
