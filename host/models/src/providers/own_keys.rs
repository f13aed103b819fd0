//! Keys of providers whose servers are everywhere: whoever names a model says where it is, and the key is the operator's.

use std::{collections::BTreeMap, sync::Arc};

use super::{google::ServiceAccount, settings::Secret, transport::Connections};
use crate::ModelError;

/// These providers, with the variables that may hold their keys, the first one first.
static PROVIDERS: [(&str, &[&str]); 2] =
    [("foundry", &["AZURE_FOUNDRY_API_KEY", "AZURE_FOUNDRY_TOKEN"]), ("vertex", &["GOOGLE_APPLICATION_CREDENTIALS"])];
/// The variable that holds the path of a file with an account, and no key.
const OF_ACCOUNT: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// The keys that there are, by provider.
#[derive(Debug, Default)]
pub(super) struct OwnKeys(BTreeMap<&'static str, OwnKey>);

#[derive(Debug)]
struct OwnKey {
    /// The variable that it was read from
    variable: &'static str,
    source: Source,
}

/// Where a key comes from.
#[derive(Debug)]
enum Source {
    Text(Secret),
    Account(Arc<ServiceAccount>),
}

impl OwnKeys {
    /// The keys that the environment describes; an empty variable counts as not set.
    pub(super) fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut keys = BTreeMap::new();
        for (provider, variables) in PROVIDERS {
            for &variable in variables {
                let value = lookup(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
                let Some(value) = value else { continue };
                let source = match variable {
                    OF_ACCOUNT => Source::Account(Arc::new(ServiceAccount::new(value))),
                    _ => Source::Text(Secret::new(value)),
                };
                keys.insert(provider, OwnKey { variable, source });
                break;
            }
        }
        OwnKeys(keys)
    }

    /// The variable that the key of a provider was read from.
    pub(super) fn variable(&self, provider: &str) -> Option<&'static str> {
        self.0.get(provider).map(|own| own.variable)
    }

    /// The key of a provider; none if there is no such provider.
    ///
    /// # Errors
    ///
    /// When its key is missing, or it is to be asked for and nobody gives one.
    pub(super) async fn key(&self, provider: &str, connections: &Connections) -> Result<Option<Secret>, ModelError> {
        let Some((name, variables)) = PROVIDERS.iter().find(|(name, _)| *name == provider) else { return Ok(None) };
        let missing = || {
            let variable = variables.first().copied().unwrap_or_default().to_owned();
            ModelError::MissingKey { provider: provider.to_owned(), variable }
        };
        match &self.0.get(name).ok_or_else(missing)?.source {
            Source::Text(key) => Ok(Some(key.clone())),
            Source::Account(account) => account.token(provider, connections).await.map(Some),
        }
    }
}
