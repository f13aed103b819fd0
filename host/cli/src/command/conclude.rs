//! What a run came to, told to the person or the program that had it run.

use std::sync::Arc;

use hotcell_budget::Account;
use hotcell_runtime::{NodeFailure, OpenQuestion, Outcome, Question, RunId, RunReport, outcome_json};

use super::explain::limit_help;
use super::{Context, print_data, quoted};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::{Narrator, counted};
use crate::people::asked;
use crate::screen::{STRONG, WARNING};
use crate::untrusted::{lines, one_line};

/// What a run came to that gave control back.
pub(super) struct Concluded<'a> {
    pub(super) run: &'a RunId,
    pub(super) outcome: &'a Outcome,
    pub(super) failures: &'a [NodeFailure],
    pub(super) account: &'a Account,
}

impl<'a> Concluded<'a> {
    pub(super) fn of(report: &'a RunReport) -> Self {
        let RunReport { run, outcome, failures, account, .. } = report;
        Concluded { run, outcome, failures, account }
    }
}

/// Tells it.
pub(super) struct Conclusion<'a> {
    pub(super) context: &'a Context,
    /// Whether it is told to a program
    pub(super) json: bool,
    pub(super) quiet: bool,
    pub(super) narrator: Arc<Narrator>,
}

impl Conclusion<'_> {
    /// Why nothing was begun, after it was told to programs.
    pub(super) fn refuse(&self, failure: Failure) -> Result<Failure, Failure> {
        if self.json {
            events::line(&events::refusal(failure.exit, failure.message.as_deref().unwrap_or_default()))?;
        }
        Ok(failure)
    }

    /// Tells what a run came to, and how the command ends.
    pub(super) fn conclude(&self, report: &Concluded<'_>, strict: bool) -> Result<Exit, Failure> {
        if !self.quiet {
            self.narrator.used(&report.account.total());
        }
        let unhandled: Vec<&NodeFailure> = report.failures.iter().filter(|failure| !failure.handled).collect();
        let exit = match exit_of(report.outcome) {
            Exit::Done if strict && !unhandled.is_empty() => Exit::Failed,
            exit => exit,
        };
        if self.json {
            let told = outcome_json(report.run, report.outcome, report.failures, report.account);
            events::line(&events::result(told, exit))?;
        }
        let failed = failed_nodes(&unhandled);
        // What the error itself tells is no earlier failure.
        let earlier: Vec<&NodeFailure> = match report.outcome {
            Outcome::Failed { error, .. } => {
                unhandled.iter().copied().filter(|failure| !error.contains(failure.error.trim())).collect()
            }
            _ => unhandled.clone(),
        };
        let cause = failed_nodes(&earlier);
        let cause = cause.map(|(_, nodes)| format!("this may follow from an earlier failure: {nodes}"));
        if let Some((count, nodes)) = failed {
            self.tell_failures(&format!("{} failed: {nodes}", counted(count, "node")), report.outcome, strict);
        }
        match report.outcome {
            Outcome::Completed { output } if !self.json => self.print_output(output)?,
            Outcome::Completed { .. } => {}
            Outcome::Failed { error: reason, .. } | Outcome::Stopped { reason } => {
                let limit = limit_help(reason).or_else(|| cause.as_deref().and_then(limit_help));
                let help = match (cause, limit) {
                    (Some(cause), Some(limit)) => Some(format!("{cause}; {limit}")),
                    (cause, limit) => cause.or(limit),
                };
                self.context.screen.error(&lines(reason), help.as_deref());
            }
            Outcome::Waiting { questions } => self.tell_how_to_answer(report, questions),
            Outcome::Cancelled => {
                let run = one_line(report.run.as_str(), 200);
                self.context.screen.warning(&format!("run {run} was cancelled by another process"));
            }
            Outcome::Interrupted => self.tell_how_to_resume(report, "was interrupted"),
            Outcome::Paused => self.tell_how_to_resume(report, "was paused"),
        }
        Ok(exit)
    }

    /// A run that went on after a failure did not do all that it was asked for.
    fn tell_failures(&self, failed: &str, outcome: &Outcome, strict: bool) {
        let screen = &self.context.screen;
        match outcome {
            Outcome::Completed { .. } if strict => screen.error(
                &format!("{failed} (the graph has no fallback for it)"),
                Some("give the node a fallback, or run without `--strict` (`strict` under `[run]` in `hotcell.toml`)"),
            ),
            Outcome::Completed { .. } => screen.warning(&format!("the run completed, but {failed}")),
            Outcome::Waiting { .. } => screen.warning(&format!("the run went on, but {failed}")),
            _ => {}
        }
    }

    /// The result as it is for a program, without control characters for a terminal.
    fn print_output(&self, output: &str) -> Result<(), Failure> {
        print_data(output)
    }

    fn tell_how_to_answer(&self, report: &Concluded<'_>, questions: &[Question]) {
        let screen = &self.context.screen;
        for question in questions {
            let several = questions.len() > 1;
            screen.line(&describe_question(question, several, &|text| screen.paint(STRONG, text)));
        }
        if !self.context.keeps_runs() {
            screen
                .warning("the run is lost, because `--journal memory` keeps nothing; pass the answers with `--answer`");
            return;
        }
        let run = &report.run;
        let shown = one_line(run.as_str(), 200);
        screen.line(&match questions.len() {
            0 | 1 => format!("run {shown} is waiting for an answer; answer it now or later with"),
            several => {
                format!("run {shown} waits for {several} answers; answer in any order, now or later, with")
            }
        });
        for question in questions {
            // What is granted is for whoever reads this to say.
            let first = question.options.first().filter(|_| question.denial.is_none());
            // A command line would take it for an option of its own.
            let first = first.filter(|option| !option.starts_with('-'));
            let answer = first.map_or("'...'".into(), |option| quoted(option));
            let which =
                if questions.len() > 1 { format!("--question {} ", quoted(&question.id)) } else { String::new() };
            let resume = if questions.len() > 1 { "" } else { " --resume" };
            let command = self.context.runs_command("answer", run.as_str(), &format!("{which}{answer}{resume}"));
            screen.line(&format!("  {}", screen.paint(STRONG, &command)));
        }
        if questions.len() > 1 {
            screen.line("then resume it with");
            let command = self.context.runs_command("resume", run.as_str(), "");
            screen.line(&format!("  {}", screen.paint(STRONG, &command)));
        }
    }

    fn tell_how_to_resume(&self, report: &Concluded<'_>, what: &str) {
        let screen = &self.context.screen;
        if !self.context.keeps_runs() {
            screen.line(&screen.paint(WARNING, "the run is lost, because `--journal memory` keeps nothing"));
            return;
        }
        let run = one_line(report.run.as_str(), 200);
        screen.line(&format!("run {run} {what}; everything committed is kept. Resume it with"));
        let command = self.context.runs_command("resume", report.run.as_str(), "");
        screen.line(&format!("  {}", screen.paint(STRONG, &command)));
    }
}

