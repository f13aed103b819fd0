//! A new project, written from the templates.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::project::{Kind, Language, NameError, check_name};
use crate::templates;

/// What the new project is to be.
#[derive(Clone, Debug)]
pub struct NewPlugin {
    /// Where it goes. It is created; where it exists, it has to be empty.
    pub directory: PathBuf,
    /// The name of the plugin, such as `weather` or `acme:weather`.
    pub name: String,
    /// What it offers.
    pub kind: Kind,
    /// What it is written in.
    pub language: Language,
}

/// Why no project was written.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is none for a plugin.
    #[error(transparent)]
    Name(#[from] NameError),
    /// There is something already.
    #[error("`{}` is there already and is not empty; choose another folder", directory.display())]
    NotEmpty {
        /// The folder.
        directory: PathBuf,
    },
    /// There is a file in its place.
    #[error("`{}` is a file; choose a folder", directory.display())]
    NotADirectory {
        /// The file.
        directory: PathBuf,
    },
    /// A file or folder cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Writes a project that builds, passes its cases and runs as it is. Gives the files it wrote, with `directory` in front.
///
/// The project has a copy of the SDK in its folder `sdk`, so it depends on no checkout of hotcell.
///
/// # Errors
///
/// [`NewError`] for a bad name or a folder that is in use, before anything is written, and where writing fails.
pub fn new(plugin: &NewPlugin) -> Result<Vec<PathBuf>, NewError> {
    check_name(&plugin.name)?;
    check_directory(&plugin.directory)?;
    let mut written = Vec::new();
    for (path, contents) in templates::files(&plugin.name, plugin.kind, plugin.language) {
        let path = path.split('/').fold(plugin.directory.clone(), |folder, part| folder.join(part));
        write(&path, &contents).map_err(|source| NewError::Write { path: path.clone(), source })?;
        written.push(path);
    }
    Ok(written)
}

fn check_directory(directory: &Path) -> Result<(), NewError> {
    let failed = |source| NewError::Write { path: directory.to_owned(), source };
    match fs::read_dir(directory) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(Ok(_)) => Err(NewError::NotEmpty { directory: directory.to_owned() }),
            Some(Err(source)) => Err(failed(source)),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(NewError::NotADirectory { directory: directory.to_owned() })
        }
        Err(source) => Err(failed(source)),
    }
}

fn write(path: &Path, contents: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, contents)
}
