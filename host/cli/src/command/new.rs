//! `hotcell new`: a small agent to begin with, in each language.

use std::fs;
use std::path::PathBuf;

use super::{print, quoted};
use crate::arguments::New;
use crate::exit::{Exit, Failure};

/// What stands for the name of the agent in its files.
const NAME: &str = "NAME";
/// Characters that a name may have.
const LONGEST: usize = 64;

/// An agent of a language: its files, and how to run it.
struct Template {
    language: &'static str,
    files: &'static [(&'static str, &'static str)],
    run: &'static str,
}

const TEMPLATES: [Template; 5] = [
    Template {
        language: "loki",
        files: &[
            ("graph.yaml", include_str!("../../templates/loki/graph.yaml")),
            ("scripts/greet.js", include_str!("../../templates/loki/scripts/greet.js")),
        ],
        run: "hotcell run . Ada",
    },
    Template {
        language: "sherma",
        files: &[("agent.yaml", include_str!("../../templates/sherma/agent.yaml"))],
        run: "hotcell run . Ada",
    },
    Template {
        language: "agent-spec",
        files: &[
            ("agent.yaml", include_str!("../../templates/agent-spec/agent.yaml")),
            ("tools.py", include_str!("../../templates/agent-spec/tools.py")),
        ],
        run: "hotcell run . --inputs '{\"name\": \"Ada\"}'",
    },
    Template {
        language: "agentloom",
        files: &[
            ("workflow.yaml", include_str!("../../templates/agentloom/workflow.yaml")),
            ("replies.json", include_str!("../../templates/agentloom/replies.json")),
        ],
        run: "hotcell run workflow.yaml --state '{\"name\": \"Ada\"}'",
    },
    Template {
        language: "leafmesh",
        files: &[
            ("config.yaml", include_str!("../../templates/leafmesh/config.yaml")),
            ("agency/greeter.py", include_str!("../../templates/leafmesh/agency/greeter.py")),
        ],
        run: "hotcell run . Ada",
    },
];

pub(super) fn perform(arguments: &New) -> Result<Exit, Failure> {
    let name = &arguments.name;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    let begins = name.chars().next().is_some_and(|first| first.is_ascii_alphabetic());
    if !begins || !name.chars().all(is_plain) || name.len() > LONGEST {
        return Err(Failure::refused("the name of an agent is a letter, followed by letters, digits, `-` and `_`"));
    }
    let Some(template) = TEMPLATES.iter().find(|template| template.language == arguments.lang) else {
        return Err(Failure::refused(format!("there is no template for `{}`", arguments.lang)));
    };
    let folder = arguments.directory.clone().unwrap_or_else(|| PathBuf::from(name));
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Failure::refused(format!("`{}` is there already and is not empty", folder.display()))
            .help("choose another folder with `--directory`"));
    }
    for (file, text) in template.files {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text.replace(NAME, name)))
            .map_err(|error| Failure::failed(format!("cannot write `{}`: {error}", path.display())))?;
        print(&path.display().to_string())?;
    }
    print(&format!("\nnow:\n  cd {}\n  {}", quoted(&folder.to_string_lossy()), template.run))?;
    Ok(Exit::Done)
}
