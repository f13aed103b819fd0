//! One module for each command, and what they share: how to come by a host, and how its errors end a command.

mod again;
mod agent;
mod check;
mod clean;
mod conclude;
mod convert;
mod drive;
mod explain;
mod far_session;
mod given;
mod graph;
mod listening;
mod mcp;
mod mesh;
mod new;
mod origin;
mod plugin;
mod repl;
mod run;
mod run_far;
mod runs;
mod serve;
mod telemetry;
mod threads;
mod trust;

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::CommandFactory;
use hotcell_graph::diagnostic::render;
use hotcell_runtime::{
    Agent, Environment, Host, HostError, HostOptions, JournalChoice, JournalError, LoadFailure, ModelSource, Progress,
    RunError,
};

use crate::arguments::{Arguments, Command, Completions, Global, MorePlugins, RunWith};
use crate::exit::{Exit, Failure};
use crate::far::Client;
use crate::screen::{Screen, coloured};
use crate::untrusted::{lines, one_line, printable};

/// Does what the command line asks for.
pub(crate) fn perform(arguments: Arguments, screen: &Arc<Screen>) -> Result<Exit, Failure> {
    let context = Context { global: arguments.global, screen: screen.clone(), server: None };
    match arguments.command {
        Command::New(arguments) => new::perform(&arguments),
        Command::Run(arguments) => run::perform(&context, arguments),
        Command::Check(arguments) => check::perform(&context, arguments),
        Command::Graph(arguments) => graph::perform(&context, arguments),
        Command::Convert(arguments) => convert::perform(&context, arguments),
        Command::Agent(arguments) => agent::perform(&context, arguments),
        Command::Mesh(arguments) => mesh::perform(&context, arguments),
        Command::Runs(arguments) => runs::perform(&context, arguments),
        Command::Plugin(arguments) => plugin::perform(&context, *arguments),
        Command::Mcp(arguments) => mcp::perform(&context, arguments),
        Command::Serve(arguments) => serve::perform(&context, arguments),
        Command::Trust(arguments) => trust::perform(&context, &arguments),
        Command::Explain(arguments) => explain::perform(&context, arguments.topic.as_deref()),
        Command::Clean(arguments) => clean::perform(&context, &arguments),
        Command::Completions(arguments) => completions(&arguments),
    }
}

/// What every command is given.
struct Context {
    global: Global,
    screen: Arc<Screen>,
    /// The server that is used in place of this machine's journal
    server: Option<String>,
}

/// What the command line says about the host.
#[derive(Default)]
struct HostArguments {
    plugins: Vec<PathBuf>,
    /// The model of nodes that name none
    model: Option<String>,
    /// Whether progress is left out
    quiet: bool,
    /// Whether the folder of the agent that is named may grant what it says; not those of agents that it calls
    trust: bool,
    /// Whether MCP servers that are programs may be started
    starts_programs: bool,
    /// Who answers requests to models
    source: Option<ModelSource>,
    /// Whether a person is there who can be asked before a run begins
    interactive: bool,
    /// Whether the command has nothing to do with runs, so that it needs no journal
    without_runs: bool,
    /// Where other systems send answers that come later, unless the environment says so
    callback_url: Option<String>,
}

impl From<RunWith> for HostArguments {
    fn from(RunWith { model, more, trust }: RunWith) -> Self {
        HostArguments { model, trust, ..more.into() }
    }
}

impl From<MorePlugins> for HostArguments {
    fn from(more: MorePlugins) -> Self {
        HostArguments { plugins: more.plugins, ..HostArguments::default() }
    }
}

impl Context {
    /// A host as the command line describes it.
    fn host(&self, arguments: HostArguments) -> Result<Host, Failure> {
        if let Some(missing) = arguments.plugins.iter().find(|folder| !folder.is_dir()) {
            return Err(Failure::refused(format!("there is no plugin folder `{}`", missing.display())));
        }
        let journal = match &self.global.journal {
            _ if arguments.without_runs => JournalChoice::Memory,
            None => JournalChoice::Default,
            Some(path) if path == Path::new("memory") => JournalChoice::Memory,
            Some(path) => JournalChoice::File(path.clone()),
        };
        let given = |name: &str, value: Option<String>| value.map(|value| (name.to_owned(), value));
        let environment = match (arguments.model, arguments.callback_url) {
            (None, None) => Environment::process(),
            (model, callback_url) => Environment::of(
                given("HOTCELL_CALLBACK_URL", callback_url)
                    .into_iter()
                    .chain(
                        std::env::vars_os()
                            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
                    )
                    .chain(given("HOTCELL_MODEL", model)),
            ),
        };
        let screen = self.screen.clone();
        let progress = move |progress: &Progress| show(&screen, progress);
        let options = HostOptions {
            journal,
            plugins: arguments.plugins,
            interactive: arguments.interactive,
            trust_named: arguments.trust,
            starts_programs: arguments.starts_programs,
            model_source: arguments.source.unwrap_or(ModelSource::Providers),
            environment,
            progress: (!arguments.quiet).then(|| Arc::new(progress) as Arc<dyn Fn(&Progress) + Send + Sync>),
            ..HostOptions::default()
        };
        let host = Host::new(options)?;
        if let Some(damage) = host.journal().damage() {
            self.screen.warning(&damage);
        }
        Ok(host)
    }

