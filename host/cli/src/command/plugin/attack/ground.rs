//! Where hostile folders are made: a place of its own, with a key beside them that nobody there may have.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::plugins::Trust;
use hotcell_runtime::{
    Agent, CancellationToken, Environment, Host, HostOptions, LoadFailure, Nobody, Outcome, RunInput, Session,
};

/// What nobody there may have.
pub(super) const KEY: &str = "the-key-of-the-person";
/// What a program leaves that should not have been started.
pub(super) const TRACE: &str = "started";
/// How long an attack may take that is stopped.
pub(super) const LONGEST: Duration = Duration::from_secs(45);

/// Where folders are made.
pub(super) struct Ground {
    place: tempfile::TempDir,
    host: Host,
}

impl Ground {
    /// A place whose host has the key and these variables.
    pub(super) fn new(beside: &Host, variables: &[(&str, &str)]) -> Result<Self, String> {
        let place = tempfile::tempdir().map_err(|error| error.to_string())?;
        let variables = [("KEY", KEY)].iter().chain(variables).copied();
        let options = HostOptions {
            trust: Some(Trust::Listed(place.path().join("trust.toml"))),
            environment: Environment::of(variables),
            ..HostOptions::isolated()
        };
        let host = beside.beside(options).map_err(|error| error.to_string())?;
        let ground = Ground { place, host };
        ground.write("key", KEY)?;
        Ok(ground)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path(name);
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text)).map_err(|error| error.to_string())
    }

    #[cfg(unix)]
    pub(super) fn link(&self, to: &str, name: &str) -> Result<(), String> {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(|error| error.to_string())?;
        std::os::unix::fs::symlink(self.path(to), path).map_err(|error| error.to_string())
    }

    #[cfg(not(unix))]
    pub(super) fn link(&self, _: &str, _: &str) -> Result<(), String> {
        Err("links are not made on this system".to_owned())
    }

    pub(super) fn trust(&self, folder: &str) -> Result<(), String> {
        let mut folder = self.host.agent_folder(&self.path(folder)).map_err(|error| error.to_string())?;
        folder.trust(self.host.trust()).map_err(|error| error.to_string())
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// What is said when the agent is loaded.
    pub(super) fn load(&self, folder: &str) -> String {
        told(self.host.load(&self.path(folder))).1
    }

    /// The same without holding up others.
    pub(super) async fn look(&self, path: &str) -> String {
        told(self.host.load_async(&self.path(path)).await).1
    }

    /// What is said when the agent is loaded and, if it can be, run with this.
    pub(super) async fn run(&self, path: &str, input: Option<String>) -> String {
        let (agent, mut said) = told(self.host.load_async(&self.path(path)).await);
        let Some(agent) = agent else { return said };
        let session =
            Session { people: Arc::new(Nobody), observer: Arc::new(Nobody), cancel: CancellationToken::new() };
        let report = self.host.run(&agent, RunInput { input, ..RunInput::default() }, session).await;
        if let Ok(report) = &report {
            said.extend(report.failures.iter().map(|failure| format!("\n{}", failure.error)));
        }
        said.push('\n');
        said.push_str(&match report {
            Ok(report) => match report.outcome {
                Outcome::Completed { output } => format!("the run gave: {output}"),
                Outcome::Failed { error, .. } => error,
                Outcome::Stopped { reason } => reason,
                other => format!("{other:?}"),
            },
            Err(error) => error.to_string(),
        });
        said
    }

    /// What was said, if nobody got what they may not have.
    pub(super) fn held(&self, said: String) -> Result<String, String> {
        if said.contains(KEY) {
            return Err(format!("the key got out: {said}"));
        }
        if self.path(TRACE).exists() || self.path("agent").join(TRACE).exists() {
            return Err(format!("a program was started: {said}"));
        }
        Ok(said)
    }
}

/// The agent, if there is one, and what was said of it.
fn told(loaded: Result<Agent, LoadFailure>) -> (Option<Agent>, String) {
    let (agent, diagnostics) = match loaded {
        Ok(agent) => (Some(agent.clone()), agent.warnings),
        Err(failure) => (None, failure.diagnostics),
    };
    (agent, diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}
