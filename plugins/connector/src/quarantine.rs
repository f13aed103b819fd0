//! Shutting off what fails again and again. The failures in a row are in the store, one key for each, so that none is lost where
//! several fail at once.

use hotcell_plugin::{Error, Json, json, kv};

use crate::Job;

/// What the keys of failures begin with.
const FAILED: &str = "failed/";
/// Failures in a row after which nothing is sent any more, where nobody says.
const MOST: u64 = 5;
/// Characters of a key that say which job it was.
const NAME: usize = 200;

/// What the host is told where nothing is to be sent.
pub(crate) fn check(job: &Job) -> Result<Option<Json>, Error> {
    let most = job.settings.number("quarantine_after").unwrap_or(MOST);
    let failed = kv::keys(FAILED)?.len() as u64;
    Ok((failed >= most).then(|| {
        let message = format!(
            "nothing is sent after {failed} failures in a row; release it when the other system works again \
             (`POST /api/agents/NAME/release`)"
        );
        json!({ "failed": { "error_type": "Quarantined", "message": message } })
    }))
}

/// Counts a failure.
pub(crate) fn note(job: &Job, message: &str) -> Result<(), Error> {
    // The end of a name tells jobs apart.
    let name: Vec<char> = job.name.chars().collect();
    let name: String = name[name.len().saturating_sub(NAME)..].iter().collect();
    kv::set(&format!("{FAILED}{name}"), message.as_bytes())
}

/// Forgets all failures.
pub(crate) fn release() -> Result<(), Error> {
    kv::keys(FAILED)?.iter().try_for_each(|key| kv::delete(key))
}
