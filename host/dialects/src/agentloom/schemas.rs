//! Tools and JSON schemas that a file names.

use hotcell_graph::Value;
use hotcell_graph::json_schema::JsonSchema;
use hotcell_graph::value::parse_json;

use super::files::{Files, RELATIVE};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Node, Owner, SourceText};
use crate::surroundings::ToolState;

/// Tools that AgentLoom has by itself.
const BUILT_IN: [&str; 4] = ["http_request", "shell_command", "file_read", "file_write"];
/// Kinds of schemas.
const KINDS: [&str; 2] = ["pydantic", "json_schema"];

/// The tool of that name, as the host knows it; one that is not there is reported.
pub(super) fn tool(fields: &Fields<'_, '_>, name: &SourceText, files: &Files<'_>) -> Option<String> {
    let of = &fields.owner().what;
    let error = match files.surroundings.tool(name) {
        ToolState::Usable => return Some(name.to_string()),
        ToolState::Unusable(reason) => {
            fields.error(format!("{of}: the tool `{}` cannot be used: {reason}", &**name), &name.span)
        }
        ToolState::Missing => {
            let help = match BUILT_IN.contains(&&**name) {
                true => {
                    "hotcell has no tools of its own under these names: add a plugin that offers it (`hotcell plugin new`)"
                }
                false => "put a plugin that offers it into `plugins` beside the file, or take it out",
            };
            fields.error(format!("{of}: there is no tool `{}`", &**name), &name.span).help(help)
        }
    };
    fields.reader().report(error);
    None
}

/// A JSON schema that is written in the file.
pub(super) fn object(fields: &Fields<'_, '_>, node: &Node, name: &str) -> Option<Value> {
    let schema = node.to_value();
    let problem = match (&node.kind, compiles(&schema)) {
        (Kind::Map(_), Ok(())) => return Some(schema),
        (Kind::Map(_), Err(problem)) => problem,
        _ => format!("it is {}", node.describe()),
    };
    let error =
        fields.error(format!("`{name}` is not a valid JSON schema: {problem}"), &fields.reader().span(node.place));
    fields.reader().report(error);
    None
}

fn compiles(schema: &Value) -> Result<(), String> {
    JsonSchema::compile(&serde_json::Value::from(schema)).map(drop).map_err(|error| error.to_string())
}

/// The schema of an agent's reply.
pub(super) fn output_schema(fields: &mut Fields<'_, '_>, files: &Files<'_>) -> Option<Value> {
    let node = fields.node("output_schema", Optional)?;
    let reader = fields.reader();
    let owner = Owner { what: "`output_schema`".into(), node: fields.owner().node.clone(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let kind = fields.text("type", Required)?;
    let schema = match &*kind {
        "pydantic" => fields.text("model", Required).and_then(|path| of_model(&fields, &path, files)),
        "json_schema" => {
            let (schema, file) = (fields.node("schema", Optional), fields.text("file", Optional));
            match (schema, file) {
                (Some(node), None) => object(&fields, node, "schema"),
                (None, Some(path)) => of_file(&fields, &path, files),
                (both, _) => {
                    let problem =
                        if both.is_some() { "both `schema` and `file`" } else { "neither `schema` nor `file`" };
                    let error = fields.error(format!("`output_schema` has {problem}"), &reader.span(node.place));
                    reader.report(error.help("give it exactly one of them"));
                    None
                }
            }
        }
        _ => {
            reader.report(fields.unknown_word("type", &kind, &KINDS));
            fields.ignore("model");
            fields.ignore("schema");
            fields.ignore("file");
            None
        }
    };
    fields.finish(|_| None);
    schema
}

fn of_file(fields: &Fields<'_, '_>, path: &SourceText, files: &Files<'_>) -> Option<Value> {
    let text = files.text(path).map_err(|reason| reason.to_string());
    let is_read = text.is_ok();
    match text.and_then(|text| parsed(&text)) {
        Ok(schema) => Some(schema),
        Err(problem) => {
            let error = fields.error(format!("the schema `{}` cannot be used: {problem}", &**path), &path.span);
            fields.reader().report(if is_read { error } else { error.help(RELATIVE) });
            None
        }
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    let schema = parse_json(text).map_err(|error| format!("it is not JSON: {error}"))?;
    compiles(&schema).map_err(|problem| format!("it is not a valid JSON schema: {problem}"))?;
    Ok(schema)
}

/// The schema of a Python model. It lies in a file of its own: `a.b.Name` is `a/b/Name.json`, `b/Name.json`, `Name.json` or
/// `schemas/Name.json`, beside the file that names it or the first one. Without such a file it is what the module says of it.
fn of_model(fields: &Fields<'_, '_>, path: &SourceText, files: &Files<'_>) -> Option<Value> {
    let parts: Vec<&str> = path.split('.').collect();
    let name = parts.last().copied().unwrap_or_default();
    let is_name =
        |part: &&str| !part.is_empty() && part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if !parts.iter().all(is_name) {
        let error = fields.error(format!("`{}` is not a valid import path for `model`", &**path), &path.span);
        fields.reader().report(error.help("write `package.module.Name`"));
        return None;
    }
    if let Some(text) = files.surroundings.type_schema(path) {
        return parsed(&text).ok();
    }
    let candidates = (0..parts.len()).map(|from| format!("{}.json", parts[from..].join("/")));
    let mut candidates: Vec<String> = candidates.collect();
    let in_schemas = format!("schemas/{name}.json");
    if !candidates.contains(&in_schemas) {
        candidates.push(in_schemas);
    }
    for file in &candidates {
        let beside = files.text(file).or_else(|_| files.text_of(file));
        let Ok(text) = beside else { continue };
        match parsed(&text) {
            Ok(schema) => return Some(schema),
            Err(problem) => {
                let error = fields.error(format!("the schema `{file}` cannot be used: {problem}"), &path.span);
                fields.reader().report(error);
                return None;
            }
        }
    }
    let module = parts[..parts.len() - 1].join(".");
    let message = match files.surroundings.model_schema(&module, name) {
        Ok(Some(text)) => match parsed(&text) {
            Ok(schema) => return Some(schema),
            Err(problem) => format!("the schema of the model `{}` cannot be used: {problem}", &**path),
        },
        Ok(None) => {
            let of_module = (!module.is_empty()).then(|| format!("{}.py", module.replace('.', "/")));
            let searched: Vec<String> = candidates.iter().chain(&of_module).map(|file| format!("`{file}`")).collect();
            format!("there is no schema for the model `{}`; searched: {}", &**path, searched.join(", "))
        }
        Err(reason) => format!("the model `{}` cannot be used: {reason}", &**path),
    };
    let file = format!("schemas/{name}.json");
    let help = match module.is_empty() {
        true => format!("write its JSON schema into `{file}`"),
        false => format!(
            "write its schema into a file: `python -c \"import json; from {module} import {name}; \
             print(json.dumps({name}.model_json_schema()))\" > {file}`"
        ),
    };
    fields.reader().report(fields.error(message, &path.span).help(help));
    None
}
