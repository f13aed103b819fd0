//! `argc`, as far as tools need it: the arguments of a script, read as the script's own comments declare them.
//!
//! `argc --argc-eval FILE ARGUMENTS...` writes the shell code that sets the variables `argc_...` and calls the function that
//! is meant, and `argc --argc-export FILE` writes as JSON what the script declares. The crate `argc` does both.

use std::collections::HashMap;

use argc::{ArgcValue, Runtime};
use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait, vfs_join};

/// Exit code of a call that means nothing.
const USAGE: i32 = 2;
/// What such a call is told.
const HELP: &str = "argc: this cell knows `argc --argc-eval FILE [ARGUMENTS...]` and `argc --argc-export FILE`\n";

/// The command.
pub(crate) struct Argc;

#[async_trait]
impl Builtin for Argc {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let [action, file, arguments @ ..] = context.args else { return Ok(ExecResult::err(HELP.to_owned(), USAGE)) };
        let text = match context.fs.read_file(&vfs_join(context.cwd, file)).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => return Ok(ExecResult::err(format!("argc: cannot read `{file}`: {error}\n"), 1)),
        };
        let done = match action.as_str() {
            "--argc-export" => export(file, &text),
            "--argc-eval" => {
                let surroundings = Surroundings { variables: context.env, folder: context.cwd.to_str().unwrap_or("/") };
                eval(surroundings, file, &text, arguments)
            }
            _ => return Ok(ExecResult::err(HELP.to_owned(), USAGE)),
        };
        Ok(match done {
            Ok(written) => ExecResult::ok(format!("{written}\n")),
            Err(problem) => ExecResult::err(format!("argc: `{file}`: {problem}\n"), 1),
        })
    }
}

fn export(file: &str, text: &str) -> std::result::Result<String, String> {
    let name = file.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
    let declared = argc::export(text, name).map_err(|error| format!("{error:#}"))?;
    serde_json::to_string(&declared).map_err(|error| error.to_string())
}

fn eval(
    surroundings: Surroundings<'_>,
    file: &str,
    text: &str,
    arguments: &[String],
) -> std::result::Result<String, String> {
    let called: Vec<String> = std::iter::once(file.to_owned()).chain(arguments.iter().cloned()).collect();
    let values = argc::eval(surroundings, text, &called, Some(file), None).map_err(|error| format!("{error:#}"))?;
    Ok(ArgcValue::to_bash(&values))
}

/// What the crate may ask of the outside while it reads arguments: the shell's variables. There are no other programs, and
/// functions of the script that would compute choices are not run.
#[derive(Clone, Copy)]
struct Surroundings<'a> {
    variables: &'a HashMap<String, String>,
    folder: &'a str,
}

impl Runtime for Surroundings<'_> {
    fn os(&self) -> String {
        "linux".to_owned()
    }

    fn shell_path(&self) -> anyhow::Result<String> {
        Ok("bash".to_owned())
    }

    fn bash_path(&self) -> Option<String> {
        None
    }

    fn exec_bash_functions(
        &self,
        _script_file: &str,
        _functions: &[&str],
        _args: &[String],
        _envs: HashMap<String, String>,
    ) -> Option<Vec<String>> {
        None
    }

    fn current_exe(&self) -> Option<String> {
        None
    }

    fn current_dir(&self) -> Option<String> {
        Some(self.folder.to_owned())
    }

    fn env_vars(&self) -> HashMap<String, String> {
        self.variables.clone()
    }

    fn env_var(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn which(&self, _name: &str) -> Option<String> {
        None
    }

    fn exist_path(&self, _path: &str) -> bool {
        false
    }

    fn parent_path(&self, path: &str) -> Option<String> {
        Some(path.rsplit_once('/')?.0.to_owned())
    }

    fn join_path(&self, path: &str, parts: &[&str]) -> String {
        std::iter::once(&path).chain(parts).copied().collect::<Vec<_>>().join("/")
    }

    fn chdir(&self, _cwd: &str, _cd: &str) -> Option<String> {
        None
    }

    fn metadata(&self, _path: &str) -> Option<(bool, bool, bool)> {
        None
    }

    fn read_dir(&self, _path: &str) -> Option<Vec<String>> {
        None
    }

    fn read_to_string(&self, _path: &str) -> Option<String> {
        None
    }
}
