//! Tools that a file names and does not define: those of plugins, those that come with hotcell, and files of the project that are one
//! tool each.

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Severity};

use super::tool_name;
use crate::document::SourceText;
use crate::surroundings::{Imported, Surroundings, ToolState};

/// The tools of agents of the language that plugins of hotcell's have, and the plugins.
const SHIPPED: [(&str, &[&str]); 3] = [
    ("fs", &["fs_cat", "fs_read", "fs_ls", "fs_glob", "fs_grep", "fs_write", "fs_patch", "fs_mkdir", "fs_rm"]),
    ("fetch", &["fetch_url", "fetch_url_via_curl", "web_search", "web_search_loki", "web_search_coyote"]),
    ("dates", &["get_current_time"]),
];

/// Tools of that program that run programs of the machine.
const PROGRAMS: [&str; 6] =
    ["ast_grep", "execute_sql_code", "git_command", "open_link", "query_jira_issues", "send_mail"];

/// What to do about a tool that is not there.
fn missing_help(tool: &str) -> String {
    match SHIPPED.iter().find(|(_, tools)| tools.contains(&tool)) {
        Some((plugin, _)) => format!(
            "`{tool}` is a tool of the plugin `{plugin}`, which ships with hotcell: `hotcell plugin add {plugin}` adds it, and \
             `hotcell plugin grant {plugin}` says what it may do"
        ),
        None if PROGRAMS.contains(&tool) => format!(
            "`{tool}` runs programs of the machine, which sealed tools do not reach: leave it out, or put a plugin with a tool of that \
             name into the plugins folder with `hotcell plugin add FILE`"
        ),
        None => {
            let near = closest(tool, SHIPPED.iter().flat_map(|(_, tools)| tools.iter().copied()));
            let near = near.map(|near| format!("did you mean `{near}`, which ships with hotcell? Otherwise, "));
            let near = near.unwrap_or_default();
            format!(
                "{near}put a plugin with such a tool into the plugins folder with `hotcell plugin add FILE`, or its file into \
                 `functions/tools`, beside this file or in a folder above it that has a `hotcell.toml`"
            )
        }
    }
}

/// The full name of a tool, as the file has written it. The error has no place yet.
pub(super) fn find(written: &str, surroundings: &dyn Surroundings) -> Result<String, Box<Diagnostic>> {
    let name = tool_name(written);
    match surroundings.tool(name) {
        ToolState::Usable => return Ok(name.to_owned()),
        ToolState::Unusable(reason) => return Err(Diagnostic::error(reason).into()),
        ToolState::Missing => {}
    }
    let missing = || {
        let error = Diagnostic::error(format!("the tool `{written}` is not known to the host"));
        Box::new(error.help(missing_help(name)))
    };
    // Those that hotcell has itself work with what is granted to its plugins.
    if SHIPPED.iter().any(|(_, tools)| tools.contains(&name)) {
        return Err(missing());
    }
    match surroundings.tool_file(name) {
        Imported::Usable(full_name) => Ok(full_name),
        Imported::Unusable(reason) => Err(Diagnostic::error(reason).into()),
        Imported::Missing { .. } => Err(missing()),
    }
}

/// The full name of a tool; the one that is written if there is no such tool.
pub(super) fn full_name(written: &str, surroundings: &dyn Surroundings) -> String {
    find(written, surroundings).unwrap_or_else(|_| tool_name(written).to_owned())
}

/// What is wrong with a tool, of this weight, or what to know about it.
pub(super) fn remark(tool: &SourceText, weight: Severity, surroundings: &dyn Surroundings) -> Option<Diagnostic> {
    let name = tool_name(tool);
    let remark = match find(tool, surroundings) {
        Err(mut problem) => {
            problem.severity = weight;
            *problem
        }
        Ok(_) if surroundings.is_sealed_shell(name) => Diagnostic::warning(format!(
            "`{name}` runs in hotcell's sealed shell, never in that of this machine"
        ))
        .help(format!(
            "programs that are not built in do not exist there, and of this machine's files it sees what \
                     `[grants.{name}]` in `hotcell.toml` grants"
        )),
        Ok(full_name) if full_name != name && PROGRAMS.contains(&name) => Diagnostic::warning(format!(
            "`{name}` runs programs of the machine, which do not exist in its sealed cell"
        ))
        .help(
            "its calls find no such program: leave it out, or put a plugin with a tool of that name into the plugins folder with \
                 `hotcell plugin add FILE`",
        ),
        Ok(_) => return None,
    };
    Some(remark.at(&tool.span))
}

#[cfg(test)]
mod tests {
    use super::missing_help;

    #[test]
    fn a_misspelt_tool_of_a_shipped_plugin_is_suggested() {
        let help = missing_help("fs_raed");
        assert!(
            help.starts_with("did you mean `fs_read`, which ships with hotcell? Otherwise, put a plugin"),
            "{help}"
        );
        assert!(missing_help("teleport").starts_with("put a plugin"));
    }
}
