//! The values that were read, so that each is read once.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::Value;

use super::sources::Identity;
use crate::document::MAX_COPIES;

/// What may stand in a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MayHave {
    /// Values only: a reference to a component is an error
    Values,
    /// Components too, which become values as they are written
    Components,
}

/// The values that references name, each read once.
pub(super) struct Memory {
    /// The field whose value is read
    pub(super) field: Arc<str>,
    pub(super) read: HashMap<(Identity, MayHave), Option<(Value, usize)>>,
    pub(super) copies_left: usize,
    pub(super) depth: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { field: "".into(), read: HashMap::new(), copies_left: MAX_COPIES, depth: 0 }
    }
}