    /// The same for what a server does.
    fn for_server(&self, client: &Client) -> Self {
        let server = Some(client.address().to_owned());
        Context { global: self.global.clone(), screen: self.screen.clone(), server }
    }

    /// Loads a graph; says what is wrong with it if it is refused.
    fn load(&self, load: impl FnOnce() -> Result<Agent, LoadFailure>) -> Result<Agent, Failure> {
        self.try_load(load).map_err(|refused| {
            self.screen.line(render(&refused.diagnostics, self.screen.colour()).trim_end());
            Failure::said(Exit::Refused)
        })
    }

    /// Loads a graph and says nothing.
    fn try_load(&self, load: impl FnOnce() -> Result<Agent, LoadFailure>) -> Result<Agent, LoadFailure> {
        let loaded = load();
        self.screen.worked();
        loaded
    }

    /// Asks whether something is meant; anything but a yes refuses the command. Names in the question are those of others.
    fn confirm(&self, question: &str) -> Result<(), Failure> {
        if !self.screen.is_terminal() || !io::stdin().is_terminal() {
            return Err(Failure::refused("confirmation needs a terminal").help("pass `--yes` to confirm"));
        }
        let answered = dialoguer::Input::<String>::new()
            .with_prompt(format!("{} [y/N]", one_line(question, usize::MAX)))
            .allow_empty(true)
            .report(false)
            .interact_text()
            .map_err(|error| Failure::failed(format!("the terminal cannot be used: {error}")))?;
        match answered.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::refused("nothing was changed")),
        }
    }

    /// Whether runs outlive this process.
    fn keeps_runs(&self) -> bool {
        self.server.is_some() || self.global.journal.as_deref() != Some(Path::new("memory"))
    }

    /// A `hotcell runs` command line about a run of the same journal or server, to be shown to the person, who may copy it: the name of the
    /// run is whatever the journal or the server says. `rest` is as a shell reads it.
    fn runs_command(&self, what: &str, run: &str, rest: &str) -> String {
        let rest = format!("{what} {}{}{rest}", quoted(run), if rest.is_empty() { "" } else { " " });
        if let Some(server) = &self.server {
            return format!("hotcell runs {rest} --server {}", quoted(server));
        }
        // A journal that comes from the environment will be there for the next command, too.
        let named = std::env::var_os("HOTCELL_JOURNAL").is_none();
        match &self.global.journal {
            Some(journal) if named => format!("hotcell runs {rest} --journal {}", quoted(&journal.to_string_lossy())),
            _ => format!("hotcell runs {rest}"),
        }
    }

    /// Whether to colour standard output.
    fn colours_output(&self) -> bool {
        coloured(self.global.color, &io::stdout())
    }
}

/// Writes text for people to standard output, ending with a line end.
fn print(text: &str) -> Result<(), Failure> {
    write_out(&printable(text))
}

/// Writes data to standard output as it is, unless that is a terminal; ends with a line end.
fn print_data(text: &str) -> Result<(), Failure> {
    if io::stdout().is_terminal() { print(text) } else { write_out(text) }
}

/// Writes data to a file, or as [`print_data`] does where none is named. What was in the file is there until all of it is written: the
/// disk may be full. A link leads to the file that is written.
fn put_data(text: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return print_data(text) };
    let replaced = file.canonicalize().ok().filter(|found| found.is_file());
    let replaced = replaced.map(|found| hotcell_files::replace(&found, text.as_bytes()));
    // A person may write a file in whose folder they may not make another.
    let replaced =
        replaced.filter(|done| !done.as_ref().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied));
    replaced.unwrap_or_else(|| std::fs::write(file, text)).map_err(|error| unwritable(file, &error))
}

/// Finds out whether [`put_data`] will be able to write a file, before the work begins whose result it gets. What is in the file stays
/// there, and one that is not there is not made.
fn check_output(file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let checked = match std::fs::metadata(file) {
        // A pipe or a device may already do something when it is opened.
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => Ok(()),
        Ok(_) => file.canonicalize().and_then(|file| hotcell_files::open_own(&file)).map(drop),
        // A link to a file that is to be made.
        Err(_) if file.is_symlink() => Ok(()),
        Err(_) => hotcell_files::open_own(file).and_then(|_| std::fs::remove_file(file)),
    };
    checked.map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("`{}` cannot be written: {error}", file.display()))
}

