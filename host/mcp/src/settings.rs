//! Which servers there are and how they are reached.

mod file;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotcell_tls::TlsFiles;
use url::Url;

pub use file::parse_servers;

/// One server and how it is reached.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Its name, for errors, logs and whoever chooses tools by it
    pub name: String,
    /// How it is reached
    pub transport: Transport,
    /// What it may take
    pub limits: Limits,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A program on this machine that reads from its standard input and writes to its standard output
    Stdio {
        /// The program, looked up in the `PATH` that it gets itself
        command: String,
        /// Its arguments
        args: Vec<String>,
        /// Its environment, besides `PATH`, `HOME`, `LANG` and `TMPDIR`, which it gets from this process
        env: BTreeMap<String, String>,
        /// The folder it runs in; that of this process if there is none
        cwd: Option<PathBuf>,
    },
    /// A service that speaks Streamable HTTP, the form of the protocol since 2025-03-26
    StreamableHttp {
        /// Its address
        url: Url,
        /// Headers of every request, for authorization
        headers: BTreeMap<String, String>,
        /// Certificates
        tls: TlsFiles,
    },
    /// A service that speaks HTTP with a stream of events, the form of the protocol of 2024-11-05
    Sse {
        /// The address of the stream of events
        url: Url,
        /// Headers of every request, for authorization
        headers: BTreeMap<String, String>,
        /// Certificates
        tls: TlsFiles,
    },
}

impl ServerSettings {
    /// Takes relative paths of certificates and keys from `folder`, that of the file which names them, and starts a program there.
    pub fn relative_to(&mut self, folder: &Path) {
        if let Transport::StreamableHttp { tls, .. } | Transport::Sse { tls, .. } = &mut self.transport {
            for file in [&mut tls.ca_file, &mut tls.client_certificate, &mut tls.client_key].into_iter().flatten() {
                *file = folder.join(&*file);
            }
        }
        self.start_within(folder);
    }

    /// Starts a program in `folder`, or in what its settings say from there. Where hotcell itself is started there may be another
    /// `server.py`, of somebody else.
    pub fn start_within(&mut self, folder: &Path) {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if let Transport::Stdio { cwd, .. } = &mut self.transport {
            *cwd = Some(cwd.as_ref().map_or_else(|| folder.to_owned(), |named| folder.join(named)));
        }
    }
}

/// What a server may take of time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take from its start until its tools are known; also how long it may take to list them anew
    pub connect: Duration,
    /// The most bytes of one message of it, and of all descriptions of its tools together
    pub message_bytes: usize,
}

impl Default for Limits {
    /// 30 seconds, 8 MiB.
    fn default() -> Self {
        Limits { connect: Duration::from_secs(30), message_bytes: 8 << 20 }
    }
}

impl fmt::Debug for Transport {
    /// Without values of headers and of the environment, and without the query of an address: these hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut http = |name: &str, url: &Url, headers: &BTreeMap<String, String>, tls: &TlsFiles| {
            let mut bare = url.clone();
            bare.set_query(None);
            let headers: Vec<&String> = headers.keys().collect();
            f.debug_struct(name).field("url", &bare.as_str()).field("headers", &headers).field("tls", tls).finish()
        };
        match self {
            Transport::Stdio { command, args, env, cwd } => {
                let env: Vec<&String> = env.keys().collect();
                f.debug_struct("Stdio")
                    .field("command", command)
                    .field("args", &args.len())
                    .field("env", &env)
                    .field("cwd", cwd)
                    .finish()
            }
            Transport::StreamableHttp { url, headers, tls } => http("StreamableHttp", url, headers, tls),
            Transport::Sse { url, headers, tls } => http("Sse", url, headers, tls),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_starts_in_the_folder_of_the_file_that_names_it() {
        for (folder, named, started_in) in [
            ("/agent", None, "/agent"),
            ("/agent", Some("bin"), "/agent/bin"),
            ("/agent", Some("/srv"), "/srv"),
            ("", None, "."),
        ] {
            let (command, cwd) = ("python3".to_owned(), named.map(PathBuf::from));
            let transport = Transport::Stdio { command, args: Vec::new(), env: BTreeMap::new(), cwd };
            let mut settings = ServerSettings { name: "s".to_owned(), transport, limits: Limits::default() };
            settings.relative_to(Path::new(folder));
            let Transport::Stdio { cwd, .. } = settings.transport else { panic!("a program") };
            assert_eq!(cwd.as_deref(), Some(Path::new(started_in)));
        }
    }
}
