//! Which functions of MCP servers a model may have (`mcp_tools`): patterns of names, by server. A choice only narrows.

use std::sync::Arc;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::{Diagnostic, Span};

use crate::document::Need::Optional;
use crate::document::{Fields, SourceText};
use crate::surroundings::{ServerState, Surroundings};

/// The choice of an agent or a node.
#[derive(Debug, Default)]
pub(super) struct Choice {
    servers: Vec<Server>,
}

#[derive(Debug)]
struct Server {
    name: Arc<str>,
    span: Span,
    patterns: Vec<SourceText>,
}

/// Reads the choice.
pub(super) fn read(fields: &mut Fields<'_, '_>) -> Choice {
    let Some((entries, _)) = fields.map("mcp_tools", Optional) else { return Choice::default() };
    let reader = fields.reader();
    let server = |entry: &crate::document::Entry| Server {
        name: entry.key.clone(),
        span: reader.span(entry.key_place),
        patterns: reader.texts(&entry.value, &format!("mcp_tools.{}", entry.key), fields.owner()).unwrap_or_default(),
    };
    Choice { servers: entries.iter().map(server).collect() }
}

impl Choice {
    /// Whether a tool, by its full name, may be had. What is no function of a server that is named here may.
    pub(super) fn keeps(&self, tool: &str) -> bool {
        let Some((name, function)) = tool.strip_prefix("mcp:").and_then(|tool| tool.split_once('/')) else {
            return true;
        };
        let mut servers = self.servers.iter().filter(|server| *server.name == *name);
        servers.all(|server| server.patterns.iter().any(|pattern| matches(pattern, function)))
    }

    /// Says which servers are none of the agent's, and which patterns choose nothing.
    pub(super) fn check(
        &self,
        servers: &[SourceText],
        surroundings: &dyn Surroundings,
        report: &mut dyn FnMut(Diagnostic),
    ) {
        for server in &self.servers {
            let name = &*server.name;
            if servers.iter().all(|known| **known != *name) {
                let error =
                    Diagnostic::error(format!("`mcp_tools` names `{name}`, which is not listed in `mcp_servers`"));
                let help = match closest(name, servers.iter().map(|known| &**known)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "add it to `mcp_servers`, or take it out here".to_owned(),
                };
                report(error.at(&server.span).help(help));
                continue;
            }
            let ServerState::Usable(functions) = surroundings.mcp_server(name) else { continue };
            for pattern in &server.patterns {
                if functions.iter().any(|function| matches(pattern, function)) {
                    continue;
                }
                let warning =
                    Diagnostic::warning(format!("`{}` is not a function of the MCP server `{name}`", &**pattern));
                report(warning.at(&pattern.span).help(format!("it has {}", functions.join(", "))));
            }
        }
    }
}

/// Whether a name fits a pattern, in which `*` stands for any characters and `?` for one. Takes time in proportion to the
/// product of their lengths.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    // Where the last `*` stands, and how much of the name it was taken for.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(one) if *one == '?' || *one == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, in_name) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, fitting, others) in [
            ("get_*", &["get_", "get_issue"][..], &["get", "forget_me", ""][..]),
            ("*", &["", "a"], &[]),
            ("?a*b", &["xab", "xacb", "xabb"], &["ab", "xa", "xabc"]),
            ("get", &["get"], &["get_", "Get", "*"]),
            ("", &[""], &["a"]),
            ("a*b*c", &["abc", "aXbXbc"], &["acb", "ab"]),
            ("**?", &["a", "ab"], &[""]),
            ("æ?", &["æø"], &["ø"]),
        ] {
            assert!(fitting.iter().all(|name| matches(pattern, name)), "{pattern}");
            assert!(!others.iter().any(|name| matches(pattern, name)), "{pattern}");
        }
        // In the worst case, too, this comes to an end.
        assert!(!matches(&"a*".repeat(200), &format!("{}b", "a".repeat(100))));
    }
}
