//! What a mesh says beside its graph, for whoever serves it: how it is reached, whom it asks and when it wakes up.
//!
//! Nothing here changes what a run of the graph does. Texts have their variables put in.

use std::time::Duration;

use hotcell_graph::Object;
use hotcell_graph::ir::{Barred, WayCase};

use super::cron::Cron;
use super::hidden::Hidden;
use super::state::ENTRY_NOUN;
use super::watching::{Evolution, Healing, ManagerSettings, Scenario};

/// What a mesh says beside its graph.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshSettings {
    /// Its name
    pub name: String,
    /// Whether `environment` is `production`: what is lenient for the sake of development is strict then
    pub is_production: bool,
    /// Its entry points, in the order of the file
    pub entry_points: Vec<EntrySettings>,
    /// Its agents, in the order of the file
    pub agents: Vec<AgentSettings>,
    /// Origins that browsers may call it from (`api.cors_origins`)
    pub cors_origins: Vec<String>,
    /// What its webhooks accept (`limits.webhook_*`)
    pub webhooks: WebhookLimits,
    /// How many bytes of what was said in a session are kept (`limits.max_session_history_bytes`)
    pub max_history_bytes: u32,
    /// How long a session is there in which nothing happens (`session_ttl`)
    pub session_ttl: Duration,
    /// How late a wake-up that was missed is still made good (`scheduler.misfire_grace_s`)
    pub misfire_grace: Duration,
    /// Who watches it; none where `manager` is missing or off
    pub manager: Option<ManagerSettings>,
    /// From when on its agents count as ill; none where nobody looks
    pub healing: Option<Healing>,
    /// What it is scored by, in the order of the file (`evolution.test_scenarios`); empty where `evolution` is not enabled
    pub scenarios: Vec<Scenario>,
    /// How better settings are looked for
    pub evolution: Evolution,
}

impl MeshSettings {
    /// The agent of that name.
    pub fn agent(&self, name: &str) -> Option<&AgentSettings> {
        self.agents.iter().find(|agent| agent.name == name)
    }

    /// The entry point of that name.
    pub fn entry_point(&self, name: &str) -> Option<&EntrySettings> {
        self.entry_points.iter().find(|entry| entry.name == name)
    }
}

/// An entry point.
#[derive(Clone, Debug, PartialEq)]
pub struct EntrySettings {
    /// Its name
    pub name: String,
    /// The agent that it calls
    pub target: String,
    /// What it is for
    pub description: Option<String>,
    /// Its condition; `always` where it has none
    pub condition: String,
    pub(super) way: WayCase,
}

impl EntrySettings {
    /// Whether it may be called with this.
    ///
    /// # Errors
    /// Why it may not: its condition does not hold, or the data does not fit the data structures that its agent takes.
    pub fn admits(&self, data: &Object) -> Result<(), Barred> {
        self.way.admits(ENTRY_NOUN, data)
    }
}

/// What type of agent one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentKind {
    /// A model
    Llm,
    /// A person
    Human,
    /// A function, perhaps behind a connector
    Programmatic,
    /// An agent of another system
    External,
}

impl AgentKind {
    /// The word for it in a file.
    pub fn word(self) -> &'static str {
        match self {
            AgentKind::Llm => "llm",
            AgentKind::Human => "human",
            AgentKind::Programmatic => "programmatic",
            AgentKind::External => "external",
        }
    }
}

/// An agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSettings {
    /// Its name
    pub name: String,
    /// The name that it had before: what was kept under that is its own
    pub previous_name: Option<String>,
    /// Its type
    pub kind: AgentKind,
    /// What it is for
    pub description: Option<String>,
    /// Whether a call of it is answered as soon as it has given something, and not when all is over that it began
    /// (`communication_type: dual`)
    pub answers_first: bool,
    /// What its model is called, for one that has a model
    pub model: Option<String>,
    /// The name of its connector (`framework`, `integration`)
    pub connector: Option<String>,
    /// The tool that lets its connector work again after it was shut off, if it has one that can be
    pub release: Option<String>,
    /// How a person is reached, for one that is a person
    pub human: Option<HumanSettings>,
    /// What its models may use in a month
    pub budget: Option<BudgetSettings>,
    /// How many of the earlier messages of a session it is told; none if it is told none
    pub history: Option<u32>,
    /// Whether it remembers what was posted
    pub remembers: bool,
    /// Whether it remembers posts of other sessions that are about it
    pub remembers_others: bool,
    /// When it wakes up by itself
    pub wake_ups: Vec<WakeUp>,
    /// Whether it waits for several others (`wait_for`)
    pub waits: bool,
    /// The agents that it always calls and of which some may be left out ([`super::state::LEFT_OUT`])
    pub learnable: Vec<String>,
    /// The flags that it declares, in order: what is learnt is learnt for their values
    pub flags: Vec<String>,
}

