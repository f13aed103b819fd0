//! The language-neutral middle of hotcell: JSON values and state, templates, formulas, reducers, the graph IR, and diagnostics.
//!
//! This crate does no I/O, starts no task and knows neither a source language nor how a cell or a model is called.
//! Front ends build its [`ir`], the engine runs it.

mod braces;
pub mod conversation;
pub mod diagnostic;
mod effort;
pub mod formula;
pub mod ir;
mod jinja;
pub mod json_schema;
mod path;
mod place;
pub mod python;
mod reach;
mod reducer;
mod searching;
mod state;
mod suggest;
mod template;
mod todo;
pub mod types;
pub mod value;

pub use braces::{BraceTemplate, BrokenBraces};
pub use effort::Effort;
pub use jinja::Jinja;
pub use path::Path;
pub use place::{Place, Step};
pub use reach::Reachability;
pub use reducer::{Reducer, ReducerError};
pub use state::{Scoped, State};
pub use suggest::{Courtesy, advise_field, closest};
pub use template::{Braces, Lookup, Missing, Template, resolve};
pub use todo::{TodoList, TodoTool};
pub use value::{Key, List, Object, Value};
