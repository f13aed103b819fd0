//! Skills: files `skills/NAME/SKILL.md` with instructions that a model loads when it needs them, and the tools that come with them.

use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, SourceFile};
use hotcell_graph::ir::{Callable, Skill, SkillTool, SkillWords, Skills};

use super::mcp_tools::Choice;
use super::{global_tools, own_tools, server_functions, tool_name};
use crate::document::Need::Optional;
use crate::document::{self, Entry, Fields, Kind, Node, Owner, Place, Reader, Spanned};
use crate::surroundings::{ServerState, Surroundings};

/// The state key that says which skills are loaded, which no template can name.
const LOADED: &str = "(skills)";
/// What the language calls the tools.
const WORDS: SkillWords = SkillWords {
    names: &[(SkillTool::List, "skill__list"), (SkillTool::Load, "skill__load"), (SkillTool::Unload, "skill__unload")],
    id: "name",
    has_versions: false,
};
/// What a model is told about its skills before it begins.
const INSTRUCTIONS: &str = "\
## Your skills

There are skills for this kind of work: instructions and tools that you have once you load them. See with `skill__list` which
there are before you begin, load those that fit with `skill__load`, and take them away with `skill__unload` when you are done
with what they are for.";
/// Fields of a skill that say nothing about how it works.
const OF_NO_MATTER: [&str; 6] = ["name", "version", "license", "metadata", "author", "auto_unload"];

/// A name, and where it is written.
type Name = Spanned<Arc<str>>;

/// The skills that an agent or a node names, and what its model is told about them.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) names: Vec<Name>,
    /// None if nothing is to be told
    instructions: Option<String>,
}

/// Reads the fields about skills; none if there are none. Skills that are switched off are a list without names.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Option<Named> {
    let is_on = fields.flag("skills_enabled", Optional).is_none_or(|flag| flag.value);
    let teaches = fields.flag("inject_skill_instructions", Optional).is_none_or(|flag| flag.value);
    let own = fields.text("skill_instructions", Optional).map(|text| text.to_string());
    let lists = ["enabled_skills", "skills"].map(|field| {
        let entry = fields.entry(field, Optional)?;
        Some(listed(fields.reader(), entry, fields.owner()))
    });
    if !is_on {
        return Some(Named::default());
    }
    let names = lists.into_iter().flatten().reduce(|mut all, more| {
        all.extend(more);
        all
    })?;
    let told = own.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| INSTRUCTIONS.to_owned());
    Some(Named { names, instructions: teaches.then_some(told) })
}

/// A list of names, or names with commas between them.
fn listed(reader: &Reader<'_>, entry: &Entry, owner: &Owner) -> Vec<Name> {
    if !matches!(entry.value.kind, Kind::Text(_)) {
        let texts = reader.texts(&entry.value, &entry.key, owner).unwrap_or_default();
        return texts.into_iter().map(|text| Spanned { value: text.value, span: text.span }).collect();
    }
    let Some(text) = reader.text(&entry.value, || format!("`{}`", entry.key), owner) else { return Vec::new() };
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| Spanned { value: part.into(), span: text.span.clone() }).collect()
}

impl Named {
    /// What stands behind the instructions of the model.
    pub(super) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// What the model may call beside its own tools.
    pub(super) fn callables() -> impl Iterator<Item = Callable> {
        WORDS.names.iter().map(|(tool, _)| Callable::Skills(*tool)).chain([Callable::LoadedSkills])
    }

    /// The names and descriptions of the tools that look into the skills.
    pub(super) fn shown() -> Vec<(String, String)> {
        WORDS.names.iter().map(|(tool, name)| ((*name).to_owned(), tool.description().to_owned())).collect()
    }

    /// Says what is wrong with the skills.
    pub(super) fn check(&self, surroundings: &dyn Surroundings, report: &mut dyn FnMut(Diagnostic)) {
        let mut found = Vec::new();
        for name in &self.names {
            load(name, surroundings, &mut found);
        }
        found.into_iter().for_each(report);
    }

    /// The skills, as far as they can be read, with what of their tools these choices keep.
    pub(super) fn load(&self, choices: &[&Choice], surroundings: &dyn Surroundings) -> Skills {
        let one = |name| {
            let mut skill = load(name, surroundings, &mut Vec::new())?;
            skill.tools.retain(|tool| choices.iter().all(|choice| choice.keeps(tool)));
            Some(skill)
        };
        let all = self.names.iter().filter_map(one).collect();
        Skills { all, loaded_key: LOADED.into(), words: WORDS }
    }
}

