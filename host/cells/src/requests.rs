//! What a plugin asks the operator for, as it stands in its description. A request grants nothing; it bounds what can be
//! granted.

use serde::{Deserialize, Deserializer, Serialize};

use crate::grants::{Access, ClockGrant, DirectoryGrant, Grants, HttpGrant, RandomGrant, SecretGrant, is_default};

/// The capabilities a plugin asks for. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Requests {
    /// Directories, by the paths the plugin uses for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fs: Vec<DirectoryRequest>,
    /// Servers it asks over HTTP. `*` stands for servers that only the operator can know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpRequested>,
    /// Environment variables of the host, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How exactly it wants to tell the time.
    #[serde(skip_serializing_if = "is_default")]
    pub clock: ClockGrant,
    /// Where its random numbers are to come from.
    #[serde(skip_serializing_if = "is_default")]
    pub random: RandomGrant,
    /// Secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secret: Vec<SecretRequest>,
    /// A store of its own.
    #[serde(skip_serializing_if = "is_default")]
    pub kv: bool,
    /// The model of the run.
    #[serde(skip_serializing_if = "is_default")]
    pub llm: bool,
    /// Tools of other plugins; `*` stands for any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    /// Questions to a person.
    #[serde(skip_serializing_if = "is_default")]
    pub ask: bool,
}

/// A directory that a plugin asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryRequest {
    /// The path it uses.
    pub guest: String,
    /// What it does there.
    #[serde(default)]
    pub access: Access,
    /// What for, in the plugin's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Servers that a plugin asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum HttpRequested {
    /// This one.
    Server(HttpGrant),
    /// `*`: those that the operator names.
    Any(AnyServer),
}

// What is wrong with a server is for its author to read; an untagged enum only says that no variant fits.
impl<'de> Deserialize<'de> for HttpRequested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) if text == "*" => Ok(HttpRequested::Any(AnyServer::Any)),
            server => HttpGrant::deserialize(server).map(HttpRequested::Server).map_err(serde::de::Error::custom),
        }
    }
}

/// The text `*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum AnyServer {
    /// `*`
    #[serde(rename = "*")]
    Any,
}

