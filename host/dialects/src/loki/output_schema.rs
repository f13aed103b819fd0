//! The `output_schema` of a node.

use super::read_field::key;
use super::schema::Schema;
use crate::document::Need::Optional;
use crate::document::{Fields, Kind};
use crate::json_schema;

/// Reads the field; none if it is left out or wrong.
pub(super) fn output_schema(fields: &mut Fields<'_, '_>) -> Option<Schema> {
    let (node, value) = json_schema::read(fields, "output_schema", Optional)?;
    let reader = fields.reader();
    let properties = match node.get("properties").map(|entry| &entry.value.kind) {
        Some(Kind::Map(entries)) => entries.iter().map(|entry| key(reader, entry)).collect(),
        _ => Vec::new(),
    };
    Some(Schema { value, properties })
}
