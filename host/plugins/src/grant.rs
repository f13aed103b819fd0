//! Writing down what the operator decided: grants into `hotcell.toml`, the component into `hotcell.lock`, and the
//! folder into the list of trusted ones, because it was the operator who wrote.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hotcell_cells::{AnyServer, DirectoryGrant, Grants, HttpGrant, HttpRequested, Requests, SecretGrant};
use thiserror::Error;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::agent_folder::{AgentFolder, FolderError};
use crate::lock::Locked;
use crate::plugin::Plugin;
use crate::settings::{SETTINGS_FILE, Settings};
use crate::trust::Trust;

/// What the operator decides beyond what the plugin itself says.
#[derive(Clone, Debug, Default)]
pub struct GrantOrder {
    /// Servers, in the place of those it asks for
    pub http: Vec<HttpGrant>,
    /// Directories of the host by the plugin's paths
    pub fs: Vec<DirectoryGrant>,
    /// Only these capabilities, by name (`http`, `kv`, …); none means all
    pub only: Vec<String>,
    /// Nothing at all: the plugin is used without what it asks for
    pub nothing: bool,
    /// These capabilities as they are asked for, beside what was granted before; [`EVERYTHING`] means all of them
    pub add: Vec<String>,
}

/// What stands for all capabilities in [`GrantOrder::add`].
pub const EVERYTHING: &str = "all";

/// Why nothing was granted.
#[derive(Debug, Error)]
pub enum GrantError {
    /// The folder's own settings are not trusted yet
    #[error("the `{SETTINGS_FILE}` in `{0}` is not trusted yet; review it and run `hotcell trust {0}` first")]
    Untrusted(String),
    /// The plugin asks for a directory, and only whoever grants it can name one
    #[error("`{plugin}` asks for a directory as `{guest}`; say which with `--fs {guest}=DIRECTORY`")]
    NoDirectory {
        /// The plugin
        plugin: String,
        /// The path that it uses
        guest: String,
    },
    /// The plugin asks for servers that only whoever grants them can name
    #[error("`{plugin}` asks for servers that you name; say which with `--http https://SERVER`")]
    NoServers {
        /// The plugin
        plugin: String,
    },
    /// More would be granted than is asked for
    #[error("`{plugin}` does not ask for {beyond}")]
    Beyond {
        /// The plugin
        plugin: String,
        /// What it does not ask for
        beyond: String,
    },
    /// What is there is not what is meant
    #[error("`{0}` has been replaced meanwhile")]
    Exchanged(String),
    /// A file cannot be written or understood
    #[error("cannot change `{file}`: {cause}")]
    File {
        /// The file
        file: String,
        /// Why not
        cause: String,
    },
    /// What is said about the folder cannot be used
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl GrantOrder {
    /// The grants that this order gives to a plugin that asks for `asked`. What was granted `before` stays as narrow as it was: an
    /// update gets no more by asking for more.
    ///
    /// # Errors
    /// When something is asked for that only the operator can name, or more would be granted than is asked for.
    pub fn grants(&self, plugin: &str, asked: &Requests, before: Option<&Grants>) -> Result<Grants, GrantError> {
        if self.nothing {
            return Ok(Grants::default());
        }
        let has = asked.left_out_by(&Grants::default());
        let named = self.only.iter().chain(self.add.iter().filter(|name| *name != EVERYTHING));
        let beyond: Vec<String> =
            named.filter(|name| !has.iter().any(|one| one == name)).map(|name| format!("`{name}`")).collect();
        if !beyond.is_empty() {
            return Err(GrantError::Beyond { plugin: plugin.to_owned(), beyond: beyond.join(", ") });
        }
        let keeps = self.only.is_empty() && (before.is_some() || !self.add.is_empty());
        let adds = |name: &str| self.add.iter().any(|one| one == name || one == EVERYTHING);
        let wanted = |name: &str| match keeps {
            true => adds(name),
            false => self.only.is_empty() || self.only.iter().any(|only| only == name),
        };
        let mut grants = match before {
            Some(before) if keeps => asked.narrowed(before),
            _ => Grants::default(),
        };
        if wanted("http") || keeps && !self.http.is_empty() {
            grants.http = match self.http.is_empty() {
                false => self.http.clone(),
                true => asked_servers(plugin, asked)?,
            };
        }
        if !wanted("fs") && keeps {
            grants.fs.retain(|kept| self.fs.iter().all(|given| given.guest != kept.guest));
            grants.fs.extend(self.fs.iter().cloned());
        }
        if wanted("fs") {
            grants.fs.clear();
            for wish in &asked.fs {
                let given = self.fs.iter().chain(before.iter().flat_map(|before| &before.fs));
                match given.clone().find(|given| given.guest == wish.guest) {
                    Some(given) => grants.fs.push(given.clone()),
                    None => {
                        return Err(GrantError::NoDirectory { plugin: plugin.to_owned(), guest: wish.guest.clone() });
                    }
                }
            }
            let more = self.fs.iter().filter(|given| !asked.fs.iter().any(|wish| wish.guest == given.guest));
            grants.fs.extend(more.cloned());
        }
        if wanted("secret") {
            grants.secret.clear();
            for wish in &asked.secret {
                let servers = if wish.servers.is_empty() { grants.http.clone() } else { wish.servers.clone() };
                grants.secret.push(SecretGrant { name: wish.name.clone(), servers });
            }
        }
        if wanted("env") {
            grants.env.clone_from(&asked.env);
        }
        if wanted("tool") {
            grants.tool.clone_from(&asked.tool);
        }
        if wanted("clock") {
            grants.clock = asked.clock;
        }
        if wanted("random") {
            grants.random = asked.random;
        }
        grants.kv |= asked.kv && wanted("kv");
        grants.llm |= asked.llm && wanted("llm");
        grants.ask |= asked.ask && wanted("ask");
        let beyond = asked.exceeded_by(&grants);
        if !beyond.is_empty() {
            return Err(GrantError::Beyond { plugin: plugin.to_owned(), beyond: beyond.join(", ") });
        }
        Ok(grants)
    }
}

fn asked_servers(plugin: &str, asked: &Requests) -> Result<Vec<HttpGrant>, GrantError> {
    asked
        .http
        .iter()
        .map(|wish| match wish {
            HttpRequested::Server(server) => Ok(server.clone()),
            HttpRequested::Any(AnyServer::Any) => Err(GrantError::NoServers { plugin: plugin.to_owned() }),
        })
        .collect()
}

impl AgentFolder {
    /// Gives a plugin these grants, pins them to its component, and trusts the folder with them.
    ///
    /// # Errors
    /// When the folder's settings are not trusted yet, or a file cannot be written. Nothing is changed then.
    pub fn grant(&mut self, plugin: &Plugin, grants: &Grants, trust: &Trust) -> Result<(), GrantError> {
        let name = &plugin.description.name;
        let mut lock = self.lock.clone();
        lock.plugin.insert(name.clone(), Locked::of(plugin));
        self.write(|file, before| edited(file, before, name, Some(grants)), lock, trust)
    }

