//! How a run was started, kept with the run: whoever goes on with it, perhaps days later, need not say it again.

use std::path::{Path, PathBuf};

use hotcell_graph::{Key, List, Object, Value};
use hotcell_runtime::plugins::{AgentFolder, Trust};
use hotcell_runtime::{RunRecord, UserKey};

use crate::arguments::Session;

const MODEL: &str = "model";
const PLUGINS: &str = "plugins";
const STRICT: &str = "strict";
const TRUST: &str = "trust";
/// What only the key of the user makes who started the run with this model and these plugins
const CODE: &str = "code";

/// What of the options of a run of the agent at `path` counts for all of it. Trust, the model and plugins are kept with what only `key`
/// makes: a journal may have been sent, and then whoever sent it wrote what is in it.
pub(super) fn of(session: &Session, path: &Path, key: &UserKey) -> Object {
    let mut origin = Object::default();
    if let Some(model) = &session.with.model {
        origin.insert(MODEL, model.as_str().into());
    }
    if !session.with.more.plugins.is_empty() {
        // The next command may be given elsewhere.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let plugins: List =
            session.with.more.plugins.iter().map(|path| Value::from(&*absolute(path).to_string_lossy())).collect();
        origin.insert(PLUGINS, Value::List(plugins));
    }
    if let Some(code) = says_more(&origin).then(|| key.code(&named(&origin))).flatten() {
        origin.insert(CODE, code.as_str().into());
    }
    if session.strict {
        make_strict(&mut origin);
    }
    if session.with.trust {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = if path.is_dir() { &*path } else { path.parent().unwrap_or(&path) };
        let (name, digest) = (folder.to_string_lossy(), digest(folder));
        if let Some(code) = key.code(&trusted(&name, &digest)) {
            let kept = [("folder", &*name), ("digest", digest.as_str()), ("code", code.as_str())];
            let kept = kept.map(|(name, text)| (Key::from(name), Value::from(text)));
            origin.insert(TRUST, Value::Object(kept.into_iter().collect()));
        }
    }
    origin
}

/// Keeps with a run that a node that fails without a fallback fails the command, also where another one goes on with the run.
pub(super) fn make_strict(origin: &mut Object) {
    origin.insert(STRICT, true.into());
}

/// Identifies what decides in a folder, as it is now. Trust is remembered for this and nothing else.
fn digest(folder: &Path) -> String {
    AgentFolder::open(folder, &Trust::Everything).map(|folder| folder.fingerprint()).unwrap_or_default()
}

/// What is said with a code: that a folder with this in it was trusted for a run.
fn trusted(folder: &str, digest: &str) -> String {
    format!("trusted for a run: {digest} {folder}")
}

/// Whether a model or plugins are named.
fn says_more(origin: &Object) -> bool {
    [MODEL, PLUGINS].iter().any(|name| origin.get(name).is_some())
}

/// What is said with a code: the model and the plugins that a run was started with.
fn named(origin: &Object) -> String {
    let [model, plugins] = [MODEL, PLUGINS].map(|name| origin.get(name).map(Value::to_json).unwrap_or_default());
    format!("started with: {model} {plugins}")
}

/// Whether this user started a run with the model and the plugins that are named. Anybody can name a folder of this machine, or a provider
/// to which everything is sent then.
fn was_started_so(origin: &Object, key: &UserKey) -> bool {
    let code = origin.get(CODE).and_then(Value::as_text);
    code.is_some_and(|code| key.has_made(code, &named(origin)))
}

/// Whether a run was started with trust by this user, and what it was given to is still the same.
fn is_still_trusted(origin: &Object, key: &UserKey) -> bool {
    let text = |name: &str| origin.get(TRUST)?.as_object()?.get(name)?.as_text();
    let (Some(folder), Some(then), Some(code)) = (text("folder"), text("digest"), text("code")) else { return false };
    !then.is_empty() && key.has_made(code, &trusted(folder, then)) && digest(Path::new(folder)) == then
}

