//! `hotcell explain`: the reference documents, or the part of one that is about a topic.

use clap::CommandFactory as _;
use hotcell_budget::Limit;

use super::{Context, print};
use crate::arguments::Arguments;
use crate::exit::{Exit, Failure};

/// The documents by what people ask for.
const DOCUMENTS: [(&str, &str); 14] = [
    ("hotcell.toml", include_str!("../../../../docs/reference/hotcell-toml.md")),
    ("plugin.toml", include_str!("../../../../docs/reference/plugin-toml.md")),
    ("hooks", include_str!("../../../../docs/reference/hooks.md")),
    ("cases", include_str!("../../../../docs/reference/cases.md")),
    ("events", include_str!("../../../../docs/reference/events.md")),
    ("server.toml", include_str!("../../../../docs/reference/server-toml.md")),
    ("models", include_str!("../../../../docs/reference/models.md")),
    ("serve", include_str!("../../../../docs/serve.md")),
    ("loki", include_str!("../../../../docs/loki.md")),
    ("sherma", include_str!("../../../../docs/sherma.md")),
    ("agent-spec", include_str!("../../../../docs/agent-spec.md")),
    ("agentloom", include_str!("../../../../docs/agentloom.md")),
    ("leafmesh", include_str!("../../../../docs/leafmesh.md")),
    ("python", include_str!("../../../../docs/python.md")),
];

/// Other words for the documents.
const ALSO: [(&str, &str); 11] = [
    ("server", "serve"),
    ("model", "models"),
    ("agentspec", "agent-spec"),
    ("mesh", "leafmesh"),
    ("meshes", "leafmesh"),
    ("workflow", "agentloom"),
    ("workflows", "agentloom"),
    ("graph.yaml", "loki"),
    ("config.yaml", "loki"),
    ("json", "events"),
    ("tests", "cases"),
];

/// The section about the limits that end a call.
const LIMITS: &str = "budget";

pub(super) fn perform(_: &Context, topic: Option<&str>) -> Result<Exit, Failure> {
    let Some(topic) = topic else {
        let mut lines = vec!["Topics:".to_owned()];
        for (name, text) in DOCUMENTS {
            let parts: Vec<String> = sections(text).skip(1).map(|section| plain(section.heading)).collect();
            lines.push(format!("  {name:<INDENT$}{}", wrapped(&parts)).trim_end().to_owned());
        }
        lines.push("\nA topic can also be a key, such as `fuel` or `grants.http`.".to_owned());
        print(&lines.join("\n"))?;
        return Ok(Exit::Done);
    };
    let command = about_command(topic);
    match find(topic) {
        Some(text) => {
            print(&text)?;
            command.map_or(Ok(()), |command| print(&format!("\n{command}")))?;
            Ok(Exit::Done)
        }
        None => {
            let headings = DOCUMENTS.iter().flat_map(|(_, text)| sections(text)).map(|section| plain(section.heading));
            let names = DOCUMENTS.iter().map(|(name, _)| (*name).to_owned()).chain(headings);
            let names: Vec<String> = names.filter(|name| !name.contains(' ')).collect();
            let near = hotcell_graph::closest(topic, names.iter().map(String::as_str));
            let near = || near.map(|near| format!("did you mean `{near}`?"));
            let help = command.or_else(near).unwrap_or_else(|| "`hotcell explain` lists the topics".to_owned());
            Err(Failure::refused(format!("unknown topic `{topic}`")).help(help))
        }
    }
}

/// Where a topic is explained that is a command, too.
fn about_command(topic: &str) -> Option<String> {
    let is_command = Arguments::command().get_subcommands().any(|command| command.get_name() == topic);
    is_command.then(|| format!("`hotcell {topic} --help` explains the command `hotcell {topic}`"))
}

/// What to do about an error of a call that reached one of its limits.
pub(super) fn limit_help(error: &str) -> Option<String> {
    let is_said = |limit: &Limit| error.starts_with(&format!("{limit}: ")) || error.contains(&format!(": {limit}: "));
    let limit = Limit::ALL.into_iter().find(is_said)?;
    Some(format!("`hotcell explain {limit}` shows the limits and where to change them"))
}

/// Where the sections of a topic begin, behind two spaces and its name.
const INDENT: usize = 14;
/// How long a line of sections may be.
const WIDTH: usize = 80;

