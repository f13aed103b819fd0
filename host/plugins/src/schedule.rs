//! `[[schedule]]` of `hotcell.toml`: when a server begins runs of the folder's agents by itself.

use serde::{Deserialize, Serialize};

/// A time at which a server begins a run by itself.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSettings {
    /// What it is called, in its file
    pub name: String,
    /// The agent, where the folder has several
    #[serde(default)]
    pub agent: Option<String>,
    /// When, as a cron expression of five fields
    pub cron: String,
    /// The name of the time zone; UTC if none is given
    #[serde(default)]
    pub zone: Option<String>,
    /// What the run is given: a text, or a table with values by their names
    #[serde(default)]
    pub input: Option<toml::Value>,
    /// The thread that the runs belong to
    #[serde(default)]
    pub thread: Option<String>,
    /// Which of the times are made good that were missed
    #[serde(default)]
    pub misfire: Misfire,
    /// How late a run may begin, in seconds
    #[serde(default = "hour")]
    pub grace_seconds: u64,
}

/// How late a run may begin where nobody says otherwise.
fn hour() -> u64 {
    3600
}

/// Which of the times are made good that were missed, because no server worked or there was no place for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Misfire {
    /// The last one
    #[default]
    Last,
    /// Each of them, one after the other
    All,
    /// None
    Skip,
}

impl ScheduleSettings {
    /// The name of the time zone.
    pub fn zone(&self) -> &str {
        self.zone.as_deref().unwrap_or("UTC")
    }

    /// What it does, in plain words.
    pub(crate) fn in_words(&self) -> String {
        let agent = self.agent.as_ref().map_or_else(|| "the agent".to_owned(), |agent| format!("the agent `{agent}`"));
        format!("a server begins a run of {agent} by itself at `{}` ({})", self.cron, self.zone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_meaning_is_refused() {
        let read = |text: &str| toml::from_str::<ScheduleSettings>(text);
        let plain = read("name = 'a'\ncron = '0 9 * * *'").expect("understood");
        assert_eq!((plain.zone(), plain.misfire, plain.grace_seconds), ("UTC", Misfire::Last, 3600));
        for wrong in ["every = 1", "misfire = 'never'", "grace_seconds = -1", "zone = 1"] {
            assert!(read(&format!("name = 'a'\ncron = '0 9 * * *'\n{wrong}")).is_err(), "{wrong}");
        }
        assert!(read("name = 'a'").is_err());
    }
}
