//! Skill cards: JSON files that a file names, with the instructions, files and tools of a skill.

use std::sync::Arc;

use hotcell_graph::diagnostic::SourceFile;
use hotcell_graph::ir::Skill;

use super::declared::{declarations, not_one_of, tool_of_path, unreadable};
use super::schema::Declared;
use super::servers;
use crate::document::Need::{Optional, Required};
use crate::document::{self, Fields, Owner, Place, Reader, SourceText};
use crate::surroundings::Surroundings;

/// The file with the instructions of a skill.
const INSTRUCTIONS: &str = "SKILL.md";

/// Reads the skills of a file with all that belongs to them.
pub(super) fn read(fields: &mut Fields<'_, '_>, surroundings: &dyn Surroundings) -> Vec<Skill> {
    declarations(fields, "skills", "skill", |fields, declared| {
        let reader = fields.reader();
        let path = match (fields.text("skill_card_path", Optional), fields.text("url", Optional)) {
            (Some(path), None) => path,
            (None, Some(url)) if url.contains("://") => url,
            (None, Some(url)) => {
                let error = fields.error(format!("`{}` is not a valid address", &*url), &url.span);
                reader.report(error.help("an address begins with `https://`; a file is `skill_card_path`"));
                return None;
            }
            (both, _) => {
                not_one_of(fields, both.is_some(), ["skill_card_path", "url"], &declared);
                return None;
            }
        };
        let text = match surroundings.read(&path, None) {
            Ok(text) => text,
            Err(reason) => {
                reader.report(unreadable(fields, &path, &reason));
                return None;
            }
        };
        let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
        // A card is JSON, whatever its file is called.
        let name = if name.ends_with(".json") { path.to_string() } else { format!("{}.json", &*path) };
        let (document, mut found) = document::parse(&Arc::new(SourceFile { name, text: text.to_string() }));
        let mut skill = None;
        if let Some(document) = &document {
            let card = Reader::new(document);
            skill = self::card(&card, &declared, &path, surroundings);
            found.extend(card.into_diagnostics());
        }
        found.into_iter().for_each(|diagnostic| reader.report(diagnostic));
        skill
    })
}

fn card(reader: &Reader<'_>, declared: &Declared, path: &SourceText, surroundings: &dyn Surroundings) -> Option<Skill> {
    let owner =
        Owner { what: format!("the card of the skill `{}`", &*declared.id), node: None, place: Place::default() };
    let mut fields = reader.fields(&reader.document().root, owner)?;
    let id = fields.text("id", Optional);
    if let Some(id) = &id
        && **id != *declared.id
    {
        let message = format!("the card is that of the skill `{}`, and `{}` is declared", &**id, &*declared.id);
        reader.report(fields.error(message, &id.span).help("give both the same id"));
    }
    let version = fields.text("version", Optional);
    let name = fields.text("name", Optional);
    let description = fields.text("description", Optional);
    let base = fields.text("base_uri", Optional);
    let folder = folder(path, base.as_deref().unwrap_or("."));
    let mut files = Vec::new();
    for file in fields.texts("files", Optional).unwrap_or_default() {
        let text = match surroundings.read(&format!("{folder}/{}", &*file), Some(&folder)) {
            Ok(text) => text,
            Err(reason) => {
                reader.report(unreadable(&fields, &file, &reason));
                continue;
            }
        };
        files.push((file.to_string(), text));
    }
    let instructions = match files.iter().find(|(name, _)| name == INSTRUCTIONS) {
        Some((_, text)) => Ok(Arc::clone(text)),
        None => surroundings.read(&format!("{folder}/{INSTRUCTIONS}"), Some(&folder)),
    };
    let instructions = instructions.unwrap_or_else(|reason| {
        let what = &fields.owner().what;
        let error = fields.error(format!("{what}: cannot read `{INSTRUCTIONS}`: {reason}"), &path.span);
        reader.report(error);
        Arc::from("")
    });
    let mut tools = Vec::new();
    for entry in fields.map("local_tools", Optional).map(|(entries, _)| entries).unwrap_or_default() {
        let what = format!("the tool `{}` of the skill `{}`", entry.key, &*declared.id);
        let owner = Owner { what, node: None, place: entry.key_place };
        let Some(mut fields) = reader.fields(&entry.value, owner) else { continue };
        fields.text("id", Optional);
        fields.text("version", Optional);
        if let Some(path) = fields.text("import_path", Required) {
            tools.extend(tool_of_path(&fields, &path, surroundings));
        }
        fields.finish(|_| None);
    }
    for entry in fields.map("mcps", Optional).map(|(entries, _)| entries).unwrap_or_default() {
        let owner = Owner { what: "an MCP server of the skill".into(), node: None, place: entry.key_place };
        let Some(mut fields) = reader.fields(&entry.value, owner) else { continue };
        tools.extend(servers::of_card(&mut fields, surroundings).into_iter().map(|tool| tool.name));
        fields.finish(|_| None);
    }
    fields.ignore("extensions");
    fields.finish(|_| None);
    let own = |text: Option<&SourceText>| text.map(|text| text.to_string());
    Some(Skill {
        id: declared.id.to_string(),
        version: own(declared.version.as_ref().or(version.as_ref())).unwrap_or_else(|| "*".to_owned()),
        name: own(name.as_ref()).unwrap_or_else(|| declared.id.to_string()),
        description: own(description.as_ref()).unwrap_or_default(),
        text: instructions,
        files,
        tools,
    })
}

/// The folder of the skill's files, relative to the file that names the card.
fn folder(card: &str, base: &str) -> String {
    if base.starts_with('/') || base.contains("://") {
        return base.trim_end_matches('/').to_owned();
    }
    let beside = card.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let base = base.trim_matches('/');
    if matches!(base, "" | ".") { beside.to_owned() } else { format!("{beside}/{base}") }
}
