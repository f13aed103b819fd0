//! What a run may do to the world outside that was forked to see what would have been.
//!
//! Whoever would act there asks its [`CallSite`](crate::CallSite) first. What is withheld is no failure that a graph could react to: the
//! turn goes no further, and the run stops when nothing else is left to do.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_graph::{Key, Object, Value};
use hotcell_journal::{Entry, EntryPath, Fact};

/// A way to act on the world outside of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outward {
    /// Asking a model
    Models,
    /// Requests over HTTP: of tools that a graph defines, of other agents at addresses, of sealed calls
    Http,
    /// Tools that run outside of cells: MCP servers, functions of the program that embeds hotcell
    Tools,
    /// What outlives a call on this machine: the stores of plugins, directories that may be written
    Stores,
    /// Handing over to another system, which answers by a callback
    Connectors,
}

impl Outward {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Models, Self::Http, Self::Tools, Self::Stores, Self::Connectors];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Outward::Models => "models",
            Outward::Http => "http",
            Outward::Tools => "tools",
            Outward::Stores => "stores",
            Outward::Connectors => "connectors",
        }
    }

    /// The one of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outward| outward.as_str() == word)
    }
}

/// What a run that was forked keeps of that, for as long as it is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForkOrigin {
    /// The run that it was forked from
    pub run: String,
    /// The number of the last entry that it has from there
    pub at: u64,
    /// What it may do to the world outside
    pub allowed: Vec<Outward>,
    /// The model that is asked in the place of every other one
    pub model: Option<String>,
    /// The system prompts of nodes, in the place of what they are told otherwise
    pub prompts: Vec<(Key, String)>,
}

impl ForkOrigin {
    /// As it lies in what a run was given.
    pub(crate) fn to_object(&self) -> Object {
        let mut object = Object::default();
        object.insert("run", self.run.as_str().into());
        object.insert("at", Value::from(i64::try_from(self.at).unwrap_or(i64::MAX)));
        object.insert("allowed", Value::List(self.allowed.iter().map(|one| Value::from(one.as_str())).collect()));
        if let Some(model) = &self.model {
            object.insert("model", model.as_str().into());
        }
        if !self.prompts.is_empty() {
            let prompts = self.prompts.iter().map(|(node, text)| (node.clone(), Value::from(text.as_str())));
            object.insert("prompts", Value::Object(prompts.collect()));
        }
        object
    }

    /// Of what a run was given; none if it was not forked.
    pub fn of_given(given: &Object) -> Option<Self> {
        let object = given.get("fork").and_then(Value::as_object)?;
        let text = |key: &str| object.get(key).and_then(Value::as_text).map(str::to_owned);
        let at = object.get("at").map(|at| serde_json::Value::from(at).as_u64());
        let allowed = object.get("allowed").and_then(Value::as_list);
        let prompts = object.get("prompts").and_then(Value::as_object);
        Some(ForkOrigin {
            run: text("run").unwrap_or_default(),
            at: at.flatten().unwrap_or_default(),
            allowed: allowed
                .map(|list| list.iter().filter_map(|one| Outward::from_word(one.as_text()?)).collect())
                .unwrap_or_default(),
            model: text("model"),
            prompts: prompts
                .map(|prompts| {
                    let text = |(node, text): (&Key, &Value)| Some((node.clone(), text.as_text()?.to_owned()));
                    prompts.iter().filter_map(text).collect()
                })
                .unwrap_or_default(),
        })
    }
}

/// Effects that were withheld from the one that would have done them.
pub(crate) type Notes = Arc<Mutex<Vec<String>>>;

/// The terms of a run that was forked, shared by everything in it.
pub(crate) struct WhatIf {
    pub(crate) origin: ForkOrigin,
    /// What was withheld in this process, and where
    withheld: Mutex<Vec<(EntryPath, String)>>,
    /// What the journal says of that
    known: Mutex<HashSet<(EntryPath, String)>>,
}

/// How many effects the reason names for which a run stopped.
const NAMED: usize = 20;

impl WhatIf {
    /// Those of a run with these entries.
    pub(crate) fn new(origin: ForkOrigin, entries: &[Entry]) -> Arc<Self> {
        let known = withheld(entries).map(|(place, effect)| (place.clone(), effect.to_owned())).collect();
        Arc::new(WhatIf { origin, withheld: Mutex::default(), known: Mutex::new(known) })
    }

    /// Takes note that something was withheld there. False if that is in the journal.
    pub(crate) fn note(&self, place: &EntryPath, effect: &str) -> bool {
        let what = (place.clone(), effect.to_owned());
        let mut withheld = locked(&self.withheld);
        if !withheld.contains(&what) {
            withheld.push(what.clone());
        }
        locked(&self.known).insert(what)
    }

    /// Whether anything was withheld.
    pub(crate) fn has_withheld(&self) -> bool {
        !locked(&self.withheld).is_empty()
    }

    /// Why the run goes no further, if it does not because something was withheld.
    pub(crate) fn reason(&self) -> Option<String> {
        let withheld = locked(&self.withheld);
        if withheld.is_empty() {
            return None;
        }
        let mut named: Vec<String> =
            withheld.iter().take(NAMED).map(|(place, effect)| format!("{effect} (at {})", shown(place))).collect();
        if let Some(more) = withheld.len().checked_sub(NAMED).filter(|more| *more > 0) {
            named.push(format!("and {more} more"));
        }
        Some(format!(
            "what would have acted outside of this fork was withheld: {}; fork again with it allowed to have it done",
            named.join("; ")
        ))
    }
}

/// What was withheld from a run with these entries, and where; what the run has of another one is left out.
pub fn withheld(entries: &[Entry]) -> impl Iterator<Item = (&EntryPath, &str)> {
    let own = entries.iter().rposition(|entry| entry.fact == Fact::Forked).unwrap_or(0);
    entries[own..].iter().filter_map(|entry| match &entry.fact {
        Fact::Withheld { effect } => Some((&entry.place, effect.as_str())),
        _ => None,
    })
}

fn shown(place: &EntryPath) -> &str {
    match place.as_str() {
        "" => "the run",
        place => place,
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
