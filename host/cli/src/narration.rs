//! The narration: what happens in a run, told on standard error line by line while it happens.
//!
//! It is a view of the engine's events and decides nothing. Whatever a guest, a model or a person wrote is shown
//! escaped and cut.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotcell_budget::Usage;
use hotcell_runtime::{Event, Observer};

use crate::screen::{DIM, ERROR, GOOD, Screen, WARNING};
use crate::untrusted::{capped, one_line};

/// How much of a text that somebody else wrote is shown, in characters.
const SHOWN: usize = 400;

/// Tells what happens.
pub(crate) struct Narrator {
    screen: Arc<Screen>,
    /// The model of nodes that name none, as `provider:model`
    default_model: Option<String>,
    counts: Mutex<Counts>,
}

/// How many items of a map are told one by one.
const ITEMS_TOLD: usize = 20;

#[derive(Default)]
struct Counts {
    /// Nodes that are running
    active: usize,
    /// Maps that are running, with how many of their items were started
    maps: HashMap<String, usize>,
    prompt_tokens: u64,
    completion_tokens: u64,
    model_calls: u64,
}

impl Narrator {
    pub(crate) fn new(screen: Arc<Screen>, default_model: Option<String>) -> Self {
        Narrator { screen, default_model, counts: Mutex::default() }
    }

    fn tell(&self, line: &str) {
        self.screen.line(&self.screen.paint(DIM, &format!("▸ {}", hanging(line))));
    }

    fn warn(&self, line: &str) {
        self.screen.line(&self.screen.paint(WARNING, &format!("▸ {}", hanging(line))));
    }

