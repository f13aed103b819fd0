//! The model of the run. Capability `llm`; calls count against the run's budget.
//!
//! ```
//! # use hotcell_plugin::{Error, llm, testing::Surroundings};
//! # fn example() -> Result<String, Error> {
//! let answer = llm::Request::new().system("Answer in one word.").user("What is the capital of France?").send()?;
//! # Ok(answer.text) }
//! # let surroundings = Surroundings::new().model(|_| Ok(hotcell_plugin::json!({"text": "Paris"})));
//! # assert_eq!(surroundings.run(example).result, Ok("Paris".to_owned()));
//! ```

use crate::{Error, Json, Value, system};

/// A request to the model that is being put together.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    members: serde_json::Map<String, Json>,
    messages: Vec<Json>,
}

/// What the model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The model that answered, `provider:name`; empty where the host does not say.
    pub model: String,
    /// Tokens that went in, and that came out; none where the host does not say.
    pub tokens: Option<(u64, u64)>,
    /// The answer that fits the schema, where one was asked for.
    pub value: Option<Json>,
}

impl Request {
    /// A request to the run's own model, without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same request with one more message that says how to answer.
    pub fn system(self, content: impl Into<String>) -> Self {
        self.message("system", content.into())
    }

    /// The same request with one more message of the one who asks.
    pub fn user(self, content: impl Into<String>) -> Self {
        self.message("user", content.into())
    }

    /// The same request with one more message of the model's own.
    pub fn assistant(self, content: impl Into<String>) -> Self {
        self.message("assistant", content.into())
    }

    /// The same request to another model, `provider:name`.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.member("model", Json::from(model.into()))
    }

    /// The same request with a temperature, 0 for always the likeliest answer.
    pub fn temperature(self, temperature: f64) -> Self {
        self.member("temperature", Json::from(temperature))
    }

    /// The same request with an answer of at most so many tokens.
    pub fn max_tokens(self, tokens: u32) -> Self {
        self.member("max_tokens", Json::from(tokens))
    }

    /// Asks the model once.
    ///
    /// # Errors
    /// `denied` where the capability was not granted, `unavailable` where the model is not to be had, `other`.
    pub fn send(mut self) -> Result<Answer, Error> {
        self.members.insert("messages".to_owned(), Json::Array(self.messages));
        let reply = system::complete(Json::Object(self.members))?;
        let text = |name: &str| reply.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let tokens = |name: &str| reply.get("usage").and_then(|usage| usage.get(name)).and_then(Json::as_u64);
        Ok(Answer {
            text: text("text"),
            model: text("model"),
            tokens: tokens("input_tokens").zip(tokens("output_tokens")),
            value: reply.get("value").cloned(),
        })
    }

    /// Asks the model once for an answer of the form of `T`.
    ///
    /// # Errors
    /// As [`Request::send`]; `other` where the answer does not fit.
    pub fn send_for<T: Value>(self) -> Result<T, Error> {
        let schema = serde_json::from_str(&T::SCHEMA.json())
            .map_err(|error| Error::other(format!("the schema of the answer is not JSON: {error}")))?;
        let answer = self.member("schema", schema).send()?;
        let value = answer.value.ok_or_else(|| Error::other("the model's answer has no value that fits the schema"))?;
        T::decode(value).map_err(|mismatch| Error::other(format!("the model's answer does not fit: {mismatch}")))
    }

    fn message(mut self, role: &str, content: String) -> Self {
        self.messages.push(serde_json::json!({ "role": role, "content": content }));
        self
    }

    fn member(mut self, name: &str, value: Json) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }
}
