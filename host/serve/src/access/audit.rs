//! What was asked, by whom and when: lines that are only ever added to a file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use http::{Method, StatusCode};
use serde_json::json;

use super::caller::Caller;
use crate::problem::shown;
use crate::view::time;

/// Where what was asked is written down. Bodies are not.
pub(crate) struct Audit(Option<Mutex<File>>);

impl Audit {
    /// Opens the file to add to it, and makes it if it is not there; without a path, nothing is written down.
    pub(crate) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let Some(path) = path else { return Ok(Audit(None)) };
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Audit(Some(Mutex::new(options.open(path)?))))
    }

    /// Writes down a request that changed something, or that was refused to whoever sent it.
    pub(crate) fn note(&self, caller: &Caller, method: &Method, path: &str, status: StatusCode) {
        let Audit(Some(file)) = self else { return };
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_refused =
            matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
        if reads && !is_refused {
            return;
        }
        let key = Some(caller.id()).filter(|id| !id.is_empty());
        let line = json!({
            "at": time(SystemTime::now()), "key": key, "method": method.as_str(), "path": shown(path),
            "status": status.as_u16(),
        });
        // One write, so that lines of several processes do not mix.
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(format!("{line}\n").as_bytes());
        if let Err(error) = written {
            tracing::error!(target: "hotcell::serve", %error, %line, "the audit log cannot be written");
        }
    }
}
