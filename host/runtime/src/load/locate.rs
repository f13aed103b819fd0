//! Finding and reading the file of an agent.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::agent_spec::Part;
use hotcell_dialects::loki;
use hotcell_files::Entry;
use hotcell_graph::diagnostic::{Diagnostic, SourceFile};

use crate::agent::{ComponentsFile, LoadFailure};
use crate::discover::discover;
use crate::folder::{AGENT_FILE, CONFIG_FILE, GRAPH_FILE, both_files};
use crate::revision::sources::Sources;

/// Agents that are named where none was meant exactly.
const MOST_SHOWN: usize = 5;
/// Bytes that a graph file may have.
const MAX_SOURCE: u64 = 16 << 20;

/// A file of an agent.
pub(crate) struct Located {
    /// The file, absolute and without links
    pub(crate) file: PathBuf,
    /// The name under which diagnostics show it: as the person wrote it
    pub(crate) shown: String,
    /// Its folder, as the person wrote it
    pub(crate) shown_folder: String,
}

/// The file of an agent that `path` means: itself, or the one in a folder. What a folder names lies in that folder, and what
/// another agent's file names lies in its `project`; a file that the person names may be anywhere.
pub(crate) fn locate(sources: &Sources, path: &Path, project: Option<&Path>) -> Result<Located, LoadFailure> {
    let around = project.map_or_else(|| sources.anywhere(), |project| sources.below(project));
    let mut found = path.to_path_buf();
    let mut folder = path.parent().unwrap_or(path);
    let real = if around.is_folder(path) {
        let inside = sources.below(path);
        if both_files(sources, path) {
            return Err(loki::both_files(&path.display().to_string()).into());
        }
        let mut names = [GRAPH_FILE, CONFIG_FILE, AGENT_FILE].into_iter().map(Path::new);
        let name = names.find(|name| inside.entry(name) != Entry::Missing).ok_or_else(|| {
            let message =
                format!("there is no `{GRAPH_FILE}`, `{CONFIG_FILE}` or `{AGENT_FILE}` in `{}`", path.display());
            Diagnostic::error(message).help(instead_of(path, project))
        })?;
        found = path.join(name);
        folder = path;
        inside.real_path(name)
    } else {
        around.real_path(path)
    };
    let file = real.map_err(|error| unreadable(&found, &error))?;
    let shown_folder = match folder.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => folder.display().to_string(),
    };
    Ok(Located { file, shown: found.display().to_string(), shown_folder })
}

/// What a person may have meant by a folder that has no file of an agent under its usual name.
fn instead_of(folder: &Path, project: Option<&Path>) -> String {
    // What a file names is not looked for elsewhere.
    let found = if project.is_none() { discover(folder) } else { Vec::new() };
    let mut shown: Vec<String> =
        found.iter().take(MOST_SHOWN).map(|agent| format!("`{}`", agent.path.display())).collect();
    if found.len() > MOST_SHOWN {
        shown.push(format!("{} more", found.len() - MOST_SHOWN));
    }
    match &*shown {
        [] => "give the folder that holds an agent, or its file itself".to_owned(),
        [one] => format!("give the file itself: {one}"),
        all => format!("give the file or folder of one of its agents: {}", all.join(", ")),
    }
}

/// The text of a file that [`locate`] found. What takes its place meanwhile cannot lead elsewhere.
pub(crate) fn read(sources: &Sources, file: &Path) -> Result<String, LoadFailure> {
    let (folder, name) = (file.parent().unwrap_or(file), file.file_name().unwrap_or_default());
    let text = sources.below(folder).read_text(Path::new(name), MAX_SOURCE);
    Ok(text.map_err(|error| unreadable(file, &error))?)
}

fn unreadable(path: &Path, error: &dyn fmt::Display) -> Diagnostic {
    Diagnostic::error(format!("cannot read `{}`: {error}", path.display()))
}

/// Files with parts, absolute and without links, however the person wrote them.
pub(crate) fn absolute(components: &[ComponentsFile]) -> Result<Vec<ComponentsFile>, LoadFailure> {
    let absolute = |part: &ComponentsFile| {
        let Located { file, .. } = locate(&Sources::Plain, &part.file, None)?;
        Ok(ComponentsFile { file, rename: part.rename.clone() })
    };
    components.iter().map(absolute).collect()
}

/// The texts of files with parts, which are [`absolute`].
pub(crate) fn parts(sources: &Sources, components: &[ComponentsFile]) -> Result<Vec<Part>, LoadFailure> {
    let part = |part: &ComponentsFile| {
        let text = read(sources, &part.file)?;
        let file = Arc::new(SourceFile { name: part.file.display().to_string(), text });
        Ok(Part { file, rename: part.rename.clone() })
    };
    components.iter().map(part).collect()
}
