//! What addresses say: the parts of a path and the query.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use axum::extract::FromRequestParts;
use http::StatusCode;
use http::request::Parts;

use crate::problem::{Problem, shown};
use crate::state::Server;

/// The most that a list holds.
pub(crate) const MOST: usize = 1000;

/// What clients may give several times, once for each value.
const LIST: &str = "stream_mode";

/// The query of an address. Every name that is not looked for is refused.
pub(crate) struct Query(HashMap<String, String>);

impl FromRequestParts<Server> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self, Problem> {
        let mut query: HashMap<String, String> = HashMap::new();
        for (name, value) in url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            match query.entry(name.into_owned()) {
                Entry::Vacant(new) => {
                    new.insert(value.into_owned());
                }
                Entry::Occupied(mut list) if list.key() == LIST => {
                    let all = list.get_mut();
                    all.push(',');
                    all.push_str(&value);
                }
                Entry::Occupied(twice) => return Err(bad(format!("`{}` is given twice", shown(twice.key())))),
            }
        }
        Ok(Query(query))
    }
}

impl Query {
    /// Takes a text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Takes a word that says yes or no; it is no where it is left out.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, Problem> {
        match self.text(name).as_deref() {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(other) => Err(bad(format!("`{name}` is `true` or `false`, and not `{}`", shown(other)))),
        }
    }

    /// Takes a number between two others.
    pub(crate) fn number(&mut self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.0.remove(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let wrong = || bad(format!("`{name}` has to be a number from {least} to {most}, and is `{}`", shown(&text)));
        number.map(Some).ok_or_else(wrong)
    }

    /// How many are wanted at most.
    pub(crate) fn limit(&mut self, usual: usize) -> Result<usize, Problem> {
        let limit = self.number("limit", 1, MOST as u64)?;
        Ok(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usual))
    }

    /// Refuses what nobody took.
    pub(crate) fn end(self) -> Result<(), Problem> {
        match self.0.into_keys().min() {
            None => Ok(()),
            Some(name) => Err(means_nothing(&name)),
        }
    }
}

/// A query has a name that nobody takes.
pub(crate) fn means_nothing(name: &str) -> Problem {
    bad(format!("unknown query parameter `{}`", shown(name)))
}

/// An address that cannot be used.
pub(crate) fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}
