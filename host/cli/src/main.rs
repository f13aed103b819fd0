//! The `hotcell` command: a thin view of `hotcell-runtime`.
//!
//! It reads the command line, shows what happens, asks the person, and turns outcomes into exit codes. Whatever another
//! program could want to do, too, is not here.

mod arguments;
mod command;
mod events;
mod exit;
mod far;
mod json_log;
mod logging;
mod narration;
mod people;
mod picture;
mod screen;
mod stop;
mod table;
mod untrusted;
mod when;

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use clap::error::ErrorKind;

use crate::arguments::{Arguments, ColourWhen, Command, LogFormat};
use crate::exit::Exit;
use crate::screen::Screen;

fn main() -> ExitCode {
    hotcell_runtime::compile_in_processes();
    hotcell_runtime::raise_open_files();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Whoever types a command alone wants to know what there is, on standard output as with `--help`. With `HOTCELL_JOURNAL` in
        // the environment, an option counts as given.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
            ) =>
        {
            let help = std::env::args_os().chain(["--help".into()]);
            return match Arguments::try_parse_from(help) {
                Err(help) if help.kind() == ErrorKind::DisplayHelp => {
                    let _ = help.print();
                    ExitCode::SUCCESS
                }
                _ => refuse(&error),
            };
        }
        Err(error) => return refuse(&error),
    };
    let screen = Arc::new(Screen::new(arguments.global.color));
    match &arguments.command {
        Command::Serve(serve) if serve.log_format == LogFormat::Json => json_log::start(&screen),
        _ => logging::start(&screen),
    }
    match command::perform(arguments, &screen) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            screen.worked();
            if let Some(message) = &failure.message {
                screen.error(message, failure.help.as_deref());
            }
            failure.exit.into()
        }
    }
}

/// Says what is wrong with the command line, or prints what it asks for. A shell makes words of the names of files, and clap shows words as
/// they are.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        error.exit();
    }
    let screen = Screen::new(ColourWhen::Auto);
    let rendered = error.render();
    let said = if screen.colour() { rendered.ansi().to_string() } else { rendered.to_string() };
    screen.line(said.trim_end());
    Exit::Refused.into()
}
