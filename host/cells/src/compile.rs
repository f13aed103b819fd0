//! Compiling what somebody else wrote, under limits.
//!
//! A compiler is native code that works for a stranger: there is WebAssembly of a few kilobytes that takes it minutes and
//! gigabytes. So a program that calls [`compile_in_processes`] compiles in processes of its own, which the system ends when
//! they take too much. Other programs compile in the process that asks; there, and before every compilation, only what the
//! structure of a component shows to be dear is refused.

mod places;

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use hotcell_budget::Bytes;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
};
use wasmtime::Engine;

use self::places::{Place, Places};
use crate::engine;
use crate::text::one_line;

/// The argument that makes a program compile and end.
const ARGUMENT: &str = "hotcell-compile-component";
/// Where the system finds libraries of programs.
const LIBRARIES: &str = "LD_LIBRARY_PATH";
/// What each megabyte of a component adds to the seconds of processor time, and each byte to the memory.
const SECONDS_PER_MIB: u64 = 5;
const MEMORY_PER_BYTE: u64 = 96;
/// How much longer than its processor time a compilation may take on a busy machine.
const PATIENCE: u32 = 20;
/// Bytes of machine code that are taken for each byte of WebAssembly, beside some to begin with. Usual are 3 to 8.
const CODE_PER_BYTE: u64 = 64;
const BASE_CODE: u64 = 16 << 20;
/// Threads of a compilation: each takes memory of its own.
const MAX_THREADS: usize = 8;
/// Bytes of what a compilation says is wrong.
const MAX_PROBLEM: usize = 500;
/// Exit codes of a compilation that refuses.
const REFUSED: i32 = 3;
const OTHER_ENGINE: i32 = 4;

/// The compilations of this process
static PLACES: Places = Places::new();
/// Compilations at once, however few processors there are: a large one keeps a small one waiting no longer than it has to.
const LEAST_PLACES: usize = 2;

/// How this program is started to compile, and what it is given first; none where it has not said that it can.
static PROGRAM: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// Compiles in processes of their own from now on: this program is started again, with an argument that only this function
/// knows. So it has to be called first in `main`, before arguments are read; in a process that was started to compile, it
/// does that and does not return.
///
/// Without it, components are compiled in the process that loads them, whatever that takes.
pub fn compile_in_processes() {
    if let Some(code) = compile_if_asked(std::env::args_os().skip(1)) {
        std::process::exit(code);
    }
    if let Ok(program) = own_program() {
        compile_in_processes_of(program, Vec::new());
    }
}

/// Compiles in processes of their own from now on, as [`compile_in_processes`] does where this process is not a program of ours: `program`
/// is started with these arguments and those that [`compile_if_asked`] has to be handed.
pub fn compile_in_processes_of(program: PathBuf, arguments: Vec<OsString>) {
    // Whoever said it first is believed: there is one way for a process.
    let _ = PROGRAM.set((program, arguments));
}

/// Compiles, if these arguments ask for it: what is to be compiled comes from standard input, and goes to standard output. Gives
/// the exit code with which the process has to end then.
pub fn compile_if_asked(mut arguments: impl Iterator<Item = OsString>) -> Option<i32> {
    if arguments.next().is_none_or(|argument| argument != ARGUMENT) {
        return None;
    }
    Some(match work(arguments.collect()) {
        Ok(()) => 0,
        Err((code, problem)) => {
            let _ = writeln!(io::stderr(), "{problem}");
            code
        }
    })
}

/// The file of this very program, also if another one has taken its place since.
#[cfg(target_os = "linux")]
fn own_program() -> io::Result<PathBuf> {
    std::fs::symlink_metadata("/proc/self/exe").map(|_| PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// What a process that compiles a component may take, beside what the size of the component adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Processor time of all its threads together, in whole seconds
    pub seconds: u64,
    /// Memory
    pub memory: Bytes,
}

impl Default for CompileLimits {
    /// 10 s and 1 GiB. A plugin in Rust takes tenths of a second, an interpreter with its library some 10 to 20 s.
    fn default() -> Self {
        Self { seconds: 10, memory: Bytes(1 << 30) }
    }
}

/// What is to be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    /// A component.
    Component(&'a [u8]),
    /// A WASI preview 1 command, which is made a component first.
    Preview1Command(&'a [u8]),
}

impl<'a> Source<'a> {
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Component(bytes) | Self::Preview1Command(bytes) => bytes,
        }
    }
}

