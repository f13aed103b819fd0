//! Small plugins for tests.

use wasm_encoder::{ComponentSection as _, CustomSection};

/// A description of a plugin with one tool; `rest` is further JSON, with a comma before it.
pub(crate) fn describe(name: &str, tool: &str, rest: &str) -> String {
    format!(
        r#"{{"contract":"0.2.0","name":"{name}","version":"1.0.0","tools":[{{"name":"{tool}","description":"","parameters":{{}}}}]{rest}}}"#
    )
}

/// A component that says it has tools. It cannot be called: nothing here calls plugins.
pub(crate) fn tool_plugin(description: &str) -> Vec<u8> {
    plugin("call-tool", description)
}

/// A component that says it has hooks.
pub(crate) fn hook_plugin(name: &str) -> Vec<u8> {
    hook_plugin_at(name, &["before-run"])
}

/// The same with hooks at these points.
pub(crate) fn hook_plugin_at(name: &str, points: &[&str]) -> Vec<u8> {
    let hooks: Vec<String> = points.iter().map(|point| format!(r#"{{"point":"{point}"}}"#)).collect();
    let hooks = hooks.join(",");
    plugin("hook", &format!(r#"{{"contract":"0.2.0","name":"{name}","version":"1.0.0","hooks":[{hooks}]}}"#))
}

fn plugin(export: &str, description: &str) -> Vec<u8> {
    let text = format!(r#"(component (instance $i) (export "hotcell:plugin/{export}@0.2.0" (instance $i)))"#);
    let mut bytes = wat::parse_str(text).unwrap();
    CustomSection { name: "hotcell:description".into(), data: description.as_bytes().into() }
        .append_to_component(&mut bytes);
    bytes
}
