//! Forking a run: another run that has the first entries of it, goes on from there, and may differ.
//!
//! What lies before is copied entry for entry, so that a fork may be made at any of them, in the middle of an agent that a node called
//! as well: going on from the first entries of a run is what every process does that takes one up. What comes after is not known to the
//! fork: it is asked and done anew, or withheld.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use hotcell_graph::ir::{Action, Graph, NodeIndex};
use hotcell_graph::{Key, Object, State, Value};
use hotcell_journal::{
    CALLBACK, Completed, Entry, EntryPath, Fact, History, NumberedEntry, Question, RunHeader, RunId, RunStore, Write,
    open_questions,
};
use hotcell_models::ModelName;
use tokio_util::sync::CancellationToken;

use crate::action::job::BEGUN;
use crate::branch::apply;
use crate::copied::mark_copied;
use crate::fork_error::ForkError;
use crate::outcome::{RunError, list};
use crate::redaction::Redaction;
use crate::route::declared_route;
use crate::run::{self, Beginning, CalledAgent, Engine, RunReport, called};
use crate::run_input::{RunInput, check_state, check_variables, initial_state};
use crate::shape::check_input;
use crate::what_if::{ForkOrigin, Outward};

/// Entries that are read at a time.
const PAGE: usize = 1000;

/// A fork that is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForkRequest {
    /// Of which run, at which entry, and what the fork may do
    pub origin: ForkOrigin,
    /// Another text in the place of the one that the run was given. The fork has to be at its first entry
    pub input: Option<String>,
    /// Values of the state: as if the node had written them, too, whose turn was completed with that entry
    pub set: Object,
    /// The answer to the question of that id, or to the only one that is open there
    pub answer: Option<(Option<String>, String)>,
    /// The name that the fork is to have; none for a new one
    pub id: Option<String>,
    /// What is kept of how the fork was begun, for whoever goes on with it
    pub kept: Object,
}

