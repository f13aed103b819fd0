//! What lowering an agent needs at every step.

use super::names::Names;
use super::references::Scope;
use super::schema::{Agent, Source};
use crate::document::Reader;

/// An agent on its way to the IR.
pub(super) struct Lowering<'a, 'r, 'd> {
    pub(super) source: &'a Source,
    pub(super) agent: &'a Agent,
    pub(super) reader: &'r Reader<'d>,
    pub(super) names: Names<'r, 'd>,
    pub(super) scope: Scope<'a, 'r, 'd>,
}
