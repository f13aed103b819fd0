//! Keys of providers whose servers are everywhere: whoever names a model says where it is, and the key is the operator's.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    bedrock::{self, Access, Signer},
    google::ServiceAccount,
    settings::Secret,
    transport::Connections,
};
use crate::ModelError;

/// These providers, with the variables that may hold their keys, the first one first.
static PROVIDERS: [(&str, &[&str]); 3] = [
    (bedrock::NAME, &[OF_AMAZON, BEARER_OF_AMAZON]),
    ("foundry", &["AZURE_FOUNDRY_API_KEY", "AZURE_FOUNDRY_TOKEN"]),
    ("vertex", &[OF_ACCOUNT]),
];
/// The variable that holds the path of a file with an account, and no key.
const OF_ACCOUNT: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// The key that requests to Bedrock are signed with, what identifies it, and what comes with one that is good for a while only.
const OF_AMAZON: &str = "AWS_SECRET_ACCESS_KEY";
const IDENTIFIER_OF_AMAZON: &str = "AWS_ACCESS_KEY_ID";
const SESSION_OF_AMAZON: &str = "AWS_SESSION_TOKEN";
/// A key of Bedrock alone, which signs nothing and goes with each request.
const BEARER_OF_AMAZON: &str = "AWS_BEARER_TOKEN_BEDROCK";

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
    /// The way into Bedrock; none while this variable is missing
    Amazon(Result<Access, &'static str>),
}

impl OwnKeys {
    /// The keys that the environment describes; an empty variable counts as not set.
    pub(super) fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut keys = BTreeMap::new();
        for (provider, variables) in PROVIDERS {
            for &variable in variables {
                let Some(value) = read(variable) else { continue };
                let source = match variable {
                    OF_AMAZON => Source::Amazon(read(IDENTIFIER_OF_AMAZON).ok_or(IDENTIFIER_OF_AMAZON).map(|id| {
                        let session = read(SESSION_OF_AMAZON).map(Secret::new);
                        Access::Signed(Signer { id, secret: Secret::new(value), session })
                    })),
                    BEARER_OF_AMAZON => Source::Amazon(Ok(Access::Bearer(Secret::new(value)))),
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
            // It is no key that could be sent.
            Source::Amazon(_) => Ok(None),
        }
    }

    /// The way into Bedrock.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub(super) fn amazon(&self) -> Result<&Access, ModelError> {
        let missing = |variable: &str| ModelError::MissingKey {
            provider: bedrock::NAME.to_owned(),
            variable: variable.to_owned(),
        };
        match self.0.get(bedrock::NAME).map(|own| &own.source) {
            Some(Source::Amazon(Ok(access))) => Ok(access),
            Some(Source::Amazon(Err(variable))) => Err(missing(variable)),
            _ => Err(missing(OF_AMAZON)),
        }
    }
}
