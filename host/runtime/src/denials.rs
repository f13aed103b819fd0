//! Capabilities that calls are denied and that whoever runs this may grant while the run waits (`[denials] ask = true`).
//!
//! What is asked for is what the policy denied, for the component or script of that digest, and nothing that a call has to be prepared
//! with: requests to public servers, tools, the model and questions. What is granted is put into the terms of the call, so that the policy
//! decides as always. A call that may have done something outside is not made again, so nothing is asked for it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_cells::{Capability, Grants, HttpGrant, KeyValueStore, Report, ServiceError, Terms, digest};
use hotcell_engine::{CallSite, Denied, PermitScope};
use hotcell_graph::Value;
use hotcell_plugins::{AgentFolder, GrantError, Plugin, together};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::permissions::Permissions;

/// Bytes of a name that a guest chose, above which it is not asked for: a name that was cut would grant something else.
const LONGEST: usize = 256;
/// Bytes of a method.
const LONGEST_METHOD: usize = 16;
/// Characters that are shown of a script's name.
const SHOWN: usize = 256;

/// What is run.
#[derive(Clone, Copy)]
pub(crate) enum Caller<'a> {
    /// A plugin
    Plugin(&'a Plugin),
    /// A script, by its name in the settings, and the digest of its text or component
    Script(&'a str, &'a str),
}

/// What is run, as the journal keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Plugin,
    Script,
}

/// What was denied, as the journal keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Denial {
    kind: Kind,
    /// The plugin or script
    plugin: String,
    /// The SHA-256 digest of its component or text
    digest: String,
    /// Stands for the folder whose settings count for it: what is granted in one counts in no other
    folder: String,
    #[serde(flatten)]
    capability: Capability,
    /// What it wanted, in words
    request: String,
}

/// Why a grant is not written down.
#[derive(Debug, Error)]
pub(crate) enum NotKept {
    /// It is one of another version
    #[error("this version does not understand it")]
    Form,
    /// The setting was changed since
    #[error("denied capabilities are no longer asked for (`[denials] ask`)")]
    NotAsked,
    /// The plugin is not there
    #[error("there is no plugin `{0}`")]
    NoPlugin(String),
    /// It cannot be granted
    #[error(transparent)]
    Grant(#[from] GrantError),
}

impl<'a> Caller<'a> {
    fn kind(self) -> Kind {
        match self {
            Caller::Plugin(_) => Kind::Plugin,
            Caller::Script(..) => Kind::Script,
        }
    }

    fn name(self) -> &'a str {
        match self {
            Caller::Plugin(plugin) => &plugin.description.name,
            Caller::Script(name, _) => name,
        }
    }

    fn digest(self) -> &'a str {
        match self {
            Caller::Plugin(plugin) => &plugin.survey.digest,
            Caller::Script(_, digest) => digest,
        }
    }

    /// What would grant it exactly this; none where it is not asked for.
    fn grants(self, capability: &Capability) -> Option<Grants> {
        let grants = grants_of(capability)?;
        let is_within = match self {
            // What a plugin asks for bounds what can be granted to it.
            Caller::Plugin(plugin) => plugin.description.capabilities.exceeded_by(&grants).is_empty(),
            Caller::Script(..) => true,
        };
        is_within.then_some(grants)
    }
}

impl Denial {
    fn of(caller: Caller<'_>, folder: &Path, capability: &Capability) -> Self {
        Denial {
            kind: caller.kind(),
            plugin: caller.name().to_owned(),
            digest: caller.digest().to_owned(),
            folder: name_of(folder),
            capability: capability.clone(),
            request: capability.to_string(),
        }
    }

    fn read(denial: &Value) -> Option<Self> {
        serde_json::from_value(serde_json::Value::from(denial)).ok()
    }

    fn is_of(&self, caller: Caller<'_>, folder: &Path) -> bool {
        let is_caller = self.kind == caller.kind() && self.plugin == caller.name() && self.digest == caller.digest();
        is_caller && self.folder == name_of(folder)
    }

    /// What whoever runs this is asked.
    fn text(&self) -> String {
        let name: String = self.plugin.escape_debug().take(SHOWN).collect();
        format!("`{name}` asks for {}, which is not granted", self.request)
    }
}

