//! What a mesh says about being watched: its manager, who is told of failures, and how well it is to do.

use std::time::Duration;

use hotcell_graph::{Object, Value};

use super::hidden::Hidden;

/// Who watches a mesh, and who is told when something goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagerSettings {
    /// Whether it may call agents that were not called (`can_intervene`)
    pub can_intervene: bool,
    /// How it learns which agents are worth calling; none if it does not
    pub learning: Option<LearningSettings>,
    /// Whom it tells
    pub targets: Vec<EscalationTarget>,
    /// How many failures of a session make it tell them
    pub max_errors_per_session: u32,
    /// How many questions one after the other that nobody answered make it tell them; none if they never do
    pub timeout_threshold: Option<u32>,
}

/// From when on an agent counts as ill (`self_healing`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Healing {
    /// After so many failures one after the other
    pub consecutive_failures: u32,
    /// When more than this share of its latest runs failed
    pub error_rate: f64,
    /// How long nobody is told again
    pub cooldown: Duration,
}

/// How better settings of a mesh are looked for (`evolution`).
#[derive(Clone, Debug, PartialEq)]
pub struct Evolution {
    /// How many choices of settings are looked at in a generation
    pub population: u32,
    /// How many generations there are
    pub generations: u32,
    /// How likely a setting of a new choice is another one
    pub mutation_rate: f64,
    /// How likely a new choice has settings of two earlier ones
    pub crossover_rate: f64,
    /// How many of the best are kept as they are
    pub elite: u32,
    /// What is varied
    pub mutations: Vec<String>,
    /// What it says that hotcell does not do
    pub unknown: Vec<String>,
}

impl Default for Evolution {
    fn default() -> Self {
        Evolution {
            population: 20,
            generations: 50,
            mutation_rate: 0.1,
            crossover_rate: 0.7,
            elite: 2,
            mutations: super::genes::USUAL.map(str::to_owned).into(),
            unknown: Vec::new(),
        }
    }
}

/// How it is learnt which of the agents that an agent always calls are worth it (`manager.routing`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningSettings {
    /// How many calls of an agent are remembered
    pub memory_size: u32,
    /// How certain it has to be that another one is worth it
    pub confidence: f64,
    /// After how many days a call counts for a third
    pub decay_days: u32,
}

/// Something that a mesh is asked to see how well it does it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What it is called
    pub name: String,
    /// The entry point that is called
    pub entry_point: String,
    /// What with
    pub input: Value,
    /// What the output has to have
    pub expected: Object,
    /// How much it counts
    pub weight: f64,
    /// How long it may take
    pub timeout: Duration,
}

/// Somebody who is told when something goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum EscalationTarget {
    /// An agent is called in the session
    Agent {
        /// The agent
        agent: String,
        /// The entry point that is named
        entry_point: Option<String>,
    },
    /// A post is sent
    Webhook {
        /// The address
        url: String,
        /// `POST`, `PUT` or `PATCH`
        method: String,
        /// Its headers
        headers: Hidden<Vec<(String, String)>>,
        /// What is sent, with `{{name}}` in its texts
        payload: Option<Value>,
    },
    /// A message is written to a channel
    Channel {
        /// The provider
        provider: String,
        /// Where to; none for `post_channel` of the channel
        channel_id: Option<String>,
        /// The text, with `{{name}}` in it
        message: Option<String>,
    },
}

impl EscalationTarget {
    /// What texts of targets may name
    pub const VARIABLES: [&'static str; 7] =
        ["session_id", "agent", "severity", "severity_level", "message", "error_message", "error_type"];
}