/// The first entries of a run, so many.
///
/// # Errors
/// [`ForkError::NoEntry`] if it has fewer.
pub async fn first_entries(store: &dyn RunStore, run: &RunId, at: u64) -> Result<Vec<NumberedEntry>, RunError> {
    let mut entries: Vec<NumberedEntry> = Vec::new();
    // Without any, how many there are is to be told all the same.
    while (entries.len() as u64) < at.max(1) {
        let after = entries.len() as u64;
        let limit = usize::try_from(at - after.min(at)).unwrap_or(PAGE).clamp(1, PAGE);
        let page = store.entries(run, after, limit).await?.entries;
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    if at > 0 && entries.len() as u64 == at {
        return Ok(entries);
    }
    let last = store.last_entry(run).await?;
    Err(ForkError::NoEntry { run: run.to_string(), at, last }.into())
}

impl Engine {
    /// Starts a run that begins with the first entries of another one, and drives it as far as it goes. `graph` is what was loaded
    /// from the revision that the run had at that entry or, if `revision` names another one, from that.
    ///
    /// # Errors
    /// [`ForkError`] if it cannot be forked so, [`RunError::Mismatch`] if the entries do not fit the graph. Nothing was begun then.
    pub async fn fork(
        &self,
        graph: Arc<Graph>,
        wanted: ForkRequest,
        revision: Option<String>,
        cancel: CancellationToken,
    ) -> Result<RunReport, RunError> {
        let mut wanted = wanted;
        if let Some(model) = &wanted.origin.model {
            model.parse::<ModelName>().map_err(|error| ForkError::Value(error.to_string()))?;
        }
        // Whoever names what a model is asked, or which one, wants it asked.
        let asks = wanted.origin.model.is_some() || !wanted.origin.prompts.is_empty();
        if asks && !wanted.origin.allowed.contains(&Outward::Models) {
            wanted.origin.allowed.push(Outward::Models);
        }
        let source = RunId::from(wanted.origin.run.clone());
        let mut copied = first_entries(&**self.store(), &source, wanted.origin.at).await?;
        let Some(Fact::Started(kept)) = copied.first().map(|first| first.entry.fact.clone()) else {
            return Err(RunError::Mismatch { run: source, cause: "it does not say how it began".to_owned() });
        };
        check_prompts(&graph, self, &wanted.origin)?;
        let answered = answer(&mut copied, wanted.answer.as_ref())?;
        check_end(&copied, wanted.origin.at)?;
        check_elsewhere(&copied, answered.as_ref())?;
        keep_time(&mut copied, self.ports.clock.now());
        let redaction = Redaction::go_on(&graph, self.redaction_keys.as_deref(), &kept)?.map(Arc::new);
        let mut header = match &redaction {
            Some(redaction) => redaction.open_header(kept.clone()),
            None => kept.clone(),
        };
        change_given(&mut header, &wanted, &graph)?;
        mark_copied(&mut header.given, copied.len());
        let given = self.given_of(&header, &graph).await?;
        if wanted.origin.at == 1 {
            check_state(&graph, &given)?;
            check_input(&graph, &given)?;
        } else if !wanted.set.is_empty() {
            self.set(&source, &graph, &given, &mut copied, &wanted.set, redaction.as_deref())?;
        }
        let mut then = vec![Entry::of_run(Fact::Forked)];
        then.extend(revision.map(|digest| Entry::of_run(Fact::Revised { digest })));
        then.extend(answered);
        let rest = opened(redaction.as_deref(), &copied[1..])?;
        let started = Entry::of_run(Fact::Started(header.clone()));
        let entries: Vec<Entry> = std::iter::once(started).chain(rest).chain(then.iter().cloned()).collect();
        self.entries_fit(&source, &graph, &given, entries.clone())?;
        let state = initial_state(&graph, &given)?;
        let variables = check_variables(&graph, &given)?;
        if let Some(redaction) = &redaction {
            // What the run kept sealed stays as it is; of one that redacted nothing, what the fork redacts is sealed now.
            if !Redaction::is_in(&kept) {
                copied.iter_mut().for_each(|copied| copied.entry = redaction.seal(copied.entry.clone()));
            }
            then = then.into_iter().map(|entry| redaction.seal(entry)).collect();
            header = redaction.seal_changed_header(header);
        }
        let writer = self.store().fork(&header, copied, then).await?;
        let history = History { entries, ..History::default() };
        let from = Beginning { given: &given, state, variables, redaction };
        self.drive(writer, graph, from, history, cancel).await
    }

    /// The entries of a run that has ended, in which its last node wrote these values, too.
    ///
    /// # Errors
    /// [`ForkError`] if the state does not take them.
    pub async fn entries_with(
        &self,
        run: &RunId,
        graph: &Arc<Graph>,
        mut copied: Vec<NumberedEntry>,
        set: &Object,
    ) -> Result<Vec<NumberedEntry>, RunError> {
        let (header, redaction) = self.header_of(run, graph).await?;
        let given = self.given_of(&header, graph).await?;
        let is_turn = |copied: &NumberedEntry| {
            copied.entry.place.around().is_none() && matches!(copied.entry.fact, Fact::Completed(_))
        };
        let Some(last) = copied.iter().rposition(is_turn) else {
            let why = "where no node has completed its turn: nothing has a state yet".to_owned();
            return Err(ForkError::NotThere { at: copied.len() as u64, why }.into());
        };
        self.set(run, graph, &given, &mut copied[..=last], set, redaction.as_deref())?;
        Ok(copied)
    }

    /// Has the node write these values, too, whose turn was completed last, and go where its edges lead then.
    fn set(
        &self,
        run: &RunId,
        graph: &Arc<Graph>,
        given: &RunInput,
        copied: &mut [NumberedEntry],
        set: &Object,
        redaction: Option<&Redaction>,
    ) -> Result<(), RunError> {
        let at = copied.len() as u64;
        let not_there = |why: String| ForkError::NotThere { at, why };
        let of_run = |copied: &NumberedEntry| {
            copied.entry.place.around().is_none() && matches!(copied.entry.fact, Fact::Completed(_))
        };
        let Some((last, before)) = copied.split_last_mut().filter(|(last, _)| of_run(last)) else {
            let near = copied.iter().rev().find(|copied| of_run(copied)).map_or(1, |copied| copied.number);
            let why = "where no node of the run's own graph completed its turn; the last one before it that does is";
            return Err(not_there(format!("{why} {near}")).into());
        };
        let drive = self.replayed(run, graph, given, opened(redaction, before)?)?;
        let mut entry = opened(redaction, std::slice::from_ref(last))?.pop().unwrap_or_else(|| last.entry.clone());
        let turn = entry.place.turn().unwrap_or_default();
        let Fact::Completed(completed) = &mut entry.fact else { return Ok(()) };
        let start = drive.as_ref().and_then(|drive| drive.start_of(turn));
        let mismatch =
            || RunError::Mismatch { run: run.clone(), cause: format!("the graph does not come to turn {turn}") };
        let start = start.ok_or_else(mismatch)?;
        let mut state = start.state.clone();
        for write in &completed.writes {
            apply(graph, &mut state, write)?;
        }
        check_values(graph, &state, set)?;
        let follows = completed.next.is_some() && follows_state(graph, start.node, completed, &state);
        for (key, value) in set.iter() {
            let write = Write { key: key.clone(), value: value.clone() };
            apply(graph, &mut state, &write)?;
            completed.writes.push(write);
        }
        if follows {
            completed.next = Some(ids(graph, &way(graph, start.node, &state, redaction)?));
        }
        last.entry = match redaction {
            Some(redaction) => redaction.seal(entry),
            None => entry,
        };
        Ok(())
    }
}

/// Entries with what is redacted in them.
fn opened(redaction: Option<&Redaction>, copied: &[NumberedEntry]) -> Result<Vec<Entry>, RunError> {
    let entries = copied.iter().map(|copied| copied.entry.clone()).collect();
    Ok(run::opened(redaction, History { entries, ..History::default() }).whole()?)
}

/// Where the edges of a node lead in this state.
fn way(
    graph: &Graph,
    node: NodeIndex,
    state: &State,
    redaction: Option<&Redaction>,
) -> Result<Vec<NodeIndex>, ForkError> {
    let next = declared_route(graph, node, None, state).map_err(|error| {
        let error = format!("where the run goes then is not clear: {error}");
        ForkError::Value(redaction.map_or_else(|| error.clone(), |redaction| redaction.text(&error).into_owned()))
    })?;
    let absent = next.iter().any(|node| matches!(graph.node(*node).action, Action::Absent));
    if absent || (next.is_empty() && !graph.node(node).next.may_end_branch()) {
        return Err(ForkError::Value("with these values, no edge leads anywhere".to_owned()));
    }
    Ok(next)
}

fn ids(graph: &Graph, nodes: &[NodeIndex]) -> Vec<String> {
    nodes.iter().map(|node| graph.node(*node).id.to_string()).collect()
}

/// Whether a node went where its edges lead in this state, and not where its action or a failure sent it.
fn follows_state(graph: &Graph, node: NodeIndex, completed: &Completed, state: &State) -> bool {
    let declared = declared_route(graph, node, None, state).map(|next| ids(graph, &next));
    completed.failure.is_none() && declared.is_ok_and(|declared| completed.next.as_ref() == Some(&declared))
}

/// Looks whether the state takes these values at all.
fn check_values(graph: &Graph, state: &State, set: &Object) -> Result<(), ForkError> {
    let known = |key: &Key| {
        graph.is_open
            || state.get(key).is_some()
            || graph.open_state.contains(key)
            || graph.initial_state.iter().any(|(initial, _)| initial == key)
    };
    let unknown: Vec<String> =
        set.iter().map(|(key, _)| key).filter(|key| !known(key)).map(|key| key.to_string()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let has: Vec<String> = state.to_object().iter().map(|(key, _)| key.to_string()).collect();
    let help = if has.is_empty() { String::new() } else { format!("; it has {}", list(&has)) };
    Err(ForkError::NoSuchValue { names: list(&unknown), help })
}

/// Looks whether the nodes are there that are to be told something else.
fn check_prompts(graph: &Arc<Graph>, engine: &Engine, origin: &ForkOrigin) -> Result<(), ForkError> {
    let mut missing: Vec<&Key> = origin.prompts.iter().map(|(node, _)| node).collect();
    let (mut open, mut seen) = (vec![graph.clone()], HashSet::new());
    while let Some(graph) = open.pop() {
        missing.retain(|name| !graph.nodes().any(|(_, node)| node.speaks_as() == *name));
        for CalledAgent { agent, .. } in called(&graph) {
            if seen.insert(agent.clone())
                && let Ok(callee) = engine.ports.agents.find(&agent)
            {
                open.push(callee.graph);
            }
        }
    }
    match missing.first() {
        None => Ok(()),
        Some(name) => Err(ForkError::NoSuchNode(name.to_string())),
    }
}

/// What the fork was given, where that is something else than the run was given.
fn change_given(header: &mut RunHeader, wanted: &ForkRequest, graph: &Graph) -> Result<(), ForkError> {
    let mut given = header.given.clone();
    // It is no run of the thread: what is said there goes on from the run itself.
    given.remove("thread");
    given.remove("id");
    if let Some(id) = &wanted.id {
        given.insert("id", id.as_str().into());
    }
    given.insert("origin", Value::Object(wanted.kept.clone()));
    given.insert("fork", Value::Object(wanted.origin.to_object()));
    if let Some(input) = &wanted.input {
        if wanted.origin.at != 1 {
            return Err(ForkError::InputLater(wanted.origin.at));
        }
        given.insert("input", input.as_str().into());
    }
    if wanted.origin.at == 1 {
        for (key, value) in wanted.set.iter() {
            // The state begins with the values of variables, which are given by themselves.
            let is_variable = graph.variables.iter().any(|variable| variable.name == *key);
            let part = if is_variable { "variables" } else { "state" };
            let mut values = given.get(part).and_then(Value::as_object).cloned().unwrap_or_default();
            values.insert(&**key, value.clone());
            given.insert(part, Value::Object(values));
        }
    }
    header.given = given;
    Ok(())
}

/// Looks whether anything can come after these entries.
fn check_end(copied: &[NumberedEntry], at: u64) -> Result<(), ForkError> {
    let status = copied.iter().rev().find_map(|copied| copied.entry.fact.status());
    match status {
        Some(status) if status.is_final() => Err(ForkError::Over(at)),
        _ => Ok(()),
    }
}

/// The answer that the fork has: to a question that is open there, or in the place of the one that the last entry is.
fn answer(
    copied: &mut Vec<NumberedEntry>,
    wanted: Option<&(Option<String>, String)>,
) -> Result<Option<Entry>, ForkError> {
    let Some((question, text)) = wanted else { return Ok(None) };
    let replaces = match copied.last().map(|last| (&last.entry.place, &last.entry.fact)) {
        Some((place, Fact::Answered { number, .. } | Fact::Expired { number })) => Some(format!("{place}:{number}")),
        _ => None,
    };
    if replaces.is_some() && (question.is_none() || *question == replaces) {
        copied.pop();
    }
    let wanted = question.clone().or(replaces);
    let entries: Vec<Entry> = copied.iter().map(|copied| copied.entry.clone()).collect();
    let open = open_questions(&entries);
    let found = match &wanted {
        Some(id) => open.iter().find(|open| open.question.id == *id),
        None => open.first().filter(|_| open.len() == 1),
    };
    let Some(found) = found else {
        let ids: Vec<String> = open.iter().map(|open| open.question.id.clone()).collect();
        return Err(ForkError::Answer(match (&wanted, ids.is_empty()) {
            (_, true) => "no question is open at that entry; fork where one was asked or answered".to_owned(),
            (Some(id), false) => format!("no question `{id}` is open at that entry; open are {}", list(&ids)),
            (None, false) => {
                format!("several questions are open at that entry: {}; say which one is meant", list(&ids))
            }
        }));
    };
    if found.question.denial.is_some() {
        return Err(ForkError::Answer(format!(
            "the question `{}` asks for a capability, which is decided where the run is, and not with a fork of it",
            found.question.id
        )));
    }
    let fact = Fact::Answered { number: found.number, text: text.clone() };
    Ok(Some(Entry { place: found.place.clone(), fact }))
}

/// Looks whether another system, which knows the run, is to answer after these entries.
///
/// # Errors
/// [`ForkError::Elsewhere`] if one is.
pub fn check_nobody_elsewhere(copied: &[NumberedEntry]) -> Result<(), ForkError> {
    check_elsewhere(copied, None)
}

/// Looks whether another system was handed something over for which it answers the run.
fn check_elsewhere(copied: &[NumberedEntry], answered: Option<&Entry>) -> Result<(), ForkError> {
    for begun in copied {
        let place = &begun.entry.place;
        if !matches!(&begun.entry.fact, Fact::Effect { kind, .. } if kind == CALLBACK || kind == BEGUN) {
            continue;
        }
        let after = copied.iter().filter(|later| later.number > begun.number);
        let is_over = after.map(|later| &later.entry).chain(answered).any(|later| match &later.fact {
            Fact::Answered { .. } | Fact::Expired { .. } => later.place == *place,
            Fact::Completed(_) | Fact::Attempt { .. } => later.place == *place || place.strip(&later.place).is_some(),
            // What was done for an item, or by an agent.
            Fact::Effect { kind, .. } if kind == "item" => place.strip(&later.place).is_some(),
            Fact::Effect { kind, number, .. } if kind == "agent" => {
                let within = later.place.within(format_args!("agent{number}"));
                place.strip(&within).is_some()
            }
            _ => false,
        });
        if !is_over {
            return Err(ForkError::Elsewhere { place: place.clone(), before: begun.number });
        }
    }
    Ok(())
}

/// Gives open questions and joins that wait as much time as they had left at the last of these entries.
fn keep_time(copied: &mut [NumberedEntry], now: SystemTime) {
    let Some(then) = copied.last().map(|last| last.at) else { return };
    let Ok(since) = now.duration_since(then) else { return };
    let later = |at: SystemTime| at.checked_add(since).unwrap_or(at);
    let facts: Vec<Entry> = copied.iter().map(|copied| copied.entry.clone()).collect();
    let open: HashSet<String> = open_questions(&facts).into_iter().map(|open| open.question.id).collect();
    let fired: HashSet<(EntryPath, String)> = facts
        .into_iter()
        .filter_map(|entry| match entry.fact {
            Fact::TimerFired { node } => Some((entry.place, node)),
            _ => None,
        })
        .collect();
    for NumberedEntry { entry: Entry { place, fact }, .. } in copied {
        match fact {
            Fact::Asked { number, question: Question { expires: Some(expires), .. } }
                if open.contains(&format!("{place}:{number}")) =>
            {
                *expires = later(*expires);
            }
            Fact::TimerSet { node, at } if !fired.contains(&(place.clone(), node.clone())) => *at = later(*at),
            _ => {}
        }
    }
}
