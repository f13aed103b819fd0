//! Noticing that files of agents change.

use std::io::Error;
use std::path::Path;
use std::time::Instant;

use hotcell_runtime::file_watch::{Folders, Look, Looked, UNTOLD_NOTICE, When, follow};

use super::refresh::Loaded;
use super::watching::Watching;
use crate::state::Server;

/// Serves what files say as they change, until the server closes.
pub(crate) async fn watch(server: Server) {
    let when = match server.settings().watching {
        Watching::Never => return,
        Watching::Every(every) => When::Every(every),
        Watching::Events => When::Told(server.agents().written.clone()),
    };
    let closing = server.closing().clone();
    closing.run_until_cancelled(follow(ServedFiles { server }, when)).await;
}

/// The files of the agents that are served.
struct ServedFiles {
    server: Server,
}

impl Look for ServedFiles {
    async fn look(&mut self) -> Option<Looked> {
        let begun = Instant::now();
        let Loaded { is_unsettled, is_held, .. } = self.server.refresh().await;
        // Where somebody writes a file, the system tells when they are done.
        Some(Looked { is_due: is_unsettled, within: is_held, took: begun.elapsed(), is_cut: false })
    }

    async fn folders(&mut self) -> Folders {
        self.server.agents().folders().await
    }

    fn untold(&self, folder: Option<&Path>, error: &Error) {
        let folder = folder.map(|folder| folder.display().to_string());
        tracing::warn!(target: "hotcell::serve", folder, %error, "{UNTOLD_NOTICE}");
    }
}
