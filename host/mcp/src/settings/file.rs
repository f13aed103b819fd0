//! The list of servers in the form that most programs of this kind read: `{"mcpServers": {"name": {...}}}`.
//!
//! A field that is not known is refused: it is either a slip or something that would silently not be done.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::PathBuf;

use hotcell_tls::TlsFiles;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use url::Url;

use super::variables::{Unfilled, fill};
use super::{Limits, ServerSettings, Transport};
use crate::error::SettingsError;
use crate::text::is_hidden;

/// The most entries of an object: servers, or fields of one.
const MOST_ENTRIES: usize = 1_000;
/// The longest name of a server, in bytes.
const LONGEST_NAME: usize = 64;

/// Reads a list of servers, in the order of the file.
///
/// Every server is either `{"command", "args"?, "env"?, "cwd"?}` or `{"url", "headers"?, "tls"?}`, with `"type"`
/// `"stdio"`, `"http"`, `"streamable-http"` or `"sse"`. Without a type, a server with a `url` speaks Streamable HTTP.
/// `${NAME}` in a value is replaced by what `lookup` gives for the server's name and `NAME`.
///
/// # Errors
/// Says which server and which field cannot be used: unknown, missing, of the wrong type, or with a variable that
/// `lookup` does not know.
pub fn parse_servers(
    text: &str,
    lookup: &dyn Fn(&str, &str) -> Option<String>,
) -> Result<Vec<ServerSettings>, SettingsError> {
    let form = |reason: String| SettingsError::Form { reason };
    let entries: Entries = serde_json::from_str(text).map_err(|error| form(error.to_string()))?;
    let mut servers = None;
    for (key, value) in entries.0 {
        if key != "mcpServers" {
            return Err(form(format!("`{key}` is not known; only `mcpServers` is")));
        }
        servers = Some(value);
    }
    let servers = servers.ok_or_else(|| form("`mcpServers` is missing".to_owned()))?;
    // Once more through the text of this value, because only a visitor sees that a name is given twice.
    let servers: Entries =
        serde_json::from_str(servers.get()).map_err(|error| form(format!("`mcpServers`: {error}")))?;
    let read = |(name, raw): (String, Box<serde_json::value::RawValue>)| {
        let bad_name = name.trim() != name || name.is_empty() || name.len() > LONGEST_NAME || name.contains(is_hidden);
        if bad_name {
            return Err(form(format!("{name:?} is not a valid server name: 1 to {LONGEST_NAME} visible characters")));
        }
        let wrong = |reason: String| SettingsError::Form { reason: format!("the MCP server `{name}`: {reason}") };
        let mut fields = Map::new();
        let entries: Entries = serde_json::from_str(raw.get()).map_err(|error| wrong(error.to_string()))?;
        for (key, value) in entries.0 {
            let value = serde_json::from_str(value.get()).map_err(|error| wrong(error.to_string()))?;
            fields.insert(key, value);
        }
        let lookup = |variable: &str| lookup(&name, variable);
        let transport = Fields { server: &name, fields, lookup: &lookup }.transport()?;
        Ok(ServerSettings { name, transport, limits: Limits::default() })
    };
    servers.0.into_iter().map(read).collect()
}

/// A JSON object whose keys are all different.
struct Entries(Vec<(String, Box<serde_json::value::RawValue>)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Distinct;
        impl<'de> Visitor<'de> for Distinct {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries: Vec<(String, Box<serde_json::value::RawValue>)> = Vec::new();
                let mut known = HashSet::new();
                while let Some((key, value)) = map.next_entry::<String, _>()? {
                    if entries.len() == MOST_ENTRIES {
                        return Err(serde::de::Error::custom(format!("it has more than {MOST_ENTRIES} entries")));
                    }
                    if !known.insert(key.clone()) {
                        return Err(serde::de::Error::custom(format!("`{key}` is given twice")));
                    }
                    entries.push((key, value));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Distinct)
    }
}

/// The fields of one server that are not read yet.
struct Fields<'a> {
    server: &'a str,
    fields: Map<String, Value>,
    lookup: &'a dyn Fn(&str) -> Option<String>,
}

