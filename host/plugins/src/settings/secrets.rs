//! The values of secrets.

use std::path::PathBuf;

use hotcell_cells::Secrets;
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
            Some(SecretSource::File(path)) => match hotcell_files::read_text(path, MAX_SECRET) {
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
}
