//! Standard error as one thing that several write to: narration, log records, progress and questions. It keeps them
//! from writing into each other, and knows whether to colour.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anstyle::Style;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::arguments::ColourWhen;
use crate::untrusted::{self, printable};
use crate::when::exact;

/// Standard error.
pub(crate) struct Screen {
    colour: bool,
    terminal: bool,
    /// Whether what plugins log is told, and what goes wrong around them
    tells_plugins: AtomicBool,
    tells_warnings: AtomicBool,
    /// Whether every line is a JSON object
    is_json: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Lines that came while a question was on the screen
    held: Option<Vec<String>>,
    /// The spinner, while there is long work
    spinner: Option<ProgressBar>,
}

impl Screen {
    pub(crate) fn new(when: ColourWhen) -> Self {
        let colour = coloured(when, &io::stderr());
        Screen {
            colour,
            terminal: io::stderr().is_terminal(),
            tells_plugins: AtomicBool::new(false),
            tells_warnings: AtomicBool::new(false),
            is_json: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// From now on, what plugins and scripts log is told while they run.
    pub(crate) fn tell_plugins(&self) {
        self.tells_plugins.store(true, Ordering::Relaxed);
        self.tell_warnings();
    }

    /// From now on, every line is a JSON object.
    pub(crate) fn speak_json(&self) {
        self.is_json.store(true, Ordering::Relaxed);
    }

    /// From now on, what goes wrong around plugins is a warning.
    pub(crate) fn tell_warnings(&self) {
        self.tells_warnings.store(true, Ordering::Relaxed);
    }

    pub(crate) fn tells_plugins(&self) -> bool {
        self.tells_plugins.load(Ordering::Relaxed)
    }

    pub(crate) fn tells_warnings(&self) -> bool {
        self.tells_warnings.load(Ordering::Relaxed)
    }

    pub(crate) fn colour(&self) -> bool {
        self.colour
    }

    /// Whether a person may be looking.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The text in a style, if colours are on.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Writes a line, or several; after the question if one is on the screen.
    pub(crate) fn line(&self, line: &str) {
        if self.is_json.load(Ordering::Relaxed) {
            let at = exact(SystemTime::now());
            return json_line(&json!({ "at": at, "level": "info", "target": "hotcell", "message": line }));
        }
        let mut state = self.state();
        if let Some(held) = &mut state.held {
            held.push(line.to_owned());
            return;
        }
        match &state.spinner {
            Some(spinner) => spinner.suspend(|| write(line)),
            None => write(line),
        }
    }

    /// `error: message`, and how to get out of it.
    pub(crate) fn error(&self, message: &str, help: Option<&str>) {
        self.line(&format!("{}: {message}", self.paint(ERROR, "error")));
        if let Some(help) = help {
            self.line(&format!("  {}: {help}", self.paint(HELP, "help")));
        }
    }

    /// `warning: message`.
    pub(crate) fn warning(&self, message: &str) {
        self.line(&format!("{}: {message}", self.paint(WARNING, "warning")));
    }

    /// Writes a line and keeps all others back until the guard is dropped, for a question that owns the screen.
    pub(crate) fn hold(&self, line: &str) -> Held<'_> {
        let mut state = self.state();
        if let Some(spinner) = state.spinner.take() {
            spinner.finish_and_clear();
        }
        write(line);
        state.held = Some(Vec::new());
        Held(self)
    }

    /// Long work began: a spinner on a terminal, a plain line elsewhere.
    pub(crate) fn working(&self, what: &str) {
        if !self.terminal {
            self.line(what);
            return;
        }
        let mut state = self.state();
        if state.held.is_some() {
            return;
        }
        let spinner = state.spinner.get_or_insert_with(|| {
            let spinner = ProgressBar::new_spinner();
            let template =
                if self.colour { "{spinner:.cyan} {msg} {elapsed:.dim}" } else { "{spinner} {msg} {elapsed}" };
            if let Ok(style) = ProgressStyle::with_template(template) {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        spinner.set_message(printable(what));
    }

    /// Long work is over.
    pub(crate) fn worked(&self) {
        if let Some(spinner) = self.state().spinner.take() {
            spinner.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question owns the screen while this lives.
pub(crate) struct Held<'a>(&'a Screen);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        for line in state.held.take().unwrap_or_default() {
            write(&line);
        }
    }
}

/// What is told in passing.
pub(crate) const DIM: Style = Style::new().dimmed();
/// Names that stand out.
pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const ERROR: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Red)));
pub(crate) const WARNING: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Yellow)));
pub(crate) const HELP: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Cyan)));
pub(crate) const GOOD: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Green)));

/// Whether to colour what goes to `stream`.
pub(crate) fn coloured(when: ColourWhen, stream: &impl anstream::stream::RawStream) -> bool {
    match when {
        ColourWhen::Always => true,
        ColourWhen::Never => false,
        ColourWhen::Auto => anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never,
    }
}

/// Writes a JSON object as one line, in which nothing steers a terminal: somebody may be looking at it.
pub(crate) fn json_line(object: &Value) {
    // Nobody is left to be told that standard error is gone.
    let _ = io::stderr().lock().write_all(as_line(object).as_bytes());
}

fn as_line(object: &Value) -> String {
    format!("{}\n", untrusted::json_line(&object.to_string()))
}

fn write(line: &str) {
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_json_steers_no_terminal() {
        let record = json!({ "message": "a\u{9b}2Jb\u{202e}c\u{1b}]0;x\u{7}" });
        let line = as_line(&record);
        assert!(!line.trim_end().chars().any(hotcell_visible::is_hidden) && line.ends_with('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), record);
    }
}
