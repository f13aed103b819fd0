//! The run of one script in a shell of its own.

use std::time::Duration;

use bashkit::{
    Bash, Error, ExecOptions, ExecutionLimits, ExecutionProfile, ExecutionProfileName, FsLimits, MemoryLimits,
    SessionLimits,
};
use hotcell_guest_output::{self as output, Stream};
use tokio::runtime::{Builder, Runtime};
use wasip2::cli::environment::get_environment;

use crate::argc::Argc;
use crate::curl::Curl;
use crate::mounts;

/// No count of the shell's own ends a script: fuel, memory and time of the cell do. What remains are the nesting
/// limits that keep the shell from overflowing its stack.
const COUNT: usize = usize::MAX / 4;
const BYTES: u64 = u64::MAX / 4;
const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365);
/// Status of a script that could not be parsed, as in bash.
const SYNTAX_ERROR: u8 = 2;

/// Built in, but of no use without a client of bashkit's own; what is not there is not there.
const LEFT_OUT: [&str; 3] = ["curl", "http", "wget"];

fn new_shell() -> Bash {
    let mut limits = ExecutionLimits::new()
        .max_work_units(BYTES)
        .max_aggregate_input_bytes(BYTES)
        .max_live_intermediate_bytes(BYTES)
        .max_commands(COUNT)
        .max_loop_iterations(COUNT)
        .max_total_loop_iterations(COUNT)
        .timeout(NEVER)
        .parser_timeout(NEVER)
        .max_input_bytes(COUNT)
        .max_parser_operations(COUNT)
        .max_stdout_bytes(COUNT)
        .max_stderr_bytes(COUNT)
        .max_word_split_fields(COUNT)
        .max_word_split_bytes(COUNT);
    limits.max_background_jobs = COUNT;
    Bash::builder()
        .profile(ExecutionProfile::named(ExecutionProfileName::Standard))
        .limits(limits)
        .session_limits(SessionLimits::unlimited())
        .memory_limits(MemoryLimits::unlimited())
        .filesystem_limits(FsLimits::unlimited())
        // Its `/etc` and `/proc` would be invented ones.
        .rootfs(false)
        .builtin_filter(|name| !LEFT_OUT.contains(&name))
        .builtin("argc", Box::new(Argc))
        .builtin("curl", Box::new(Curl))
        .username("cell")
        .hostname("cell")
        .build()
}

/// Runs a script to its end and returns its exit code. What it writes is in the output's buffers.
pub(crate) fn run(file_name: &str, source: &str) -> u8 {
    let mut shell = new_shell();
    let result = runtime().and_then(|runtime| {
        runtime.block_on(execute(&mut shell, file_name, source)).map_err(|error| describe(file_name, &error))
    });
    // The instance ends with the call: tearing down its memory piece by piece would be work for nothing.
    std::mem::forget(shell);
    match result {
        Ok(code) => code,
        Err((code, text)) => {
            output::write(Stream::Stderr, text.as_bytes());
            code
        }
    }
}

fn runtime() -> Result<Runtime, (u8, String)> {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| (1, format!("cannot start the shell: {error}\n")))
}

async fn execute(shell: &mut Bash, file_name: &str, source: &str) -> Result<u8, Error> {
    for (name, value) in get_environment() {
        shell.set_env(&name, &value);
    }
    mounts::attach(shell)?;
    let result = shell
        .execute(source)
        .stdout_fn(|bytes| async move {
            output::write(Stream::Stdout, &bytes);
            Ok(())
        })
        .stderr_fn(|bytes| async move {
            output::write(Stream::Stderr, &bytes);
            Ok(())
        })
        .options(ExecOptions::new().arg0(file_name))
        .await?;
    Ok((result.exit_code & 255) as u8)
}

fn describe(file_name: &str, error: &Error) -> (u8, String) {
    let code = if matches!(error, Error::Parse { .. }) { SYNTAX_ERROR } else { 1 };
    (code, format!("{file_name}: {error}\n"))
}
