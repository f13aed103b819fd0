//! Requests of guests that were denied.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::capability::{Capability, quoted};

/// A request of a guest that was denied, told to the operator with the lines that would grant it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The script or plugin, by the name grants are given to.
    pub plugin: String,
    /// What it asked for.
    #[serde(flatten)]
    pub capability: Capability,
    /// Whether `hotcell.toml` grants it and does not count, because the operator does not trust it.
    #[serde(default, skip_serializing_if = "crate::grants::is_default")]
    pub held_back: bool,
    /// Whether the plugin does not even ask for it, so that nobody can grant it.
    #[serde(default, skip_serializing_if = "crate::grants::is_default")]
    pub unasked: bool,
}

impl Denial {
    /// Who asked for what.
    pub fn what(&self) -> String {
        format!("`{}` asked for {}, which is not granted", self.plugin, self.capability)
    }

    /// What would grant it.
    pub fn help(&self) -> String {
        if self.held_back {
            return "`hotcell.toml` would grant it, but is not trusted in its current state; review it with `hotcell trust DIR`"
                .to_owned();
        }
        if self.unasked {
            return "its description does not ask for it, so nobody can grant it; its author adds it to `capabilities`"
                .to_owned();
        }
        match self.capability.grant_line() {
            Some(line) => format!("to grant it, write into `hotcell.toml`:\n[grants.{}]\n{line}", quoted(&self.plugin)),
            None => "nothing grants it".to_owned(),
        }
    }

    /// A request of the script or plugin of that name that was denied.
    pub fn new(plugin: impl Into<String>, capability: Capability) -> Self {
        Self { plugin: plugin.into(), capability, held_back: false, unasked: false }
    }

    /// The same with other texts in the place of what the guest wrote.
    pub(crate) fn map_texts(mut self, change: impl Fn(String) -> String) -> Self {
        let texts = match &mut self.capability {
            Capability::Directory { guest: one, .. }
            | Capability::Variable { name: one }
            | Capability::Tool { name: one } => {
                vec![one]
            }
            Capability::Http { server, method, .. } => vec![server, method],
            Capability::Secret { name, server } => std::iter::once(name).chain(server).collect(),
            Capability::Socket
            | Capability::PreciseClock
            | Capability::FreshRandom
            | Capability::KeyValue
            | Capability::Model
            | Capability::Ask
            | Capability::Process => Vec::new(),
        };
        for text in texts {
            *text = change(std::mem::take(text));
        }
        self
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.help())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::{Access, HttpGrant};

    #[test]
    fn every_text_of_a_denial_can_be_changed() {
        let name = || "hush".to_owned();
        for capability in [
            Capability::Directory { guest: name(), access: Access::Read },
            Capability::Http { server: name(), method: name(), private: false },
            Capability::Variable { name: name() },
            Capability::Secret { name: name(), server: Some(name()) },
            Capability::Tool { name: name() },
        ] {
            let denial = Denial::new("p", capability);
            assert!(denial.to_string().contains("hush"));
            let changed = denial.map_texts(|text| text.replace("hush", "(secret)"));
            assert!(!changed.to_string().contains("hush"), "{changed}");
        }
    }

    #[test]
    fn a_denial_is_written_in_full() -> Result<(), Box<dyn std::error::Error>> {
        let grant: HttpGrant = "https://api.example.org".parse()?;
        let capability = Capability::Http { server: grant.to_string(), method: "GET".to_owned(), private: false };
        let denial = Denial::new("scripts/fetch.py", capability);
        let expected = "`scripts/fetch.py` asked for `http` for `GET https://api.example.org`, which is not granted; \
                        to grant it, write into `hotcell.toml`:\n[grants.\"scripts/fetch.py\"]\n\
                        http = [\"https://api.example.org\"]";
        assert_eq!(denial.to_string(), expected);
        assert_eq!(
            serde_json::to_string(&denial)?,
            r#"{"plugin":"scripts/fetch.py","capability":"http","server":"https://api.example.org","method":"GET","private":false}"#
        );
        Ok(())
    }
}
