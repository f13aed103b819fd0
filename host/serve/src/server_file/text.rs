//! What can be written in a server file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerText {
    pub(super) listen: Option<SocketAddr>,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    pub(super) public_url: Option<String>,
    pub(super) state: PathBuf,
    pub(super) drain_seconds: Option<u64>,
    pub(super) requests_per_second: Option<u32>,
    #[serde(default)]
    pub(super) cors_origins: Vec<String>,
    #[serde(default)]
    pub(super) oidc: Vec<OidcText>,
    #[serde(default)]
    pub(super) tenants: BTreeMap<String, TenantText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantText {
    pub(super) agents: Vec<PathBuf>,
    #[serde(default)]
    pub(super) plugins: Vec<PathBuf>,
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    pub(super) env_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) inherit: Vec<String>,
    #[serde(default)]
    pub(super) trust: bool,
    #[serde(default)]
    pub(super) programs: bool,
    pub(super) weight: Option<u32>,
    pub(super) max_runs: Option<u32>,
    pub(super) runs_per_minute: Option<u32>,
    pub(super) requests_per_second: Option<u32>,
    pub(super) stored_bytes: Option<u64>,
    pub(super) webhook: Option<String>,
    #[serde(default)]
    pub(super) webhook_servers: Vec<String>,
    #[serde(default)]
    pub(super) groups: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) month: MonthText,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MonthText {
    pub(super) usd: Option<f64>,
    pub(super) tokens: Option<u64>,
    pub(super) fuel: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OidcText {
    pub(super) issuer: String,
    pub(super) audience: Vec<String>,
    pub(super) algorithms: Option<Vec<String>>,
    pub(super) keys: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) clock_skew_seconds: Option<u64>,
    pub(super) tenant: Option<String>,
    pub(super) tenant_claim: Option<String>,
    #[serde(default)]
    pub(super) tenants: BTreeMap<String, String>,
    pub(super) roles_claim: Option<String>,
    #[serde(default)]
    pub(super) roles: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) default_roles: Vec<String>,
    pub(super) groups_claim: Option<String>,
    #[serde(default)]
    pub(super) groups: BTreeMap<String, String>,
}