/// Names with commas, in lines that fit a terminal.
fn wrapped(names: &[String]) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for (number, name) in names.iter().enumerate() {
        if number > 0 && length + name.len() + 2 > WIDTH {
            text.push_str(&format!(",\n  {:INDENT$}", ""));
            length = 0;
        } else if number > 0 {
            text.push_str(", ");
            length += 2;
        }
        text.push_str(name);
        length += name.len();
    }
    text
}

/// A heading and what stands below it, up to the next one.
struct Section<'t> {
    heading: &'t str,
    text: &'t str,
}

fn sections(document: &str) -> impl Iterator<Item = Section<'_>> {
    let mut starts: Vec<usize> = document.match_indices("\n#").map(|(place, _)| place + 1).collect();
    starts.insert(0, 0);
    let ends = starts.clone().into_iter().skip(1).chain([document.len()]);
    starts.into_iter().zip(ends).map(|(start, end)| {
        let text = document[start..end].trim_end();
        Section { heading: text.lines().next().unwrap_or_default(), text }
    })
}

/// A heading without its marks: `## `[grants.NAME]`` is `grants.NAME`.
fn plain(heading: &str) -> String {
    heading.trim_start_matches('#').trim().replace('`', "").trim_matches(['[', ']']).to_owned()
}

/// What the documents say about a topic: a whole document, a section, or the rows of tables that name a key.
fn find(topic: &str) -> Option<String> {
    let asked = topic.trim().replace('`', "").trim_matches(['[', ']']).to_lowercase();
    let is_limit = Limit::ALL.iter().any(|limit| limit.name() == asked);
    let also = ALSO.iter().find(|(word, _)| *word == asked).map(|(_, name)| *name);
    let wanted = also.or(is_limit.then_some(LIMITS)).unwrap_or(&asked);
    if let Some((_, text)) = DOCUMENTS.iter().find(|(known, _)| *known == wanted || known.replace('.', "-") == wanted) {
        return Some((*text).to_owned());
    }
    let all = || DOCUMENTS.iter().flat_map(|(name, text)| sections(text).map(move |section| (*name, section)));
    let is_section = |heading: &str| {
        let heading = plain(heading).to_lowercase();
        heading == wanted || heading.replace(' ', "-") == wanted || heading.strip_suffix(".name") == Some(wanted)
    };
    if let Some((_, section)) = all().find(|(_, section)| is_section(section.heading)) {
        return Some(section.text.to_owned());
    }
    // `grants.http` is the key `http` in a section about grants, and `map.over` one that is named beside `map`.
    let (part, key) = wanted.rsplit_once('.').unwrap_or(("", wanted));
    let in_heading = |_: &str, section: &Section<'_>| plain(section.heading).to_lowercase().starts_with(part);
    let in_text = |name: &str, section: &Section<'_>| name == part || section.text.to_lowercase().contains(part);
    about(key, in_heading).or_else(|| about(key, in_text))
}

