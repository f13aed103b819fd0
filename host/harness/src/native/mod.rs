//! Playing a case without a cell: the author's code runs as a program of this machine, and asks for what the host would
//! give it in lines of JSON. It is for the minutes between an edit and the next one. Nothing is sealed, limited or measured;
//! whether a plugin works is what [`Harness::play`](crate::Harness::play) finds out.

mod files;
mod host;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hotcell_budget::{Limit, Usage};
use hotcell_cells::{CellError, ConnectorReply, GuestErrorKind, LogLevel, LogLine, NodeOutcome, Verdict};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::case::{Call, Case, Expectation};
use crate::expect::{Gave, difference};
use crate::play::{HarnessError, Played, not_granted};
use crate::replies::Replies;

use host::{Answer, Host};

/// Bytes of one line that the program writes.
const MOST_LINE: u64 = 64 << 20;
/// Bytes of standard error that are kept, from its beginning.
const KEPT_ERRORS: u64 = 64 << 10;
/// How long a call may take where the case does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the program writes, one object in a line.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Said {
    Log {
        level: String,
        message: String,
    },
    Progress {
        done: u64,
        total: Option<u64>,
        message: String,
    },
    /// A function of the host is called, and its answer waited for.
    Ask {
        function: String,
        arguments: Value,
    },
    Text(String),
    Outcome {
        outputs: String,
        branch: Option<String>,
    },
    Proceed,
    Change(String),
    Refuse(String),
    Accepted,
    Failed {
        kind: String,
        message: String,
    },
}

