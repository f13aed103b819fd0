//! A plugin, by what its component says about itself. Nothing is compiled or run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use hotcell_cells::{Description, Survey, survey};
use hotcell_files::MAX_COMPONENT;
use thiserror::Error;

/// A plugin that says what it is.
#[derive(Clone, Debug)]
pub struct Plugin {
    /// What the file is
    pub survey: Survey,
    /// What it says about itself
    pub description: Description,
}

/// Why a file is no plugin that can be used. The texts do not repeat its path.
#[derive(Clone, Debug, Error)]
pub enum PluginError {
    /// It cannot be read, or is no component: in words, because it is remembered from one look at it to the next
    #[error("{0}")]
    Survey(String),
    /// It is a component that does not say what it offers
    #[error("it does not say what it offers: scripts are named by the graph that runs them")]
    Undescribed,
    /// It cannot be looked for
    #[error("{0}")]
    Unreachable(#[source] Arc<io::Error>),
    /// It is a link to a file of somebody else's
    #[error("it is a link that leads out of its folder")]
    LeadsOut,
    /// It is a folder, a pipe or the like
    #[error("it is not a file")]
    NoFile,
    /// It is larger than is accepted
    #[error("it has {size} bytes, more than the {MAX_COMPONENT} that are accepted")]
    TooLarge {
        /// Its size in bytes
        size: u64,
    },
    /// Others claim its name
    #[error("it claims the name `{name}`, and so does `{}`; remove one of them", .others.join("`, `"))]
    Twin {
        /// The name
        name: String,
        /// The files of the others
        others: Vec<String>,
    },
}

/// What it means to be told of runs at these points.
pub(crate) fn hooks_in_words(points: &[String]) -> Option<String> {
    let points: Vec<String> = points.iter().map(|point| format!("`{point}`")).collect();
    (!points.is_empty()).then(|| {
        format!("see prompts and state of runs, and change or refuse what they do, as a hook at {}", points.join(", "))
    })
}

impl Plugin {
    /// The plugin that a survey found; none if it does not say what it offers.
    pub fn of_survey(survey: Survey) -> Option<Self> {
        as_plugin(Ok(survey)).ok()
    }

    /// Reads what one file says about itself.
    ///
    /// # Errors
    /// When it cannot be read or is no plugin.
    pub fn read(file: &Path) -> Result<Self, PluginError> {
        as_plugin(look_at(file))
    }

    /// Reads what a component says about itself that is no file.
    ///
    /// # Errors
    /// When it is no plugin.
    pub fn of_bytes(component: &[u8]) -> Result<Self, PluginError> {
        as_plugin(survey(component).map_err(|error| error.to_string()))
    }

    /// The points at which it is told of runs, in the order of its description.
    pub(crate) fn hook_points(&self) -> Vec<String> {
        self.description.hooks.iter().map(|hook| hook.point.clone()).collect()
    }

    /// What it means that it has hooks, in plain words; nothing where it has none.
    pub fn hooks_in_words(&self) -> Option<String> {
        hooks_in_words(&self.hook_points())
    }
}

/// What the file of a component is and says.
pub(crate) fn look_at(file: &Path) -> Result<Survey, String> {
    let bytes = hotcell_files::read(file, MAX_COMPONENT).map_err(|error| error.to_string())?;
    survey(&bytes).map_err(|error| error.to_string())
}

/// The plugin that was found by a look at a file.
pub(crate) fn as_plugin(survey: Result<Survey, String>) -> Result<Plugin, PluginError> {
    let survey = survey.map_err(PluginError::Survey)?;
    match survey.description.clone() {
        Some(description) => Ok(Plugin { survey, description }),
        None => Err(PluginError::Undescribed),
    }
}
