//! `hotcell run` without a prompt on a terminal: each message runs the graph afresh.
//!
//! The agent is loaded again for every message, so a file that was changed or a plugin that was added in the meantime
//! counts from the next message on; a message that is being answered keeps what it began with.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use hotcell_runtime::{Agent, Loading, RunInput};
use hotcell_visible::is_hidden;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Editor, Helper};

use super::Context;
use super::drive::Drive;
use crate::exit::{Exit, Failure};
use crate::screen::{DIM, STRONG};
use crate::untrusted::one_line;

/// Messages that are kept for the arrow keys.
const HISTORY: usize = 1_000;

/// What begins with a slash is for hotcell, not for the graph.
const COMMANDS: [(&str, &str); 4] = [
    ("/help", "show this"),
    ("/starters", "show messages that the author of the graph suggests"),
    ("/history", "show the messages so far"),
    ("/quit", "leave (also Ctrl-D)"),
];

/// Reads messages and runs the graph with each until the person leaves.
pub(super) fn perform(
    context: &Context,
    drive: &Drive<'_>,
    path: &Path,
    loading: &Loading<'_>,
    mut agent: Agent,
    given: &RunInput,
) -> Result<Exit, Failure> {
    let failed = |error: ReadlineError| Failure::failed(format!("the terminal cannot be used: {error}"));
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY)
        .and_then(|config| config.history_ignore_dups(true))
        .map_err(failed)?
        .history_ignore_space(true)
        .build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config).map_err(failed)?;
    let history = history_file();
    if let Some(file) = &history {
        // Without a history there is one less comfort, and nothing to say about it.
        let _ = editor.load_history(file);
    }
    editor.set_helper(Some(Words::of(&agent.conversation_starters, context.screen.colour())));
    let screen = &context.screen;
    let title = one_line(&agent.graph.name, 60);
    screen.line(&screen.paint(DIM, &format!("{title}: each message runs the graph; /help shows more, Ctrl-D leaves")));
    loop {
        let message = match editor.readline(&format!("{title}> ")) {
            Ok(message) => message,
            // As in a shell: Ctrl-C drops the line, Ctrl-D leaves.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        };
        let message = message.replace("\\\n", "\n");
        let text = message.trim();
        if text.is_empty() {
            continue;
        }
        editor.add_history_entry(message.trim_end()).map_err(failed)?;
        if let Some(command) = text.strip_prefix('/') {
            match command {
                "quit" | "exit" | "q" => break,
                "starters" => show(context, &agent.conversation_starters, "the graph suggests no messages"),
                "history" => {
                    let lines: Vec<String> = editor.history().iter().cloned().collect();
                    show(context, &lines, "there are no messages yet");
                }
                "help" => help(context),
                other => {
                    let near = hotcell_graph::closest(other, COMMANDS.iter().map(|(name, _)| &name[1..]));
                    let help =
                        near.map_or("/help lists the commands".to_owned(), |near| format!("did you mean /{near}?"));
                    screen.warning(&format!("there is no /{}; {help}", one_line(other, 40)));
                }
            }
            continue;
        }
        if let Some(file) = &history {
            let _ = editor.save_history(file);
        }
        // A graph that was broken meanwhile says so and can be mended: the next message looks again.
        match drive.load(path, loading) {
            Ok(loaded) => agent = loaded,
            Err(failure) => {
                report(context, &failure);
                continue;
            }
        }
        let given = RunInput { input: Some(message.trim_end().to_owned()), ..given.clone() };
        let run = agent.clone();
        let strict = drive.is_strict() || run.strict;
        if let Err(failure) = drive.go(strict, |host, session| async move { host.run(&run, given, session).await }) {
            report(context, &failure);
        }
    }
    if let Some(file) = &history {
        let _ = editor.save_history(file);
    }
    Ok(Exit::Done)
}

fn report(context: &Context, failure: &Failure) {
    if let Some(message) = &failure.message {
        context.screen.error(message, failure.help.as_deref());
    }
}

fn help(context: &Context) {
    let screen = &context.screen;
    for (name, what) in COMMANDS {
        screen.line(&format!("  {}  {what}", screen.paint(STRONG, &format!("{name:<10}"))));
    }
    screen
        .line("  a backslash at the end of a line continues it on the next; Ctrl-C stops a run, which can be resumed");
}

fn show(context: &Context, lines: &[String], none: &str) {
    if lines.is_empty() {
        context.screen.line(&format!("  {none}"));
    }
    for line in lines {
        context.screen.line(&format!("  {}", one_line(line, 400)));
    }
}

/// Where messages are kept between sessions; only their owner can read it.
fn history_file() -> Option<PathBuf> {
    let folder = hotcell_runtime::state_folder().ok()?;
    hotcell_files::make_private_folder(&folder).ok()?;
    Some(folder.join("history"))
}

/// Completes commands and the messages that the author of the graph suggests.
struct Words {
    starters: Vec<String>,
    colour: bool,
}

impl Words {
    /// What is completed stands on the line as it is, and is sent: a message is no suggestion that steers a terminal, or has in it what
    /// nobody sees.
    fn of(suggested: &[String], colour: bool) -> Self {
        let is_plain = |starter: &&String| !starter.chars().any(is_hidden);
        Words { starters: suggested.iter().filter(is_plain).cloned().collect(), colour }
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        COMMANDS.iter().map(|(name, _)| *name).chain(self.starters.iter().map(String::as_str))
    }
}

impl Helper for Words {}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..position).unwrap_or(line);
        let fitting = self.all().filter(|word| word.starts_with(typed));
        let pairs = fitting.map(|word| Pair { display: one_line(word, 100), replacement: word.to_owned() });
        Ok((0, pairs.collect()))
    }
}

impl Hinter for Words {
    type Hint = String;

    fn hint(&self, line: &str, position: usize, _: &rustyline::Context<'_>) -> Option<String> {
        if line.is_empty() || position < line.len() {
            return None;
        }
        self.all()
            .find_map(|word| word.strip_prefix(line))
            .filter(|rest| !rest.is_empty())
            .map(|rest| one_line(rest, 100))
    }
}

impl Highlighter for Words {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colour { Cow::Owned(format!("\u{1b}[2m{hint}\u{1b}[0m")) } else { Cow::Borrowed(hint) }
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn what_steers_a_terminal_or_is_not_seen_is_not_suggested() {
        let suggested =
            ["Hello 👨\u{200d}👩!", "a\u{1b}]0;x\u{7}", "b\u{202e}c", "d\u{e0041}", "e\nf"].map(str::to_owned);
        assert_eq!(Words::of(&suggested, false).starters, suggested[..1]);
    }
}
