//! Surroundings for tests on the author's own machine: what the host would answer, and what the plugin said.
//!
//! ```
//! use hotcell_plugin::{Error, config, info, testing::Surroundings};
//!
//! fn greet() -> Result<String, Error> {
//!     info!("greeting");
//!     Ok(format!("{}, world", config::get("word").unwrap_or_default()))
//! }
//!
//! let ran = Surroundings::new().config("word", "Hello").run(greet);
//! assert_eq!(ran.result, Ok("Hello, world".to_owned()));
//! assert_eq!(ran.log, ["info: greeting"]);
//! ```
//!
//! Outside of [`Surroundings::run`] there is no host: settings are missing, notes are lost, and what needs a capability
//! is denied. This module exists on the native target only.

mod cases;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use cases::run_cases;

use crate::{Error, Json, http};

type Server = Box<dyn FnMut(http::Request) -> Result<http::Response, Error>>;
type Model = Box<dyn FnMut(Json) -> Result<Json, Error>>;
type Tools = Box<dyn FnMut(&str, Json) -> Result<Json, Error>>;

/// What the host would answer.
#[derive(Default)]
pub struct Surroundings {
    pub(crate) state: Json,
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) answers: VecDeque<String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) kv: Option<BTreeMap<String, Vec<u8>>>,
    pub(crate) time: Duration,
    pub(crate) server: Option<Server>,
    pub(crate) model: Option<Model>,
    pub(crate) tools: Option<Tools>,
    pub(crate) log: Vec<String>,
    pub(crate) questions: Vec<String>,
}

/// What a function gave, and what it did to its surroundings.
#[derive(Debug)]
pub struct Ran<T> {
    /// What it returned.
    pub result: T,
    /// Its notes, each with its level before it; progress with the word `progress`.
    pub log: Vec<String>,
    /// The questions it put.
    pub questions: Vec<String>,
    /// What is kept afterwards.
    pub kv: BTreeMap<String, Vec<u8>>,
}

thread_local! {
    static PRESENT: RefCell<Option<Surroundings>> = const { RefCell::new(None) };
}

impl Surroundings {
    /// Surroundings in which nothing is set or granted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with this state of the graph, an object.
    #[must_use]
    pub fn state(mut self, state: Json) -> Self {
        self.state = state;
        self
    }

    /// The same with one more setting.
    #[must_use]
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.config.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The same with an answer to the next question that has none.
    #[must_use]
    pub fn answer(mut self, answer: &str) -> Self {
        self.answers.push_back(answer.to_owned());
        self
    }

    /// The same with a granted secret; its placeholder is `secret:NAME`.
    #[must_use]
    pub fn secret(mut self, name: &str) -> Self {
        self.secrets.push(name.to_owned());
        self
    }

    /// The same with a granted store, empty or with what is in it already.
    #[must_use]
    pub fn store(mut self) -> Self {
        self.kv.get_or_insert_default();
        self
    }

    /// The same with something in the store.
    #[must_use]
    pub fn kept(mut self, key: &str, value: &[u8]) -> Self {
        self.kv.get_or_insert_default().insert(key.to_owned(), value.to_vec());
        self
    }

    /// The same at another time, counted from the beginning of 1970.
    #[must_use]
    pub fn time(mut self, since_1970: Duration) -> Self {
        self.time = since_1970;
        self
    }

    /// The same with a function that answers HTTP requests.
    #[must_use]
    pub fn http(mut self, server: impl FnMut(http::Request) -> Result<http::Response, Error> + 'static) -> Self {
        self.server = Some(Box::new(server));
        self
    }

    /// The same with a function that answers in the place of the model.
    #[must_use]
    pub fn model(mut self, model: impl FnMut(Json) -> Result<Json, Error> + 'static) -> Self {
        self.model = Some(Box::new(model));
        self
    }

    /// The same with a function that answers in the place of other tools.
    #[must_use]
    pub fn tools(mut self, tools: impl FnMut(&str, Json) -> Result<Json, Error> + 'static) -> Self {
        self.tools = Some(Box::new(tools));
        self
    }

    /// Calls a function in these surroundings.
    pub fn run<T>(self, function: impl FnOnce() -> T) -> Ran<T> {
        let before = PRESENT.with(|present| present.replace(Some(self)));
        let result = function();
        let after = PRESENT.with(|present| present.replace(before)).unwrap_or_default();
        Ran { result, log: after.log, questions: after.questions, kv: after.kv.unwrap_or_default() }
    }
}

/// Calls `function` with the surroundings of this thread; without any, with empty ones.
pub(crate) fn with<T>(function: impl FnOnce(&mut Surroundings) -> T) -> T {
    PRESENT.with(|present| function(present.borrow_mut().get_or_insert_default()))
}
