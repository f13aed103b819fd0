//! From the tree of a file to a [`Mesh`]: what stands at its top.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};

use super::read_condition::condition;
use super::reading::{Reading, did_you_mean, vault_name};
use super::schema::{EntryPoint, Mesh, Structure};
use super::shapes::{Declared, Shape};
use super::{read_agent, read_blocks, read_evolution, read_manager, read_operation};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Node, Owner, SourceText};

/// How many hops a session may have where nothing is said.
const MAX_CHAIN_EVENTS: u32 = 50;
/// The entry point of a mesh that names none, if it has an agent of that name.
const DEFAULT_ENTRY: &str = "default_entry";
const DEFAULT_TARGET: &str = "summarizer";
/// Why a mesh does not say what is logged, and who does.
const LOGS: &str = "whoever runs hotcell says what is logged";
const SEE_LOGS: &str = "set the environment variable `RUST_LOG`, for example to `hotcell=debug`";
/// Blocks outside of agents whose texts are used, in which nothing may come from a vault.
const USED: [&str; 3] = ["api", "manager", "mesh"];
/// The types of data structures.
const STRUCTURE_TYPES: [&str; 5] = ["object", "string", "number", "boolean", "list"];

/// Reads a mesh; what is wrong is reported. None if it is no mapping.
pub(super) fn mesh<'d>(reading: &mut Reading<'_, 'd>) -> Option<Mesh> {
    let reader = reading.reader;
    let root = &reader.document().root;
    let owner = Owner { what: "the mesh".into(), node: None, place: root.place };
    let mut fields = reader.fields(root, owner)?;
    let mut mesh = Mesh { max_chain_events: MAX_CHAIN_EVENTS, ..Mesh::default() };
    mesh.name = fields.text("name", Optional).map_or_else(|| "default_mesh".to_owned(), |name| name.to_string());
    if let Some(version) = fields.node("version", Optional)
        && !matches!(version.kind, Kind::Text(_) | Kind::Number(_))
    {
        reader.wrong_type(version, "`version`", "a text", fields.owner());
    }
    fields.word("architecture", &["managed_mesh"]);
    // What is said where nothing is said asks for nothing.
    if fields.flag("debug", Optional).is_some_and(|flag| flag.value) {
        reading.no_effect_but(&mut fields, "debug", LOGS, SEE_LOGS);
    }
    if fields.word("log_level", &["DEBUG", "INFO", "WARNING", "ERROR"]).is_some_and(|level| level != "INFO") {
        reading.no_effect_but(&mut fields, "log_level", LOGS, SEE_LOGS);
    }
    mesh.is_production = fields.word("environment", &["development", "production"]) == Some("production");
    reading.is_production = mesh.is_production;
    structures(reading, &mut fields, &mut mesh);
    reading.has_manager = root.get("manager").is_some_and(|manager| {
        let enabled = manager.value.get("enabled").map(|enabled| &enabled.value.kind);
        matches!(manager.value.kind, Kind::Map(_)) && enabled != Some(&Kind::Bool(false))
    });
    reading.brokers = read_operation::brokers(reading, &mut fields);
    let reading = &*reading;
    mesh.code = read_operation::code_folder(reading, &mut fields);
    read_blocks::storage(reading, &mut fields, &mut mesh);
    mesh.cors_origins = read_blocks::api(reading, &mut fields);
    read_blocks::mesh(reading, &mut fields, &mut mesh);
    read_blocks::limits(reading, &mut fields, &mut mesh);
    mesh.manager = read_manager::manager(reading, &mut fields, &mut mesh);
    agents(reading, &mut fields, &mut mesh);
    entry_points(reading, &mut fields, &mut mesh);
    read_manager::agents_of_entry_points(&mut mesh);
    read_evolution::evolution(reading, &mut fields, &mut mesh);
    mesh.healing = read_operation::healing(reading, &mut fields);
    read_operation::of_operators(reading, &mut fields);
    for name in USED {
        let Some(entry) = root.get(name).filter(|_| name != "manager" || reading.has_manager) else { continue };
        if let Some(secret) = vault_name(&entry.value) {
            let span = reader.span(entry.key_place);
            reading.later_of(name, &span, format!("`{secret}` in `{name}`: hotcell has no vault"));
        }
    }
    fields.finish(|name| match name {
        "skills" => Some("skills belong to agents: write `skills` there".to_owned()),
        _ => None,
    });
    Some(mesh)
}