impl Permissions {
    /// Adds to the terms of a call what it was granted while its run waited, and sees to it that it is known whether the call writes. Less
    /// that is decided now goes before what was granted then.
    pub(crate) fn permit(&self, terms: &mut Terms, caller: Caller<'_>, site: &CallSite) {
        if !site.asks_denials() {
            return;
        }
        if let Some(store) = terms.kv.take() {
            terms.kv = Some(Arc::new(WatchedStore { store, site: site.clone() }));
        }
        if site.permits().is_empty() || !self.asks_denials_now() {
            return;
        }
        for permit in site.permits() {
            let denial = Denial::read(&permit.denial).filter(|denial| denial.is_of(caller, self.folder()));
            let Some(denial) = denial else { continue };
            let Some(grants) = caller.grants(&denial.capability) else { continue };
            // What is kept may have been taken back since.
            if permit.scope != PermitScope::Always || self.has(&denial.plugin, &denial.capability) {
                terms.grants = Arc::new(together(&terms.grants, &grants));
            }
        }
    }

    /// Tells where a call with these grants was made what it was denied and can be granted.
    pub(crate) fn tell_denials<T>(&self, caller: Caller<'_>, granted: &Grants, report: &Report<T>, site: &CallSite) {
        if !site.asks_denials() {
            return;
        }
        let http = if report.usage.http_requests > 0 { granted.http.clone() } else { Vec::new() };
        // Requests that only read may be made again.
        if (Grants { fs: granted.fs.clone(), http, ..Grants::default() }).changes_something() {
            site.acted();
        }
        if report.denials.is_empty() || !self.asks_denials_now() {
            return;
        }
        for denied in report.denials.iter().filter(|denied| !denied.held_back) {
            if caller.grants(&denied.capability).is_none() {
                continue;
            }
            let denial = Denial::of(caller, self.folder(), &denied.capability);
            if let Ok(written) = serde_json::to_value(&denial) {
                site.deny(Denied { text: denial.text(), denial: Value::from(&written) });
            }
        }
    }
}

/// Writes a grant into the settings of the folder, pinned to what it was decided for. `find` finds a plugin and its file.
pub(crate) fn keep<'r>(
    permissions: &Permissions,
    denial: &Value,
    find: impl Fn(&str) -> Option<(&'r Plugin, &'r Path)>,
) -> Result<(), NotKept> {
    // One after the other: each looks at what the one before it wrote.
    static KEEPING: Mutex<()> = Mutex::new(());
    let _keeping = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
    let denial = Denial::read(denial).ok_or(NotKept::Form)?;
    let grants = grants_of(&denial.capability).ok_or(NotKept::Form)?;
    let trust = permissions.asks_denials().filter(|_| permissions.asks_denials_now()).ok_or(NotKept::NotAsked)?;
    let mut folder = AgentFolder::open(permissions.folder(), trust).map_err(GrantError::from)?;
    match denial.kind {
        Kind::Script => folder.grant_to_script(&denial.plugin, &denial.digest, &grants, trust)?,
        Kind::Plugin => {
            let (plugin, file) = find(&denial.plugin).ok_or_else(|| NotKept::NoPlugin(denial.plugin.clone()))?;
            if !denial.is_of(Caller::Plugin(plugin), permissions.folder()) {
                return Err(GrantError::Exchanged(denial.plugin).into());
            }
            folder.grant_to_plugin(plugin, file, &grants, trust)?;
        }
    }
    Ok(())
}

/// What a folder is called where its path is of no concern.
fn name_of(folder: &Path) -> String {
    digest(folder.as_os_str().as_encoded_bytes()).chars().take(16).collect()
}

/// What would grant exactly this, and no more. None where that is not asked for: what a call is prepared with before it begins (directories,
/// variables, secrets, stores), what nothing grants, what leads into a private network, and names that cannot be shown as they are.
fn grants_of(capability: &Capability) -> Option<Grants> {
    let none = Grants::default();
    match capability {
        Capability::Http { server, method, private: false } => {
            let is_method = method.len() <= LONGEST_METHOD && method.bytes().all(|byte| byte.is_ascii_uppercase());
            if !is_plain(server) || !is_method {
                return None;
            }
            let server_grant = server.parse::<HttpGrant>().ok()?;
            let grants = Grants { http: vec![HttpGrant { methods: vec![method.clone()], ..server_grant }], ..none };
            let private = Capability::Http { server: server.clone(), method: method.clone(), private: true };
            (!private.is_in(&grants)).then_some(grants)
        }
        Capability::Tool { name } if is_plain(name) => Some(Grants { tool: vec![name.clone()], ..none }),
        Capability::Model => Some(Grants { llm: true, ..none }),
        Capability::Ask => Some(Grants { ask: true, ..none }),
        Capability::Http { .. }
        | Capability::Tool { .. }
        | Capability::Directory { .. }
        | Capability::Socket
        | Capability::Variable { .. }
        | Capability::PreciseClock
        | Capability::FreshRandom
        | Capability::Secret { .. }
        | Capability::KeyValue
        | Capability::Process => None,
    }
}

