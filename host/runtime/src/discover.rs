//! Finding agents of every language below a folder.

use std::path::{Path, PathBuf};

use hotcell_dialects::recognise;

use crate::folder::{AGENT_FILE, CONFIG_FILE, GRAPH_FILE};

/// How deep below a folder agents are looked for.
const DEPTH: usize = 8;
/// Files and folders that are looked at; further ones do not count.
const MOST: usize = 20_000;
/// Bytes that a file may have to be looked at: what is larger is data.
const LARGEST: u64 = 4 << 20;
/// Folders that hold parts of agents, or what tools of other languages put there.
const SKIPPED: [&str; 6] = ["plugins", "scripts", "node_modules", "target", "venv", "__pycache__"];

/// A file that looks like an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// What it is called: the way to it below the folder in which it was found, with dots in place of separators
    pub id: String,
    /// The folder that holds it, or its file where that has a name of its own
    pub path: PathBuf,
}

/// The files below a folder that look like agents, of any language; whether they are, loading says. Nothing of them is run,
/// links are not followed, and what begins with a dot is not looked at. A file is taken as it is.
pub fn discover(path: &Path) -> Vec<Discovered> {
    if path.is_file() {
        let name = path.file_stem().unwrap_or_default();
        return vec![Discovered { id: plain(&name.to_string_lossy()), path: path.to_owned() }];
    }
    let mut search = Search { left: MOST, found: Vec::new() };
    search.folder(path, &[], DEPTH);
    if let Some(own) = search.found.iter_mut().find(|found| found.id.is_empty()) {
        let name = path.canonicalize().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        own.id = plain(&name.unwrap_or_else(|| "agent".to_owned()));
    }
    search.found
}

struct Search {
    left: usize,
    found: Vec<Discovered>,
}

impl Search {
    fn folder(&mut self, folder: &Path, way: &[String], depth: usize) {
        let mut entries: Vec<(String, bool)> = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                tracing::warn!(folder = %folder.display(), "there are more files than are looked at for agents");
                return;
            }
            if !name.starts_with('.') && (kind.is_file() || kind.is_dir()) {
                entries.push((name, kind.is_dir()));
            }
        }
        entries.sort();
        let own = [GRAPH_FILE, CONFIG_FILE, AGENT_FILE]
            .into_iter()
            .find(|own| entries.iter().any(|(name, _)| name == own) && is_agent(&folder.join(own)));
        if own.is_some() {
            self.found.push(Discovered { id: way.join("."), path: folder.to_owned() });
        }
        let files: Vec<&str> = entries.iter().filter(|(_, is_folder)| !is_folder).map(|(name, _)| &**name).collect();
        for name in &files {
            let path = folder.join(name);
            let is_own = [GRAPH_FILE, CONFIG_FILE, AGENT_FILE].contains(name) && own.is_some();
            let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
            if is_own || !["yaml", "yml", "json"].contains(&extension) || !is_agent(&path) {
                continue;
            }
            let is_twin =
                |other: &&str| other != name && other.rsplit_once('.').is_some_and(|(other, _)| other == stem);
            let last = if files.iter().any(is_twin) { name } else { stem };
            let id = way.iter().map(String::as_str).chain([&*plain(last)]).collect::<Vec<_>>().join(".");
            self.found.push(Discovered { id, path });
        }
        if depth == 0 {
            return;
        }
        for (name, _) in entries.iter().filter(|(name, is_folder)| *is_folder && !SKIPPED.contains(&&**name)) {
            let way: Vec<String> = way.iter().cloned().chain([plain(name)]).collect();
            self.folder(&folder.join(name), &way, depth - 1);
        }
    }
}

/// Whether a file is written in a language that hotcell reads.
fn is_agent(file: &Path) -> bool {
    let text = hotcell_files::read_text(file, LARGEST);
    text.is_ok_and(|text| recognise(&file.to_string_lossy(), &text).is_some())
}

/// A name as every address takes it.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_all_languages_are_found_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let loki = "name: x\nstart: a\nnodes: {}\n";
        write("desk/graph.yaml", loki);
        write("desk/notes.yaml", "just: notes\n");
        write("desk/scripts/graph.yaml", loki);
        write("desk/plugins/graph.yaml", loki);
        write("chat/config.yaml", "name: chat\n");
        write("team/support/agent.yaml", "manifest_version: 1\n");
        write("flows/triage.json", r#"{"component_type": "Flow"}"#);
        write("flows/both.json", r#"{"component_type": "Flow"}"#);
        write("flows/both.yaml", "component_type: Flow\n");
        write("loom/workflow.yaml", "name: x\nsteps: []\n");
        write("loom/agents/write er.yaml", "name: x\nsystem_prompt: y\n");
        write(".hidden/graph.yaml", loki);
        write("node_modules/a/graph.yaml", loki);
        write("data.json", "{}");
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).expect("linked");
        let ids = |path: &Path| discover(path).into_iter().map(|found| found.id).collect::<Vec<_>>();
        assert_eq!(
            ids(folder.path()),
            [
                "chat",
                "desk",
                "flows.both.json",
                "flows.both.yaml",
                "flows.triage",
                "loom.workflow",
                "loom.agents.write_er",
                "team.support"
            ]
        );
        assert_eq!(ids(&folder.path().join("desk")), ["desk"], "the folder of an agent is called like the folder");
        assert_eq!(ids(&folder.path().join("flows/triage.json")), ["triage"]);
        assert!(ids(&folder.path().join("nowhere")).is_empty());
    }
}