/// The options of a command that goes on with a run, completed by those that the run was started with.
pub(super) fn restored(record: &RunRecord, mut session: Session, key: &UserKey) -> Session {
    let Some(origin) = record.header.given.get("origin").and_then(Value::as_object) else { return session };
    if was_started_so(origin, key) {
        if session.with.model.is_none() {
            session.with.model = origin.get(MODEL).and_then(Value::as_text).map(str::to_owned);
        }
        for path in origin.get(PLUGINS).and_then(Value::as_list).into_iter().flat_map(List::iter) {
            if let Some(path) = path.as_text().map(Path::new)
                && !session.with.more.plugins.iter().any(|known| known == path)
            {
                session.with.more.plugins.push(path.to_owned());
            }
        }
    } else if says_more(origin) {
        tracing::warn!(
            target: "hotcell::graph",
            "`--model` and `--plugins` with which the run was started are left out: the journal names them, and not by the key of this user, \
             because somebody else or an earlier version of hotcell started it; give them again"
        );
    }
    session.strict |= origin.get(STRICT).is_some_and(|strict| *strict == true.into());
    session.with.trust |= is_still_trusted(origin, key);
    session
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hotcell_runtime::plugins::{LOCK_FILE, SERVERS_FILE, SETTINGS_FILE};
    use hotcell_runtime::{RunHeader, RunStatus};

    use super::*;
    use crate::arguments::{MorePlugins, RunWith};

    /// A user, with their key in this folder.
    fn user(folder: &Path) -> UserKey {
        UserKey::in_file(folder.join("user.key"))
    }

    /// A run that waits and was started with these options.
    fn started_with(session: &Session, key: &UserKey) -> RunRecord {
        let origin = of(session, Path::new("graph.yaml"), key);
        let given = [("origin".into(), Value::Object(origin))].into_iter().collect();
        let header = RunHeader {
            graph: "g".to_owned(),
            source: "graph.yaml".to_owned(),
            digest: String::new(),
            kept: false,
            given,
        };
        let (created, updated) = (SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
        let id = "a".to_owned().into();
        RunRecord { id, header, revision: None, status: RunStatus::Waiting, created, updated, outcome: None }
    }

    #[test]
    fn what_is_not_said_again_is_as_it_was_said_when_the_run_was_started() {
        let folder = tempfile::tempdir().unwrap();
        let plugins = vec![folder.path().to_owned()];
        let with = RunWith {
            model: Some("test:small".to_owned()),
            more: MorePlugins { plugins: plugins.clone() },
            trust: false,
        };
        let key = user(folder.path());
        let record = started_with(&Session { with, strict: true, ..Session::default() }, &key);
        let restored = |session| restored(&record, session, &key);
        let unsaid = restored(Session::default());
        assert_eq!((unsaid.with.model.as_deref(), &unsaid.with.more.plugins), (Some("test:small"), &plugins));
        assert!(unsaid.strict && !unsaid.with.trust);
        let with = RunWith {
            model: Some("test:large".to_owned()),
            more: MorePlugins { plugins: plugins.clone() },
            trust: true,
        };
        let said = restored(Session { with, ..Session::default() });
        assert_eq!((said.with.model.as_deref(), &said.with.more.plugins), (Some("test:large"), &plugins));
        assert!(said.strict && said.with.trust);
    }

    #[test]
    fn a_journal_that_somebody_sent_names_no_model_and_no_plugins() {
        let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (mine, others) = (user(home.path()), user(elsewhere.path()));
        let plugins = vec![elsewhere.path().to_owned()];
        let with = RunWith { model: Some("test:small".to_owned()), more: MorePlugins { plugins }, trust: false };
        let session = Session { with, strict: true, ..Session::default() };
        // My key exists, and is not the one with which that was kept.
        mine.code("").unwrap();
        let sent = started_with(&session, &others);
        let found = restored(&sent, Session::default(), &mine);
        assert!(found.with.model.is_none() && found.with.more.plugins.is_empty() && found.strict);
        // Nor where a code of mine is for something else, or there is none.
        let own = started_with(&session, &mine);
        assert_eq!(restored(&own, Session::default(), &mine).with.model.as_deref(), Some("test:small"));
        let changed = [(MODEL, Value::from("test:large")), (PLUGINS, Value::List(List::default())), (CODE, "".into())];
        for (name, value) in changed {
            let mut record = own.clone();
            let mut origin = record.header.given.get("origin").and_then(Value::as_object).cloned().unwrap();
            origin.insert(name, value);
            record.header.given.insert("origin", Value::Object(origin));
            let found = restored(&record, Session::default(), &mine);
            assert!(found.with.model.is_none() && found.with.more.plugins.is_empty(), "{name}");
        }
        // What is given now counts, and what the journal says adds nothing.
        let with = RunWith { model: Some("test:large".to_owned()), ..RunWith::default() };
        let said = restored(&sent, Session { with, ..Session::default() }, &mine);
        assert!(said.with.model.as_deref() == Some("test:large") && said.with.more.plugins.is_empty());
    }

    #[test]
    fn trust_is_remembered_for_what_was_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join(SETTINGS_FILE);
        std::fs::write(&settings, "[grants.'a.py']\nkv = true\n").unwrap();
        std::fs::write(folder.path().join("a.py"), "first").unwrap();
        let session = Session { with: RunWith { trust: true, ..RunWith::default() }, ..Session::default() };
        let home = tempfile::tempdir().unwrap();
        let key = user(home.path());
        for path in [folder.path().to_owned(), folder.path().join("graph.yaml")] {
            let origin = of(&session, &path, &key);
            assert!(is_still_trusted(&origin, &key));
            for file in [SETTINGS_FILE, LOCK_FILE, SERVERS_FILE, "a.py"] {
                let before = std::fs::read(folder.path().join(file)).ok();
                let text = if file == LOCK_FILE { "[plugin.b]\ndigest = 'x'\n" } else { "[grants.b]\nfs = []\n" };
                std::fs::write(folder.path().join(file), text).unwrap();
                assert!(!is_still_trusted(&origin, &key), "{file}");
                match before {
                    Some(before) => std::fs::write(folder.path().join(file), before).unwrap(),
                    None => std::fs::remove_file(folder.path().join(file)).unwrap(),
                }
            }
            assert!(is_still_trusted(&origin, &key));
        }
        assert!(!is_still_trusted(&of(&Session::default(), folder.path(), &key), &key));
    }

    #[test]
    fn a_journal_that_somebody_sent_says_nothing_of_trust() {
        let (folder, home, elsewhere) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let session = Session { with: RunWith { trust: true, ..RunWith::default() }, ..Session::default() };
        let sent = of(&session, folder.path(), &user(elsewhere.path()));
        let mine = of(&session, folder.path(), &user(home.path()));
        assert!(!is_still_trusted(&sent, &user(home.path())) && is_still_trusted(&mine, &user(home.path())));
        // What a version wrote that kept no code, and trust in one folder written for another.
        let with = |name: &str, text: &str| {
            let mut trust = mine.get(TRUST).and_then(Value::as_object).cloned().unwrap_or_default();
            trust.insert(name, text.into());
            [(Key::from(TRUST), Value::Object(trust))].into_iter().collect::<Object>()
        };
        let other = tempfile::tempdir().unwrap();
        for origin in [with("code", ""), with("folder", &other.path().to_string_lossy())] {
            assert!(!is_still_trusted(&origin, &user(home.path())), "{origin:?}");
        }
    }
}