/// What the models of an agent may use in a calendar month, in UTC. Whoever serves the mesh counts what they use, by the names of the
/// agents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetSettings {
    /// Tokens of requests and replies
    pub tokens: Option<u32>,
    /// Costs
    pub cost_usd: Option<f64>,
    /// Whether the targets of an escalation are told when it is used up
    pub escalates: bool,
}

/// How a person is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct HumanSettings {
    /// By which interface
    pub interface: HumanInterface,
    /// Where questions are posted to, and what is said of the answers
    pub webhook: Option<WebhookSettings>,
    /// Channels, in the order in which they are tried
    pub channels: Vec<ChannelSettings>,
    /// Who may answer; empty for anybody
    pub operator_ids: Vec<String>,
}

/// By which interface a person is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HumanInterface {
    /// The list of open questions
    Inbox,
    /// Questions are posted, or written to channels
    Webhook,
    /// A function answers (`api`, `custom`)
    Function,
}

impl HumanInterface {
    /// The word for it among what a question says of itself.
    pub fn word(self) -> &'static str {
        match self {
            HumanInterface::Inbox => "default",
            HumanInterface::Webhook => "webhook",
            HumanInterface::Function => "api",
        }
    }
}

/// Where questions are posted to (`webhook_config`).
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookSettings {
    /// The address
    pub outbound_url: Option<String>,
    /// Headers of each post
    pub outbound_headers: Hidden<Vec<(String, String)>>,
    /// How long one post may take
    pub outbound_timeout: Duration,
    /// How many more times it is tried
    pub max_retries: u32,
    /// How long is waited before each of them
    pub retry_delay: Duration,
    /// What keys of an answer are called here: theirs, and ours
    pub response_mapping: Vec<(String, String)>,
    /// The path at which answers arrive, if the file says one: `/webhook/NAME`
    pub inbound_endpoint: Option<String>,
    /// What has to come with an answer that is not signed
    pub inbound_auth_token: Option<Hidden<String>>,
}

/// A channel of a chat provider (`channels`).
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelSettings {
    /// `slack`, `telegram`, `discord`, `whatsapp` or `teams`
    pub provider: String,
    /// What it posts with: the token of the bot; for Teams, the id of the app
    pub bot_token: Option<Hidden<String>>,
    /// What posts of the provider are verified with; for Teams, the password of the app
    pub signing_secret: Option<Hidden<String>>,
    /// What the provider says when it checks the address (WhatsApp)
    pub verify_token: Option<Hidden<String>>,
    /// Chats that are heard; empty for all
    pub listen_channels: Vec<String>,
    /// Where questions are posted to that belong to no conversation; for WhatsApp, the number that they are sent from
    pub post_channel: Option<String>,
    /// Where the provider's service is, as long as no post has said it (Teams)
    pub service_url: Option<String>,
    /// People by what they are called here: who they are at the provider
    pub operators: Vec<(String, String)>,
    /// Whether nobody else is heard
    pub operators_only: bool,
    /// What else the provider takes: `api_version`, `tenant_id`, `bot_username`
    pub more: Vec<(String, String)>,
}

/// When an agent wakes up.
#[derive(Clone, Debug, PartialEq)]
pub struct WakeUp {
    /// When, in local time
    pub cron: Cron,
    /// The name of the time zone
    pub zone: String,
    /// What it is given
    pub input: Object,
}

/// What webhooks accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookLimits {
    /// How long a body may be
    pub max_payload_bytes: u32,
    /// How many requests of one sender are accepted in a window
    pub rate_limit_max: u32,
    /// How long that window is
    pub rate_limit_window: Duration,
    /// How far the time of a signature may be from ours
    pub replay_skew: Duration,
}

impl Default for WebhookLimits {
    fn default() -> Self {
        WebhookLimits {
            max_payload_bytes: 1024 * 1024,
            rate_limit_max: 60,
            rate_limit_window: Duration::from_secs(60),
            replay_skew: Duration::from_secs(300),
        }
    }
}