    fn counts<T>(&self, look: impl FnOnce(&mut Counts) -> T) -> T {
        look(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// ` (node)` if it would not be clear which node is meant.
    fn whose(&self, node: &str) -> String {
        if self.counts(|counts| counts.active > 1 || !counts.maps.is_empty()) {
            format!(" ({node})")
        } else {
            String::new()
        }
    }

    /// The line about what the calls into cells and the models of this process used; told once, at the end.
    pub(crate) fn used(&self, usage: &Usage) {
        let (calls, prompt, completion) =
            self.counts(|counts| (counts.model_calls, counts.prompt_tokens, counts.completion_tokens));
        let mut parts = Vec::new();
        if usage.calls > 0 {
            parts.push(describe_usage(usage));
        }
        if calls > 0 {
            parts.push(format!("{}, {prompt} + {completion} tokens", counted(calls, "model call")));
        }
        if !parts.is_empty() {
            self.tell(&format!("used: {}", parts.join("; ")));
        }
    }
}

impl Observer for Narrator {
    fn event(&self, event: &Event<'_>) {
        self.narrate("", event);
    }
}

impl Narrator {
    /// Tells of an event; `within` names the agents in which it happened.
    fn narrate(&self, within: &str, event: &Event<'_>) {
        match event {
            Event::Within { agent, within: event, .. } => self.narrate(&format!("{within}{agent} › "), event),
            Event::RunStarted { graph, start, resumed: false, .. } => {
                self.tell(&format!("graph: {graph} (start: {start})"));
            }
            Event::RunStarted { run, graph, resumed: true, .. } => {
                self.tell(&format!("graph: {graph} (resuming run {run})"));
            }
            Event::Revision { digest, current, changed, .. } => {
                self.tell(&revision(digest, *current, changed));
            }
            Event::NodeStarted { node, kind, visit, .. } => {
                self.counts(|counts| counts.active += 1);
                let visit = if *visit > 1 { format!(", visit {visit}") } else { String::new() };
                self.tell(&format!("{within}{node} ({kind}{visit})"));
            }
            Event::ItemStarted { node, branch, item } => {
                let started = self.counts(|counts| {
                    let started = counts.maps.entry((*node).to_owned()).or_default();
                    *started += 1;
                    *started
                });
                match started.cmp(&(ITEMS_TOLD + 1)) {
                    Ordering::Less => self.tell(&format!("{within}{node}: item {item} -> {branch}")),
                    Ordering::Equal => self.tell(&format!("{within}{node}: more items -> {branch}")),
                    Ordering::Greater => {}
                }
            }
            Event::ModelRequested { node, model, tools } => {
                let model = one_line(model.or(self.default_model.as_deref()).unwrap_or("<none>"), SHOWN);
                let tools = if tools.is_empty() { "<none>".to_owned() } else { tools.join(",") };
                self.tell(&format!("{within}llm call: model={model} tools={tools}{}", self.whose(node)));
            }
            Event::ModelAnswered { prompt_tokens, completion_tokens, .. } => self.counts(|counts| {
                counts.model_calls += 1;
                counts.prompt_tokens += prompt_tokens;
                counts.completion_tokens += completion_tokens;
            }),
            Event::ModelRetried { node, error, attempt } => {
                self.warn(&format!("llm call failed: {}{}", one_line(error, SHOWN), self.whose(node)));
                self.tell(&format!("llm call: attempt {attempt}{}", self.whose(node)));
            }
            Event::ToolCalled { node, tool, error: None, .. } => {
                self.tell(&format!("{within}tool: {}{}", one_line(tool, SHOWN), self.whose(node)));
            }
            Event::ToolCalled { node, tool, error: Some(error), .. } => {
                let tool = one_line(tool, SHOWN);
                self.warn(&format!("tool: {tool} failed: {}{}", one_line(error, SHOWN), self.whose(node)));
            }
            Event::Noticed { node, text, help: None } => {
                self.tell(&format!("{within}{node}: {}", indented(&capped(text, 5 * SHOWN))));
            }
            Event::Noticed { node, text, help: Some(help) } => {
                self.warn(&format!("{within}{node}: {}", warning(text, help)));
            }
            Event::NodeCompleted { node, next, failure, .. } => {
                self.counts(|counts| {
                    counts.active = counts.active.saturating_sub(1);
                    counts.maps.remove(*node);
                });
                if let Some(failure) = failure {
                    // A refused capability is told over several lines: what to write into `hotcell.toml`.
                    self.warn(&format!("{within}{node} failed: {}", indented(&capped(failure, 5 * SHOWN))));
                }
                if !next.is_empty() {
                    let reason = if failure.is_some() { " (after the failure)" } else { "" };
                    self.tell(&format!("{within}{node} -> {}{reason}", next.join(", ")));
                }
            }
            Event::RunCompleted { elapsed, failures, .. } => {
                let done = format!("graph done in {}", seconds(*elapsed));
                match failures.iter().filter(|failure| !failure.handled).count() {
                    0 => self.screen.line(&self.screen.paint(GOOD, &format!("▸ {done}"))),
                    failed => self.warn(&format!("{done}, {} failed", counted(failed as u64, "node"))),
                }
            }
            Event::RunFailed { node, .. } => {
                let node = node.map_or(String::new(), |node| format!(" at {node}"));
                self.screen.line(&self.screen.paint(ERROR, &format!("▸ graph failed{}", hanging(&node))));
            }
            Event::RunWaiting { questions, .. } => {
                let questions = counted(questions.len() as u64, "question");
                self.warn(&format!("graph waits for a person: {questions} without an answer"));
            }
            Event::RunInterrupted { .. } => self.warn("graph interrupted"),
            Event::RunPaused { .. } => self.warn("graph paused"),
            // Questions and answers are told by whoever asks; text of a model is told when it is the result.
            _ => {}
        }
    }
}

/// Tells the warnings of nodes and nothing else, for people who want no progress output. Nodes that failed are told when the run is over.
pub(crate) struct Warnings(pub(crate) Arc<Screen>);

impl Observer for Warnings {
    fn event(&self, event: &Event<'_>) {
        self.tell("", event);
    }
}

impl Warnings {
    /// Tells of an event if it is a warning; `within` names the agents in which it happened.
    fn tell(&self, within: &str, event: &Event<'_>) {
        match event {
            Event::Within { agent, within: event, .. } => self.tell(&format!("{within}{agent} › "), event),
            Event::Noticed { node, text, help: Some(help) } => {
                self.0.warning(&hanging(&format!("{within}{node}: {}", warning(text, help))));
            }
            _ => {}
        }
    }
}

/// What is to be seen of a node, and what to do about it.
fn warning(text: &str, help: &str) -> String {
    indented(&capped(&format!("{text}\n{help}"), 10 * SHOWN))
}

/// `3 cell calls, 12.1 M fuel, 4.2 MiB peak memory, 1.3 ms in cells`.
pub(crate) fn describe_usage(usage: &Usage) -> String {
    let mut text = format!(
        "{}, {}, {} peak memory, {} in cells",
        counted(usage.calls, "cell call"),
        usage.fuel,
        usage.peak_memory,
        short(usage.wall_clock)
    );
    if usage.http_requests > 0 {
        let requests = counted(usage.http_requests, "HTTP request");
        text.push_str(&format!(", {requests} ({} out, {} in)", usage.http_sent, usage.http_received));
    }
    if usage.files > 0 || usage.file_bytes.0 > 0 {
        text.push_str(&format!(", {} written to files, {} made", usage.file_bytes, counted(usage.files, "file")));
    }
    text
}

/// With what a run goes on, where that is not simply what the files say.
pub(crate) fn revision(digest: &str, current: bool, changed: &[String]) -> String {
    const SHOWN: usize = 5;
    let digest: String = digest.chars().take(12).collect();
    if current {
        return format!("continues with the current files (revision {digest})");
    }
    let mut files: Vec<String> = changed.iter().take(SHOWN).map(|file| one_line(file, 200)).collect();
    if changed.len() > SHOWN {
        files.push(format!("{} more", changed.len() - SHOWN));
    }
    match &files[..] {
        [] => format!("continues with revision {digest}"),
        files => format!(
            "continues with revision {digest}; changed since: {}; `--revision current` uses the files as they are now",
            files.join(", ")
        ),
    }
}

/// A text whose further lines are indented, so that only what hotcell tells begins at the left. Names may have lines, too.
fn hanging(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut hanging = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let indent = if line.starts_with("    ") { "" } else { "    " };
        hanging.push_str(&format!("\n{indent}{line}"));
    }
    hanging
}

/// The beginning and the end of a text of many lines, indented.
fn indented(text: &str) -> String {
    const FIRST: usize = 3;
    const LAST: usize = 5;
    let mut lines: Vec<&str> = text.trim_end().lines().collect();
    if lines.len() > FIRST + LAST + 1 {
        lines.splice(FIRST..lines.len() - LAST, ["..."]);
    }
    lines.join("\n    ")
}

/// `1 node`, `2 nodes`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `2.41s`, `3m 07s`: for what a person waited for.
pub(crate) fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.2}s");
    }
    let whole = seconds.round() as u64;
    format!("{}m {:02}s", whole / 60, whole % 60)
}

