//! What the front end of a language makes of a file, in one form for all languages.

use std::sync::Arc;

use hotcell_dialects::agent_spec::{self, Part};
use hotcell_dialects::agentloom;
use hotcell_dialects::leafmesh::{self, MeshSettings};
use hotcell_dialects::loki;
use hotcell_dialects::sherma::{self, Child, Choice};
use hotcell_dialects::{Dialect, KnowledgeBaseSource, Remote, Surroundings};
use hotcell_graph::Key;
use hotcell_graph::diagnostic::{Diagnostic, SourceFile};
use hotcell_graph::ir::Graph;

/// What a front end made of a file.
#[derive(Default)]
pub(crate) struct FrontEndOutput {
    pub(crate) graph: Option<Graph>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) conversation_starters: Vec<String>,
    pub(crate) knowledge_bases: Vec<KnowledgeBaseSource>,
    /// Whether everything is checked before the first node runs
    pub(crate) checked: bool,
    pub(crate) children: Vec<Child>,
    pub(crate) remotes: Vec<Remote>,
    /// Agents of the file itself that others of its agents may ask
    pub(crate) members: Vec<(Key, Arc<Graph>)>,
    pub(crate) names: Vec<Key>,
    /// What a mesh says beside its graph
    pub(crate) mesh: Option<MeshSettings>,
    /// The order of its hooks, as far as it says one
    pub(crate) hooks: Vec<String>,
    /// What is to be said of how the file is written
    pub(crate) style: Option<&'static str>,
}

impl FrontEndOutput {
    /// Whether the file itself says where an agent is.
    pub(crate) fn names(&self, agent: &Key) -> bool {
        self.children.iter().any(|child| child.name == *agent)
            || self.remotes.iter().any(|one| one.name == *agent)
            || self.members.iter().any(|(name, _)| name == agent)
    }

    pub(crate) fn of(
        dialect: Dialect,
        is_config: bool,
        source: &Arc<SourceFile>,
        choice: Choice<'_>,
        parts: &[Part],
        surroundings: &dyn Surroundings,
    ) -> Self {
        let loaded = match dialect {
            Dialect::AgentSpec => {
                let loaded = agent_spec::load(source, parts, surroundings);
                return FrontEndOutput {
                    graph: loaded.graph,
                    members: loaded.members,
                    remotes: loaded.remotes,
                    diagnostics: loaded.diagnostics,
                    checked: true,
                    ..FrontEndOutput::default()
                };
            }
            Dialect::Sherma => {
                let loaded = sherma::load(source, choice, surroundings);
                let sherma::Loaded { graph, agents: names, hooks, children, remotes, style, diagnostics } = loaded;
                let style = Some(style.describe());
                return FrontEndOutput {
                    graph,
                    diagnostics,
                    names,
                    hooks,
                    children,
                    remotes,
                    style,
                    checked: true,
                    ..FrontEndOutput::default()
                };
            }
            Dialect::AgentLoom => {
                let agentloom::Loaded { graph, mut diagnostics } = agentloom::load(source, surroundings);
                diagnostics.extend(refuse_choice(choice));
                return FrontEndOutput { graph, diagnostics, checked: true, ..FrontEndOutput::default() };
            }
            Dialect::LeafMesh => {
                let leafmesh::Loaded { graph, settings, knowledge_bases, mut diagnostics } =
                    leafmesh::load(source, surroundings);
                diagnostics.extend(refuse_choice(choice));
                return FrontEndOutput {
                    graph,
                    mesh: settings,
                    knowledge_bases,
                    diagnostics,
                    checked: true,
                    ..FrontEndOutput::default()
                };
            }
            Dialect::Loki if is_config => loki::load_config(source, surroundings),
            Dialect::Loki => loki::load(source, surroundings),
        };
        let mut front = FrontEndOutput {
            graph: loaded.graph,
            diagnostics: loaded.diagnostics,
            conversation_starters: loaded.declarations.conversation_starters,
            knowledge_bases: loaded.declarations.knowledge_bases,
            checked: loaded.declarations.checked_before_run,
            ..FrontEndOutput::default()
        };
        front.diagnostics.extend(refuse_choice(choice));
        front
    }
}

/// What is said of a choice where there is none.
fn refuse_choice(choice: Choice<'_>) -> Option<Diagnostic> {
    let Choice::Named(name) = choice else { return None };
    let error = Diagnostic::error(format!("the file holds one agent, so `{name}` cannot be chosen"));
    Some(error.help("leave the name out"))
}
