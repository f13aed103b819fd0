//! The values of secrets.

use std::path::{Component, Path, PathBuf};

use hotcell_cells::Secrets;
use hotcell_files::{FileError, Folder};
use serde::Deserialize;

use super::Settings;

/// Bytes that the file of a secret may have.
const MAX_SECRET: u64 = 64 << 10;

/// Where the value of a secret comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file, without the line end at its end.
    File(PathBuf),
}

impl Settings {
    /// The values of the secrets that are granted to a plugin. `environment` looks up variables. What has no value is
    /// left out.
    pub fn secrets(&self, plugin: &str, environment: &dyn Fn(&str) -> Option<String>) -> Secrets {
        let granted = self.grants.get(plugin).map(|grants| grants.secret.as_slice()).unwrap_or_default();
        let value = |name: &str| match self.secrets.get(name) {
            Some(SecretSource::Env(variable)) => environment(variable),
            Some(SecretSource::File(path)) => match self.read_secret(path) {
                Ok(text) => Some(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => {
                    tracing::warn!(target: "hotcell::plugin", "secret `{name}`: cannot read `{}`: {error}", path.display());
                    None
                }
            },
            None => environment(&format!("HOTCELL_SECRET_{name}")),
        };
        Secrets::new(granted.iter().filter_map(|grant| Some((grant.name.clone(), value(&grant.name)?))))
    }

    /// The text of the file of a secret. One in the agent's folder is no link that leads out of it: whoever changes the folder after it was
    /// trusted would choose whose file is sent.
    fn read_secret(&self, path: &Path) -> Result<String, FileError> {
        let written = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let lies = written.parent().and_then(|folder| folder.canonicalize().ok());
        let lies = lies.zip(written.file_name()).map(|(folder, name)| folder.join(name));
        let own = [Some(plain(&written)), lies].into_iter().flatten().find(|path| path.starts_with(&self.folder));
        match own.filter(|_| self.folder.is_absolute()) {
            Some(own) => Folder::new(&self.folder).read_text(&own, MAX_SECRET),
            None => hotcell_files::read_text(path, MAX_SECRET).map_err(FileError::System),
        }
    }
}

/// A path without `..`, as it is written: links are not looked at.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
