//! What is tried again when it fails, and how (`retry_policy`).

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::ir::{Jitter, Recoverable, Retry, RetryOn};
use hotcell_graph::types::to_text;
use hotcell_graph::{Object, Value};

use super::Lowering;
use crate::agent_spec::model::Component;

/// The field with what is tried again.
const RETRIES: &str = "retry_policy";
/// The most attempts after the first one.
const MOST: f64 = 100.0;
/// Statuses after which a request is made again if the policy names none.
const RECOVERABLE: [u16; 2] = [409, 429];

impl Lowering<'_> {
    /// The retries that a component asks for.
    pub(super) fn retry(&mut self, component: &Component) -> Option<Retry> {
        let policy = component.value(RETRIES).and_then(Value::as_object)?;
        let number = |name: &str| match policy.get(name) {
            Some(Value::Number(number)) => Some(number.to_f64()),
            _ => None,
        };
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let (first, longest) = (number("initial_retry_delay").unwrap_or(1.0), number("max_retry_delay").unwrap_or(8.0));
        if longest < first {
            let problem = format!("`max_retry_delay` ({longest} s) is shorter than `initial_retry_delay` ({first} s)");
            self.refuse_field(component, RETRIES, problem);
        }
        let statuses = match policy.get("recoverable_statuses").and_then(Value::as_object) {
            None => RECOVERABLE.map(|status| (status, Vec::new())).into(),
            Some(statuses) => self.statuses(component, statuses),
        };
        let any_5xx = policy.get("service_error_retry_on_any_5xx") != Some(&Value::Bool(false));
        Some(Retry {
            attempts: 1 + number("max_attempts").unwrap_or(2.0).clamp(0.0, MOST) as u32,
            on: RetryOn::Recoverable(Arc::new(Recoverable { statuses, any_5xx })),
            pause: seconds(first),
            growth: number("backoff_factor").unwrap_or(2.0),
            longest_pause: seconds(longest),
            jitter: match policy.get("jitter") {
                Some(Value::Text(text)) if **text == *"equal" => Jitter::Equal,
                Some(Value::Text(text)) if **text == *"full" => Jitter::Full,
                Some(Value::Text(text)) if **text == *"decorrelated" => Jitter::Second,
                Some(Value::Null) => Jitter::None,
                _ => Jitter::EqualWhenBlamed,
            },
            time: number("request_timeout").map(seconds),
        })
    }

    /// Statuses, each with texts of which an answer has to have one.
    fn statuses(&mut self, component: &Component, statuses: &Object) -> Vec<(u16, Vec<String>)> {
        let mut all = Vec::with_capacity(statuses.len());
        for (name, texts) in statuses.iter() {
            match name.parse() {
                Ok(status @ 400..=599) => {
                    let texts = texts.as_list().into_iter().flat_map(|texts| texts.iter()).map(to_text);
                    all.push((status, texts.collect()));
                }
                _ => {
                    let problem =
                        format!("`{name}` in `recoverable_statuses` is not a status of a failure: 400 to 599 are");
                    self.refuse_field(component, RETRIES, problem);
                }
            }
        }
        all
    }

    /// The retries of calls of an MCP server that a component asks for.
    pub(super) fn retry_calls(&mut self, component: &Component) -> Option<Retry> {
        let retry = self.retry(component)?;
        let RetryOn::Recoverable(recoverable) = &retry.on else { return Some(retry) };
        if let Some((status, _)) = recoverable.statuses.iter().find(|(_, texts)| !texts.is_empty()) {
            let problem = format!(
                "texts of answers with the status {status} are not looked at for an MCP server: leave its list in \
                 `recoverable_statuses` empty"
            );
            self.refuse_field(component, RETRIES, problem);
        }
        Some(retry)
    }

    /// Says how often a function of an MCP server is called that `component` uses, by its full name.
    pub(super) fn retry_function(&mut self, component: &Component, function: &str) {
        let retry = self.retry_calls(component);
        match self.retries.get(function) {
            Some(known) if *known != retry => {
                let problem = format!("`{function}` is used in another place with another `{RETRIES}`");
                self.refuse_field(component, RETRIES, problem);
            }
            Some(_) => {}
            None => {
                if let Some(retry) = &retry {
                    self.surroundings.retry_function(function, retry);
                }
                self.retries.insert(function.to_owned(), retry);
            }
        }
    }
}
