//! What was asked, by whom and when: lines that are only ever added to a file.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use http::{Method, StatusCode};
use serde::Serialize;

use super::caller::Caller;
use super::rate::Rate;
use crate::problem::{shortened, shown};
use crate::tenant_name::TenantName;
use crate::view::time;

/// Lines a second about people whom nobody knows; of the others only the number is written down. Whoever has no key does not
/// decide how large the file becomes.
const UNKNOWN_LINES: u32 = 1;

/// Characters of a path that are written down: all of one that has a route, so that it says what it was about.
const MOST_OF_PATH: usize = 2048;

/// What says in an address that a run ends when the connection of whoever follows it breaks.
pub(crate) const CANCELS: &str = "cancel_on_disconnect";

/// Where what was asked is written down. Bodies are not.
pub(crate) struct Audit(Option<Log>);

struct Log {
    /// Lines are added to it side by side, each with one write
    file: File,
    unknown: Mutex<Unknown>,
}

/// People whom nobody knows.
struct Unknown {
    lines: Rate,
    /// Refusals of them that have no line of their own, since the last one that has
    left_out: u64,
}

impl Log {
    /// How many refusals of people whom nobody knows were left out before this one; none if it is left out, too.
    fn of_unknown(&self) -> Option<u64> {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        if unknown.lines.take("", Instant::now()).is_err() {
            unknown.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut unknown.left_out))
    }
}

/// A request, as it is written down.
#[derive(Serialize)]
struct Line<'a> {
    at: String,
    key: Option<&'a str>,
    method: String,
    path: String,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<u64>,
}

/// What was asked.
pub(crate) struct Audited {
    method: Method,
    path: String,
    /// Whether it changes nothing
    reads: bool,
}

impl Audited {
    /// Something that was asked at a path. Whoever follows a run may have it end with their connection (`query`), whatever the method is.
    pub(crate) fn new(method: &Method, path: String, query: Option<&str>) -> Self {
        let mut query = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let ends = query.any(|(name, _)| name == CANCELS);
        let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) && !ends;
        Audited { method: method.clone(), path, reads }
    }
}

impl Audit {
    /// Opens the file to add to it, and makes it if it is not there; without a path, nothing is written down.
    pub(crate) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let Some(path) = path else { return Ok(Audit(None)) };
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let unknown = Mutex::new(Unknown { lines: Rate::per_second(UNKNOWN_LINES), left_out: 0 });
        Ok(Audit(Some(Log { file: options.open(path)?, unknown })))
    }

    /// Writes down a request that changed something, or that was refused to whoever sent it.
    pub(crate) fn note(&self, caller: &Caller, tenant: Option<&TenantName>, asked: &Audited, status: StatusCode) {
        let Audit(Some(log)) = self else { return };
        let Audited { method, path, reads } = asked;
        let is_refused =
            matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
        if *reads && !is_refused {
            return;
        }
        let left_out = if *caller == Caller::Unknown {
            let Some(left_out) = log.of_unknown() else { return };
            Some(left_out).filter(|left_out| *left_out > 0)
        } else {
            None
        };
        let key = match caller {
            Caller::Subject { .. } | Caller::Unknown => None,
            Caller::Local | Caller::Key(_) => Some(caller.id()),
        };
        let (issuer, subject) = match caller {
            Caller::Subject { issuer, subject, .. } => (Some(issuer.as_str()), Some(subject.as_str())),
            _ => (None, None),
        };
        let line = Line {
            at: time(SystemTime::now()),
            key,
            method: shown(method.as_str()),
            path: shortened(path, MOST_OF_PATH),
            status: status.as_u16(),
            issuer,
            subject,
            tenant: tenant.map(TenantName::as_str),
            left_out,
        };
        let mut line = serde_json::to_string(&line).unwrap_or_default();
        line.push('\n');
        // One write, so that lines of several threads and processes do not mix.
        if let Err(error) = (&log.file).write_all(line.as_bytes()) {
            let line = line.trim_end();
            tracing::error!(target: "hotcell::serve", %error, line, "the audit log cannot be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: Method, path: &str, query: Option<&str>) -> Audited {
        Audited::new(&method, path.to_owned(), query)
    }

    #[test]
    fn who_only_looks_has_no_line_and_who_may_end_a_run_has_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&file)).expect("opened");
        for (method, query, is_noted) in [
            (Method::GET, None, false),
            (Method::GET, Some("stream_mode=values"), false),
            (Method::GET, Some("stream_mode=values&cancel_on_disconnect=true"), true),
            (Method::HEAD, Some("cancel%5Fon_disconnect=1"), true),
            (Method::POST, None, true),
        ] {
            let before = std::fs::read_to_string(&file).expect("read").lines().count();
            let asked = asked(method, "/threads/t/runs/r/stream", query);
            audit.note(&Caller::Key("a".to_owned()), None, &asked, StatusCode::OK);
            let lines = std::fs::read_to_string(&file).expect("read").lines().count();
            assert_eq!(lines - before, usize::from(is_noted), "{query:?}");
        }
    }

    #[test]
    fn whoever_is_unknown_does_not_decide_how_large_the_file_becomes() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&file)).expect("opened");
        let lines = || std::fs::read_to_string(&file).expect("read").lines().count();
        for _ in 0..1_000 {
            audit.note(&Caller::Unknown, None, &asked(Method::GET, "/runs", None), StatusCode::UNAUTHORIZED);
        }
        let of_unknown = lines();
        // One a second: however long this machine takes for that, it is no line for each.
        assert!((1..500).contains(&of_unknown), "{of_unknown}");
        for _ in 0..20 {
            audit.note(&Caller::Key("a".to_owned()), None, &asked(Method::POST, "/runs", None), StatusCode::OK);
        }
        assert_eq!(lines() - of_unknown, 20, "those who are known have a line each");
    }

    #[test]
    fn what_a_request_was_about_is_written_down_however_long_its_path_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("audit.jsonl");
        let audit = Audit::open(Some(&file)).expect("opened");
        let path = format!("/threads/{}/runs/one/cancel", "t".repeat(128));
        audit.note(&Caller::Key("a".to_owned()), None, &asked(Method::POST, &path, None), StatusCode::OK);
        assert!(std::fs::read_to_string(&file).expect("read").contains(&path));
    }
}
