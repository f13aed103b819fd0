//! Reading approval gates.

use std::time::Duration;

use hotcell_graph::Key;
use hotcell_graph::diagnostic::Diagnostic;

use super::schema::{Body, GateDeadline, Notify, Prompt};
use super::values::seconds;
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Owner};

/// The longest time that a gate waits, in seconds: about ten years. A longer one is a mistake.
const LONGEST_GATE: u32 = 315_360_000;
/// How long a request that tells of a gate takes at most, where nothing is said.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn gate(fields: &mut Fields<'_, '_>) -> Body {
    let notify = notify(fields).map(Box::new);
    let after = fields.between("timeout_seconds", 1, LONGEST_GATE);
    let then = fields.entry("on_timeout", Optional).map(|entry| entry.key_place);
    let approves = fields.word("on_timeout", &["approve", "reject"]) == Some("approve");
    if let (None, Some(place)) = (after, then) {
        let reader = fields.reader();
        let warning = Diagnostic::warning("`on_timeout` means nothing without `timeout_seconds`");
        reader.report(warning.at(&reader.span(place)).help("say how long the gate waits: `timeout_seconds: 3600`"));
    }
    let deadline = after.map(|after| GateDeadline { after: Duration::from_secs(u64::from(after)), approves });
    Body::Gate { deadline, notify }
}

fn notify(fields: &mut Fields<'_, '_>) -> Option<Notify> {
    let node = fields.node("notify", Optional)?;
    let reader = fields.reader();
    let owner = Owner { what: "`notify`".into(), node: fields.owner().node.clone(), place: node.place };
    let mut fields = reader.fields(node, owner)?;
    let url = fields.text("url", Required);
    if let Some(url) = &url
        && !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
    {
        let error = fields.error(format!("`{}` is not the address of a web server", &**url), &url.span);
        reader.report(error.help("write a URL that begins with `https://` or `http://`"));
    }
    let headers = fields.map("headers", Optional).map(|(entries, _)| entries).unwrap_or_default();
    let headers = headers.iter().filter_map(|entry| {
        let value = reader.text(&entry.value, || format!("the header `{}`", entry.key), fields.owner())?;
        Some((Key::clone(&entry.key), value.value))
    });
    let headers = headers.collect();
    let body = fields.text("body_template", Optional).map(Prompt::of);
    let timeout = seconds(&mut fields, "timeout").unwrap_or(NOTIFY_TIMEOUT);
    fields.finish(|_| None);
    Some(Notify { url: url?.value, headers, body, timeout })
}