    /// Takes back all that was granted to the plugin of this name.
    ///
    /// # Errors
    /// As with [`AgentFolder::grant`].
    pub fn revoke(&mut self, name: &str, trust: &Trust) -> Result<(), GrantError> {
        let mut lock = self.lock.clone();
        lock.plugin.remove(name);
        self.write(|file, before| edited(file, before, name, None), lock, trust)
    }

    /// Writes what the settings are to be, made of what they were, and the lock.
    pub(crate) fn write(
        &mut self,
        edit: impl FnOnce(&Path, &str) -> Result<String, GrantError>,
        lock: crate::lock::Lock,
        trust: &Trust,
    ) -> Result<(), GrantError> {
        // From the look at what is there until it is written, so that nothing is lost that others of this process decide meanwhile.
        static DECIDING: Mutex<()> = Mutex::new(());
        let _deciding = DECIDING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_trusted() {
            return Err(GrantError::Untrusted(self.path().display().to_string()));
        }
        let file = self.path().join(SETTINGS_FILE);
        let failed = |cause: String| GrantError::File { file: file.display().to_string(), cause };
        // What was decided on is what is changed: not a text that came in the meantime.
        if Settings::text(self.path()).map_err(FolderError::from)?.as_deref() != self.text() {
            return Err(failed("it was changed a moment ago; try again".to_owned()));
        }
        // The folder is trusted as it is then, with all that is in it: what somebody changed meanwhile is not part of the decision.
        if !self.changes_since().is_empty() {
            return Err(FolderError::ChangedMeanwhile.into());
        }
        let before = self.text().unwrap_or_default();
        let after = edit(&file, before)?;
        // A grant without its pin waits; a pin without its grant grants nothing. So the settings come last.
        lock.write(self.path()).map_err(FolderError::from)?;
        if after != before
            && let Err(error) = hotcell_files::replace(&file, after.as_bytes())
        {
            self.lock.write(self.path()).map_err(FolderError::from)?;
            return Err(failed(error.to_string()));
        }
        *self = Self::look(self.path(), &Trust::Everything)?;
        AgentFolder::trust(self, trust)?;
        Ok(())
    }
}

/// The text of `hotcell.toml` with these grants and everything else as it was.
fn edited(file: &Path, before: &str, name: &str, grants: Option<&Grants>) -> Result<String, GrantError> {
    let failed = |cause: String| GrantError::File { file: file.display().to_string(), cause };
    let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| failed(error.to_string()))?;
    let grants = grants.filter(|grants| **grants != Grants::default());
    match grants {
        Some(grants) => {
            let text = toml::to_string(grants).map_err(|error| failed(error.to_string()))?;
            let written: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| failed(error.to_string()))?;
            let all = all_grants(&mut document).ok_or_else(|| failed("`grants` is not a table".to_owned()))?;
            let mut entry = Table::new();
            for (key, value) in written.iter() {
                entry.insert(key, inline(value));
            }
            all.insert(name, Item::Table(entry));
        }
        None => {
            if let Some(all) = document.get_mut("grants").and_then(Item::as_table_like_mut) {
                all.remove(name);
            }
        }
    }
    Ok(document.to_string())
}

/// The table with all grants, which is made if it is not there; none where something else has its name.
pub(crate) fn all_grants(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    let all = document.entry("grants").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    all.as_table_like_mut()
}

/// Lists of tables in one line each, so that the grants of a plugin stand together under its name.
pub(crate) fn inline(item: &Item) -> Item {
    match item.clone().into_value() {
        Ok(value) => Item::Value(value),
        Err(item) => item,
    }
}

#[cfg(test)]
mod tests;