/// How many nodes failed, and which: each with why it failed last.
pub(super) fn failed_nodes(failures: &[&NodeFailure]) -> Option<(u64, String)> {
    const SHOWN: usize = 3;
    let mut nodes: Vec<(&str, String)> = Vec::new();
    for failure in failures.iter().rev() {
        if !nodes.iter().any(|(node, _)| *node == failure.node) {
            nodes.push((&failure.node, in_a_line(&failure.error)));
        }
    }
    nodes.reverse();
    let more = match nodes.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let told = |(node, error): &(&str, String)| format!("`{}`: {}", one_line(node, 100), one_line(error, 600));
    let first: Vec<String> = nodes.iter().take(SHOWN).map(told).collect();
    (!nodes.is_empty()).then(|| (nodes.len() as u64, format!("{}{more}", first.join("; "))))
}

/// The first line of an error and its last one, where a traceback says what happened, with the place before it. What would
/// grant something is lines of its own, and told where the node failed.
fn in_a_line(error: &str) -> String {
    let mut lines = error.trim().lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    // A line that only underlines says nothing.
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    let rest: Vec<&str> = lines.take_while(|line| !line.ends_with("write into `hotcell.toml`:")).filter(says).collect();
    let Some((last, before)) = rest.split_last() else { return first.to_owned() };
    // Only the author's own files are a place to look at: not those of Python, nor those of the cell around the script.
    let is_own = |line: &&&str| {
        let file = line.strip_prefix("File \"");
        file.is_some_and(|file| !["/python/", "/0/", "<frozen "].iter().any(|other| file.starts_with(other)))
    };
    match before.iter().rev().find(is_own) {
        Some(place) => format!("{first} … {place} … {last}"),
        None => format!("{first} … {last}"),
    }
}

