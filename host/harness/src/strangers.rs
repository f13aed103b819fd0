//! Hostile graphs, servers and clients: what they bring or send, and what has to be said when they are stopped. They are data:
//! one file of `hostile/graphs`, `hostile/servers` or `hostile/clients` each.
//!
//! ```toml
//! tries = "nests a hundred thousand lists in each other"
//! expects = "nested more than 128 levels deep"
//! files."graph.yaml" = ["name: ", { times = 100000, text = "[" }]
//! ```
//!
//! Whoever runs them is elsewhere: this crate knows neither graphs nor servers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rust_embed::Embed;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

#[derive(Embed)]
#[folder = "hostile/graphs"]
#[include = "*.toml"]
struct Graphs;

#[derive(Embed)]
#[folder = "hostile/servers"]
#[include = "*.toml"]
struct Servers;

#[derive(Embed)]
#[folder = "hostile/clients"]
#[include = "*.toml"]
struct Clients;

/// Somebody hostile.
#[derive(Clone, Debug)]
pub struct Stranger<T> {
    /// The name of its file, without the ending
    pub name: String,
    /// What it tries, in its own words
    pub tries: String,
    /// A part of what has to be said when it is stopped
    pub expects: String,
    /// What it brings or sends
    pub brings: T,
}

/// The folder of a hostile agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostileGraph {
    /// Its files, by their paths
    pub files: BTreeMap<String, Text>,
    /// The file that is loaded; otherwise the folder is
    pub load: Option<String>,
    /// Whether it is run, and not only loaded
    #[serde(default)]
    pub run: bool,
    /// What it is run with
    pub input: Option<String>,
}

/// A server that an agent was granted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostileServer {
    /// What it is to the agent
    pub serves: Serves,
    /// What it answers, by the method of a request of the Model Context Protocol; `*` stands for all that have no answer of their own
    pub replies: BTreeMap<String, Reply>,
}

/// What a server is to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Serves {
    /// A model
    Model,
    /// Tools, by the Model Context Protocol
    Tools,
    /// What a script asks, with a secret
    Script,
}

/// What a server sends, as it goes over the wire. `%id` is the id of the request, `%authorization` what its header says, `%hex`,
/// `%percent`, `%numbers`, `%wide` and `%capitals` the same in other words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The beginning
    pub send: Text,
    /// What follows
    #[serde(default)]
    pub then: Then,
}

/// What follows the beginning of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Then {
    /// The connection is closed
    #[default]
    Close,
    /// Nothing more is sent, and the connection stays open
    Silence,
    /// This is sent over and over
    Forever(String),
    /// This is sent over and over, a piece every tenth of a second
    Slowly(String),
}

/// A client of `hotcell serve`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostileClient {
    /// How many connections it opens at once
    #[serde(default = "one")]
    pub connections: usize,
    /// What it sends over each of them; `%host` is the address of the server
    pub send: Text,
    /// What follows
    #[serde(default = "silence")]
    pub then: Then,
}

fn one() -> usize {
    1
}

fn silence() -> Then {
    Then::Silence
}

/// A text that may be long for its place in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// As it is
    Plain(String),
    /// In pieces
    Pieces(Vec<Piece>),
}

/// A piece of a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Piece {
    /// As it is
    Plain(String),
    /// So many times; `%i` is how often it was there before, `%j` one more
    Repeated {
        /// How often
        times: usize,
        /// What
        text: String,
    },
}

impl Text {
    /// The text, written out.
    pub fn written_out(&self) -> Cow<'_, str> {
        match self {
            Text::Plain(text) => text.into(),
            Text::Pieces(pieces) => pieces.iter().map(Piece::written_out).collect::<String>().into(),
        }
    }
}

impl Piece {
    fn written_out(&self) -> Cow<'_, str> {
        match self {
            Piece::Plain(text) => text.into(),
            Piece::Repeated { times, text } if !text.contains('%') => text.repeat(*times).into(),
            Piece::Repeated { times, text } => {
                let each = |at: usize| text.replace("%i", &at.to_string()).replace("%j", &(at + 1).to_string());
                (0..*times).map(each).collect::<String>().into()
            }
        }
    }
}