/// A secret that a plugin asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretRequest {
    /// Its name.
    pub name: String,
    /// Where it is sent; none means to the servers that are granted for `http`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<HttpGrant>,
    /// What for, in the plugin's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Requests {
    /// Whether it asks for nothing that has to be granted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of `grants` goes beyond the request, one line each; empty where the grants fit in it.
    pub fn exceeded_by(&self, grants: &Grants) -> Vec<String> {
        let mut beyond = Vec::new();
        for grant in &grants.fs {
            let asked = self.fs.iter().any(|asked| asked.guest == grant.guest && asked.access >= grant.access);
            if !asked {
                beyond.push(format!("`fs` for `{}`", grant.guest));
            }
        }
        for grant in grants.http.iter().filter(|grant| !self.asks_for_server(grant)) {
            beyond.push(format!("`http` for `{grant}`"));
        }
        for name in grants.env.iter().filter(|name| !self.env.contains(name)) {
            beyond.push(format!("`env` for `{name}`"));
        }
        for SecretGrant { name, servers } in &grants.secret {
            let Some(asked) = self.secret.iter().find(|asked| asked.name == *name) else {
                beyond.push(format!("`secret` `{name}`"));
                continue;
            };
            for server in servers {
                // Without servers it asks for some that the operator names. A request to them needs its own grant.
                if !asked.servers.is_empty() && !asked.servers.iter().any(|asked| asked.covers(server)) {
                    beyond.push(format!("`secret` `{name}` for `{server}`"));
                }
            }
        }
        for name in &grants.tool {
            if !self.tool.iter().any(|asked| asked == name || asked == "*") {
                beyond.push(format!("`tool` `{name}`"));
            }
        }
        let flags = [
            ("kv", grants.kv, self.kv),
            ("llm", grants.llm, self.llm),
            ("ask", grants.ask, self.ask),
            ("process", grants.process, false),
            ("clock", grants.clock == ClockGrant::Precise, self.clock == ClockGrant::Precise),
        ];
        beyond.extend(
            flags.iter().filter(|(_, granted, asked)| *granted && !asked).map(|(name, ..)| format!("`{name}`")),
        );
        beyond
    }

    /// What of `grants` fits in the request.
    #[must_use]
    pub fn narrowed(&self, grants: &Grants) -> Grants {
        let fits = |one: Grants| self.exceeded_by(&one).is_empty();
        let mut narrowed = grants.clone();
        narrowed.fs.retain(|grant| fits(Grants { fs: vec![grant.clone()], ..Grants::default() }));
        narrowed.http.retain(|grant| fits(Grants { http: vec![grant.clone()], ..Grants::default() }));
        narrowed.env.retain(|name| fits(Grants { env: vec![name.clone()], ..Grants::default() }));
        narrowed.secret.retain(|grant| fits(Grants { secret: vec![grant.clone()], ..Grants::default() }));
        narrowed.tool.retain(|name| fits(Grants { tool: vec![name.clone()], ..Grants::default() }));
        narrowed.kv &= self.kv;
        narrowed.llm &= self.llm;
        narrowed.ask &= self.ask;
        narrowed.process = false;
        if self.clock != ClockGrant::Precise {
            narrowed.clock = ClockGrant::default();
        }
        narrowed
    }

    /// The capabilities that it asks for and of which `grants` leaves something out, by name.
    pub fn left_out_by(&self, grants: &Grants) -> Vec<&'static str> {
        let server = |asked: &HttpRequested| match asked {
            HttpRequested::Server(asked) => grants.http.iter().any(|grant| grant.covers(asked)),
            HttpRequested::Any(_) => !grants.http.is_empty(),
        };
        let directory = |asked: &DirectoryRequest| {
            grants.fs.iter().any(|grant| grant.guest == asked.guest && grant.access >= asked.access)
        };
        let secret = |asked: &SecretRequest| grants.secret.iter().any(|grant| grant.name == asked.name);
        let complete = [
            ("fs", self.fs.iter().all(directory)),
            ("http", self.http.iter().all(server)),
            ("env", self.env.iter().all(|name| grants.env.contains(name))),
            ("secret", self.secret.iter().all(secret)),
            ("tool", self.tool.iter().all(|name| grants.tool.contains(name))),
            ("kv", grants.kv || !self.kv),
            ("llm", grants.llm || !self.llm),
            ("ask", grants.ask || !self.ask),
            ("clock", grants.clock == ClockGrant::Precise || self.clock != ClockGrant::Precise),
            ("random", grants.random == RandomGrant::Seeded || self.random != RandomGrant::Seeded),
        ];
        complete.into_iter().filter(|(_, complete)| !complete).map(|(name, _)| name).collect()
    }

    pub(crate) fn asks_for_server(&self, server: &HttpGrant) -> bool {
        self.http.iter().any(|asked| match asked {
            HttpRequested::Server(asked) => asked.covers(server),
            HttpRequested::Any(_) => true,
        })
    }

    /// What it asks for in plain words, one line each.
    pub fn in_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        // Nothing that decides is cut; what a plugin says of its reasons decides nothing.
        let shown = |text: &str| crate::text::one_line(text, usize::MAX);
        let reason = |why: &String| format!(" ({})", crate::text::one_line(why, 200));
        let because = |why: &Option<String>| why.as_ref().map(reason).unwrap_or_default();
        for DirectoryRequest { guest, access, why } in &self.fs {
            let what = match access {
                Access::Read => "read the files of a directory",
                Access::ReadWrite => "read, change and delete the files of a directory",
            };
            words.push(format!("{what}, as `{}`{}", shown(guest), because(why)));
        }
        for asked in &self.http {
            words.push(match asked {
                HttpRequested::Server(server) => format!("send requests to {}", server.in_words()),
                HttpRequested::Any(_) => "send requests to servers that you name".to_owned(),
            });
        }
        for name in &self.env {
            words.push(format!("read the environment variable `{}`", shown(name)));
        }
        for SecretRequest { name, servers, why } in &self.secret {
            let to: Vec<String> = servers.iter().map(HttpGrant::in_words).collect();
            let to = if to.is_empty() { "servers that you name".to_owned() } else { to.join(", ") };
            words.push(format!("send the secret `{}` to {to}, without seeing it{}", shown(name), because(why)));
        }
        if self.kv {
            words.push("keep data of its own between calls".to_owned());
        }
        if self.llm {
            words.push("ask the model, at your cost".to_owned());
        }
        for name in &self.tool {
            words.push(match name.as_str() {
                "*" => "call any tool of any plugin that is here".to_owned(),
                name => format!("call the tool `{}`", shown(name)),
            });
        }
        if self.ask {
            words.push("put questions to you".to_owned());
        }
        if self.clock == ClockGrant::Precise {
            words.push("tell the time exactly, which can be used to observe other programs".to_owned());
        }
        if self.random == RandomGrant::Seeded {
            words.push("draw the same random numbers in every call".to_owned());
        }
        words
    }
}

