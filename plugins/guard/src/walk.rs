//! Looks at every text in a JSON value; names of objects included when searching.

use hotcell_plugin::Json;
use regex::{NoExpand, Regex};

/// What `search` finds first.
pub(crate) fn first<T>(value: &Json, search: &mut impl FnMut(&str) -> Option<T>) -> Option<T> {
    match value {
        Json::String(text) => search(text),
        Json::Array(items) => items.iter().find_map(|item| first(item, search)),
        Json::Object(members) => members.iter().find_map(|(name, value)| search(name).or_else(|| first(value, search))),
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
    }
}

/// Replaces what matches, and says how often. Names of objects stay: they are the form of the event.
pub(crate) fn replace(value: &mut Json, patterns: &[Regex], replacement: &str) -> usize {
    match value {
        Json::String(text) => {
            let mut count = 0;
            for pattern in patterns {
                let found = pattern.find_iter(text).count();
                if found > 0 {
                    count += found;
                    *text = pattern.replace_all(text, NoExpand(replacement)).into_owned();
                }
            }
            count
        }
        Json::Array(items) => items.iter_mut().map(|item| replace(item, patterns, replacement)).sum(),
        Json::Object(members) => members.values_mut().map(|value| replace(value, patterns, replacement)).sum(),
        Json::Null | Json::Bool(_) | Json::Number(_) => 0,
    }
}