/// Waits until few enough others compile.
pub(crate) fn place() -> Place<'static> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    PLACES.take((processors / MAX_THREADS).max(LEAST_PLACES))
}

/// Compiles for `engine`, whose artefacts are told apart by `compatibility`. An error is one line.
pub(crate) fn compile(
    engine: &Engine,
    compatibility: &str,
    limits: CompileLimits,
    source: Source<'_>,
) -> Result<Vec<u8>, String> {
    if let Some(program) = PROGRAM.get() {
        match in_process(program, compatibility, Limits::of(limits, source.bytes().len()), source) {
            Ok(compiled) => return Ok(compiled),
            Err(Failed::Refused(problem)) => return Err(problem),
            // The limits of the operator's system may leave no room for another process.
            Err(Failed::NotStarted(problem)) => {
                return Err(format!("the process that compiles it cannot be started: {problem}"));
            }
        }
    }
    here(engine, source)
}

fn here(engine: &Engine, source: Source<'_>) -> Result<Vec<u8>, String> {
    let adapted;
    let component = match source {
        Source::Component(bytes) => bytes,
        Source::Preview1Command(bytes) => {
            adapted = adapt(bytes)?;
            &adapted
        }
    };
    engine.precompile_component(component).map_err(|error| one_line(&format!("{error:#}"), MAX_PROBLEM))
}

/// Turns a WASI preview 1 command into a component.
fn adapt(module: &[u8]) -> Result<Vec<u8>, String> {
    let encoder = wit_component::ComponentEncoder::default()
        .validate(false)
        .module(module)
        .and_then(|encoder| {
            encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)
        })
        .and_then(|mut encoder| encoder.encode());
    encoder.map_err(|error| {
        format!("it cannot be adapted from WASI preview 1: {}", one_line(&format!("{error:#}"), MAX_PROBLEM))
    })
}

/// What a compilation may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    /// Of all its threads together
    seconds: u64,
    memory: u64,
    code: u64,
}

impl Limits {
    fn of(limits: CompileLimits, bytes: usize) -> Self {
        let bytes = bytes as u64;
        Self {
            seconds: limits.seconds.saturating_add(bytes * SECONDS_PER_MIB / (1 << 20)),
            memory: limits.memory.0.saturating_add(bytes * MEMORY_PER_BYTE),
            code: BASE_CODE + bytes * CODE_PER_BYTE,
        }
    }
}

/// Why there is nothing compiled.
enum Failed {
    /// With what is wrong about the component
    Refused(String),
    NotStarted(io::Error),
}

/// Has a process compile.
fn in_process(
    (program, before): &(PathBuf, Vec<OsString>),
    compatibility: &str,
    limits: Limits,
    source: Source<'_>,
) -> Result<Vec<u8>, Failed> {
    let kind = match source {
        Source::Component(_) => "component",
        Source::Preview1Command(_) => "command",
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let libraries = std::env::var_os(LIBRARIES);
    let mut child = Command::new(program)
        .args(before)
        .arg(ARGUMENT)
        .args([kind, compatibility, &limits.seconds.to_string(), &limits.memory.to_string()])
        // It needs nothing of what this process knows, but where the system finds its libraries.
        .env_clear()
        .env("RAYON_NUM_THREADS", threads.to_string())
        .envs(libraries.map(|folders| (LIBRARIES, folders)))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failed::NotStarted)?;
    let (told, status) = std::thread::scope(|scope| {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(source.bytes())));
        let problem = scope.spawn(move || read_at_most(stderr, MAX_PROBLEM as u64 * 4));
        let (done, over) = channel::<()>();
        let pid = child.id();
        let watch = scope.spawn(move || {
            let patience = Duration::from_secs(limits.seconds).saturating_mul(PATIENCE);
            let timed_out = matches!(over.recv_timeout(patience), Err(RecvTimeoutError::Timeout));
            if timed_out {
                kill(pid);
            }
            timed_out
        });
        let code = read_at_most(stdout, limits.code + 1);
        // Whoever has not read everything by now ends as soon as it writes on.
        let too_much = code.len() as u64 > limits.code;
        let problem = problem.join().unwrap_or_default();
        let fed = feed.join();
        drop(done);
        // Not waited for before, so that its number is nobody else's.
        let timed_out = watch.join().unwrap_or(true);
        drop(fed);
        let status = child.wait();
        (Told { code, problem: String::from_utf8_lossy(&problem).into_owned(), too_much, timed_out }, status)
    });
    told.judge(&status.map_err(Failed::NotStarted)?, limits)
}

