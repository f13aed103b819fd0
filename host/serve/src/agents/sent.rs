//! Agents that somebody sent to the server: each in a folder of the server's own, which is exchanged as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hotcell_runtime::{Host, Unsettled, discover};
use http::StatusCode;
use serde_json::json;
use tempfile::TempDir;

use super::bundle::{BundleError, unpack};
use super::trouble::in_words;
use super::{Agents, lies_below, unit};
use crate::problem::{Problem, shown};

/// Characters of the name of an agent that is sent.
const MAX_NAME: usize = 64;
/// Agents that may be sent.
const MAX_SENT: usize = 1000;
/// Files and folders that all of them together may have: further ones would not be looked at for agents.
const MAX_FILES: usize = 20_000;
/// How the names of folders begin that are not served: new ones, those that are being replaced, and those that are removed.
const NEW: &str = ".new-";
const OLD: &str = ".old-";
const GONE: &str = ".gone-";

/// Whether an agent that is sent is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    New,
    InPlace,
}

/// Puts right what a server left that ended while an agent was exchanged.
pub(super) fn recover(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match name.strip_prefix(OLD).map(|id| folder.join(id)) {
            Some(place) if !place.exists() => fs::rename(entry.path(), place)?,
            Some(_) => fs::remove_dir_all(entry.path())?,
            None if [NEW, GONE].iter().any(|prefix| name.starts_with(prefix)) => fs::remove_dir_all(entry.path())?,
            None => {}
        }
    }
    Ok(())
}

impl Agents {
    /// The folder of agents that were sent.
    fn sent(&self) -> Result<&Path, Problem> {
        let sent = self.roots.iter().find(|root| root.is_sent).map(|root| root.path.as_path());
        sent.ok_or_else(|| {
            let detail = "the server keeps nothing, so no agents can be sent to it; start it with a journal in a file";
            Problem::new(StatusCode::NOT_IMPLEMENTED, detail)
        })
    }

    /// Whether an agent was sent.
    pub(crate) fn was_sent(&self, source: &str) -> bool {
        self.roots.iter().any(|root| root.is_sent && lies_below(source, &root.path))
    }

    /// Takes an agent that somebody sent. What it brings grants nothing. It is served when somebody looks the next time.
    ///
    /// # Errors
    /// When it cannot be unpacked or loaded, or another one is called like it. Nothing is changed then.
    pub(crate) async fn take(&self, id: &str, bundle: Vec<u8>, sending: Sending) -> Result<(), Problem> {
        check_name(id)?;
        let _sending = self.sending.lock().await;
        let sent = self.sent()?.to_owned();
        let place = sent.join(id);
        match (sending, place.exists()) {
            (Sending::New, true) => return Err(taken(id, "; `PUT /agents/{agent_id}` replaces it")),
            (Sending::InPlace, false) => return Err(self.not_sent(id)),
            _ => {}
        }
        let count = fs::read_dir(&sent).map_err(|error| Problem::internal(&error))?.count();
        if sending == Sending::New && count >= MAX_SENT {
            let detail = format!("the server has {MAX_SENT} agents that were sent, which is its limit; delete one");
            return Err(Problem::conflict(detail).with("limit", MAX_SENT));
        }
        let new = tempfile::Builder::new().prefix(NEW).tempdir_in(&sent).map_err(|error| Problem::internal(&error))?;
        let (folder, all, before) = (new.path().to_owned(), sent.clone(), place.clone());
        let unpacking = move || unpack(&bundle, &folder).map(|()| files(&all).saturating_sub(files(&before)));
        let unpacked = tokio::task::spawn_blocking(unpacking).await;
        let files = unpacked.map_err(|error| Problem::internal(&error))??;
        if files >= MAX_FILES {
            let detail = format!(
                "all agents that were sent would have {files} files and folders, and the limit is {MAX_FILES}; delete one"
            );
            return Err(Problem::conflict(detail).with("limit", MAX_FILES));
        }
        for found in self.check(new.path(), id).await? {
            let other =
                self.find(&found).ok().filter(|(other, agent)| *other == found && !lies_below(agent.source(), &place));
            if other.is_some() {
                return Err(taken(&found, ""));
            }
        }
        self.put(new, &sent, id).await.map_err(|error| Problem::internal(&error))
    }

    /// Whether the agents of a folder can be loaded, and what they will be called.
    async fn check(&self, folder: &Path, id: &str) -> Result<Vec<String>, Problem> {
        let place = folder.to_owned();
        let found = tokio::task::spawn_blocking(move || discover(&place)).await;
        let found = found.map_err(|error| Problem::internal(&error))?;
        if found.is_empty() {
            let detail = "there is no agent in the bundle: no file in a language that hotcell reads";
            return Err(Problem::unprocessable(detail).kind("no-agent", "The bundle has no agent"));
        }
        let own = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (mut ids, mut errors) = (Vec::new(), Vec::new());
        for one in found {
            // All agents of a file, as they are loaded when they are served.
            match unit::load(&self.host, &one, false).await.result {
                Ok(agents) => ids.extend(agents.into_iter().map(|(found, _)| match found.strip_prefix(&*own) {
                    Some(name) if one.id == own => format!("{id}{name}"),
                    _ => format!("{id}.{found}"),
                })),
                Err(Unsettled::Failed(failure)) => errors.push(in_words(&self.host, &one.path, &failure)),
                Err(Unsettled::Changing(_)) => {
                    return Err(Problem::internal(&"the folder of a new agent was changed by somebody else"));
                }
            }
        }
        match errors.is_empty() {
            true => Ok(ids),
            false => {
                let detail = format!("the agent cannot be loaded, and nothing was changed: {}", errors.join("\n"));
                Err(Problem::unprocessable(detail)
                    .kind("agent-broken", "The agent cannot be loaded")
                    .with("errors", json!(errors)))
            }
        }
    }