fn write_out(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write!(stdout, "{text}{end}").and_then(|()| stdout.flush()).map_err(|error| Failure::output(&error))
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    // Zsh reads a word that begins with `=` as the path of a command.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Waits for the journal, where nothing else goes on.
fn wait<T>(work: impl Future<Output = T>) -> T {
    futures::executor::block_on(work)
}

/// Does work on several threads, as cells need them.
fn on_threads<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = threads::start()?;
    Ok(runtime.block_on(work))
}

/// Tells about work that takes long.
fn show(screen: &Screen, progress: &Progress) {
    match progress {
        Progress::Compiling { name } => screen.working(&format!("compiling {}", one_line(name, 200))),
        Progress::Indexing { node, documents, total, chunks } => {
            let node = one_line(node, 100);
            screen.working(&format!("indexing {node}: {documents} of {total} documents, {chunks} chunks"));
        }
        Progress::Compiled { .. } | Progress::Indexed { .. } => screen.worked(),
        _ => {}
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let exit = match &error {
            HostError::Journal(error) | HostError::Run(RunError::Journal(error)) => exit_of_journal(error),
            HostError::Run(RunError::NoRedactionKey(_) | RunError::OtherRedactionKey) => Exit::Failed,
            HostError::Run(_)
            | HostError::Models(_)
            | HostError::Load { .. }
            | HostError::Changed { .. }
            | HostError::DoesNotFit { .. }
            | HostError::Revision { .. }
            | HostError::NoSuchRevision { .. }
            | HostError::SeveralRevisions { .. }
            | HostError::Unkept(_)
            | HostError::Config { .. }
            | HostError::NothingAsked { .. }
            | HostError::WhichQuestion { .. }
            | HostError::OperatorOnly { .. }
            | HostError::NoDecision { .. }
            | HostError::Knowledge(_)
            | HostError::NoHome => Exit::Refused,
            HostError::Stopped | HostError::ThreadBusy(_) => Exit::Interrupted,
            HostError::Cells(_) => Exit::Failed,
        };
        // The command line says by which of its options it is mended.
        let help = match &error {
            HostError::Run(RunError::MissingVariables(names)) => {
                let them = if names.len() == 1 { "it" } else { "them" };
                Some(format!("give {them} with `--var NAME=VALUE`"))
            }
            HostError::Run(RunError::MissingInputs(names)) => {
                let them = if names.len() == 1 { "it" } else { "them" };
                Some(format!("give {them} with `--inputs JSON`"))
            }
            _ => None,
        };
        Failure { exit, message: Some(lines(error.to_string().trim_end())), help }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Failure { exit: exit_of_journal(&error), message: Some(lines(&error.to_string())), help: None }
    }
}

fn exit_of_journal(error: &JournalError) -> Exit {
    match error {
        JournalError::NoSuchRun(_)
        | JournalError::Ambiguous(..)
        | JournalError::Exists(_)
        | JournalError::Busy(_)
        | JournalError::ThreadBusy(_)
        | JournalError::Cancelled(_)
        | JournalError::NotAsked { .. }
        | JournalError::Expired { .. }
        | JournalError::NotKept(_)
        | JournalError::NoSuchPage(_)
        | JournalError::TooManyWords(_)
        | JournalError::DamagedArtefact(_)
        | JournalError::Ended { .. } => Exit::Refused,
        JournalError::Store { .. }
        | JournalError::Damaged { .. }
        | JournalError::Fenced(_)
        | JournalError::Full { .. }
        | JournalError::ThreadMoved
        | JournalError::Unread(_) => Exit::Failed,
    }
}

fn completions(arguments: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "hotcell", &mut script);
    io::stdout().lock().write_all(&script).map_err(|error| Failure::output(&error))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::{put_data, quoted};

    #[cfg(unix)]
    #[test]
    fn what_is_in_a_file_is_there_until_another_text_is_whole() {
        use std::io::Read as _;

        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut before = std::fs::File::open(&file).unwrap();
        put_data("new", Some(&link)).unwrap();
        let mut found = String::new();
        before.read_to_string(&mut found).unwrap();
        assert_eq!((found.as_str(), std::fs::read_to_string(&file).unwrap().as_str()), ("old", "new"));
        assert!(link.is_symlink());
        put_data("made", Some(&folder.path().join("b"))).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("b")).unwrap(), "made");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let cases = [
            ("plain-1.yaml", "plain-1.yaml"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("=ls", "'=ls'"),
            ("a=b", "a=b"),
            ("a;b", "'a;b'"),
        ];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }
}