/// The rows of tables that name a key, in the sections that are wanted.
fn about(key: &str, is_wanted: impl Fn(&str, &Section<'_>) -> bool) -> Option<String> {
    let all = DOCUMENTS.iter().flat_map(|(name, text)| sections(text).map(move |section| (*name, section)));
    let rows: Vec<String> = all
        .filter(|(name, section)| is_wanted(name, section))
        .filter_map(|(name, section)| {
            let rows = rows_about(section.text, key);
            (!rows.is_empty()).then(|| format!("{name}: {}\n{rows}", section.heading.trim_start_matches('#').trim()))
        })
        .collect();
    (!rows.is_empty()).then(|| rows.join("\n\n"))
}

/// The heads of tables and those rows whose first cell names the key.
fn rows_about(text: &str, key: &str) -> String {
    let mut found = Vec::new();
    let mut head = Vec::new();
    for line in text.lines() {
        let first = line.strip_prefix("| ").and_then(|line| line.split_once(" |")).map(|(cell, _)| cell);
        match first {
            None => head.clear(),
            Some(_) if head.len() < 2 => head.push(line),
            Some(cell) if cell.split([',', '`', ' ']).any(|word| word.eq_ignore_ascii_case(key)) => {
                found.append(&mut head.clone());
                found.push(line);
            }
            Some(_) => {}
        }
    }
    found.dedup();
    found.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_sections_and_keys_are_found() {
        let cases = [
            ("hooks", "# Hooks"),
            ("hotcell.toml", "# `hotcell.toml`"),
            ("hotcell-toml", "# `hotcell.toml`"),
            ("exit-codes", "## Exit codes"),
            ("[secrets]", "## `[secrets]`"),
            ("grants", "## `[grants.NAME]`"),
            ("agentloom", "# AgentLoom"),
            ("leafmesh", "# LeafMesh"),
            ("serve", "# The server"),
            ("graph.yaml", "# Loki"),
            ("out-of-fuel", "## `[budget.NAME]`"),
            ("providers", "## Providers"),
            ("fields of `config.yaml`", "## Fields of `config.yaml`"),
            ("fields-of-graph.yaml", "## Fields of `graph.yaml`"),
        ];
        for (topic, beginning) in cases {
            let found = find(topic).unwrap_or_default();
            assert!(found.starts_with(beginning), "{topic}: {found}");
        }
        for (topic, part) in [
            ("fuel", "out-of-fuel"),
            ("grants.http", "`private = true`"),
            ("before-model-call", "`messages`"),
            ("map.over", "list"),
        ] {
            let found = find(topic).unwrap_or_default();
            assert!(found.contains(part), "{topic}: {found}");
        }
        assert_eq!(find("nonsense"), None);
    }

    #[test]
    fn a_command_is_explained_by_its_help() {
        let told = "`hotcell trust --help` explains the command `hotcell trust`";
        assert_eq!(about_command("trust").as_deref(), Some(told));
        assert_eq!(about_command("fuel"), None);
    }

    #[test]
    fn every_limit_that_ends_a_call_is_explained() {
        for limit in Limit::ALL {
            let help = limit_help(&format!("script `a.js` failed: {limit}: too much")).unwrap_or_default();
            assert!(help.contains(&format!("`hotcell explain {limit}`")), "{limit}: {help}");
            assert!(find(limit.name()).is_some_and(|text| text.contains(&format!("`{limit}`"))), "{limit}");
        }
        assert_eq!(limit_help("script `a.js` failed: exited with code 1"), None);
        assert!(limit_help("out-of-fuel: all of it").is_some());
    }

    #[test]
    fn the_list_of_topics_fits_a_terminal() {
        let names: Vec<String> = (0..40).map(|number| format!("section {number}")).collect();
        let text = wrapped(&names);
        assert!(text.lines().count() > 4 && text.lines().all(|line| line.len() <= WIDTH + INDENT + 3), "{text}");
        let joined: Vec<&str> = text.split(',').map(str::trim).collect();
        assert_eq!(joined, names, "nothing is lost");
        assert_eq!(wrapped(&[]), "");
    }

    #[test]
    fn the_reference_names_everything_that_there_is() {
        let text = |name: &str| DOCUMENTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
        let budget = serde_json::to_value(hotcell_budget::Budget::default()).expect("a budget is data");
        for limit in budget.as_object().expect("an object").keys() {
            assert!(text("hotcell.toml").contains(&format!("`{limit}`")), "{limit}");
        }
        for point in hotcell_runtime::HookPoint::ALL {
            assert!(text("hooks").contains(&format!("| `{}` |", point.name())), "{}", point.name());
        }
    }

    fn document(name: &str) -> &'static str {
        DOCUMENTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text)
    }

    /// The names that an error about an unknown one says there are.
    fn expected(error: &str) -> Vec<&str> {
        let Some((_, names)) = error.split_once(", expected ") else { panic!("no names: {error}") };
        let names = names.lines().next().unwrap_or_default();
        names.split('`').skip(1).step_by(2).collect()
    }

    /// Looks whether the document has all names that this error says there are.
    fn has_all(name: &str, what: &str, error: &str) {
        let names = expected(error);
        assert!(!names.is_empty(), "{what}: {error}");
        // What stands between backticks, word by word.
        let code = document(name).split('`').skip(1).step_by(2);
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let words: Vec<&str> = code.flat_map(|code| code.split(|character| !is_part(character))).collect();
        for expected in names {
            assert!(words.contains(&expected), "{what}: `{expected}` is not in the reference of {name}");
        }
    }

    /// A key that is added and not documented is found here: what is unknown is refused with all that is known.
    #[test]
    fn every_key_of_the_files_is_in_their_reference() {
        let folder = tempfile::tempdir().unwrap();
        let settings = |text: &str| {
            std::fs::write(folder.path().join("hotcell.toml"), text).unwrap();
            let trust = hotcell_runtime::plugins::Trust::Everything;
            hotcell_runtime::plugins::AgentFolder::open(folder.path(), &trust).unwrap_err().to_string()
        };
        for text in [
            "zzz = 1",
            "[grants.x]\nzzz = 1",
            "[grants.x]\nfs = [{ zzz = 1 }]",
            "[grants.x]\nsecret = [{ zzz = 1 }]",
            "[budget.x]\nzzz = 1",
            "[plugins.x]\nzzz = 1",
            "[hooks]\nzzz = 1",
            "[python]\nzzz = 1",
            "[callers]\nzzz = 1",
            "[run]\nzzz = 1",
            "[denials]\nzzz = 1",
            "[record]\nzzz = 1",
            "[secrets]\nA = { zzz = 1 }",
        ] {
            has_all("hotcell.toml", text, &settings(text));
        }
        let project = |text: &str| {
            std::fs::write(folder.path().join("plugin.toml"), text).unwrap();
            hotcell_authoring::build(folder.path(), &mut |_| {}).unwrap_err().to_string()
        };
        has_all("plugin.toml", "a key", &project("zzz = 1"));
        let asks = |capabilities: &str| {
            let description = format!(r#"{{ "contract": "0.2.0", "name": "x", "capabilities": {capabilities} }}"#);
            let component = hotcell_plugin_tests::described(&serde_json::from_str(&description).unwrap());
            hotcell_runtime::plugins::Plugin::of_bytes(&component).unwrap_err().to_string()
        };
        has_all("plugin.toml", "[capabilities]", &asks(r#"{ "zzz": 1 }"#));
        has_all("plugin.toml", "fs", &asks(r#"{ "fs": [{ "zzz": 1 }] }"#));
        std::fs::create_dir(folder.path().join("cases")).unwrap();
        let case = |text: &str| {
            std::fs::write(folder.path().join("cases/a.json"), text).unwrap();
            hotcell_harness::read_cases(&folder.path().join("cases")).unwrap_err().to_string()
        };
        for text in [
            r#"{ "zzz": 1 }"#,
            r#"{ "budget": { "zzz": 1 } }"#,
            r#"{ "script": { "zzz": 1 } }"#,
            r#"{ "connector": { "zzz": 1 } }"#,
            r#"{ "connector": { "callback": { "zzz": 1 } } }"#,
            r#"{ "expect": { "zzz": 1 } }"#,
            r#"{ "replies": [{ "zzz": 1 }] }"#,
        ] {
            has_all("cases", text, &case(text));
        }
    }

    /// Events hold what belongs to others, so that none can be made here of nothing: their definition is read.
    #[test]
    fn every_event_and_its_fields_are_in_the_reference() {
        let source = include_str!("../../../engine/src/event.rs");
        let definition =
            source.split("pub enum Event<'a> {").nth(1).and_then(|rest| rest.split("\n}\n").next()).unwrap();
        let (mut row, mut renamed, mut events, mut fields) = ("", None, 0, 0);
        for line in definition.lines() {
            if let Some(rest) = line.trim().strip_prefix("#[serde(rename = \"") {
                renamed = rest.split('"').next();
            }
            if let Some(name) = line.strip_prefix("    ").and_then(|line| line.strip_suffix(" {")) {
                let word: String = name
                    .chars()
                    .enumerate()
                    .map(|(at, c)| match (at, c.is_ascii_uppercase()) {
                        (0, _) | (_, false) => c.to_ascii_lowercase().to_string(),
                        _ => format!("_{}", c.to_ascii_lowercase()),
                    })
                    .collect();
                let start = format!("| `{word}` |");
                row = document("events").lines().find(|line| line.starts_with(&start)).unwrap_or_default();
                assert!(!row.is_empty(), "the reference has no event `{word}`");
                events += 1;
            } else if let Some((field, _)) = line.strip_prefix("        ").and_then(|line| line.split_once(": "))
                && field.chars().all(|c| c.is_ascii_lowercase() || c == '_')
            {
                let field = renamed.take().unwrap_or(field);
                assert!(row.contains(&format!("`{field}`")), "the reference does not name `{field}` in: {row}");
                fields += 1;
            }
        }
        assert!(events > 15 && fields > 40, "{events} events with {fields} fields were found");
    }
}
