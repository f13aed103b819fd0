//! What a call gave, and where two of those differ.

use serde::{Deserialize, Serialize};

use super::text::digest_of;
use crate::call::{CellError, ConnectorReply, NodeOutcome, Verdict};

/// Bytes shown on each side of a difference.
const SHOWN: usize = 40;

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gave {
    /// A text: the output of a script, the JSON of a tool
    Text(String),
    /// What a node gave
    Outcome {
        /// A JSON object
        outputs: String,
        /// The branch it leaves by
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// Further facts
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        metadata: Vec<(String, String)>,
    },
    /// A hook lets the event go on
    Proceed,
    /// A hook changes the event
    Change(String),
    /// A hook refuses the event
    Refuse(String),
    /// A connector took the request, and its answer comes later
    Accepted,
    /// It failed
    Error(String),
}

impl Gave {
    /// The result of a call as it is recorded.
    pub(crate) fn of<T: Into<Gave> + Clone>(result: &Result<T, CellError>) -> Self {
        match result {
            Ok(answer) => answer.clone().into(),
            Err(error) => Gave::Error(error.without_places().to_string()),
        }
    }

    /// The same with digests for texts.
    pub(super) fn stripped(&self) -> Self {
        let digest = |text: &String| digest_of(text);
        match self {
            Self::Text(text) => Self::Text(digest(text)),
            Self::Outcome { outputs, branch, .. } => {
                Self::Outcome { outputs: digest(outputs), branch: branch.as_ref().map(digest), metadata: Vec::new() }
            }
            Self::Change(text) => Self::Change(digest(text)),
            Self::Refuse(text) => Self::Refuse(digest(text)),
            Self::Error(text) => Self::Error(digest(text)),
            same @ (Self::Proceed | Self::Accepted) => same.clone(),
        }
    }

    /// All of it as one text.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Outcome { outputs, branch, metadata } => {
                let branch = branch.iter().map(|branch| format!("\nbranch: {branch}"));
                let metadata = metadata.iter().map(|(name, value)| format!("\n{name}: {value}"));
                branch.chain(metadata).fold(outputs.clone(), |text, line| text + &line)
            }
            Self::Proceed => "(proceed)".to_owned(),
            Self::Change(text) => format!("(change) {text}"),
            Self::Refuse(text) => format!("(refuse) {text}"),
            Self::Accepted => "(accepted)".to_owned(),
            Self::Error(text) => format!("(error) {text}"),
        }
    }

    /// The first difference to what was given another time.
    pub fn difference(&self, other: &Gave) -> Option<Difference> {
        if self == other {
            return None;
        }
        let (before, after) = (self.to_text(), other.to_text());
        let same = before.bytes().zip(after.bytes()).take_while(|(one, another)| one == another).count();
        Some(Difference { at: same, before: around(&before, same), after: around(&after, same) })
    }
}

/// The text around a byte of it.
fn around(text: &str, at: usize) -> String {
    let from = text.floor_char_boundary(at.saturating_sub(SHOWN / 2));
    let to = text.ceil_char_boundary((at + SHOWN).min(text.len()));
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    format!("{before}{}{after}", text[from..to].escape_debug())
}

/// Where two outputs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The first byte that is another one
    pub at: usize,
    /// What was recorded there
    pub before: String,
    /// What is there now
    pub after: String,
}

impl From<String> for Gave {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<NodeOutcome> for Gave {
    fn from(NodeOutcome { outputs, branch, metadata }: NodeOutcome) -> Self {
        Self::Outcome { outputs, branch, metadata }
    }
}

impl From<Verdict> for Gave {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Proceed => Self::Proceed,
            Verdict::Change(text) => Self::Change(text),
            Verdict::Refuse(text) => Self::Refuse(text),
        }
    }
}

impl From<ConnectorReply> for Gave {
    fn from(reply: ConnectorReply) -> Self {
        match reply {
            ConnectorReply::Done(text) => Self::Text(text),
            ConnectorReply::Accepted => Self::Accepted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gave;

    #[test]
    fn the_first_difference_is_shown_with_what_is_around_it() {
        let long = |end: &str| Gave::Text(format!("{}{end}", "é".repeat(50)));
        let difference = long("one").difference(&long("other"));
        let difference = difference.unwrap_or_else(|| panic!("they differ"));
        assert_eq!(difference.at, 101);
        assert!(difference.before.ends_with("éone") && difference.after.ends_with("éother"), "{difference:?}");
        assert_eq!(long("x").difference(&long("x")), None);
        let kinds = Gave::Text(String::new()).difference(&Gave::Proceed);
        assert_eq!(kinds.map(|difference| difference.at), Some(0));
    }
}
