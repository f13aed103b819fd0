//! How a command ends: the exit codes that `hotcell --help` documents, and what is said when one is not zero.

use std::io;
use std::process::ExitCode;

/// The documented exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Refused = 2,
    Waiting = 3,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// What is printed behind `error: `; nothing if everything has been said
    pub(crate) message: Option<String>,
    /// What to do about it, printed behind `help: `
    pub(crate) help: Option<String>,
}

impl Failure {
    /// The person asked for what cannot be.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Refused, message: Some(message.into()), help: None }
    }

    /// Something went wrong on the way.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Failure { exit: Exit::Failed, message: Some(message.into()), help: None }
    }

    /// Everything has been said already.
    pub(crate) fn said(exit: Exit) -> Self {
        Failure { exit, message: None, help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Standard output could not be written. A reader that went away (`| head`) is no news.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure::said(Exit::Done);
        }
        Failure::failed(format!("standard output cannot be written: {error}"))
    }
}
