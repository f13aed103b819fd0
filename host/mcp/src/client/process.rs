//! The process of a server: how it is started, watched and ended.
//!
//! It gets a clean environment and a process group of its own, and the whole group goes when the connection does.
//! Its error output is always read, so that writing there never stops it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::ending::Ending;
use crate::error::McpError;
use crate::text::{clean, shown};

/// What a process gets of this process's environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// How long a process may take to end by itself when its input is closed.
const GRACE: Duration = Duration::from_secs(1);

/// A process that was started.
pub(crate) struct Started {
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    /// Ends the process and its group when dropped
    pub(crate) leash: DropGuard,
}

/// Starts the program of a server.
pub(crate) fn start(
    server: &Arc<str>,
    command: &str,
    args: &[String],
    env: impl IntoIterator<Item = (String, String)>,
    cwd: Option<&Path>,
    ending: &Arc<Ending>,
) -> Result<Started, McpError> {
    let inherited = INHERITED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let mut process = Command::new(command);
    process
        .args(args)
        .env_clear()
        .envs(inherited)
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    process.process_group(0);
    if let Some(cwd) = cwd {
        if !cwd.is_dir() {
            let reason = format!("`cwd` is `{}`, which is not a folder", cwd.display());
            return Err(McpError::Settings { server: server.to_string(), reason });
        }
        process.current_dir(cwd);
    }
    let failed = |reason: String| McpError::Start { server: server.to_string(), command: command.to_owned(), reason };
    let mut child = process.spawn().map_err(|error| failed(error.to_string()))?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(input), Some(output), Some(errors)) = pipes else {
        return Err(failed("it has no standard streams".to_owned()));
    };
    let leash = CancellationToken::new();
    let reading = tokio::spawn(read_errors(server.clone(), errors, ending.clone()));
    tokio::spawn(watch(child, leash.clone(), ending.clone(), reading));
    Ok(Started { input, output, leash: leash.drop_guard() })
}

/// Waits for the process, ends it when nobody wants it any more, and reports how it went.
async fn watch(mut child: Child, leash: CancellationToken, ending: Arc<Ending>, reading: tokio::task::JoinHandle<()>) {
    let group = Group(child.id());
    let mut exit = tokio::select! {
        biased;
        status = child.wait() => status.ok(),
        () = leash.cancelled() => None,
        () = async {
            ending.ended().await;
            tokio::time::sleep(GRACE).await;
        } => None,
    };
    drop(group);
    if exit.is_none() {
        // It was killed just now, unless it had exited before that was noticed here.
        exit = child.wait().await.ok().filter(|status| status.code().is_some());
    }
    // Nobody of the group is left to hold the error output open, unless somebody left the group.
    let _ = tokio::time::timeout(Duration::from_millis(200), reading).await;
    ending.process_gone(exit.map(describe));
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("it was ended by signal {signal}");
    }
    match status.code() {
        Some(code) => format!("it exited with code {code}"),
        None => format!("it exited: {status}"),
    }
}

/// Reads the error output to its end, whether or not anybody wants it.
async fn read_errors(server: Arc<str>, errors: ChildStderr, ending: Arc<Ending>) {
    let mut errors = BufReader::new(errors);
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        ending.keep_stderr(&piece[..length]);
        let text = clean(&String::from_utf8_lossy(&piece[..length]), piece.len());
        tracing::debug!(server = %server, text = shown(&text), "error output");
    }
}

/// The group of a process; its members are killed when this is dropped, which also happens when a runtime ends.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            let id = self.0.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
            if let Some(id) = id {
                // It fails when nobody of the group is left, which is what is wanted.
                let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
            }
        }
    }
}
