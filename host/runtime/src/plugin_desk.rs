//! What the operator of a folder decides about its plugins, for every front end in which they may do so.

use std::io;
use std::path::{Path, PathBuf};

use hotcell_plugins::{
    AgentFolder, Amount, Catalogue, FolderError, GrantError, GrantOrder, Grants, Plugin, Standing, StoresError,
    uninstall,
};
use thiserror::Error;

use crate::context::PLUGIN_FOLDER;
use crate::host::Host;

/// A folder with its plugins and what was said about them.
pub struct PluginDesk {
    /// What decides which signatures are needed, and where data of plugins is
    pub host: Host,
    /// What was said
    pub folder: AgentFolder,
    /// The plugins within reach
    pub catalogue: Catalogue,
}

/// Why nothing is granted.
#[derive(Debug, Error)]
pub enum DecideError {
    /// It is older than the one that was granted something before
    #[error("`{plugin}` is {found}, and version {newer} of it was granted something before")]
    Older {
        /// The plugin
        plugin: String,
        /// Its version, in words
        found: String,
        /// The version that was used before
        newer: String,
    },
    /// What is wanted cannot be granted
    #[error(transparent)]
    Grant(#[from] GrantError),
}

/// Why a plugin is not removed.
#[derive(Debug, Error)]
pub enum RemoveError {
    /// It is not one of the folder's own
    #[error("`{plugin}` lies in `{place}`, not in `{own}`", place = .place.display(), own = .own.display())]
    Elsewhere {
        /// The plugin
        plugin: String,
        /// Where it is
        place: PathBuf,
        /// Where those of the folder are
        own: PathBuf,
    },
    /// Its grants cannot be taken back
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// Its data cannot be looked at or deleted
    #[error(transparent)]
    Stores(#[from] StoresError),
    /// Its file cannot be deleted
    #[error("cannot delete `{file}`: {cause}", file = .file.display())]
    File {
        /// The file
        file: PathBuf,
        /// Why not
        #[source]
        cause: io::Error,
    },
}

impl Host {
    /// The folder of an agent with its plugins and what the operator said about them.
    ///
    /// # Errors
    /// When `hotcell.toml` or `hotcell.lock` is there and cannot be used.
    pub fn plugin_desk(&self, folder: &Path) -> Result<PluginDesk, FolderError> {
        Ok(PluginDesk { host: self.clone(), folder: self.agent_folder(folder)?, catalogue: self.catalogue(folder) })
    }
}

impl PluginDesk {
    /// Whether a plugin may be used here.
    pub fn standing(&self, file: &Path, plugin: &Plugin) -> Standing {
        self.folder.standing(file, plugin, self.host.signatures())
    }

    /// What an order would grant to a plugin, with what it was granted before.
    ///
    /// # Errors
    /// When it cannot be granted, or the plugin is older than one that was used before and nobody said that this is meant.
    pub fn decide(&self, plugin: &Plugin, order: &GrantOrder, allow_older: bool) -> Result<Grants, DecideError> {
        let name = &plugin.description.name;
        if let Some(newer) = self.folder.pins_newer(plugin).filter(|_| !allow_older) {
            let version = plugin.description.version.as_deref();
            let found = version.map_or_else(|| "of no version".to_owned(), |version| format!("version {version}"));
            return Err(DecideError::Older { plugin: name.clone(), found, newer: newer.to_owned() });
        }
        let before = self.folder.granted_before(name);
        Ok(order.grants(name, &plugin.description.capabilities, before.as_deref())?)
    }

    /// Grants this to a plugin, pinned to its component.
    ///
    /// # Errors
    /// When the folder's settings are not trusted yet, or a file cannot be written. Nothing is changed then.
    pub fn grant(&mut self, plugin: &Plugin, grants: &Grants, allow_older: bool) -> Result<(), GrantError> {
        if allow_older {
            let (name, version) = (&plugin.description.name, plugin.description.version.as_deref());
            let kept = self.host.signatures().versions.allow(name, version);
            kept.map_err(|error| GrantError::File { file: "the list of versions".into(), cause: error.to_string() })?;
        }
        self.folder.grant(plugin, grants, self.host.trust())
    }

    /// Takes back all that was granted to the plugin of that name. False if that was nothing.
    ///
    /// # Errors
    /// As with [`PluginDesk::grant`].
    pub fn revoke(&mut self, name: &str) -> Result<bool, GrantError> {
        if !self.folder.knows(name) {
            return Ok(false);
        }
        self.folder.revoke(name, self.host.trust())?;
        Ok(true)
    }

    /// What a plugin keeps between calls.
    ///
    /// # Errors
    /// When that cannot be looked at.
    pub fn kept(&self, file: &Path, name: &str) -> Result<Amount, StoresError> {
        let owner = self.host.owner(self.folder.path(), file, name)?;
        self.host.stores()?.amount_of(&owner)
    }

    /// Whether a plugin is one of the folder's own.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_own(&self, file: &Path, name: &str) -> Result<(), RemoveError> {
        let own = self.folder.path().join(PLUGIN_FOLDER);
        match file.starts_with(&own) {
            true => Ok(()),
            false => Err(RemoveError::Elsewhere { plugin: name.to_owned(), place: file.to_owned(), own }),
        }
    }

    /// Removes a plugin of the folder's own, and takes back what was granted to it; with `purge`, its data goes, too.
    ///
    /// # Errors
    /// When it is not the folder's own, or something cannot be changed.
    pub fn remove(&mut self, file: &Path, name: &str, purge: bool) -> Result<(), RemoveError> {
        self.check_own(file, name)?;
        let owner = self.host.owner(self.folder.path(), file, name)?;
        self.revoke(name)?;
        uninstall(file).map_err(|cause| RemoveError::File { file: file.to_owned(), cause })?;
        if purge {
            self.host.stores()?.purge(&owner)?;
        }
        Ok(())
    }
}
