//! What a component is made of before it is one.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::Span;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::model::{Field, Piece, Property};

/// The fields of a component, as far as they were read.
#[derive(Default)]
pub(super) struct Draft {
    /// The component with its children replaced, which is validated
    pub(super) shallow: Map<String, Json>,
    pub(super) fields: IndexMap<Arc<str>, Field>,
    /// Where the fields are written
    pub(super) written: HashMap<Arc<str>, Span>,
    pub(super) inputs: Option<Vec<Property>>,
    pub(super) outputs: Option<Vec<Property>>,
    /// How members are written of whose values a part was handed in or is a component
    pub(super) pieces: IndexMap<Arc<str>, Piece>,
}