impl Grants {
    /// What is granted in plain words, one line each.
    pub fn in_words(&self) -> Vec<String> {
        let directory = |grant: &DirectoryGrant| {
            let what = match grant.access {
                Access::Read => "read the files of",
                Access::ReadWrite => "read, change and delete the files of",
            };
            let host = crate::text::one_line(&grant.host.display().to_string(), usize::MAX);
            let mut words = format!("{what} `{host}`, as `{}`", crate::text::one_line(&grant.guest, usize::MAX));
            if let Some(most) = grant.max_bytes {
                words.push_str(&format!(", which holds at most {most}"));
            }
            if let Some(most) = grant.max_files {
                words.push_str(&format!(", which holds at most {most} files"));
            }
            words
        };
        let mut words: Vec<String> = self.fs.iter().map(directory).collect();
        let secret =
            |grant: &SecretGrant| SecretRequest { name: grant.name.clone(), servers: grant.servers.clone(), why: None };
        let same = Requests {
            http: self.http.iter().cloned().map(HttpRequested::Server).collect(),
            env: self.env.clone(),
            clock: self.clock,
            random: self.random,
            secret: self.secret.iter().map(secret).collect(),
            kv: self.kv,
            llm: self.llm,
            tool: self.tool.clone(),
            ask: self.ask,
            fs: Vec::new(),
        };
        words.extend(same.in_words());
        if self.process {
            words.push("run as a program of this machine, with everything that you may do".to_owned());
        }
        words
    }
}

impl HttpGrant {
    /// The server with all that is said of it.
    fn in_words(&self) -> String {
        let mut words = format!("`{self}`");
        if !self.methods.is_empty() {
            let methods: Vec<String> =
                self.methods.iter().map(|name| crate::text::one_line(name, usize::MAX)).collect();
            words.push_str(&format!(" with {} only", methods.join(", ")));
        }
        if self.private {
            words.push_str(", also where its name leads into a private network");
        }
        words
    }

    /// Whether every request that `other` covers is covered by this one.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        use crate::grants::HostGrant::{Below, Exactly};
        let host = match (&self.host, &other.host) {
            (Exactly(mine), Exactly(theirs)) => mine == theirs,
            (Below(domain), Below(theirs)) => theirs == domain || theirs.ends_with(&format!(".{domain}")),
            (Below(domain), Exactly(url::Host::Domain(name))) => name.ends_with(&format!(".{domain}")),
            _ => false,
        };
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty() && other.methods.iter().all(|method| self.methods.contains(method)));
        host && self.scheme == other.scheme && self.port == other.port && methods && (self.private || !other.private)
    }
}

#[cfg(test)]
mod tests {
    use super::Requests;
    use crate::grants::Grants;

