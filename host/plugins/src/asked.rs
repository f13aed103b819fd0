//! What a plugin asks the operator for: capabilities, and to be told of runs.

use std::path::Path;

use hotcell_cells::Requests;

use crate::lock::Locked;
use crate::plugin::{Plugin, hooks_in_words};

/// What has to be decided of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    requests: Requests,
    /// The points at which it is told of runs; none where that is decided already
    hooks: Vec<String>,
}

impl Asked {
    /// What a plugin asks for in the file `file` of an agent's folder. Hooks of other folders are the operator's own guards: they
    /// were put there to be told of every run.
    pub(crate) fn of(plugin: &Plugin, file: &Path, folder: &Path) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let is_of_folder = real(file).starts_with(real(folder));
        let hooks = if is_of_folder { plugin.hook_points() } else { Vec::new() };
        Asked { requests: plugin.description.capabilities.clone(), hooks }
    }

    /// What a component asked for when something was granted to it.
    pub(crate) fn before(locked: &Locked) -> Self {
        Asked { requests: locked.requested.clone(), hooks: locked.hooks.clone() }
    }

    /// Whether there is nothing to decide.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.hooks.is_empty()
    }

    /// All of it in plain words, one line each.
    pub(crate) fn in_words(&self) -> Vec<String> {
        self.requests.in_words().into_iter().chain(hooks_in_words(&self.hooks)).collect()
    }

    /// What of it goes beyond `other`, in plain words.
    pub(crate) fn beyond(&self, other: &Self) -> Vec<String> {
        let theirs = other.requests.in_words();
        let mut beyond = self.requests.in_words();
        beyond.retain(|line| !theirs.contains(line));
        let hooks: Vec<String> = self.hooks.iter().filter(|point| !other.hooks.contains(point)).cloned().collect();
        beyond.extend(hooks_in_words(&hooks));
        beyond
    }
}
