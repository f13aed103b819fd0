//! Why an agent is not served as its files are.

use std::path::Path;
use std::time::SystemTime;

use hotcell_runtime::diagnostic::Severity;
use hotcell_runtime::leafmesh::variables_of;
use hotcell_runtime::{Host, LoadFailure};

use crate::whereabouts::without_whereabouts;

/// Errors that are told of one agent.
const MOST: usize = 20;
/// The shortest value of a variable that is looked for in messages.
const SHORTEST: usize = 4;

/// Why an agent is not served as its files are.
pub(crate) struct Trouble {
    /// In words that say nothing of where files are, or of what variables hold
    pub(crate) detail: String,
    /// The same for whoever runs the server
    pub(crate) failure: Option<LoadFailure>,
    /// Since when
    pub(crate) since: SystemTime,
}

impl Trouble {
    pub(super) fn new(detail: impl Into<String>) -> Self {
        Trouble { detail: detail.into(), failure: None, since: SystemTime::now() }
    }

    /// Of an agent at this path that cannot be loaded.
    pub(super) fn of(host: &Host, path: &Path, failure: LoadFailure) -> Self {
        let detail = in_words(host, path, &failure);
        Trouble { failure: Some(failure), ..Trouble::new(detail) }
    }
}

/// The errors, without what only whoever runs the server may see: where its files are, and values of variables.
pub(crate) fn in_words(host: &Host, path: &Path, failure: &LoadFailure) -> String {
    let errors = failure.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let said = |diagnostic: &hotcell_runtime::diagnostic::Diagnostic| {
        let place = diagnostic.span.as_ref().map(|span| {
            let name = Path::new(&span.file.name).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = &span.file.text;
            let hidden: Vec<(String, String)> = variables_of(text)
                .into_iter()
                .filter_map(|name| Some((format!("${{{name}}}"), host.variable(&name)?)))
                .filter(|(_, value)| value.len() >= SHORTEST)
                .collect();
            (format!("{name}:{}: ", span.line_column().0), hidden)
        });
        let (place, hidden) = place.unwrap_or_default();
        let help = diagnostic.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
        let text = format!("{place}{}{help}", diagnostic.message);
        hidden.iter().fold(text, |text, (name, value)| text.replace(value, name))
    };
    let mut words: Vec<String> = errors.map(said).collect();
    let left_out = words.len().saturating_sub(MOST);
    words.truncate(MOST);
    if left_out > 0 {
        words.push(format!("and {left_out} more errors"));
    }
    without_whereabouts(&words.join("\n"), path)
}