impl Fields<'_> {
    fn transport(mut self) -> Result<Transport, SettingsError> {
        let kind = self.text("type")?;
        let transport = match kind.as_deref() {
            None if self.fields.contains_key("url") => self.http(false)?,
            None | Some("stdio") => self.stdio()?,
            Some("http" | "streamable-http") => self.http(false)?,
            Some("sse") => self.http(true)?,
            Some(_) => return Err(self.wrong("type", "must be `stdio`, `http`, `streamable-http` or `sse`")),
        };
        match self.fields.keys().next() {
            Some(field) => Err(self.wrong(field, "is not known, or not for this type of server")),
            None => Ok(transport),
        }
    }

    fn stdio(&mut self) -> Result<Transport, SettingsError> {
        let command = self.text("command")?.filter(|command| !command.is_empty());
        let command = command.ok_or_else(|| self.wrong("command", "is missing; give it, or a `url`"))?;
        let args = match self.fields.remove("args") {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                let read = |(index, item)| self.value(&format!("args.{index}"), item);
                items.into_iter().enumerate().map(read).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(self.wrong("args", "must be a list of texts")),
        };
        let env = self.texts("env")?;
        if let Some(name) = env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(self.wrong(&format!("env.{name}"), "is not a valid variable name"));
        }
        Ok(Transport::Stdio { command, args, env, cwd: self.text("cwd")?.map(PathBuf::from) })
    }

    fn http(&mut self, events: bool) -> Result<Transport, SettingsError> {
        let url = self.text("url")?.ok_or_else(|| self.wrong("url", "is missing"))?;
        let url = Url::parse(&url).map_err(|error| self.wrong("url", &format!("is not a valid address: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(self.wrong("url", "must begin with `https://` or `http://`"));
        }
        let headers = self.texts("headers")?;
        for (name, value) in &headers {
            let valid = http::HeaderName::try_from(name).is_ok() && http::HeaderValue::try_from(value).is_ok();
            if !valid {
                return Err(self.wrong(&format!("headers.{name}"), "is not a valid header"));
            }
        }
        let mut tls = self.texts("tls")?;
        let mut file = |name: &str| tls.remove(name).map(PathBuf::from);
        let files = TlsFiles {
            ca_file: file("ca_file"),
            client_certificate: file("client_certificate"),
            client_key: file("client_key"),
        };
        if let Some(field) = tls.keys().next() {
            return Err(self.wrong(&format!("tls.{field}"), "is not known"));
        }
        if files.client_certificate.is_some() != files.client_key.is_some() {
            return Err(self.wrong("tls", "needs both `client_certificate` and `client_key`, or neither"));
        }
        Ok(match events {
            true => Transport::Sse { url, headers, tls: files },
            false => Transport::StreamableHttp { url, headers, tls: files },
        })
    }

    fn text(&mut self, field: &str) -> Result<Option<String>, SettingsError> {
        self.fields.remove(field).map(|value| self.value(field, value)).transpose()
    }

    fn texts(&mut self, field: &str) -> Result<BTreeMap<String, String>, SettingsError> {
        let entries = match self.fields.remove(field) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(entries)) => entries,
            Some(_) => return Err(self.wrong(field, "must be an object with texts")),
        };
        let read = |(name, value)| {
            let value = self.value(&format!("{field}.{name}"), value)?;
            Ok((name, value))
        };
        entries.into_iter().map(read).collect()
    }

    fn value(&self, field: &str, value: Value) -> Result<String, SettingsError> {
        let Value::String(text) = value else {
            return Err(self.wrong(field, "must be a text"));
        };
        fill(&text, self.lookup).map_err(|unfilled| match unfilled {
            Unfilled::Missing(variable) => {
                SettingsError::Variable { server: self.server.to_owned(), field: field.to_owned(), variable }
            }
            Unfilled::Malformed(text) => self.wrong(field, &format!("has `{text}`; write `${{NAME}}`")),
        })
    }

    fn wrong(&self, field: &str, reason: &str) -> SettingsError {
        SettingsError::Field { server: self.server.to_owned(), field: field.to_owned(), reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<ServerSettings>, SettingsError> {
        parse_servers(text, &|_, name| (name == "TOKEN").then(|| "s3cret".to_owned()))
    }

    #[test]
    fn all_forms_are_read_in_order() {
        let servers = parse(
            r#"{"mcpServers": {
                "zeta": {"command": "uvx", "args": ["mcp-server-time", "--x=${TOKEN}"], "env": {"A": "${TOKEN}"}, "cwd": "/srv"},
                "web": {"url": "https://mcp.example/x?k=1", "headers": {"Authorization": "Bearer ${TOKEN}"}},
                "typed": {"type": "streamable-http", "url": "http://localhost:1/mcp",
                          "tls": {"ca_file": "ca.pem", "client_certificate": "c.pem", "client_key": "k.pem"}},
                "old": {"type": "sse", "url": "http://localhost:1/sse"}
            }}"#,
        )
        .expect("a valid file");
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["zeta", "web", "typed", "old"]);
        let Transport::Stdio { command, args, env, cwd } = &servers[0].transport else { panic!("stdio") };
        assert_eq!((command.as_str(), args.len(), env["A"].as_str()), ("uvx", 2, "s3cret"));
        assert_eq!(args[1], "--x=s3cret");
        assert_eq!(cwd.as_deref(), Some(std::path::Path::new("/srv")));
        let Transport::StreamableHttp { headers, .. } = &servers[1].transport else { panic!("http") };
        assert_eq!(headers["Authorization"], "Bearer s3cret");
        let Transport::StreamableHttp { tls, .. } = &servers[2].transport else { panic!("http") };
        assert_eq!(tls.client_key.as_deref(), Some(std::path::Path::new("k.pem")));
        assert!(matches!(servers[3].transport, Transport::Sse { .. }));
    }

    #[test]
    fn a_variable_is_looked_up_for_its_server() {
        let read = |server: &str| {
            let text = format!(r#"{{"mcpServers": {{"{server}": {{"command": "x", "env": {{"A": "${{TOKEN}}"}}}}}}}}"#);
            parse_servers(&text, &|server, name| (server == "mine" && name == "TOKEN").then(String::new))
        };
        assert!(read("mine").is_ok());
        assert!(read("other").is_err_and(|error| error.to_string().contains("`TOKEN`")));
    }

    #[test]
    fn a_list_has_so_many_servers_and_looking_for_doubles_takes_no_longer_for_many() {
        let servers: Vec<String> = (0..200_000).map(|at| format!(r#""s{at}": {{"command": "x"}}"#)).collect();
        let error = parse(&format!(r#"{{"mcpServers": {{{}}}}}"#, servers.join(", "))).expect_err("too many");
        assert!(error.to_string().contains("it has more than 1000 entries"), "{error}");
        let servers =
            parse(&format!(r#"{{"mcpServers": {{{}}}}}"#, servers[..1_000].join(", "))).expect("a valid file");
        assert_eq!(servers.len(), 1_000);
    }

    #[test]
    fn keys_are_not_shown() {
        let servers = parse(
            r#"{"mcpServers": {"a": {"command": "x", "env": {"KEY": "${TOKEN}"}},
                "b": {"url": "http://h/?key=${TOKEN}", "headers": {"X-Key": "${TOKEN}"}}}}"#,
        );
        let shown = format!("{servers:?}");
        assert!(!shown.contains("s3cret") && shown.contains("KEY") && shown.contains("X-Key"), "{shown}");
    }

    #[test]
    fn what_is_wrong_is_named_with_server_and_field() {
        for (server, expected) in [
            (r#"{"command": "x", "autoStart": true}"#, "`s`: `autoStart` is not known"),
            (r#"{"command": "x", "url": "http://h"}"#, "`s`: `command` is not known, or not for this type"),
            (r#"{"args": []}"#, "`s`: `command` is missing"),
            (r#"{"command": "x", "args": "y"}"#, "`s`: `args` must be a list"),
            (r#"{"command": "x", "args": ["y", 1]}"#, "`s`: `args.1` must be a text"),
            (r#"{"command": "x", "env": {"A": 1}}"#, "`s`: `env.A` must be a text"),
            (r#"{"command": "x", "env": {"A": "${NONE}"}}"#, "`s`: `env.A` refers to `NONE`, which is not set"),
            (r#"{"command": "x", "env": {"A=B": "c"}}"#, "`s`: `env.A=B` is not a valid variable name"),
            (r#"{"command": "${A:-b}"}"#, "`s`: `command` has `${A:-b}`"),
            (r#"{"type": "http"}"#, "`s`: `url` is missing"),
            (r#"{"type": "ws", "url": "http://h"}"#, "`s`: `type` must be"),
            (r#"{"url": "ftp://h"}"#, "`s`: `url` must begin"),
            (r#"{"url": "h"}"#, "`s`: `url` is not a valid address"),
            (r#"{"url": "http://h", "headers": {"a b": "c"}}"#, "`s`: `headers.a b` is not a valid header"),
            (r#"{"url": "http://h", "tls": {"ca": "x"}}"#, "`s`: `tls.ca` is not known"),
            (r#"{"url": "http://h", "tls": {"client_key": "x"}}"#, "`s`: `tls` needs both"),
            (r#"{"command": "x", "command": "y"}"#, "the MCP server `s`: `command` is given twice"),
            (r#"[]"#, "the MCP server `s`: invalid type"),
        ] {
            let error = parse(&format!(r#"{{"mcpServers": {{"s": {server}}}}}"#)).expect_err(server).to_string();
            assert!(error.contains(expected), "{server}: {error}");
        }
        for (text, expected) in [
            ("[]", "cannot be read"),
            ("{}", "`mcpServers` is missing"),
            (r#"{"servers": {}}"#, "`servers` is not known"),
            (r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "x"}}}"#, "`a` is given twice"),
            (r#"{"mcpServers": {"": {"command": "x"}}}"#, "is not a valid server name"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
