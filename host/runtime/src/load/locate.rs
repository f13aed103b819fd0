//! Finding and reading the file of an agent.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_dialects::agent_spec::Part;
use hotcell_dialects::loki;
use hotcell_files::{FileError, Folder};
use hotcell_graph::diagnostic::{Diagnostic, SourceFile};

use crate::agent::{ComponentsFile, LoadFailure};
use crate::folder::{AGENT_FILE, CONFIG_FILE, GRAPH_FILE, both_files};

/// Bytes that a graph file may have.
const MAX_SOURCE: u64 = 16 << 20;

/// The file of an agent that `path` means, absolute and without links, and its text. What a folder names lies in that folder, and
/// what another agent's file names lies in its `project`; a file that the person names may be anywhere.
pub(crate) fn read(path: &Path, project: Option<&Path>) -> Result<(PathBuf, String), LoadFailure> {
    let fail =
        |path: &Path, error: &dyn fmt::Display| Diagnostic::error(format!("cannot read `{}`: {error}", path.display()));
    let mut file = path.to_path_buf();
    let mut root = project;
    if path.is_dir() {
        root = root.or(Some(path));
        if both_files(path) {
            return Err(loki::both_files(&path.display().to_string()).into());
        }
        let candidates = [GRAPH_FILE, CONFIG_FILE, AGENT_FILE].map(|name| path.join(name));
        file = candidates.into_iter().find(|file| file.symlink_metadata().is_ok()).ok_or_else(|| {
            Diagnostic::error(format!("there is neither `{GRAPH_FILE}` nor `{CONFIG_FILE}` in `{}`", path.display()))
                .help("give the folder that holds an agent, or its file itself")
        })?;
    }
    let text = match root {
        Some(root) => Folder::new(root).read_text(file.strip_prefix(root).unwrap_or(&file), MAX_SOURCE),
        None => hotcell_files::read_text(&file, MAX_SOURCE).map_err(FileError::from),
    };
    let text = text.map_err(|error| fail(&file, &error))?;
    let file = std::fs::canonicalize(&file).map_err(|error| fail(&file, &error))?;
    Ok((file, text))
}

/// The folder of the file, as the person wrote it.
pub(crate) fn folder_to_show(path: &Path, file: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let shown = folder.unwrap_or_else(|| file.parent().unwrap_or(path)).display().to_string();
    if shown.is_empty() { ".".to_owned() } else { shown }
}

/// The name under which diagnostics show the file: as the person wrote it.
pub(crate) fn path_to_show(path: &Path, file: &Path) -> String {
    match file.file_name() {
        Some(name) if path.is_dir() => path.join(name).display().to_string(),
        _ => path.display().to_string(),
    }
}

/// The texts of files with parts.
pub(crate) fn parts(components: &[ComponentsFile]) -> Result<Vec<Part>, LoadFailure> {
    let part = |part: &ComponentsFile| {
        let (_, text) = read(&part.file, None)?;
        let file = Arc::new(SourceFile { name: part.file.display().to_string(), text });
        Ok(Part { file, rename: part.rename.clone() })
    };
    components.iter().map(part).collect()
}
