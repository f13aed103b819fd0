//! Messages that are sent to agents.

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::asked::{forget_nulls, params};
use super::error::{A2aError, Kind};
use super::version::Version;
use crate::problem::shown;
use crate::view::{Object, object};

/// Bytes of an identifier that a client chooses.
const LONGEST_ID: usize = 128;

/// What is sent, in either version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SendParams {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) configuration: Configuration,
    pub(super) metadata: Option<Object>,
    #[serde(default)]
    tenant: String,
}

/// How it is to be answered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Configuration {
    #[serde(default)]
    accepted_output_modes: Vec<String>,
    pub(super) history_length: Option<u32>,
    #[serde(default)]
    return_immediately: bool,
    blocking: Option<bool>,
    #[serde(alias = "pushNotificationConfig")]
    pub(super) task_push_notification_config: Option<Value>,
}

impl Configuration {
    /// Whether to answer before anything came of it.
    pub(super) fn is_immediate(&self) -> bool {
        self.return_immediately || self.blocking == Some(false)
    }
}

/// A message, in either version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Message {
    message_id: String,
    #[serde(default)]
    context_id: String,
    #[serde(default)]
    task_id: String,
    role: String,
    parts: Vec<Part>,
    #[serde(default)]
    metadata: Option<Object>,
    // What extensions add is for those that know them; none is known here.
    #[serde(default, rename = "extensions")]
    _extensions: Vec<String>,
    #[serde(default)]
    reference_task_ids: Vec<String>,
    kind: Option<String>,
}

/// A part of a message, in either version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Part {
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Value>,
    raw: Option<Value>,
    url: Option<Value>,
    file: Option<Value>,
    #[serde(rename = "filename")]
    _filename: Option<String>,
    #[serde(rename = "mediaType")]
    _media_type: Option<String>,
    #[serde(rename = "metadata")]
    _metadata: Option<Object>,
    kind: Option<String>,
}

/// A value that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A message, read.
pub(super) struct Incoming {
    pub(super) id: String,
    /// The thread that is meant, if one is
    pub(super) context: Option<String>,
    /// The run that is meant, if one is
    pub(super) task: Option<String>,
    texts: Vec<String>,
    data: Option<Value>,
}

impl SendParams {
    pub(super) fn read(mut given: Value) -> Result<Self, A2aError> {
        for name in ["message", "configuration"] {
            if let Some(member) = given.get_mut(name) {
                forget_nulls(member, "");
            }
        }
        let parts = given.pointer_mut("/message/parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            // Null is a value that can be sent.
            forget_nulls(part, "data");
        }
        params(given)
    }

    /// Looks whether what is sent can be used.
    pub(super) fn check(&self, version: Version) -> Result<Incoming, A2aError> {
        if !self.tenant.is_empty() {
            return Err(A2aError::invalid("`tenant` is not supported"));
        }
        let takes_text = |mode: &String| {
            matches!(mode.split(';').next().unwrap_or_default().trim(), "text/plain" | "text/*" | "*/*" | "text")
        };
        let modes = &self.configuration.accepted_output_modes;
        if !modes.is_empty() && !modes.iter().any(takes_text) {
            let detail = "the agent gives `text/plain`, and `acceptedOutputModes` does not have that";
            return Err(A2aError::new(Kind::ContentTypeNotSupported, detail));
        }
        self.message.check(version)
    }
}

impl Message {
    fn check(&self, version: Version) -> Result<Incoming, A2aError> {
        let role = if version == Version::One { "ROLE_USER" } else { "user" };
        if self.role != role {
            return Err(A2aError::invalid(format!(
                "`message.role` has to be `{role}`, and is `{}`",
                shown(&self.role)
            )));
        }
        if self.kind.as_deref().is_some_and(|kind| kind != "message") {
            return Err(A2aError::invalid("`message.kind` has to be `message`"));
        }
        if self.message_id.is_empty() || self.message_id.len() > LONGEST_ID {
            return Err(A2aError::invalid(format!("`message.messageId` has to have 1 to {LONGEST_ID} bytes")));
        }
        if !self.reference_task_ids.is_empty() {
            return Err(A2aError::invalid(
                "`message.referenceTaskIds` is not supported: a context keeps what was said in it",
            ));
        }
        if self.metadata.as_ref().is_some_and(|metadata| !metadata.is_empty()) {
            return Err(A2aError::invalid(
                "`message.metadata` is not supported; `metadata` beside the message is kept",
            ));
        }
        if self.parts.is_empty() {
            return Err(A2aError::invalid("`message.parts` has to have a part"));
        }
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let (mut texts, mut data) = (Vec::new(), None);
        for (number, part) in self.parts.iter().enumerate() {
            part.check(number, version)?;
            match (&part.text, &part.data) {
                (Some(text), None) => texts.push(text.clone()),
                (None, Some(value)) if data.is_none() => data = Some(value.clone()),
                _ => return Err(A2aError::invalid("a message can have one part with `data`")),
            }
        }
        Ok(Incoming {
            id: self.message_id.clone(),
            context: some(&self.context_id),
            task: some(&self.task_id),
            texts,
            data,
        })
    }
}

impl Part {
    fn check(&self, number: usize, version: Version) -> Result<(), A2aError> {
        if self.raw.is_some() || self.url.is_some() || self.file.is_some() || self.kind.as_deref() == Some("file") {
            let detail = format!("`message.parts[{number}]` is a file; agents take text and data");
            return Err(A2aError::new(Kind::ContentTypeNotSupported, detail));
        }
        let kind = match (self.text.is_some(), self.data.is_some()) {
            (true, false) => "text",
            (false, true) => "data",
            _ => {
                let detail = format!("`message.parts[{number}]` has to have either `text` or `data`");
                return Err(A2aError::invalid(detail));
            }
        };
        match (&self.kind, version) {
            (Some(said), Version::Legacy) if said == kind => Ok(()),
            (None, Version::One) => Ok(()),
            _ => Err(A2aError::invalid(format!("`message.parts[{number}].kind` does not fit the part or the version"))),
        }
    }
}

impl Incoming {
    /// What a run is given: a text, or an object with values by their names.
    pub(super) fn input(&self) -> Result<Value, A2aError> {
        let text = self.texts.join("\n");
        match &self.data {
            None => Ok(text.into()),
            Some(Value::Object(values)) if self.texts.is_empty() => Ok(Value::Object(values.clone())),
            Some(Value::Object(values)) => {
                let mut values = values.clone();
                if values.insert(hotcell_runtime::PROMPT.to_owned(), text.into()).is_some() {
                    return Err(A2aError::invalid("give a text or a prompt in the data, not both"));
                }
                Ok(Value::Object(values))
            }
            Some(_) => {
                Err(A2aError::invalid("the `data` of a message has to be an object, with values by their names"))
            }
        }
    }

    /// What a question is answered with: a text as it is, data as JSON.
    pub(super) fn answer(&self) -> Result<String, A2aError> {
        match (&self.data, &self.texts[..]) {
            (None, texts) => Ok(texts.join("\n")),
            (Some(data), []) => Ok(data.to_string()),
            (Some(_), _) => Err(A2aError::invalid("answer with a text or with data, not both")),
        }
    }

    /// What is kept of it with a run, to show it again.
    pub(super) fn kept(&self) -> Object {
        let mut kept = object(json!({ "message_id": self.id }));
        if let Some(data) = &self.data {
            kept.insert("data".to_owned(), data.clone());
        }
        Object::from_iter([(super::task::KEPT.to_owned(), Value::Object(kept))])
    }
}
