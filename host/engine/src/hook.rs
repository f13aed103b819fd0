//! Hooks: what others may see of a run, change and refuse, at points that are named here once.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_graph::{Object, Value};
use hotcell_models::{Message, Role};

use crate::call_site::CallSite;

/// A point in a run at which hooks are told what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HookPoint {
    /// A run begins: `graph`, `input`, `variables`. May be refused.
    BeforeRun,
    /// A run ended: `graph`, `status`, and `output` or `error`. Only told.
    AfterRun,
    /// A node's turn begins: `node`, `kind`, `state`. May be refused.
    BeforeNode,
    /// A node is done: `node`, `writes`. The values of `writes` may be changed; may be refused.
    AfterNode,
    /// A node failed: `node`, `error`. Only told.
    NodeFailed,
    /// A model is about to be asked: `node`, `model`, `messages` (each `role` and `content`), `tools`. The contents of
    /// the messages may be changed; may be refused.
    BeforeModelCall,
    /// A model answered: `node`, `reply` with `text` and `tool_calls`. The text may be changed; may be refused.
    AfterModelCall,
    /// A tool is about to be called: `node`, `tool`, `arguments`; where a plugin calls it, `caller` and
    /// `node` are the plugin, here and at the other points. The arguments may be changed; may be refused, which
    /// the model is told.
    BeforeToolCall,
    /// A tool answered: `node`, `tool`, `result`. The result may be changed; may be refused, which the model is told.
    AfterToolCall,
    /// An agent is about to be called: `node`, `agent`, `prompt`. The prompt may be changed; may be refused.
    BeforeAgentCall,
    /// An agent answered: `node`, `agent`, `output`. The output may be changed; may be refused.
    AfterAgentCall,
    /// A person is about to be asked: `node`, `question`. The question may be changed; may be refused.
    BeforeQuestion,
    /// A person answered: `node`, `question`, `answer`. The answer may be changed; may be refused.
    AfterQuestion,
    /// A skill is about to be loaded: `node`, `skill`, `version`. May be refused, which a model is told.
    BeforeSkillLoad,
    /// A skill was loaded: `node`, `skill`, `version`, `content`, `tools`. The content may be changed; may be refused.
    AfterSkillLoad,
    /// The tools of a skill are about to be taken away: `node`, `skill`, `version`. May be refused.
    BeforeSkillUnload,
    /// They were taken away: `node`, `skill`, `version`, `tools`. Only told.
    AfterSkillUnload,
}

impl HookPoint {
    /// All of them.
    pub const ALL: [HookPoint; 17] = [
        HookPoint::BeforeRun,
        HookPoint::AfterRun,
        HookPoint::BeforeNode,
        HookPoint::AfterNode,
        HookPoint::NodeFailed,
        HookPoint::BeforeModelCall,
        HookPoint::AfterModelCall,
        HookPoint::BeforeToolCall,
        HookPoint::AfterToolCall,
        HookPoint::BeforeAgentCall,
        HookPoint::AfterAgentCall,
        HookPoint::BeforeQuestion,
        HookPoint::AfterQuestion,
        HookPoint::BeforeSkillLoad,
        HookPoint::AfterSkillLoad,
        HookPoint::BeforeSkillUnload,
        HookPoint::AfterSkillUnload,
    ];

    /// The name that the contract of plugins has for it.
    pub fn name(self) -> &'static str {
        match self {
            HookPoint::BeforeRun => "before-run",
            HookPoint::AfterRun => "after-run",
            HookPoint::BeforeNode => "before-node",
            HookPoint::AfterNode => "after-node",
            HookPoint::NodeFailed => "node-failed",
            HookPoint::BeforeModelCall => "before-model-call",
            HookPoint::AfterModelCall => "after-model-call",
            HookPoint::BeforeToolCall => "before-tool-call",
            HookPoint::AfterToolCall => "after-tool-call",
            HookPoint::BeforeAgentCall => "before-agent-call",
            HookPoint::AfterAgentCall => "after-agent-call",
            HookPoint::BeforeQuestion => "before-question",
            HookPoint::AfterQuestion => "after-question",
            HookPoint::BeforeSkillLoad => "before-skill-load",
            HookPoint::AfterSkillLoad => "after-skill-load",
            HookPoint::BeforeSkillUnload => "before-skill-unload",
            HookPoint::AfterSkillUnload => "after-skill-unload",
        }
    }

    /// Whether a hook may change something there.
    pub fn takes_changes(self) -> bool {
        !matches!(
            self,
            HookPoint::BeforeRun
                | HookPoint::AfterRun
                | HookPoint::BeforeNode
                | HookPoint::NodeFailed
                | HookPoint::BeforeSkillLoad
                | HookPoint::BeforeSkillUnload
                | HookPoint::AfterSkillUnload
        )
    }
}

/// What became of an event after all hooks were told.
#[derive(Clone, Debug, PartialEq)]
pub enum HookVerdict {
    /// It goes on as it is
    Proceed,
    /// It goes on with this object in its place
    Change(Object),
    /// It does not go on; says which hook refuses and why
    Refuse(String),
}

/// Hooks around what a run does.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Whether anybody listens at that point. Events are only made for those who do.
    fn listens(&self, point: HookPoint) -> bool;

    /// Tells all who listen, in order; each sees what the one before made of the event.
    async fn tell(
        &self,
        point: HookPoint,
        event: Object,
        budget_scope: &Arc<BudgetScope>,
        site: &CallSite,
    ) -> (HookVerdict, Account);
}

/// An event from its entries.
pub(crate) fn event<const N: usize>(entries: [(&str, Value); N]) -> Object {
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

/// Messages as hooks see them.
pub(crate) fn messages(messages: &[Message]) -> Value {
    let message = |message: &Message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        Value::Object(event([("role", role.into()), ("content", message.content.as_str().into())]))
    };
    Value::List(messages.iter().map(message).collect())
}