/// Whether a name that a guest chose is shown as it is and stands for itself alone.
fn is_plain(name: &str) -> bool {
    let stands = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'`' | b'"' | b'\\');
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(stands)
}

/// A store of which is told that it was written.
struct WatchedStore {
    store: Arc<dyn KeyValueStore>,
    site: CallSite,
}

impl KeyValueStore for WatchedStore {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        self.store.get(key)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        self.site.acted();
        self.store.set(key, value)
    }

    fn delete(&self, key: &str) -> Result<(), ServiceError> {
        self.site.acted();
        self.store.delete(key)
    }

    fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, ServiceError> {
        self.store.keys(prefix, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(server: &str, method: &str) -> Capability {
        Capability::Http { server: server.to_owned(), method: method.to_owned(), private: false }
    }

    fn tool(name: &str) -> Capability {
        Capability::Tool { name: name.to_owned() }
    }

    #[test]
    fn what_is_asked_for_is_granted_by_exactly_that() {
        let asked = [
            http("https://api.example.org", "GET"),
            http("http://x.org:8080", "DELETE"),
            tool("acme:weather/forecast"),
            Capability::Model,
            Capability::Ask,
        ];
        for capability in &asked {
            let Some(grants) = grants_of(capability) else { panic!("{capability} is not asked for") };
            let granted: Vec<&Capability> = asked.iter().filter(|other| other.is_in(&grants)).collect();
            assert_eq!(granted, [capability]);
        }
        let Some(grants) = grants_of(&asked[0]) else { panic!("it is not asked for") };
        assert!(!http("https://api.example.org", "POST").is_in(&grants));
    }

    #[test]
    fn what_reaches_further_than_it_looks_is_not_asked_for() {
        let long = "x".repeat(LONGEST + 1);
        let private = Capability::Http { server: "https://x.org".into(), method: "GET".into(), private: true };
        for capability in [
            // They lead into a private network, or may.
            private,
            http("http://127.0.0.1:8080", "GET"),
            http("http://[::1]", "GET"),
            http("http://localhost", "GET"),
            http("https://8.8.8.8", "GET"),
            // They stand for more than themselves.
            http("https://*.example.org", "GET"),
            tool("*"),
            http("https://x.org", "get"),
            // They cannot be shown.
            tool(&long),
            tool("a\nb"),
            tool("a\u{202e}b"),
            tool("`x`"),
            tool(""),
            http(&format!("https://{long}.org"), "GET"),
            http("https://(secret KEY).org", "GET"),
            http("https://x.org", &"X".repeat(17)),
            // A call is prepared with them, or nothing grants them.
            Capability::KeyValue,
            Capability::FreshRandom,
            Capability::Socket,
            Capability::Process,
            Capability::Variable { name: "HOME".into() },
            Capability::Secret { name: "KEY".into(), server: None },
        ] {
            assert_eq!(grants_of(&capability), None, "{capability}");
        }
    }

    #[test]
    fn what_was_denied_is_read_as_it_was_written() {
        let (folder, script) = (Path::new("/a"), Caller::Script("a\u{1b}[2J.js", "abc"));
        let denial = Denial::of(script, folder, &http("https://x.org", "GET"));
        assert!(denial.is_of(script, folder) && !denial.is_of(script, Path::new("/b")));
        let written = serde_json::to_value(&denial).unwrap();
        assert_eq!(written["capability"], "http", "{written}");
        assert_eq!(Denial::read(&Value::from(&written)), Some(denial.clone()));
        assert!(!denial.text().contains('\u{1b}') && denial.text().contains("`http` for `GET https://x.org`"));
        assert!(!denial.is_of(Caller::Script("a\u{1b}[2J.js", "other"), folder));
        assert_eq!(Denial::read(&Value::text("nonsense")), None);
    }
}
