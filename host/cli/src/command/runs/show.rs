//! `hotcell runs show`: everything the journal knows of one run, in the order in which it was committed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::SystemTime;

use hotcell_budget::{Account, Usage};
use hotcell_graph::Value;
use hotcell_runtime::{
    Completed, Entry, EntryPath, Fact, History, NodeFailure, OpenQuestion, RunRecord, failures, open_questions,
    without_seals,
};
use serde_json::json;

use super::{Context, HostArguments, print, wait};
use crate::command::conclude::{describe_question, failed_nodes};
use crate::command::quoted;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::{counted, describe_usage, short};
use crate::screen::{DIM, STRONG, WARNING};
use crate::table::{Align, Table};
use crate::untrusted::{lines, one_line};
use crate::when::{ago, exact, local};

const SHOWN: usize = 200;

pub(super) fn perform(context: &Context, run: &str, as_json: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let journal = host.journal();
    let record = wait(journal.find(run))?;
    let History { entries, damage, .. } = wait(journal.history(&record.id))?;
    present(context, &record, &entries, as_json)?;
    damage.map_or(Ok(Exit::Done), |damage| Err(damage.into()))
}

/// Shows a run.
pub(super) fn present(context: &Context, record: &RunRecord, entries: &[Entry], as_json: bool) -> Result<(), Failure> {
    let status = record.status.as_str();
    if as_json {
        return events::line(&whole(record, entries, status));
    }
    let mut by_turn: HashMap<u64, Vec<&Entry>> = HashMap::new();
    for entry in entries {
        if let Some(turn) = entry.place.turn() {
            by_turn.entry(turn).or_default().push(entry);
        }
    }
    let page = Page { record, entries, by_turn, status, colour: context.colours_output() };
    let mut text = page.head();
    text.extend(page.turns());
    text.extend(page.nodes());
    text.extend(page.questions());
    text.extend(page.outcome());
    if let Some((what, rest)) = next_step(status, entries) {
        text.extend([String::new(), format!("next: {}", context.runs_command(what, record.id.as_str(), &rest))]);
    }
    print(&without_seals(&text.join("\n")))
}

struct Page<'a> {
    record: &'a RunRecord,
    entries: &'a [Entry],
    /// The entries by the turn of the run's own node that they belong to
    by_turn: HashMap<u64, Vec<&'a Entry>>,
    status: &'static str,
    colour: bool,
}

