//! What decides in a folder what may happen: the operator sees it, trust is pinned to it, and nothing else counts as trusted.
//!
//! `hotcell.toml` alone does not decide. It grants something to a script, whose text says what becomes of that; a directory it
//! names may be a link tomorrow; `mcp.json` says which program a granted server is. So all of it is pinned together.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use hotcell_cells::digest;
use hotcell_files::{Entry, FileError, Folder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lock::LOCK_FILE;
use crate::settings::{SETTINGS_FILE, Settings, is_for_agent_files};

/// The file that names MCP servers.
pub const SERVERS_FILE: &str = "mcp.json";
/// The folder of plugins beside an agent.
pub const PLUGIN_FOLDER: &str = "plugins";
/// Bytes that the file may have which names MCP servers; a larger one is not read by whoever starts them either.
pub const MAX_SERVERS: u64 = 1 << 20;
/// Bytes of a file that is pinned.
const MAX_FILE: u64 = 256 << 20;
/// Bytes of all of them together: many names may lead to one file.
const MAX_ALL: u64 = 1 << 30;
/// Endings of files that may hold an agent.
const AGENT_ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// How deep, and how many, files of agents are looked for.
const MAX_DEPTH: usize = 5;
const MAX_AGENTS: usize = 1000;
/// What stands in the place of a digest where there is no file.
const ABSENT: &str = "absent";
/// What stands there where a file is too large to be looked at: what is in it then is not known, and never trusted.
const TOO_LARGE: &str = "too large";
/// What words of a command may be separated by.
const SEPARATORS: &[char] = &['\'', '"', '`', '=', ';', '|', '&', '(', ')', '<', '>', ',', ':', '$', '{', '}'];

/// What decides in a folder, as it was when the operator trusted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Footprint {
    /// Digests by paths below the folder
    files: BTreeMap<String, String>,
    /// Digests of files that may hold an agent, where anything is granted to such files themselves
    agents: BTreeMap<String, String>,
    /// Where granted directories really are, by the paths that `hotcell.toml` has for them
    directories: BTreeMap<String, String>,
    /// What the operator was shown
    shown: Vec<String>,
}

impl Footprint {
    /// What decides in `folder` now, where `settings` are those of its `hotcell.toml`.
    pub(crate) fn of(folder: &Path, settings: &Settings) -> Self {
        let root = root_of(folder);
        let mut left = MAX_ALL;
        let mut digests = |names: BTreeSet<String>| -> BTreeMap<String, String> {
            let digested = |name: String| (name.clone(), digest_of(&root, &name, &mut left));
            names.into_iter().map(digested).collect()
        };
        let mut agents = BTreeSet::new();
        if settings.grants_to_agent_files() {
            agent_files(&root, Path::new(""), 0, &mut agents);
        }
        Footprint {
            files: digests(deciding(&root, settings)),
            agents: digests(agents),
            directories: settings.directories().map(|(written, host)| (written.to_owned(), real(host))).collect(),
            shown: shown(settings),
        }
    }

    /// What is different in the folder since then, in plain words; nothing where all that decides is as it was.
    pub(crate) fn changes(&self, folder: &Path, settings: &Settings) -> Vec<String> {
        let root = root_of(folder);
        let mut changes = Vec::new();
        let mut left = MAX_ALL;
        for (name, pinned) in &self.files {
            let now = digest_of(&root, name, &mut left);
            if now == TOO_LARGE {
                changes.push(format!("`{name}` is too large to be looked at"));
            } else if now != *pinned {
                changes.push(match (pinned.as_str(), now.as_str()) {
                    (ABSENT, _) => format!("`{name}` is new"),
                    (_, ABSENT) => format!("`{name}` is gone"),
                    _ => format!("`{name}` was changed"),
                });
            }
        }
        for name in deciding(&root, settings).into_iter().filter(|name| !self.files.contains_key(name)) {
            changes.push(format!("grants now depend on `{name}`, too"));
        }
        for (written, host) in settings.directories() {
            let now = real(host);
            match self.directories.get(written) {
                Some(pinned) if *pinned != now => {
                    changes.push(format!("the granted directory `{written}` is `{now}` now; it was `{pinned}`"));
                }
                _ => {}
            }
        }
        let wishes = shown(settings);
        changes.extend(wishes.iter().filter(|line| !self.shown.contains(line)).map(|line| format!("new: {line}")));
        changes.extend(self.shown.iter().filter(|line| !wishes.contains(line)).map(|line| format!("gone: {line}")));
        changes
    }

    /// Whether the file of this name had these bytes.
    pub(crate) fn has(&self, name: &str, bytes: &[u8]) -> bool {
        [&self.files, &self.agents].iter().any(|pinned| pinned.get(name).is_some_and(|pinned| *pinned == digest(bytes)))
    }

    /// What `mcp.json` of the folder says of each server, in full.
    pub(crate) fn servers(&self, folder: &Path) -> Vec<String> {
        let text = Folder::new(folder).read(Path::new(SERVERS_FILE), MAX_SERVERS).unwrap_or_default();
        if !text.is_empty() && !self.has(SERVERS_FILE, &text) {
            // What is shown is what is pinned.
            return vec![format!("`{SERVERS_FILE}` is being changed")];
        }
        let servers: Value = serde_json::from_slice(&text).unwrap_or_default();
        let servers = servers.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
        servers.map(|(name, server)| format!("the MCP server `{name}` is {server}")).collect()
    }

