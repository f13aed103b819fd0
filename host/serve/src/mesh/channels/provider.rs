//! The chat providers: where their servers are, and which secret may go to which of them.

use std::collections::BTreeMap;

use hotcell_runtime::leafmesh::{AgentSettings, ChannelSettings, HumanInterface, MeshSettings};
use url::Url;

/// Servers of providers that are not at their usual place, by their names.
pub(super) type Moved = BTreeMap<String, Url>;

/// Where a server of a provider is.
///
/// # Errors
/// When its name is none.
pub(super) fn address(moved: &Moved, host: &str) -> Result<Url, String> {
    let usual =
        || Url::parse(&format!("https://{host}")).map_err(|error| format!("`{host}` is not a valid name: {error}"));
    moved.get(host).cloned().map_or_else(usual, Ok)
}

/// A chat provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::mesh) enum Provider {
    Slack,
    Telegram,
    Discord,
    Whatsapp,
    Teams,
}

/// One of a provider's servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its own
    Api,
    /// Where tokens come from
    Login,
    /// Where a post said that answers go
    Service,
}

impl Place {
    /// The one that an adapter calls that.
    pub(super) fn named(word: &str) -> Option<Self> {
        match word {
            "api" => Some(Place::Api),
            "login" => Some(Place::Login),
            "service" => Some(Place::Service),
            _ => None,
        }
    }
}

impl Provider {
    const ALL: [Provider; 5] =
        [Provider::Slack, Provider::Telegram, Provider::Discord, Provider::Whatsapp, Provider::Teams];

    /// What it is called in a mesh.
    pub(in crate::mesh) fn word(self) -> &'static str {
        match self {
            Provider::Slack => "slack",
            Provider::Telegram => "telegram",
            Provider::Discord => "discord",
            Provider::Whatsapp => "whatsapp",
            Provider::Teams => "teams",
        }
    }

    /// The one that is called that.
    pub(in crate::mesh) fn named(word: &str) -> Option<Self> {
        Provider::ALL.into_iter().find(|provider| provider.word() == word)
    }

    /// The name of a server of it that is always the same.
    pub(super) fn host(self, place: Place) -> Option<&'static str> {
        match (self, place) {
            (Provider::Slack, Place::Api) => Some("slack.com"),
            (Provider::Telegram, Place::Api) => Some("api.telegram.org"),
            (Provider::Discord, Place::Api) => Some("discord.com"),
            (Provider::Whatsapp, Place::Api) => Some("graph.facebook.com"),
            (Provider::Teams, Place::Login) => Some("login.microsoftonline.com"),
            _ => None,
        }
    }

    /// Whether a secret of a channel may go to a server.
    pub(super) fn may_send(self, secret: &str, to: Place) -> bool {
        match self {
            Provider::Teams => {
                matches!(
                    (secret, to),
                    ("bot_token" | "signing_secret", Place::Login) | ("access_token", Place::Service)
                )
            }
            _ => (secret, to) == ("bot_token", Place::Api),
        }
    }

    /// What a person is reached by there.
    pub(super) fn settings_of(self, agent: &AgentSettings) -> Option<&ChannelSettings> {
        let human = agent.human.as_ref().filter(|human| human.interface == HumanInterface::Webhook)?;
        human.channels.iter().find(|channel| channel.provider == self.word())
    }

    /// The channel of an agent of a mesh, with the agent.
    pub(super) fn of(self, mesh: &MeshSettings, agent: &str) -> Option<(AgentSettings, ChannelSettings)> {
        let agent = mesh.agent(agent)?;
        Some((agent.clone(), self.settings_of(agent)?.clone()))
    }
}
