//! What of the world is not any more as it was when a revision was read.

use std::path::Path;

use hotcell_files::Entry;
use hotcell_journal::Artefact;
use hotcell_plugins::{FolderRecord, LOCK_FILE, SETTINGS_FILE};

use crate::context::LoadContext;
use crate::revision::AgentRevision;
use crate::revision::sources::{FolderFor, Sources};

/// The files that were changed, added or removed, each once, as paths from `folder` where they are in it. Nobody else is asked:
/// what servers say may have changed, too.
pub(crate) fn changes(context: &LoadContext, revision: &AgentRevision, folder: &Path) -> Vec<String> {
    let manifest = &revision.manifest;
    let mut changed = Vec::new();
    let mut add = |line: String| {
        if !changed.contains(&line) {
            changed.push(line);
        }
    };
    let shown = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    // What lies outside of where loading may read is not there for it either.
    let sources = Sources::noted(context.within());
    let digest = |bytes: Vec<u8>| Artefact::new(bytes).digest().to_owned();
    for (root, read) in &manifest.read {
        let around = if root.as_os_str().is_empty() { sources.anywhere() } else { sources.below(root) };
        for (path, known) in &read.files {
            if around.read(path, hotcell_files::MAX_COMPONENT).ok().map(digest) != *known {
                add(shown(&root.join(path)));
            }
        }
        for (path, known) in &read.entries {
            let now = around.entry(path);
            // Of what is there its content is compared.
            if now != *known && (now == Entry::Missing || *known == Entry::Missing) {
                add(shown(&root.join(path)));
            }
        }
    }
    for plugin in manifest.plugins.values().flat_map(|plugins| plugins.values()) {
        let now = hotcell_files::read(&plugin.file, hotcell_files::MAX_COMPONENT).ok().map(digest);
        if now.as_ref() != Some(&plugin.component) {
            add(shown(&plugin.file));
        }
    }
    for (path, known) in &manifest.decided {
        let of_person = known.for_person.iter().map(|known| (FolderFor::Person, known));
        let of_agent = known.for_agent.iter().map(|known| (FolderFor::Agent, known));
        for (who, known) in of_person.chain(of_agent) {
            let known =
                revision.text(known).and_then(|known| serde_json::from_slice::<FolderRecord>(known.bytes()).ok());
            let (Some(known), Ok(now)) = (known, context.folder_now(path, who)) else {
                add(shown(&path.join(SETTINGS_FILE)));
                continue;
            };
            for what in known.changes(&now.record()) {
                let is_file = [SETTINGS_FILE, LOCK_FILE].contains(&what);
                add(if is_file { shown(&path.join(what)) } else { format!("{what} (`{}`)", path.display()) });
            }
        }
    }
    changed.sort();
    changed
}
