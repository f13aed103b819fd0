//! What clients are shown of plugins.

use std::path::Path;

use hotcell_runtime::PluginDesk;
use hotcell_runtime::plugins::{Plugin, Standing};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::object::{Object, object};
use crate::whereabouts::without_whereabouts;

/// A plugin within reach of the agents of a folder.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Plugin)]
pub(crate) struct PluginView {
    /// Its name; of a broken one that of its file
    pub(crate) name: String,
    /// The agents of the folder
    pub(crate) agent_ids: Vec<String>,
    /// `ready`, `waiting` for a decision, `changed` since it was granted something, `refused` or `broken`
    pub(crate) standing: &'static str,
    /// Why it is refused or broken
    pub(crate) reason: Option<String>,
    /// Its version
    pub(crate) version: Option<String>,
    /// What it says it is for
    pub(crate) description: Option<String>,
    /// The SHA-256 digest of its component; none of a broken one
    pub(crate) digest: Option<String>,
    /// The digest of the component that something was granted to, if that is another one
    pub(crate) granted_digest: Option<String>,
    /// What it asks for, in plain words
    pub(crate) asks: Vec<String>,
    /// What it asks for beyond what the component asked for that was granted something
    pub(crate) asks_more: Vec<String>,
    /// What it is granted, as in `[grants]` of `hotcell.toml`; none if nobody has decided
    #[schema(value_type = Option<Object>)]
    pub(crate) granted: Option<Object>,
    /// The same in plain words
    pub(crate) may: Vec<String>,
    /// Its tools
    pub(crate) tools: Vec<String>,
    /// Its node types
    pub(crate) nodes: Vec<String>,
    /// The points at which it is told of runs
    pub(crate) hooks: Vec<String>,
    /// Whether it is a connector
    pub(crate) is_connector: bool,
    /// Whether it lies in the folder of the agents, so that it can be removed
    pub(crate) is_own: bool,
}

impl PluginView {
    /// All that are within reach, broken ones included.
    pub(crate) fn all(desk: &PluginDesk, agents: &[String]) -> Vec<Self> {
        let view = |found: &hotcell_runtime::plugins::Found| match &found.plugin {
            Ok(plugin) => PluginView::of(desk, &found.file, plugin, agents),
            Err(reason) => PluginView {
                name: found.file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                agent_ids: agents.to_vec(),
                standing: "broken",
                reason: Some(without_whereabouts(&reason.to_string(), desk.folder.path())),
                version: None,
                description: None,
                digest: None,
                granted_digest: None,
                asks: Vec::new(),
                asks_more: Vec::new(),
                granted: None,
                may: Vec::new(),
                tools: Vec::new(),
                nodes: Vec::new(),
                hooks: Vec::new(),
                is_connector: false,
                is_own: desk.check_own(&found.file, "").is_ok(),
            },
        };
        desk.catalogue.found().iter().map(view).collect()
    }

    /// One of them.
    pub(crate) fn of(desk: &PluginDesk, file: &Path, plugin: &Plugin, agents: &[String]) -> Self {
        let description = &plugin.description;
        let name = &description.name;
        let (mut reason, mut asks_more) = (None, Vec::new());
        let standing = match desk.standing(file, plugin) {
            Standing::Ready => "ready",
            Standing::Waiting { .. } => "waiting",
            Standing::Changed { more, .. } => {
                asks_more = more;
                "changed"
            }
            Standing::Refused { reason: why } => {
                reason = Some(without_whereabouts(&why, desk.folder.path()));
                "refused"
            }
        };
        let granted = desk.folder.granted_before(name);
        let pinned = desk.folder.pins().find(|(pinned, _)| pinned == name).map(|(_, digest)| digest.to_owned());
        PluginView {
            name: name.clone(),
            agent_ids: agents.to_vec(),
            standing,
            reason,
            version: description.version.clone(),
            description: Some(description.description.clone()),
            digest: Some(plugin.survey.digest.clone()),
            granted_digest: pinned.filter(|pinned| *pinned != plugin.survey.digest),
            asks: description.capabilities.in_words().into_iter().chain(plugin.hooks_in_words()).collect(),
            asks_more,
            may: granted.as_ref().map(|granted| granted.in_words()).unwrap_or_default(),
            granted: granted.map(|granted| object(json!(*granted))),
            tools: description.tools.iter().map(|tool| tool.name.clone()).collect(),
            nodes: description.nodes.iter().map(|node| node.node_type.clone()).collect(),
            hooks: description.hooks.iter().map(|hook| hook.point.clone()).collect(),
            is_connector: description.connector.is_some(),
            is_own: desk.check_own(file, name).is_ok(),
        }
    }
}