/// What a process that compiled has told.
struct Told {
    code: Vec<u8>,
    problem: String,
    /// Whether it made more than is taken
    too_much: bool,
    /// Whether it was ended because it took too long
    timed_out: bool,
}

impl Told {
    fn judge(self, status: &ExitStatus, limits: Limits) -> Result<Vec<u8>, Failed> {
        let too_dear = |what: String| {
            Err(Failed::Refused(format!("compiling it takes more than {what}, which is too much for its size")))
        };
        if self.too_much {
            return too_dear(format!("{} of machine code", Bytes(limits.code)));
        }
        if status.success() {
            return Ok(self.code);
        }
        let problem = one_line(self.problem.trim_end(), MAX_PROBLEM);
        if status.code() == Some(REFUSED) {
            return Err(Failed::Refused(problem));
        }
        if status.code() == Some(OTHER_ENGINE) {
            return Err(Failed::NotStarted(io::Error::other(problem)));
        }
        if self.timed_out || ended_by_time(status) {
            return too_dear(format!("{} s of processor time", limits.seconds));
        }
        // What a program says that gets no memory, whoever asked for it.
        if problem.contains("memory allocation") || problem.contains("allocate") || problem.contains("ENOMEM") {
            return too_dear(format!("{} of memory", Bytes(limits.memory)));
        }
        let how = if problem.is_empty() { status.to_string() } else { format!("{status}: {problem}") };
        Err(Failed::Refused(format!("the compiler failed on it ({how})")))
    }
}

fn read_at_most(from: Option<impl io::Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        // What cannot be read is missing, and the exit code says so.
        let _ = from.take(limit).read_to_end(&mut bytes);
    }
    bytes
}

#[cfg(unix)]
fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(_: u32) {}

#[cfg(unix)]
fn ended_by_time(status: &ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    let by = |signal: rustix::process::Signal| status.signal() == Some(signal.as_raw());
    by(rustix::process::Signal::XCPU) || by(rustix::process::Signal::KILL)
}

#[cfg(not(unix))]
fn ended_by_time(_: &ExitStatus) -> bool {
    false
}

/// The process that compiles: what it is to do is in its arguments, the WebAssembly comes from standard input, and machine
/// code goes to standard output.
fn work(arguments: Vec<OsString>) -> Result<(), (i32, String)> {
    let wrong = || (OTHER_ENGINE, "it was started by another version of hotcell".to_owned());
    let failed = |error: io::Error| (OTHER_ENGINE, error.to_string());
    let arguments: Vec<String> = arguments.into_iter().filter_map(|argument| argument.into_string().ok()).collect();
    let [kind, compatibility, seconds, memory] = arguments.as_slice() else { return Err(wrong()) };
    let (Ok(seconds), Ok(memory)) = (seconds.parse(), memory.parse()) else { return Err(wrong()) };
    limit(seconds, memory).map_err(failed)?;
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(failed)?;
    let source = match kind.as_str() {
        "component" => Source::Component(&bytes),
        "command" => Source::Preview1Command(&bytes),
        _ => return Err(wrong()),
    };
    let engine = Engine::new(&engine::code_configuration()).map_err(|error| (OTHER_ENGINE, error.to_string()))?;
    if engine::compatibility(&engine) != *compatibility {
        return Err(wrong());
    }
    let compiled = here(&engine, source).map_err(|problem| (REFUSED, problem))?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&compiled).and_then(|()| stdout.flush()).map_err(failed)
}

/// Has the system hold this process to its limits.
#[cfg(unix)]
fn limit(seconds: u64, memory: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Memory that is only reserved does not count where the system can tell it from what is used.
    let of_memory = if cfg!(target_os = "linux") { Resource::Data } else { Resource::As };
    for (resource, most) in [(of_memory, memory), (Resource::Cpu, seconds), (Resource::Core, 0)] {
        let set = getrlimit(resource);
        let most = |already: Option<u64>| Some(already.map_or(most, |already| already.min(most)));
        setrlimit(resource, Rlimit { current: most(set.current), maximum: most(set.maximum) })?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn limit(_: u64, _: u64) -> io::Result<()> {
    Ok(())
}
