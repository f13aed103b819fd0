//! The list of everything that an agent was loaded from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hotcell_files::Entry;
use serde::{Deserialize, Serialize};

/// The form of the list that this version writes and reads.
pub(crate) const FORM: u32 = 1;
/// How the subject of a list of files begins; the ending of their names and the folder follow, each after a space.
pub(crate) const LISTED: &str = "files ";

/// Everything that an agent was loaded from. Contents are named by their digests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// [`FORM`]
    pub(crate) form: u32,
    /// The agent, as whoever loads it again names it
    pub(crate) source: String,
    /// What was read, by the folder that no path could leave; the empty path stands for paths that could lead anywhere
    pub(crate) read: BTreeMap<PathBuf, ReadBelow>,
    /// What others said when they were asked: texts at addresses, functions of MCP servers and of Python files
    pub(crate) answers: BTreeMap<String, String>,
    /// What was said and decided about folders, as the person named them or as an agent did
    pub(crate) decided: BTreeMap<PathBuf, Decided>,
    /// The plugins that are used, by the folder whose settings count for them and by name
    pub(crate) plugins: BTreeMap<PathBuf, BTreeMap<String, KeptPlugin>>,
}

/// What was read below a folder, by paths as they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ReadBelow {
    /// The contents of files; none of what could not be read
    pub(crate) files: BTreeMap<PathBuf, Option<String>>,
    /// What paths were
    pub(crate) entries: BTreeMap<PathBuf, Entry>,
    /// Where paths led when links were followed; none where they led nowhere
    pub(crate) links: BTreeMap<PathBuf, Option<PathBuf>>,
}

/// What was decided about a folder, by who asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Decided {
    /// For the person who named it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) for_person: Option<String>,
    /// For an agent that calls one in it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) for_agent: Option<String>,
}

/// A plugin that an agent uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptPlugin {
    /// Where its component lay
    pub(crate) file: PathBuf,
    /// The component
    pub(crate) component: String,
    /// What the component says about itself
    pub(crate) survey: String,
    /// Its signature, if it had one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<String>,
}

impl Manifest {
    /// The digests of all contents but those of components.
    pub(crate) fn texts(&self) -> BTreeSet<&str> {
        let plugins = self.plugins.values().flat_map(BTreeMap::values);
        let of_plugins = plugins.flat_map(|plugin| [Some(&plugin.survey), plugin.signature.as_ref()]).flatten();
        let files = self.read.values().flat_map(|below| below.files.values()).flatten();
        let decided = self.decided.values().flat_map(|one| [&one.for_person, &one.for_agent]).flatten();
        files.chain(self.answers.values()).chain(decided).chain(of_plugins).map(String::as_str).collect()
    }

    /// The folders of which it was asked what lies in them.
    pub(crate) fn listed_folders(&self) -> impl Iterator<Item = PathBuf> {
        self.answers.keys().filter_map(|subject| Some(subject.strip_prefix(LISTED)?.split_once(' ')?.1.into()))
    }

    /// The digests of components, each with where it lay.
    pub(crate) fn components(&self) -> BTreeMap<&str, &PathBuf> {
        let plugins = self.plugins.values().flat_map(BTreeMap::values);
        plugins.map(|plugin| (plugin.component.as_str(), &plugin.file)).collect()
    }
}
