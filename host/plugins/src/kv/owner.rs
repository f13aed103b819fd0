//! Whose a store is.

use std::path::{Path, PathBuf};

use super::StoresError;

/// Whose a store is: a plugin's, told apart by its name, by the project that granted it the store, and by the folder
/// where its component lies. The component itself is no part of that, so an update finds what was there before.
///
/// Folders are named by their canonical paths, so it does not matter how one comes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The project; empty for a plugin of the user
    pub(super) project: String,
    /// Where the component lies; empty for the project's own folder of plugins
    pub(super) folder: String,
    pub(super) plugin: String,
}

impl Owner {
    /// A plugin among those of a project.
    ///
    /// # Errors
    /// When the folder is not there, or its name is not UTF-8.
    pub fn of_project(project: &Path, plugin: &str) -> Result<Self, StoresError> {
        Ok(Owner { project: canonical(project)?, folder: String::new(), plugin: plugin.to_owned() })
    }

    /// A plugin in some other folder, as one project uses it.
    ///
    /// # Errors
    /// As with [`Owner::of_project`].
    pub fn beside_project(project: &Path, folder: &Path, plugin: &str) -> Result<Self, StoresError> {
        Ok(Owner { project: canonical(project)?, folder: canonical(folder)?, plugin: plugin.to_owned() })
    }

    /// A plugin of the user, whichever project uses it.
    ///
    /// # Errors
    /// As with [`Owner::of_project`].
    pub fn of_user(folder: &Path, plugin: &str) -> Result<Self, StoresError> {
        Ok(Owner { project: String::new(), folder: canonical(folder)?, plugin: plugin.to_owned() })
    }

    /// The name of the plugin.
    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    /// The project; none for a plugin of the user.
    pub fn project(&self) -> Option<&Path> {
        Some(Path::new(&self.project)).filter(|project| !project.as_os_str().is_empty())
    }

    /// Where the component lies; none for the project's own folder of plugins.
    pub fn folder(&self) -> Option<&Path> {
        Some(Path::new(&self.folder)).filter(|folder| !folder.as_os_str().is_empty())
    }

    /// The first of its folders that is not there any more.
    pub(super) fn gone(&self) -> Option<&Path> {
        let gone = |folder: &&Path| matches!(folder.try_exists(), Ok(false));
        self.project().into_iter().chain(self.folder()).find(gone)
    }

    /// The same after the folder `from`, with all that is in it, has become `to`.
    pub(super) fn moved(&self, from: &Path, to: &Path) -> Result<Self, StoresError> {
        let moved = |path: &str| match Path::new(path).strip_prefix(from) {
            Ok(_) if path.is_empty() => Ok(String::new()),
            Ok(rest) if rest.as_os_str().is_empty() => text(to),
            Ok(rest) => text(&to.join(rest)),
            Err(_) => Ok(path.to_owned()),
        };
        Ok(Owner { project: moved(&self.project)?, folder: moved(&self.folder)?, plugin: self.plugin.clone() })
    }

    /// The step that makes the store of `self`, whose folder is gone, that of `other`: the old folder and the new one.
    pub(super) fn step_to<'a>(&'a self, other: &'a Owner) -> Option<(&'a Path, &'a Path)> {
        let gone = self.gone()?;
        let alike = self.project().is_some() == other.project().is_some()
            && self.folder().is_some() == other.folder().is_some()
            && self.plugin == other.plugin;
        let becomes = if self.project() == Some(gone) { other.project() } else { other.folder() };
        // What lies elsewhere in the same project is another plugin, unless it is what was moved.
        let same_project = self.project() == Some(gone) || self.project == other.project;
        becomes.filter(|_| alike && same_project).map(|becomes| (gone, becomes))
    }
}

/// The path of a folder that is there.
fn canonical(folder: &Path) -> Result<String, StoresError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let found = folder
        .canonicalize()
        .map_err(|cause| StoresError::Folder { folder: folder.to_owned(), cause: cause.to_string() })?;
    text(&found)
}

/// The path of a folder that need not be there any more, as it would have been written down.
pub(super) fn former(folder: &Path) -> Result<PathBuf, StoresError> {
    let whole = std::path::absolute(folder)
        .map_err(|cause| StoresError::Folder { folder: folder.to_owned(), cause: cause.to_string() })?;
    let there = |folder: &&Path| folder.canonicalize().is_ok();
    let Some((there, canonical)) =
        whole.ancestors().find(there).and_then(|there| Some((there, there.canonicalize().ok()?)))
    else {
        return Ok(whole);
    };
    match whole.strip_prefix(there) {
        Ok(rest) if !rest.as_os_str().is_empty() => Ok(canonical.join(rest)),
        _ => Ok(canonical),
    }
}

/// Two names that are not UTF-8 could look alike as text, and would share a store.
fn text(folder: &Path) -> Result<String, StoresError> {
    folder.to_str().map(str::to_owned).ok_or_else(|| StoresError::Folder {
        folder: folder.to_owned(),
        cause: "its name is not UTF-8, and stores are told apart by it".to_owned(),
    })
}