impl Page<'_> {
    fn paint(&self, style: anstyle::Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn head(&self) -> Vec<String> {
        let record = self.record;
        let field = |name: &str, value: String| format!("{}{value}", self.paint(DIM, &format!("{name:<9}")));
        let mut text = vec![
            field("run", self.paint(STRONG, &one_line(record.id.as_str(), SHOWN))),
            field(
                "graph",
                format!("{} ({})", one_line(&record.header.graph, SHOWN), one_line(&record.header.source, SHOWN)),
            ),
            field("status", self.standing()),
            field("started", format!("{} ({})", local(record.created), ago(record.created, SystemTime::now()))),
        ];
        if let Some(input) = record.header.given.get("input").and_then(Value::as_text) {
            text.push(field("input", one_line(input, SHOWN)));
        }
        if let Some(variables) = record.header.given.get("variables").and_then(Value::as_object) {
            let given: Vec<String> = variables
                .iter()
                .map(|(name, value)| format!("{name}={}", one_line(&value.to_string(), SHOWN)))
                .collect();
            if !given.is_empty() {
                text.push(field("given", given.join(", ")));
            }
        }
        text
    }

    /// The status, and which nodes failed without a fallback although the run went on.
    fn standing(&self) -> String {
        let failures = failures(self.entries);
        let unhandled: Vec<&NodeFailure> = failures.iter().filter(|failure| !failure.handled).collect();
        match failed_nodes(&unhandled) {
            Some((count, nodes)) => {
                let failed = format!("{} failed: {nodes}", counted(count, "node"));
                format!("{}, {}", self.status, self.paint(WARNING, &failed))
            }
            None => self.status.to_owned(),
        }
    }

    fn turns(&self) -> Vec<String> {
        let mut table = Table::new([
            ("#", Align::Right),
            ("NODE", Align::Left),
            ("WENT TO", Align::Left),
            ("TIME", Align::Right),
            ("FUEL", Align::Right),
            ("MEMORY", Align::Right),
            ("NOTES", Align::Left),
        ]);
        let mut any = false;
        for entry in self.entries {
            let Some(completed) = completed(entry) else { continue };
            any = true;
            let used = completed.account.total();
            table.row([
                entry.place.to_string(),
                completed.node.clone(),
                route(completed),
                short(completed.elapsed),
                cell(used.calls > 0, || used.fuel.to_string()),
                cell(used.calls > 0, || used.peak_memory.to_string()),
                self.notes(entry, completed),
            ]);
        }
        if !any {
            return vec![String::new(), "no node has completed".into()];
        }
        [String::new()].into_iter().chain(table.lines(0, |text| self.paint(STRONG, text))).collect()
    }

    /// What else is known of a turn: its failure, the answer a person gave, the effects it had.
    fn notes(&self, entry: &Entry, completed: &Completed) -> String {
        let mut notes = Vec::new();
        let failure = completed.failure.as_deref().unwrap_or_default();
        if completed.failure.is_some() {
            notes.push(self.paint(WARNING, &format!("failed: {}", one_line(failure, SHOWN))));
        }
        let mut effects: BTreeMap<&str, u64> = BTreeMap::new();
        let of_turn = entry.place.turn().and_then(|turn| self.by_turn.get(&turn)).into_iter().flatten();
        for within in of_turn.filter(|within| belongs_to(within, entry)) {
            match &within.fact {
                Fact::Answered { text, .. } => notes.push(format!("answered: {}", one_line(text, SHOWN))),
                Fact::Expired { .. } => notes.push("nobody answered in time".to_owned()),
                Fact::Effect { kind, .. } => *effects.entry(kind).or_default() += 1,
                // The attempt that ended the turn is its failure, which was told.
                Fact::Failed { error, .. } if failure.contains(error.trim()) => {}
                Fact::Failed { error, .. } => {
                    notes.push(self.paint(WARNING, &format!("tried: {}", one_line(error, SHOWN))));
                }
                _ => {}
            }
        }
        notes.extend(effects.into_iter().map(|(kind, count)| counted(count, in_words(kind))));
        notes.join("; ")
    }

    /// Who used what, where that is not said by the turns already.
    fn nodes(&self) -> Vec<String> {
        let done: HashSet<&EntryPath> =
            self.entries.iter().filter(|entry| completed(entry).is_some()).map(|entry| &entry.place).collect();
        let mut by_node: Vec<(&str, u64, Usage)> = Vec::new();
        let mut total = Usage::default();
        let mut account = Account::default();
        for entry in self.entries {
            let Some(completed) = completed(entry) else { continue };
            let used = completed.account.total();
            // A node that is done counts with everything within it.
            if !is_within_completed(entry, &done) {
                total += used.clone();
                account += completed.account.clone();
            }
            match by_node.iter_mut().find(|(node, ..)| *node == completed.node) {
                Some((_, visits, usage)) => {
                    *visits += 1;
                    *usage += used;
                }
                None => by_node.push((&completed.node, 1, used)),
            }
        }
        let mut text = Vec::new();
        if by_node.iter().any(|(_, visits, _)| *visits > 1) {
            let mut table = Table::new([
                ("NODE", Align::Left),
                ("VISITS", Align::Right),
                ("CALLS", Align::Right),
                ("IN CELLS", Align::Right),
                ("FUEL", Align::Right),
                ("MEMORY", Align::Right),
            ]);
            by_node.sort_by_key(|(_, _, usage)| std::cmp::Reverse(usage.fuel));
            for (node, visits, usage) in &by_node {
                let called = usage.calls > 0;
                table.row([
                    (*node).to_owned(),
                    visits.to_string(),
                    cell(called, || usage.calls.to_string()),
                    cell(called, || short(usage.wall_clock)),
                    cell(called, || usage.fuel.to_string()),
                    cell(called, || usage.peak_memory.to_string()),
                ]);
            }
            text.push(String::new());
            text.extend(table.lines(0, |text| self.paint(STRONG, text)));
        }
        if account.iter().count() > 1 {
            text.push(String::new());
            text.extend(self.spenders(&account));
        }
        if total.calls > 0 {
            text.extend([String::new(), format!("in all: {}", describe_usage(&total))]);
        }
        text
    }

    /// Who used what: scripts, plugins and models by name.
    fn spenders(&self, account: &Account) -> Vec<String> {
        let mut table = Table::new([
            ("USED BY", Align::Left),
            ("CALLS", Align::Right),
            ("IN CELLS", Align::Right),
            ("FUEL", Align::Right),
            ("MEMORY", Align::Right),
            ("MODEL REQUESTS", Align::Right),
            ("TOKENS", Align::Right),
        ]);
        for (who, usage) in account.iter() {
            let (called, asked) = (usage.calls > 0, usage.model_requests > 0);
            table.row([
                one_line(who, SHOWN),
                cell(called, || usage.calls.to_string()),
                cell(called, || short(usage.wall_clock)),
                cell(called, || usage.fuel.to_string()),
                cell(called, || usage.peak_memory.to_string()),
                cell(asked, || usage.model_requests.to_string()),
                cell(asked, || format!("{} + {}", usage.input_tokens, usage.output_tokens)),
            ]);
        }
        table.lines(0, |text| self.paint(STRONG, text))
    }

    fn questions(&self) -> Vec<String> {
        let open = open_questions(self.entries);
        open.iter()
            .flat_map(|asked| {
                let several = open.len() > 1;
                [String::new(), describe_question(&asked.question, several, &|text| self.paint(STRONG, text))]
            })
            .collect()
    }

    fn outcome(&self) -> Vec<String> {
        match &self.record.outcome {
            Some(outcome) if !outcome.trim().is_empty() => {
                vec![String::new(), self.paint(STRONG, &format!("{}:", self.status)), lines(outcome.trim_end())]
            }
            _ => Vec::new(),
        }
    }
}