    /// Puts a folder in its place.
    async fn put(&self, new: TempDir, sent: &Path, id: &str) -> io::Result<()> {
        // Nobody looks at it while nothing is there.
        let _refreshing = self.refreshing.lock().await;
        let (place, old) = (sent.join(id), sent.join(format!("{OLD}{id}")));
        forget(&self.host, &place)?;
        match fs::rename(&place, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if let Err(error) = fs::rename(new.path(), &place) {
            let _ = fs::rename(&old, &place);
            return Err(error);
        }
        // It has moved.
        let _ = new.keep();
        match fs::remove_dir_all(&old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(target: "hotcell::serve", %error, "a folder that is not needed any more cannot be removed");
            }
            _ => {}
        }
        Ok(())
    }

    /// Removes an agent that was sent. It is served until somebody looks the next time, and what is under way of it ends.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) async fn remove(&self, id: &str) -> Result<(), Problem> {
        check_name(id)?;
        let _sending = self.sending.lock().await;
        let sent = self.sent()?;
        let (place, gone) = (sent.join(id), sent.join(format!("{GONE}{id}")));
        if !place.exists() {
            return Err(self.not_sent(id));
        }
        forget(&self.host, &place)
            .and_then(|()| fs::rename(&place, &gone))
            .map_err(|error| Problem::internal(&error))?;
        // What is left of it goes at the next start.
        if let Err(error) = fs::remove_dir_all(&gone) {
            tracing::warn!(target: "hotcell::serve", %error, "the folder of a removed agent cannot be removed");
        }
        Ok(())
    }

    /// What is said of an agent that nobody sent.
    fn not_sent(&self, id: &str) -> Problem {
        match self.find(id) {
            Ok((own, _)) if own == id => {
                let detail = format!("agent `{id}` was not sent to the server: change its files");
                Problem::conflict(detail).kind("agent-not-sent", "The agent is one of the server's folders")
            }
            _ => {
                let detail = format!("no agent `{id}` was sent to the server; `POST /agents` takes a new one");
                Problem::not_found(detail).kind("unknown-agent", "There is no such agent")
            }
        }
    }
}

/// How many files and folders lie in a folder; bundles are only so deep.
fn files(folder: &Path) -> usize {
    let within = |entry: &fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files(&entry.path()),
        _ => 0,
    };
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| 1 + within(&entry)).sum()
}

/// What was trusted at this path is not what lies there from now on.
fn forget(host: &Host, folder: &Path) -> io::Result<()> {
    host.trust().forget(folder).map_err(io::Error::other)
}

fn check_name(id: &str) -> Result<(), Problem> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !id.is_empty() && id.len() <= MAX_NAME && id.chars().all(fits) {
        true => Ok(()),
        false => {
            let detail = format!(
                "`{}` is not a valid name for an agent: letters, digits, `_` and `-` make one, {MAX_NAME} at most",
                shown(id)
            );
            Err(Problem::unprocessable(detail))
        }
    }
}

fn taken(id: &str, help: &str) -> Problem {
    Problem::conflict(format!("there is an agent `{id}` already{help}")).kind("agent-exists", "There is such an agent")
}

impl From<BundleError> for Problem {
    fn from(error: BundleError) -> Self {
        let text = error.to_string();
        match error {
            BundleError::Format(_) => Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text),
            BundleError::TooMuch { limit, .. } => {
                Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text).with("limit", limit)
            }
            BundleError::Broken(_) | BundleError::Path { .. } => Problem::unprocessable(text),
            BundleError::Write(error) => Problem::internal(&error),
        }
    }
}

/// Where agents are kept that are sent, beside the server's file.
pub(crate) fn place_of(file: &Path) -> PathBuf {
    file.with_extension("agents")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_exchanged_when_the_server_ended_is_whole_at_the_next_start() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("agents");
        let make = |name: &str, text: &str| {
            fs::create_dir_all(folder.join(name)).expect("made");
            fs::write(folder.join(name).join("graph.yaml"), text).expect("written");
        };
        make(".new-x1", "half");
        make(".old-a", "before");
        make(".old-b", "before");
        make("b", "after");
        make(".gone-c", "removed");
        make("d", "other");
        recover(&folder).expect("whole");
        let mut names: Vec<_> = fs::read_dir(&folder)
            .expect("read")
            .map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["a", "b", "d"]);
        let text = |name: &str| fs::read_to_string(folder.join(name).join("graph.yaml")).expect("read");
        assert_eq!((text("a"), text("b")), ("before".to_owned(), "after".to_owned()));
    }
}