fn structures<'d>(reading: &mut Reading<'_, 'd>, fields: &mut Fields<'_, 'd>, mesh: &mut Mesh) {
    let Some((entries, _)) = fields.map("data_structures", Optional) else { return };
    reading.structures = entries.iter().map(|entry| entry.key.clone()).collect();
    for entry in entries {
        let owner = Owner { what: format!("the data structure `{}`", entry.key), node: None, place: entry.value.place };
        let Some(mut of_one) = reading.reader.fields(&entry.value, owner) else { continue };
        of_one.set_owner_name(format!("the data structure `{}`", entry.key));
        let kind = of_one.text("type", Required);
        let known = kind.as_ref().is_none_or(|kind| STRUCTURE_TYPES.contains(&&**kind));
        if let (Some(kind), false) = (&kind, known) {
            let error = of_one.unknown_word("type", kind, &STRUCTURE_TYPES);
            let message = format!("the data structure `{}` cannot have the type `{}`", entry.key, &**kind);
            reading.reader.report(Diagnostic { message, ..error });
        }
        let declared = Declared { block: "`properties`", structures: &reading.structures };
        let properties = declared.fields(&mut of_one, "properties");
        let required = of_one.texts("required", Optional).unwrap_or_default();
        if kind.as_ref().is_some_and(|kind| known && &**kind != "object") {
            for name in ["properties", "required"] {
                reading.no_effect(&mut of_one, name, "only data structures of the type `object` have it");
            }
        } else if !properties.is_empty() {
            for name in required.iter().filter(|name| properties.iter().all(|(known, _)| *known != name.value)) {
                let message =
                    format!("`required` of `{}` names `{}`, which is not among `properties`", entry.key, &**name);
                let error = of_one.error(message, &name.span);
                let near = did_you_mean(name, properties.iter().map(|(known, _)| known));
                let help = near.unwrap_or_else(|| "it has to be there, and may be anything".to_owned());
                reading.reader.report(Diagnostic { severity: Severity::Warning, ..error.help(help) });
            }
        }
        let required = required.into_iter().map(|name| name.value).collect();
        if let Some((rules, _)) = of_one.map("validation_rules", Optional) {
            for rule in rules {
                let message =
                    format!("the validation rule `{}` of `{}` is not known and checks nothing", rule.key, entry.key);
                reading.reader.report(reading.warning(&of_one, message, rule.key_place));
            }
        }
        of_one.finish(|_| None);
        let shape = match kind.as_deref() {
            Some("string") => Shape::Text,
            Some("number") => Shape::Number,
            Some("boolean") => Shape::Boolean,
            Some("list") => Shape::List(None),
            _ => Shape::Object(Some(properties)),
        };
        let field = super::shapes::Field { shape, nullable: false };
        mesh.structures.push((entry.key.clone(), Structure { field, required }));
    }
}

fn agents<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) {
    let Some(node) = fields.node("agents", Optional) else { return };
    let Kind::Map(entries) = &node.kind else {
        reading.reader.wrong_type(node, "`agents`", "a mapping from the names of agents to agents", fields.owner());
        return;
    };
    mesh.agents.extend(entries.iter().filter_map(|entry| read_agent::agent(reading, entry)));
}

fn entry_points<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) {
    let mut seen: HashMap<Arc<str>, Span> = HashMap::new();
    let items = fields.list("entry_points", Optional);
    if items.is_none()
        && let Some(agent) = mesh.agents.iter().find(|agent| &*agent.name == DEFAULT_TARGET)
    {
        let implied = |text| SourceText::implied(text, agent.span.clone());
        let (name, target) = (implied(DEFAULT_ENTRY), implied(DEFAULT_TARGET));
        mesh.entry_points.push(EntryPoint { name, target, description: None, condition: None });
    }
    for item in items.unwrap_or_default() {
        let Some(entry) = entry_point(reading, fields, item) else { continue };
        match seen.get(&entry.name.value) {
            Some(first) => {
                let message = format!("two entry points have the name `{}`", &*entry.name);
                let error = Diagnostic::error(message).at(&entry.name.span);
                reading.reader.report(error.related(first, "first here").help("give one of them another name"));
            }
            None => {
                seen.insert(Arc::clone(&entry.name.value), entry.name.span.clone());
                mesh.entry_points.push(entry);
            }
        }
    }
}

fn entry_point<'r, 'd>(reading: &Reading<'r, 'd>, around: &Fields<'r, 'd>, item: &'d Node) -> Option<EntryPoint> {
    let mut fields = reading.fields_of(around, item, "an entry point".to_owned())?;
    let name = fields.text("name", Required);
    if let Some(name) = &name {
        fields.set_owner_name(format!("the entry point `{}`", &**name));
    }
    let target = fields.text("target", Required);
    let description = fields.text("description", Optional).map(|text| text.to_string());
    let what = fields.owner().what.clone();
    let condition = condition(reading, &mut fields, &what);
    fields.finish(|_| None);
    Some(EntryPoint { name: name?, target: target?, description, condition })
}