fn exit_of(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Completed { .. } => Exit::Done,
        Outcome::Failed { .. } | Outcome::Stopped { .. } => Exit::Failed,
        Outcome::Waiting { .. } => Exit::Waiting,
        Outcome::Interrupted | Outcome::Paused | Outcome::Cancelled => Exit::Interrupted,
    }
}

/// A question with what may be answered, over several lines; with its id where it is one of several.
pub(super) fn describe_question(question: &Question, several: bool, strong: &dyn Fn(&str) -> String) -> String {
    let id = if several { format!(" [{}]", question.id) } else { String::new() };
    let mut text = format!("{} ({}){id}", strong("?"), one_line(&question.node, 200));
    for line in lines(&asked(question)).lines() {
        text.push_str(&format!("\n    {line}"));
    }
    if !question.options.is_empty() {
        let options: Vec<String> = question.options.iter().map(|option| one_line(option, 200)).collect();
        let others = if question.denial.is_none() { " (or any other text)" } else { "" };
        text.push_str(&format!("\n  options: {}{others}", options.join(" | ")));
    }
    if let Some(default) = &question.default {
        text.push_str(&format!("\n  default: {}", one_line(default, 200)));
    }
    text
}

/// What `runs answer` says after it.
pub(super) fn describe_answered(open: &OpenQuestion) -> String {
    format!("answered the question of `{}`", one_line(&open.question.node, 200))
}

#[cfg(test)]
mod tests {
    use super::in_a_line;

    #[test]
    fn a_traceback_in_a_line_says_what_happened_where_and_not_what_would_grant_it() {
        let error = "s failed: Traceback (most recent call last):\n  File \"s.py\", line 2, in f\n    1 / 0\n    ~~^~~\n\
                     ZeroDivisionError: division by zero\n";
        let told = "s failed: Traceback (most recent call last): … File \"s.py\", line 2, in f … ZeroDivisionError: division by zero";
        assert_eq!(in_a_line(error), told);
        let denied = "s failed: Error: no `kv`\n    at f\nURLError: denied\n`s` asked for `kv`, which is not granted; to grant it, \
                      write into `hotcell.toml`:\n[grants.s]\nkv = true";
        assert_eq!(in_a_line(denied), "s failed: Error: no `kv` … URLError: denied");
        assert_eq!(in_a_line("s failed\n"), "s failed");
        let within = "s failed: Traceback (most recent call last):\n  File \"s.py\", line 2, in <module>\n    import x\n  File \
                      \"/0/surface.py\", line 53, in find_spec\n  File \"<frozen os>\", line 709, in __getitem__\nKeyError: 'x'";
        let told = "s failed: Traceback (most recent call last): … File \"s.py\", line 2, in <module> … KeyError: 'x'";
        assert_eq!(in_a_line(within), told);
    }
}
