//! The description of a plugin, put together from what its code says and what `plugin.toml` says.

use serde_json::{Map, Value};

use crate::manifest::Manifest;
use crate::project::Kind;

/// The keys of the description that come from the code, with the kind that each belongs to.
const PARTS: [(&str, Kind); 4] =
    [("tools", Kind::Tool), ("nodes", Kind::Node), ("hooks", Kind::Hooks), ("connector", Kind::Connector)];

/// Puts the description together. `offered` is what the code says: `tools`, `nodes`, `hooks`, `connector`, and `script`
/// where it has one.
pub(crate) fn compose(manifest: &Manifest, contract: &str, offered: &Value) -> Result<Value, String> {
    let Value::Object(offered) = offered else {
        return Err("what the code offers has to be an object with `tools`, `nodes`, `hooks` or `connector`".to_owned());
    };
    crate::schema::check_offered(offered)?;
    let source = manifest.source.display();
    let mut description = Map::new();
    description.insert("contract".to_owned(), contract.into());
    description.insert("name".to_owned(), manifest.name.clone().into());
    if let Some(version) = &manifest.version {
        description.insert("version".to_owned(), version.clone().into());
    }
    if let Some(text) = &manifest.description {
        description.insert("description".to_owned(), text.clone().into());
    }
    for (key, kind) in PARTS {
        let declared = manifest.kinds().contains(&kind);
        match offered.get(key).filter(|part| !is_empty(part)) {
            Some(part) if declared => drop(description.insert(key.to_owned(), part.clone())),
            Some(_) => return Err(format!("`{source}` has {key}, but `kind` in `plugin.toml` does not name `{kind}`")),
            None if declared => {
                return Err(format!("`kind` in `plugin.toml` names `{kind}`, but `{source}` declares no {key}"));
            }
            None => {}
        }
    }
    match (manifest.kinds().contains(&Kind::Script), offered.get("script")) {
        (true, Some(Value::Bool(false))) => {
            return Err(format!("`kind` in `plugin.toml` names `script`, but `{source}` declares none"));
        }
        (false, Some(Value::Bool(true))) => {
            return Err(format!("`{source}` has a script, but `kind` in `plugin.toml` does not name `script`"));
        }
        _ => {}
    }
    if !manifest.capabilities.is_empty() {
        description.insert("capabilities".to_owned(), Value::Object(manifest.capabilities.clone()));
    }
    Ok(Value::Object(description))
}

fn is_empty(part: &Value) -> bool {
    match part {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Says where a finished component does not export what its description promises.
pub(crate) fn check_exports(description: &Value, exports: &[String]) -> Result<(), String> {
    if !description.is_object() {
        return Err("the description is not a JSON object".to_owned());
    }
    for key in ["contract", "name"] {
        if !description.get(key).is_some_and(Value::is_string) {
            return Err(format!("the description has no text `{key}`"));
        }
    }
    for (key, kind) in PARTS {
        let prefix = format!("hotcell:plugin/{}@", kind.interface());
        let exported = exports.iter().any(|export| export.starts_with(&prefix));
        let described = description.get(key).is_some_and(|part| !is_empty(part));
        if described && !exported {
            return Err(format!(
                "the description has `{key}`, but the component does not export `{}`",
                kind.interface()
            ));
        }
        if exported && !described {
            return Err(format!("the component exports `{}`, but the description has no `{key}`", kind.interface()));
        }
    }
    if !exports.iter().any(|export| export.starts_with("hotcell:plugin/")) {
        return Err("the component exports no interface of `hotcell:plugin`".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{check_exports, compose};
    use crate::manifest::Manifest;

    fn manifest(kind: &str) -> Manifest {
        let text = format!(
            "name = \"x\"\nversion = \"1.0.0\"\nkind = {kind}\nlanguage = \"c\"\nsource = \"p.c\"\n[capabilities]\nkv = true\n"
        );
        toml::from_str(&text).expect("a manifest")
    }

    #[test]
    fn code_and_manifest_come_together() {
        let offered = json!({ "tools": [{ "name": "add" }] });
        let expected = json!({ "contract": "0.2.0", "name": "x", "version": "1.0.0", "tools": [{ "name": "add" }],
            "capabilities": { "kv": true } });
        assert_eq!(compose(&manifest("\"tool\""), "0.2.0", &offered), Ok(expected));
        assert!(compose(&manifest("\"script\""), "0.2.0", &json!({ "script": true })).is_ok());
    }

    #[test]
    fn code_and_manifest_must_agree() {
        let cases = [
            ("\"hooks\"", json!({ "tools": [{}] }), "has tools, but"),
            ("[\"tool\", \"node\"]", json!({ "tools": [{}], "nodes": [] }), "declares no nodes"),
            ("\"script\"", json!({ "script": false }), "declares none"),
            ("\"tool\"", json!({ "tools": [{}], "script": true }), "has a script"),
            ("\"tool\"", json!([]), "has to be an object"),
        ];
        for (kind, offered, expected) in cases {
            let found = compose(&manifest(kind), "0.2.0", &offered).expect_err("a problem");
            assert!(found.contains(expected), "`{expected}` is not in `{found}`");
        }
    }

    #[test]
    fn exports_must_be_described() {
        let call_tool = ["hotcell:plugin/call-tool@0.2.0".to_owned()];
        let with = |part: Value| json!({ "contract": "0.2.0", "name": "x", "tools": part });
        assert_eq!(check_exports(&with(json!([{}])), &call_tool), Ok(()));
        assert!(check_exports(&with(json!([])), &call_tool).is_err());
        assert!(check_exports(&with(json!([{}])), &[]).is_err());
        assert!(check_exports(&json!({ "name": "x" }), &call_tool).is_err());
        assert!(check_exports(&json!([]), &call_tool).is_err());
    }
}