/// Reads a skill.
fn load(name: &Name, surroundings: &dyn Surroundings, found: &mut Vec<Diagnostic>) -> Option<Skill> {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    if name.value.is_empty() || !name.value.chars().all(fits) {
        let error = Diagnostic::error(format!("`{}` cannot be the name of a skill", &*name.value)).at(&name.span);
        found.push(error.help("it is the name of a folder: letters, digits, `-` and `_`"));
        return None;
    }
    match surroundings.skill(&name.value) {
        Ok((path, text)) => skill(name, &path, &text, surroundings, found),
        Err(reason) => {
            let error =
                Diagnostic::error(format!("the skill `{}` cannot be read: {reason}", &*name.value)).at(&name.span);
            found.push(error.help(format!(
                "put it into `skills/{}/SKILL.md`, beside this file or in a folder above it that has a `hotcell.toml`",
                &*name.value
            )));
            None
        }
    }
}

fn skill(
    name: &Name,
    path: &str,
    text: &str,
    surroundings: &dyn Surroundings,
    found: &mut Vec<Diagnostic>,
) -> Option<Skill> {
    let (head, body) = split(text);
    let mut skill = Skill {
        id: name.value.to_string(),
        version: "*".to_owned(),
        name: name.value.to_string(),
        description: String::new(),
        text: Arc::from(body.trim()),
        files: Vec::new(),
        tools: Vec::new(),
    };
    let Some(head) = head else { return Some(skill) };
    let (document, problems) = document::parse(&Arc::new(SourceFile { name: path.to_owned(), text: head.to_owned() }));
    found.extend(problems);
    let document = document?;
    let reader = Reader::new(&document);
    if let Node { kind: Kind::Map(entries), .. } = &document.root {
        let owner = Owner { what: format!("the skill `{}`", &*name.value), node: None, place: Place::default() };
        for entry in entries.iter().filter(|entry| entry.value.kind != Kind::Null) {
            match &*entry.key {
                "description" => {
                    let text = reader.text(&entry.value, || "`description`".to_owned(), &owner);
                    skill.description = text.map(|text| text.to_string()).unwrap_or_default();
                }
                "enabled_tools" => {
                    let tools = listed(&reader, entry, &owner);
                    skill.tools.extend(tools.iter().filter_map(|tool| granted(tool, surroundings, &reader)));
                }
                "enabled_mcp_servers" => {
                    let servers = listed(&reader, entry, &owner);
                    skill.tools.extend(servers.iter().flat_map(|server| functions(server, surroundings, &reader)));
                }
                known if OF_NO_MATTER.contains(&known) => {}
                other => {
                    let warning = Diagnostic::warning(format!("`{other}` of a skill means nothing here"));
                    reader.report(warning.at(&reader.span(entry.key_place)));
                }
            }
        }
    } else if document.root.kind != Kind::Null {
        let error = Diagnostic::error("the part between the lines `---` of a skill must be a mapping");
        reader.report(error.at(&reader.span(document.root.place)));
    }
    found.extend(reader.into_diagnostics());
    Some(skill)
}

/// What stands between two lines `---` at the beginning of a file, with the first of them so that lines keep their numbers, and
/// what is behind it.
fn split(text: &str) -> (Option<&str>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_mark = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_mark(line)) else { return (None, text) };
    let mut end = first.len();
    for line in lines {
        if is_mark(line) {
            return (Some(&text[..end]), &text[end + line.len()..]);
        }
        end += line.len();
    }
    (None, text)
}

/// The full name of a tool that a skill grants.
fn granted(tool: &Name, surroundings: &dyn Surroundings, reader: &Reader<'_>) -> Option<String> {
    let name = tool_name(&tool.value);
    if let Some(own) = own_tools(surroundings).into_iter().find(|own| own.name == name) {
        return Some(own.full_name);
    }
    match global_tools::find(&tool.value, surroundings) {
        Ok(full_name) => Some(full_name),
        Err(error) => {
            reader.report(error.at(&tool.span));
            None
        }
    }
}

/// The functions of an MCP server that a skill grants.
fn functions(server: &Name, surroundings: &dyn Surroundings, reader: &Reader<'_>) -> Vec<String> {
    let error = match surroundings.mcp_server(&server.value) {
        ServerState::Usable(_) | ServerState::NotStarted => return server_functions(&server.value, surroundings),
        ServerState::Missing => {
            Diagnostic::error(format!("the MCP server `{}` is not configured", &*server.value)).help(super::SERVER_HELP)
        }
        ServerState::Unusable(reason) => Diagnostic::error(reason),
    };
    reader.report(error.at(&server.span));
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_head_is_what_stands_between_the_first_lines_with_marks() {
        for (text, head, body) in [
            ("---\na: 1\n---\nb", Some("---\na: 1\n"), "b"),
            ("\u{feff}--- \r\na: 1\r\n---\r\nb\n---\nc", Some("--- \r\na: 1\r\n"), "b\n---\nc"),
            ("---\n---\n", Some("---\n"), ""),
            ("a\n---\nb\n---\n", None, "a\n---\nb\n---\n"),
            ("---\na: 1\n", None, "---\na: 1\n"),
            ("", None, ""),
        ] {
            assert_eq!(split(text), (head, body), "{text:?}");
        }
    }
}
