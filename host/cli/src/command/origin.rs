//! How a run was started, kept with the run: whoever goes on with it, perhaps days later, need not say it again.

use std::path::{Path, PathBuf};

use hotcell_graph::{List, Object, Value};
use hotcell_runtime::RunRecord;

use crate::arguments::Session;

const MODEL: &str = "model";
const PLUGINS: &str = "plugins";
const TRUST: &str = "trust";

/// What of the options of a run counts for all of it.
pub(super) fn of(session: &Session) -> Object {
    let mut origin = Object::default();
    if let Some(model) = &session.model {
        origin.insert(MODEL, model.as_str().into());
    }
    if !session.plugins.is_empty() {
        // The next command may be given elsewhere.
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let plugins: List =
            session.plugins.iter().map(|path| Value::from(&*absolute(path).to_string_lossy())).collect();
        origin.insert(PLUGINS, Value::List(plugins));
    }
    if session.trust {
        origin.insert(TRUST, Value::Bool(true));
    }
    origin
}

/// The options of a command that goes on with a run, completed by those that the run was started with.
pub(super) fn restored(record: &RunRecord, mut session: Session) -> Session {
    let Some(origin) = record.header.given.get("origin").and_then(Value::as_object) else { return session };
    if session.model.is_none() {
        session.model = origin.get(MODEL).and_then(Value::as_text).map(str::to_owned);
    }
    for path in origin.get(PLUGINS).and_then(Value::as_list).into_iter().flat_map(List::iter) {
        if let Some(path) = path.as_text().map(Path::new)
            && !session.plugins.iter().any(|known| known == path)
        {
            session.plugins.push(path.to_owned());
        }
    }
    session.trust |= origin.get(TRUST) == Some(&Value::Bool(true));
    session
}