/// `85 µs`, `1.3 ms`, `2.41 s`: for what is compared.
pub(crate) fn short(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{} µs", duration.as_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_begins_a_line_of_its_own() {
        assert_eq!(hanging("a\n▸ graph done in 0.00s\nok"), "a\n    ▸ graph done in 0.00s\n    ok");
        assert_eq!(hanging("a: b\n    c"), "a: b\n    c");
    }

    #[test]
    fn of_many_lines_the_first_and_the_last_are_told() {
        assert_eq!(indented("a\nb\n"), "a\n    b");
        let many: Vec<String> = (1..=12).map(|line| line.to_string()).collect();
        let shown: Vec<String> = indented(&many.join("\n")).lines().map(|line| line.trim().to_owned()).collect();
        assert_eq!(shown, ["1", "2", "3", "...", "8", "9", "10", "11", "12"]);
    }

    #[test]
    fn durations_are_written_for_their_size() {
        let cases = [(0, "0 µs"), (85, "85 µs"), (1_340, "1.3 ms"), (2_410_000, "2.41 s")];
        for (microseconds, expected) in cases {
            assert_eq!(short(Duration::from_micros(microseconds)), expected);
        }
        assert_eq!(seconds(Duration::from_millis(2_410)), "2.41s");
        assert_eq!(seconds(Duration::from_millis(187_400)), "3m 07s");
    }
}