/// What an effect is called where several are counted.
fn in_words(kind: &str) -> &str {
    match kind {
        "model" => "model request",
        "tool" => "tool call",
        "knowledge" => "look-up",
        "person" | "client" => "question",
        "web" => "request",
        other => other,
    }
}

/// The completed turn of a node. The steps of a node's own work are told of as its effects.
fn completed(entry: &Entry) -> Option<&Completed> {
    match &entry.fact {
        Fact::Completed(completed) if !entry.place.is_step() => Some(completed),
        _ => None,
    }
}

/// Whether an entry is about a part of a turn that is completed itself.
fn is_within_completed(entry: &Entry, done: &HashSet<&EntryPath>) -> bool {
    std::iter::successors(entry.place.around(), EntryPath::around).any(|around| done.contains(&around))
}

fn belongs_to(within: &Entry, turn: &Entry) -> bool {
    within.place == turn.place || within.place.strip(&turn.place).is_some()
}

fn route(completed: &Completed) -> String {
    match &completed.next {
        Some(next) if next.is_empty() => "(nowhere)".into(),
        Some(next) => next.join(", "),
        None => "(end)".into(),
    }
}

fn cell(there: bool, text: impl FnOnce() -> String) -> String {
    if there { text() } else { String::new() }
}

/// Which command goes on with a run, and what stands behind the name of the run.
fn next_step(status: &str, entries: &[Entry]) -> Option<(&'static str, String)> {
    let open = open_questions(entries);
    match (status, open.is_empty()) {
        ("waiting" | "interrupted", false) if open.len() > 1 => {
            Some(("answer", format!("--question {} '...'", quoted(&open[0].question.id))))
        }
        ("waiting" | "interrupted", false) => Some(("answer", "'...' --resume".to_owned())),
        ("waiting" | "interrupted", true) => Some(("resume", String::new())),
        ("failed", _) => Some(("retry", String::new())),
        _ => None,
    }
}

fn whole(record: &RunRecord, entries: &[Entry], status: &str) -> serde_json::Value {
    let turns: Vec<serde_json::Value> = entries
        .iter()
        .filter_map(|entry| {
            let completed = completed(entry)?;
            Some(json!({
                "turn": entry.place.to_string(),
                "node": completed.node,
                "next": completed.next,
                "failure": completed.failure,
                "elapsed_ms": completed.elapsed.as_secs_f64() * 1e3,
                "usage": completed.account.total(),
                "used_by": completed.account,
                "writes": completed.writes.iter().map(|write| &*write.key).collect::<Vec<&str>>(),
            }))
        })
        .collect();
    let questions: Vec<OpenQuestion> = open_questions(entries);
    json!({
        "run": record.id,
        "graph": record.header.graph,
        "source": record.header.source,
        "digest": record.header.digest,
        "given": serde_json::Value::from(&Value::Object(record.header.given.clone())),
        "status": status,
        "created": exact(record.created),
        "updated": exact(record.updated),
        "outcome": record.outcome,
        "failures": failures(entries),
        "turns": turns,
        "questions": questions.into_iter().map(|open| open.question).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::arguments::{ColourWhen, Global};
    use crate::command::Context;
    use crate::screen::Screen;

    /// What is told to be copied is one command, whatever a journal that somebody sent has for names.
    #[test]
    fn the_name_of_a_run_is_one_word_of_a_command() {
        let global = Global { journal: None, color: ColourWhen::Never };
        let screen = Arc::new(Screen::new(ColourWhen::Never));
        let context = Context { global, screen, server: Some("https://here".to_owned()) };
        let command = context.runs_command("answer", "x; rm -rf ~ #", "'...' --resume");
        assert_eq!(command, "hotcell runs answer 'x; rm -rf ~ #' '...' --resume --server https://here");
        assert_eq!(context.runs_command("resume", "k3m9", ""), "hotcell runs resume k3m9 --server https://here");
    }
}
