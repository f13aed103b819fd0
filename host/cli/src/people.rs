//! Who answers questions: first the answers of the command line, in order, then the person at the terminal, if there is
//! one. With neither, the run waits in the journal.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dialoguer::theme::{ColorfulTheme, SimpleTheme, Theme};
use dialoguer::{Input, Select};
use hotcell_runtime::{People, Question};
use tokio_util::sync::CancellationToken;

use crate::screen::{DIM, STRONG, Screen};
use crate::untrusted::{lines, one_line};

const SHOWN: usize = 400;
/// The answer by which a capability is not granted.
const REFUSE: &str = "refuse";

/// The person who started the command.
pub(crate) struct Person {
    screen: Arc<Screen>,
    answers: Mutex<VecDeque<String>>,
    /// Whether to ask on the terminal; one question at a time
    terminal: Option<tokio::sync::Mutex<()>>,
    quiet: bool,
    cancel: CancellationToken,
}

/// What became of a question on the terminal.
enum Asked {
    Answer(String),
    /// The person wants to answer another time
    Later,
    /// The person wants everything to stop
    Stop,
}

impl Person {
    pub(crate) fn new(
        screen: Arc<Screen>,
        answers: Vec<String>,
        no_input: bool,
        quiet: bool,
        cancel: CancellationToken,
    ) -> Self {
        let terminal = (!no_input && io::stdin().is_terminal() && screen.is_terminal()).then(Default::default);
        Person { screen, answers: Mutex::new(answers.into()), terminal, quiet, cancel }
    }

    /// How many answers of the command line no question has used.
    pub(crate) fn unused_answers(&self) -> usize {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[async_trait]
impl People for Person {
    fn may_grant(&self) -> bool {
        true
    }

    async fn ask(&self, question: &Question) -> Option<String> {
        let given = match question.denial {
            // Whoever wrote the answers wrote them for what the agent asks, and a guest decides when it is denied something.
            Some(_) => None,
            None => self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
        };
        if let Some(answer) = given {
            if !self.quiet {
                let told = format!("▸ asked: {}", one_line(question.text.trim(), SHOWN));
                self.screen.line(&self.screen.paint(DIM, &told));
                let told = format!("▸ answered: {}", one_line(&answer, SHOWN));
                self.screen.line(&self.screen.paint(DIM, &told));
            }
            return Some(answer);
        }
        let _turn = self.terminal.as_ref()?.lock().await;
        let (screen, question) = (self.screen.clone(), question.clone());
        let asked = tokio::task::spawn_blocking(move || ask_on_terminal(&screen, &question)).await;
        match asked {
            Ok(Asked::Answer(answer)) => Some(answer),
            Ok(Asked::Later) | Err(_) => None,
            Ok(Asked::Stop) => {
                self.cancel.cancel();
                // The engine drops this when it sees the cancellation, and the run stays resumable.
                std::future::pending().await
            }
        }
    }
}

/// What a person is asked; a node may wait for a message and say nothing.
pub(crate) fn asked(question: &Question) -> String {
    match question.text.trim_end() {
        "" => format!("`{}` waits for a message", one_line(&question.node, SHOWN)),
        text => text.to_owned(),
    }
}

/// Asks on the terminal. Only what hotcell tells begins at the left: further lines of a question could look like its options, or like
/// another question.
fn ask_on_terminal(screen: &Screen, question: &Question) -> Asked {
    let text = lines(&asked(question)).replace('\n', "\n    ");
    let held = screen.hold(&format!("{} {}", screen.paint(STRONG, "?"), screen.paint(STRONG, &text)));
    let theme: Box<dyn Theme> =
        if screen.colour() { Box::new(ColorfulTheme::default()) } else { Box::new(SimpleTheme) };
    let asked = if question.options.is_empty() {
        type_answer(&*theme, question.default.as_deref())
    } else {
        choose_answer(&*theme, question)
    };
    match asked {
        Ok(Some(answer)) => Asked::Answer(answer),
        Ok(None) => Asked::Later,
        Err(dialoguer::Error::IO(error)) if error.kind() == io::ErrorKind::Interrupted => {
            // A menu hides the cursor and does not bring it back when it is interrupted.
            let _ = console::Term::stderr().show_cursor();
            Asked::Stop
        }
        Err(error) => {
            drop(held);
            screen.warning(&format!("the question cannot be asked here: {error}"));
            Asked::Later
        }
    }
}

fn choose_answer(theme: &dyn Theme, question: &Question) -> dialoguer::Result<Option<String>> {
    let mut options: Vec<String> = question.options.iter().map(|option| shown(question, option)).collect();
    // Nobody grants anything by pressing a key too often.
    let preset = if question.denial.is_some() { Some(REFUSE) } else { question.default.as_deref() };
    let preset = preset.and_then(|preset| question.options.iter().position(|option| option == preset));
    if question.denial.is_none() {
        options.push("(type another answer)".to_owned());
    }
    let chosen = Select::with_theme(theme)
        .with_prompt("your answer (Esc: later)")
        .items(&options)
        .default(preset.unwrap_or(0))
        .interact_opt()?;
    match chosen.map(|chosen| question.options.get(chosen)) {
        None => Ok(None),
        Some(Some(option)) => Ok(Some(option.clone())),
        Some(None) => type_answer(theme, question.default.as_deref()),
    }
}

/// An option of a question as it is offered.
fn shown(question: &Question, option: &str) -> String {
    let meaning = match option {
        _ if question.denial.is_none() => return one_line(option, SHOWN),
        "once" => "for this call",
        "run" => "for all calls of this run",
        "always" => "for this run and all later ones, written to `hotcell.toml`",
        REFUSE => "the run goes on without",
        other => return one_line(other, SHOWN),
    };
    format!("{option}: {meaning}")
}

/// An empty answer is handed on as it is: the engine puts the default in its place.
fn type_answer(theme: &dyn Theme, default: Option<&str>) -> dialoguer::Result<Option<String>> {
    let prompt = match default {
        Some(default) => format!("your answer [{}]", one_line(default, SHOWN)),
        None => "your answer".into(),
    };
    Input::with_theme(theme).with_prompt(prompt).allow_empty(true).interact_text().map(Some)
}