    fn requests(text: &str) -> Requests {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    #[test]
    fn grants_may_be_narrower_than_the_request_and_not_wider() {
        let asked = requests(
            r#"{ "http": ["https://*.x.org", "http://y.org"], "fs": [{ "guest": "/d", "access": "read" }], "env": ["A"],
                 "secret": [{ "name": "K" }, { "name": "M", "servers": ["https://*.x.org"] }], "tool": ["t"], "kv": true }"#,
        );
        let cases = [
            ("", 0),
            (
                "http = ['https://a.x.org', 'https://*.b.x.org', { url = 'http://y.org', methods = ['GET'] }]\nkv = true",
                0,
            ),
            ("http = ['http://a.x.org', 'https://x.org', { url = 'http://y.org', private = true }]", 3),
            ("fs = [{ host = 'x', guest = '/d' }]\nenv = ['A']\ntool = ['t']", 0),
            ("fs = [{ host = 'x', guest = '/d', access = 'read-write' }, { host = 'x', guest = '/e' }]", 2),
            ("env = ['B']\ntool = ['*']\nllm = true\nask = true\nclock = 'precise'", 5),
            ("secret = [{ name = 'K', servers = ['https://a.x.org'] }]", 0),
            ("secret = [{ name = 'M', servers = ['https://a.x.org'] }]", 0),
            ("secret = [{ name = 'M', servers = ['https://evil.org'] }]", 1),
            ("secret = [{ name = 'L', servers = ['https://a.x.org'] }]", 1),
        ];
        for (text, beyond) in cases {
            let grants: Grants = toml::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"));
            assert_eq!(asked.exceeded_by(&grants).len(), beyond, "{text}: {:?}", asked.exceeded_by(&grants));
        }
        let any = requests(r#"{ "http": ["*"] }"#);
        let grants: Grants =
            toml::from_str("http = ['http://a', 'https://*.b']").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(any.exceeded_by(&grants), Vec::<String>::new());
    }

    #[test]
    fn what_was_granted_is_cut_to_what_is_still_asked_for_and_what_is_missing_is_named() {
        let asked = requests(
            r#"{ "http": ["https://*.x.org"], "fs": [{ "guest": "/d", "access": "read" }], "env": ["A", "B"],
                 "secret": [{ "name": "K" }], "tool": ["*"], "llm": true }"#,
        );
        let grants = |text: &str| toml::from_str::<Grants>(text).unwrap_or_else(|error| panic!("`{text}`: {error}"));
        let before = grants(
            "http = ['https://a.x.org', 'https://y.org']\nfs = [{ host = 'h', guest = '/d' }, { host = 'h', guest = '/e' }]\n\
             env = ['A', 'C']\ntool = ['t']\nkv = true\nclock = 'precise'\nprocess = true",
        );
        let narrowed = asked.narrowed(&before);
        let expected =
            grants("http = ['https://a.x.org']\nfs = [{ host = 'h', guest = '/d' }]\nenv = ['A']\ntool = ['t']");
        assert_eq!(narrowed, expected);
        assert_eq!(asked.left_out_by(&narrowed), ["http", "env", "secret", "tool", "llm"]);
        assert_eq!(requests("{}").left_out_by(&Grants::default()), [""; 0]);
    }

    #[test]
    fn a_request_is_told_in_plain_words() {
        let asked = requests(
            r#"{ "http": ["*", "https://x.org"], "fs": [{ "guest": "/d", "access": "read-write", "why": "notes\u001b[2J" }],
                 "secret": [{ "name": "K", "servers": ["https://x.org"] }], "ask": true, "tool": ["*"] }"#,
        );
        assert_eq!(
            asked.in_words(),
            [
                "read, change and delete the files of a directory, as `/d` (notes\\u{1b}[2J)",
                "send requests to servers that you name",
                "send requests to `https://x.org`",
                "send the secret `K` to `https://x.org`, without seeing it",
                "call any tool of any plugin that is here",
                "put questions to you",
            ]
        );
    }
}