/// Why strangers cannot be read.
#[derive(Debug, Error)]
#[error("cannot use `{file}`: {reason}")]
pub struct StrangerError {
    file: String,
    reason: String,
}

/// The hostile graphs that hotcell carries, by their names.
///
/// # Errors
/// When one is not of its form.
pub fn hostile_graphs() -> Result<Vec<Stranger<HostileGraph>>, StrangerError> {
    read::<Graphs, _>()
}

/// The hostile servers that hotcell carries, by their names.
///
/// # Errors
/// When one is not of its form.
pub fn hostile_servers() -> Result<Vec<Stranger<HostileServer>>, StrangerError> {
    read::<Servers, _>()
}

/// The hostile clients that hotcell carries, by their names.
///
/// # Errors
/// When one is not of its form.
pub fn hostile_clients() -> Result<Vec<Stranger<HostileClient>>, StrangerError> {
    read::<Clients, _>()
}

fn read<Files: Embed, T: DeserializeOwned>() -> Result<Vec<Stranger<T>>, StrangerError> {
    let mut files: Vec<Cow<'static, str>> = Files::iter().collect();
    files.sort();
    let one = |file: Cow<'static, str>| {
        let wrong = |reason: String| StrangerError { file: file.to_string(), reason };
        let data = Files::get(&file).map(|file| file.data).unwrap_or_default();
        let text = std::str::from_utf8(&data).map_err(|error| wrong(error.to_string()))?;
        Stranger::read(file.trim_end_matches(".toml"), text).map_err(wrong)
    };
    files.into_iter().map(one).collect()
}

impl<T: DeserializeOwned> Stranger<T> {
    fn read(name: &str, text: &str) -> Result<Self, String> {
        let mut table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut take = |key: &str| match table.remove(key) {
            Some(toml::Value::String(text)) => Ok(text),
            _ => Err(format!("it has no `{key}`")),
        };
        let (tries, expects) = (take("tries")?, take("expects")?);
        let brings = table.try_into().map_err(|error: toml::de::Error| error.to_string())?;
        Ok(Stranger { name: name.to_owned(), tries, expects, brings })
    }
}

#[cfg(test)]
mod tests {
    use super::{HostileGraph, Stranger, Text, hostile_clients, hostile_graphs, hostile_servers};

    fn text(written: &str) -> String {
        #[derive(serde::Deserialize)]
        struct One {
            text: Text,
        }
        let one: One = toml::from_str(&format!("text = {written}")).unwrap();
        one.text.written_out().into_owned()
    }

    #[test]
    fn every_stranger_says_what_it_tries_and_what_has_to_stop_it() {
        let graphs = hostile_graphs().unwrap();
        let mut said: Vec<(String, String, String)> =
            graphs.into_iter().map(|one| (one.name, one.tries, one.expects)).collect();
        said.extend(hostile_servers().unwrap().into_iter().map(|one| (one.name, one.tries, one.expects)));
        said.extend(hostile_clients().unwrap().into_iter().map(|one| (one.name, one.tries, one.expects)));
        assert!(said.len() >= 55, "{}", said.len());
        for (name, tries, expects) in said {
            assert!(!tries.is_empty() && !expects.is_empty(), "{name}");
        }
        // Of each language there are some.
        let graphs = hostile_graphs().unwrap();
        for language in ["loki-", "sherma-", "agent-spec-", "agentloom-", "leafmesh-"] {
            assert!(graphs.iter().filter(|graph| graph.name.starts_with(language)).count() >= 4, "{language}");
        }
    }

    #[test]
    fn pieces_are_repeated_and_counted() {
        assert_eq!(text("'a%i'"), "a%i");
        assert_eq!(text("['a', { times = 3, text = 'b' }]"), "abbb");
        assert_eq!(text("[{ times = 2, text = '%i-%j,' }]"), "0-1,1-2,");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let read = |text: &str| Stranger::<HostileGraph>::read("x", text);
        let good = "tries = 'x'\nexpects = 'y'\n[files]\na = 'b'\n";
        assert!(read(good).is_ok());
        for wrong in [format!("more = 1\n{good}"), good.replace("expects", "expect"), good.replace("'b'", "1")] {
            assert!(read(&wrong).is_err(), "{wrong}");
        }
    }
}
