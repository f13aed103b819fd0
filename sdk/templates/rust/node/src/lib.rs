//! A node type in Rust.

use std::collections::BTreeMap;

use hotcell_plugin::{Error, Outcome, Value, node, plugin};

/// What the author of the graph writes on the node.
#[derive(Value)]
pub struct Fields {
    /// The values by their keys.
    table: BTreeMap<String, String>,
}

/// What flows into the node.
#[derive(Value)]
pub struct Inputs {
    /// The key to look up.
    key: String,
}

/// What flows out of the node.
#[derive(Debug, PartialEq, Value)]
pub struct Outputs {
    /// The value that was found.
    value: Option<String>,
}

/// Looks a key up in a table.
#[node(branches = ["found", "missing"])]
pub fn lookup(fields: Fields, inputs: Inputs) -> Result<Outcome<Outputs>, Error> {
    let value = fields.table.get(&inputs.key).cloned();
    let branch = if value.is_some() { "found" } else { "missing" };
    Ok(Outcome::by(branch, Outputs { value }))
}

plugin! {
    name: "{{name}}",
    nodes: [lookup],
}

#[cfg(test)]
mod tests {
    use super::{Fields, Inputs, lookup};

    #[test]
    fn it_leaves_by_the_branch_that_fits() {
        for (key, branch) in [("no", "found"), ("xx", "missing")] {
            let table = [("no".to_owned(), "Norway".to_owned())].into();
            let outcome = lookup(Fields { table }, Inputs { key: key.to_owned() });
            assert_eq!(outcome.map(|outcome| outcome.branch), Ok(Some(branch.to_owned())));
        }
    }
}
