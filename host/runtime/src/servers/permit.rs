//! Whether a server may be used, and how one is reached that the agent's own file describes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use hotcell_cells::policy::{Decision, Request, decide, decide_url};
use hotcell_cells::{Denial, Grants};
use hotcell_dialects::{DeclaredServer, ServerWay};
use hotcell_graph::ir::Retry;
use hotcell_mcp::{Limits, ServerSettings, TlsFiles, Transport};

use super::error::ServerError;
use super::{Granted, PREFIX, Reachable};
use crate::key_files::key_file;
use crate::server_keys::ServerKeys;

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How a server that a file in `folder` describes is reached; the error is what is wrong with the description.
pub(super) fn settings_of(
    server: &DeclaredServer,
    folder: &Path,
    grants: &Grants,
) -> Result<ServerSettings, ServerError> {
    let within = |file: &str| {
        key_file(folder, file, grants, &format!("{PREFIX}{}", server.name))
            .map_err(|cause| ServerError::KeyFile { server: server.name.clone(), cause: Arc::new(cause) })
    };
    let transport = match &server.way {
        ServerWay::Program { command, arguments, environment, folder } => Transport::Stdio {
            command: command.clone(),
            args: arguments.clone(),
            env: environment.iter().cloned().collect(),
            cwd: folder.as_ref().map(PathBuf::from),
        },
        ServerWay::Service { url, headers, events, tls } => {
            let url = url.parse().map_err(|cause| ServerError::Url { server: server.name.clone(), cause })?;
            let tls = match tls {
                Some(tls) => TlsFiles {
                    ca_file: Some(within(&tls.ca_file)?),
                    client_certificate: Some(within(&tls.certificate_file)?),
                    client_key: Some(within(&tls.key_file)?),
                },
                None => TlsFiles::default(),
            };
            let headers = headers.iter().cloned().collect();
            match events {
                true => Transport::Sse { url, headers, tls },
                false => Transport::StreamableHttp { url, headers, tls },
            }
        }
    };
    let mut settings = ServerSettings { name: server.name.clone(), transport, limits: Limits::default() };
    settings.start_within(folder);
    Ok(settings)
}

/// How the functions of a server are shown and called, as far as somebody said it.
#[derive(Default)]
pub(super) struct CallTerms {
    pub(super) prefix: String,
    pub(super) timeout: Option<Duration>,
    pub(super) retry: Option<Retry>,
}

/// A server that may be used; the error says what would allow it.
pub(super) fn permit(
    settings: ServerSettings,
    terms: CallTerms,
    grants: &impl Fn(&str) -> Granted,
) -> Result<Arc<Reachable>, ServerError> {
    let (grants, held_back) = grants(&full_name(&settings));
    may_reach(&settings, &grants, &held_back)?;
    let (connected, functions) = (Mutex::default(), OnceLock::new());
    let keys = ServerKeys::of(&settings.transport);
    let CallTerms { prefix, timeout, retry } = terms;
    let timeout = timeout.unwrap_or(CALL_TIMEOUT);
    Ok(Arc::new(Reachable { settings, keys, prefix, timeout, retry, grants, held_back, connected, functions }))
}

/// What grants to a server are given to.
pub(super) fn full_name(settings: &ServerSettings) -> String {
    format!("{PREFIX}{}", settings.name)
}

/// Asks the policy whether a server may be used; the error says what would allow it.
pub(super) fn may_reach(settings: &ServerSettings, granted: &Grants, held_back: &Grants) -> Result<(), ServerError> {
    let name = full_name(settings);
    let decision = match &settings.transport {
        Transport::Stdio { .. } => decide(granted, &Request::Process),
        Transport::StreamableHttp { url, .. } | Transport::Sse { url, .. } => {
            decide_url(granted, url, "POST").ok_or_else(|| ServerError::NoWebServer(name.clone()))?
        }
    };
    match decision {
        Decision::Allow => Ok(()),
        Decision::Deny(capability) => {
            let held_back = capability.is_in(held_back);
            let denial = Denial { held_back, ..Denial::new(name, capability) };
            Err(ServerError::Denied { server: settings.name.clone(), denial })
        }
    }
}