/// Plays a case with a program that takes the call as the first line of its standard input. None if the case is about
/// something that only a cell has.
///
/// # Errors
/// When the program cannot be started, or does not keep to the form of its lines.
pub fn play_natively(mut program: Command, case: &Case) -> Result<Option<Played>, HarnessError> {
    if matches!(case.expect, Expectation::Limit(_)) {
        return Ok(None);
    }
    if !case.outside().is_empty() {
        let named = case.outside().iter().map(|grant| grant.host.display().to_string());
        return Err(HarnessError::Outside(named.collect()));
    }
    let call = case.call().map_err(HarnessError::Case)?;
    let name = program.get_program().to_string_lossy().into_owned();
    let failed = |error: io::Error| HarnessError::Native { program: name.clone(), message: error.to_string() };
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().map_err(failed)?;
    let (Some(input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(failed(io::Error::from(io::ErrorKind::BrokenPipe)));
    };
    let errors = thread::spawn(move || {
        let mut kept = Vec::new();
        let mut errors = errors;
        let _ = io::copy(&mut (&mut errors).take(KEPT_ERRORS), &mut kept);
        // A program whose pipe is full would wait for ever.
        let _ = io::copy(&mut errors, &mut io::sink());
        String::from_utf8_lossy(&kept).into_owned()
    });
    let child = Arc::new(Mutex::new(child));
    let patience = case.budget.wall_clock_ms.map_or(PATIENCE, Duration::from_millis);
    let (done, watch) = watch(child.clone(), patience);
    let replies = Arc::new(Replies::new(&case.replies));
    let mut host = Host::new(case, replies.clone(), &call);
    let mut logs = Vec::new();
    let ended = converse(BufReader::new(output), input, &call, &mut host, &mut logs);
    let _ = locked(&child).kill();
    let _ = locked(&child).wait();
    drop(done);
    let ran_out = watch.join().unwrap_or_default();
    let stderr = errors.join().unwrap_or_default();
    let gave = match ended {
        Ok(Some(gave)) => gave,
        // It is the case that fails, and not the tests.
        Ok(None) if ran_out => {
            Err(CellError::Limit { limit: Limit::Deadline, detail: format!("still running after {patience:?}") })
        }
        Ok(None) => Err(CellError::Trap {
            message: "the program ended before the call did".to_owned(),
            backtrace: Vec::new(),
            stderr: stderr.clone(),
        }),
        Err(error) => return Err(failed(error)),
    };
    let mut problems: Vec<String> = difference(&case.expect, &gave).into_iter().collect();
    problems.extend(replies.missing());
    problems.extend(
        replies
            .unused()
            .iter()
            .map(|reply| format!("nobody asked for this reply: {}", serde_json::to_string(reply).unwrap_or_default())),
    );
    if !problems.is_empty() {
        problems.extend(host.denied().iter().map(not_granted));
    }
    let (usage, backtrace, recorded) = (Usage::default(), Vec::new(), Vec::new());
    Ok(Some(Played { problems, usage, logs, stderr, backtrace, recorded }))
}

/// Ends the program when it takes too long; tells at the end whether it had to.
fn watch(child: Arc<Mutex<Child>>, patience: Duration) -> (Sender<()>, thread::JoinHandle<bool>) {
    let (done, over) = channel::<()>();
    let watch = thread::spawn(move || {
        let ran_out = over.recv_timeout(patience) == Err(RecvTimeoutError::Timeout);
        if ran_out {
            let _ = locked(&child).kill();
        }
        ran_out
    });
    (done, watch)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Ended = Result<Gave, CellError>;

/// Hands the call over and answers what the program asks; gives what came of it, or nothing if the program ended before.
fn converse(
    mut output: impl BufRead,
    mut input: ChildStdin,
    call: &Call,
    host: &mut Host<'_>,
    logs: &mut Vec<LogLine>,
) -> io::Result<Option<Ended>> {
    // A program that ended already is seen when it is read from.
    let _ = writeln!(input, "{}", order(call));
    loop {
        let mut line = Vec::new();
        (&mut output).take(MOST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let said: Said = serde_json::from_slice(&line).map_err(io::Error::from)?;
        let ended = match said {
            Said::Log { level, message } => {
                logs.push(LogLine { level: level_of(&level), message, progress: None });
                continue;
            }
            Said::Progress { done, total, message } => {
                logs.push(LogLine { level: LogLevel::Info, message, progress: Some((done, total)) });
                continue;
            }
            Said::Ask { function, arguments } => match host.answer(&function, &arguments) {
                Answer::Value(value) => {
                    let _ = writeln!(input, "{}", json!({ "value": value }));
                    continue;
                }
                Answer::Error(kind, message) => {
                    let _ = writeln!(input, "{}", json!({ "error": { "kind": kind, "message": message } }));
                    continue;
                }
                Answer::Suspends(question) => Err(CellError::Suspended { question }),
            },
            Said::Text(text) if matches!(call, Call::Connector { .. }) => Ok(Gave::Reply(ConnectorReply::Done(text))),
            Said::Text(text) => Ok(Gave::Text(text)),
            Said::Outcome { outputs, branch } => {
                Ok(Gave::Outcome(NodeOutcome { outputs, branch, metadata: Vec::new() }))
            }
            Said::Proceed => Ok(Gave::Verdict(Verdict::Proceed)),
            Said::Change(event) => Ok(Gave::Verdict(Verdict::Change(event))),
            Said::Refuse(reason) => Ok(Gave::Verdict(Verdict::Refuse(reason))),
            Said::Accepted => Ok(Gave::Reply(ConnectorReply::Accepted)),
            Said::Failed { kind, message } => {
                Err(CellError::Guest { kind: kind_of(&kind), message, metadata: Vec::new() })
            }
        };
        return Ok(Some(ended));
    }
}

fn level_of(name: &str) -> LogLevel {
    match name {
        "trace" => LogLevel::Trace,
        "debug" => LogLevel::Debug,
        "warn" => LogLevel::Warn,
        "error" => LogLevel::Error,
        _ => LogLevel::Info,
    }
}

fn kind_of(name: &str) -> GuestErrorKind {
    match name {
        "invalid-input" => GuestErrorKind::InvalidInput,
        "denied" => GuestErrorKind::Denied,
        "unavailable" => GuestErrorKind::Unavailable,
        _ => GuestErrorKind::Other,
    }
}

/// The call, as the program reads it.
fn order(call: &Call) -> Value {
    match call {
        Call::Tool(name, arguments) => json!({ "tool": { "name": name, "arguments": arguments } }),
        Call::Script(_) => json!({ "script": {} }),
        Call::Node(node_type, fields, inputs) => {
            json!({ "node": { "type": node_type, "fields": fields, "inputs": inputs } })
        }
        Call::Hook(point, event) => json!({ "hook": { "point": point, "event": event } }),
        Call::Connector { input, config, callback, body } => {
            let callback = callback.as_ref().map(|(url, session)| json!({ "url": url, "session": session }));
            json!({ "connector": { "input": input, "config": config, "callback": callback, "body": body } })
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::play_natively;
    use crate::case::Case;

    #[test]
    fn a_call_that_does_not_end_fails_its_case() {
        let case = r#"{ "tool": "a", "expect": { "output": 1 }, "budget": { "wall_clock_ms": 50 } }"#;
        let case = Case::parse(case, Path::new(".")).unwrap();
        let mut program = Command::new("sh");
        program.args(["-c", "while :; do :; done"]);
        let played = play_natively(program, &case).unwrap().unwrap();
        let told = played.problems.join("\n");
        assert!(told.contains("deadline: still running after 50ms"), "{told}");
    }
}
