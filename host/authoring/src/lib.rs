//! Making plugins: `new` writes a project that builds as it is, `build` makes the component and puts its description in.
//!
//! Every language keeps its own tools; this crate finds them, runs them, and says which command installs one that is
//! missing. It knows nothing of cells: whether a component does what it says is for the host to find out.

mod build;
mod component;
mod description;
mod failure;
mod manifest;
mod new;
mod places;
mod project;
mod schema;
mod setup;
mod shared;
mod templates;
mod tools;

pub use build::{BuildError, BuildEvent, Built, Native, build, build_with, missing_tool, native};
pub use component::{ComponentError, DESCRIPTION_SECTION};
pub use manifest::ManifestError;
pub use new::{NewError, NewPlugin, new};
pub use places::source_places;
pub use project::{Kind, Language, NameError, check_name};
pub use setup::{SetupEvent, setup};
pub use shared::Shared;
pub use tools::Tools;