    /// Digests of the files that decide, by their names.
    pub(crate) fn digests(&self) -> BTreeMap<String, String> {
        self.files.clone()
    }

    /// The files that are pinned and there, by their names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let all = self.files.iter().chain(&self.agents);
        all.filter(|(_, digest)| *digest != ABSENT).map(|(name, _)| name.as_str())
    }

    /// Where granted directories are, by how they are written; nothing where there is none.
    pub(crate) fn directories(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let is_there = |real: &&str| *real != ABSENT;
        self.directories.iter().map(move |(written, real)| (written.as_str(), Some(real.as_str()).filter(is_there)))
    }
}

/// The folder by its real path, so that files are found that are named by that.
fn root_of(folder: &Path) -> Folder {
    Folder::new(&folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()))
}

/// Where in `folder` whatever decides lies, by the path of the folder without links. The settings are those of its `hotcell.toml`.
pub(crate) fn places(folder: &Path, settings: &Settings) -> Vec<PathBuf> {
    let root = root_of(folder);
    let names = deciding(&root, settings).into_iter().map(PathBuf::from);
    // All that lies in the folder of plugins is one.
    names.chain([Path::new(PLUGIN_FOLDER).join("*")]).map(|name| root.path().join(name)).collect()
}

/// What trusting the settings means, line by line.
fn shown(settings: &Settings) -> Vec<String> {
    let of_name = |(name, lines): (String, Vec<String>)| {
        lines.into_iter().map(move |line| if name.is_empty() { line } else { format!("`{name}` may {line}") })
    };
    settings.wishes().into_iter().flat_map(of_name).collect()
}

/// The names of files that decide something, whether they are there or not: the three that always do, scripts that are granted
/// something, what import paths mean, and files of the folder that `mcp.json` names: as programs, their arguments, or a word of
/// one, from the folder or from that in which the program is started.
fn deciding(root: &Folder, settings: &Settings) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = [SETTINGS_FILE, LOCK_FILE, SERVERS_FILE].map(str::to_owned).into();
    names.extend(settings.all_grants().keys().filter(|name| !is_for_agent_files(name)).cloned());
    let meaning = |said: &str| said.rsplit_once(':').map_or(said, |(file, _)| file).to_owned();
    names.extend(settings.import_meanings().map(meaning).filter(|name| root.entry(Path::new(name)) == Entry::File));
    if let Ok(bytes) = root.read(Path::new(SERVERS_FILE), MAX_SERVERS)
        && let Ok(servers) = serde_json::from_slice::<Value>(&bytes)
    {
        let mut named = Named { root, looked_at: HashSet::new(), names: &mut names };
        named.look_through(&servers, Path::new(""));
    }
    names
}

/// Files of a folder that words of its `mcp.json` name.
struct Named<'a> {
    root: &'a Folder,
    looked_at: HashSet<PathBuf>,
    names: &'a mut BTreeSet<String>,
}

impl Named<'_> {
    fn look_through(&mut self, value: &Value, started_in: &Path) {
        match value {
            Value::String(text) => {
                // `--file=server.py` names a file, too, and so does `exec ./server.sh` behind `sh -c`.
                let words = text.split(|c: char| c.is_whitespace() || SEPARATORS.contains(&c));
                for word in words.chain([text.as_str()]).filter(|word| !word.is_empty()) {
                    self.look_at(Path::new(word));
                    self.look_at(&started_in.join(word));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.look_through(item, started_in)),
            Value::Object(fields) => {
                let own = fields.get("cwd").and_then(Value::as_str).map(|cwd| started_in.join(cwd));
                let started_in = own.as_deref().unwrap_or(started_in);
                fields.values().for_each(|field| self.look_through(field, started_in));
            }
            _ => {}
        }
    }

    fn look_at(&mut self, path: &Path) {
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        if self.looked_at.contains(&path) {
            return;
        }
        if let Some(name) = path.to_str().filter(|_| self.root.entry(&path) == Entry::File) {
            self.names.insert(name.to_owned());
        }
        self.looked_at.insert(path);
    }
}

/// Files below the folder that may hold an agent.
fn agent_files(root: &Folder, below: &Path, depth: usize, names: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(root.path().join(below)) else { return };
    for entry in entries.filter_map(Result::ok).take(MAX_AGENTS) {
        let name = below.join(entry.file_name());
        if names.len() >= MAX_AGENTS || entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => agent_files(root, &name, depth + 1, names),
            Ok(kind) if !kind.is_dir() => {
                let is_agent = name.extension().is_some_and(|ending| AGENT_ENDINGS.iter().any(|one| ending == *one));
                if let (true, Some(name)) = (is_agent, name.to_str()) {
                    names.insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
}

/// The digest of a file, in hexadecimal; what cannot be read is told apart from what is not there. `left` are the bytes that may
/// still be read.
fn digest_of(root: &Folder, name: &str, left: &mut u64) -> String {
    match root.read(Path::new(name), MAX_FILE.min(*left)) {
        Ok(bytes) => {
            *left = left.saturating_sub(bytes.len() as u64);
            digest(&bytes)
        }
        Err(FileError::Missing) => ABSENT.to_owned(),
        Err(FileError::System(error)) if error.kind() == ErrorKind::FileTooLarge => TOO_LARGE.to_owned(),
        Err(error) => format!("unreadable: {error}"),
    }
}

/// Where a directory is, links followed.
fn real(path: &Path) -> String {
    path.canonicalize().map_or_else(|_| ABSENT.to_owned(), |real| real.display().to_string())
}

#[cfg(test)]
mod tests;
