//! What all cases of a process share.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::{CancellationToken, Host, HostError, HostOptions};
use thiserror::Error;

use crate::again::Reexecution;

/// What all cases share.
#[derive(Clone)]
pub struct Stage {
    /// Where hotcell runs
    pub runtime: tokio::runtime::Handle,
    /// How long one run may take before the case counts as failed
    pub limit: Duration,
    /// The host whose engine and compiled cells the hosts of all cases use
    pub host: Host,
    /// Ends the servers of all cases when the stage goes
    pub end: CancellationToken,
    /// Executes again what cases called
    pub reexecution: Option<Arc<Reexecution>>,
}

/// Why there is no stage.
#[derive(Debug, Error)]
pub enum StageError {
    /// No folder for compiled cells
    #[error("the folder for compiled cells cannot be made: {0}")]
    Cache(#[from] io::Error),
    /// No host
    #[error("the host cannot be set up: {0}")]
    Host(#[from] HostError),
}

impl Stage {
    /// Sets up what cases share. The host sees nothing of this process's environment.
    ///
    /// # Errors
    /// When WebAssembly cannot be used here or there is no folder for compiled cells.
    pub fn build(runtime: tokio::runtime::Handle, limit: Duration) -> Result<Self, StageError> {
        let host = Host::new(HostOptions { cache_dir: Some(cache()?), ..HostOptions::isolated() })?;
        Ok(Stage { runtime, limit, host, end: CancellationToken::new(), reexecution: None })
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// A folder among the files of the build, so that cells that were compiled once stay compiled, and the cache of the
/// person who runs the cases has nothing of them.
fn cache() -> io::Result<PathBuf> {
    let folder = Path::new(env!("OUT_DIR")).join("cells");
    make_private(&folder)?;
    Ok(folder)
}

/// The cache refuses a folder that others could write to.
#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}
