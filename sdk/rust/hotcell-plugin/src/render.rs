//! Renders descriptions and schemas to JSON at compile time, twice with the same code: once to count the bytes, once to
//! write them.

mod schema;

use crate::description::{Connector, Hook, Node, Plugin, Tool};
use crate::schema::Schema;

/// The version of the contract that this crate is made for.
pub(crate) const CONTRACT: &str = "0.2.0";

/// The number of bytes that [`render`] gives.
pub const fn length(plugin: &Plugin) -> usize {
    let mut writer = Writer { bytes: &mut [], length: 0 };
    writer.plugin(plugin);
    writer.length
}

/// The description of a plugin as JSON text of `LENGTH` bytes.
pub const fn render<const LENGTH: usize>(plugin: &Plugin) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let mut writer = Writer { bytes: &mut bytes, length: 0 };
    writer.plugin(plugin);
    bytes
}

/// The same at run time.
pub(crate) fn rendered(plugin: &Plugin) -> Vec<u8> {
    let mut bytes = vec![0; length(plugin)];
    Writer { bytes: &mut bytes, length: 0 }.plugin(plugin);
    bytes
}

impl Schema {
    /// The form as a JSON schema.
    pub fn json(&self) -> String {
        let mut writer = Writer { bytes: &mut [], length: 0 };
        writer.schema(self, "");
        let mut bytes = vec![0; writer.length];
        Writer { bytes: &mut bytes, length: 0 }.schema(self, "");
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Writes into `bytes`, or only counts where that is empty.
struct Writer<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Writer<'_> {
    const fn text(&mut self, text: &str) {
        let text = text.as_bytes();
        if !self.bytes.is_empty() {
            let (_, rest) = self.bytes.split_at_mut(self.length);
            let (place, _) = rest.split_at_mut(text.len());
            place.copy_from_slice(text);
        }
        self.length += text.len();
    }

    const fn texts(&mut self, texts: &[&str]) {
        let mut index = 0;
        while index < texts.len() {
            self.text(texts[index]);
            index += 1;
        }
    }

    const fn comma(&mut self, index: usize) {
        if index > 0 {
            self.text(",");
        }
    }

    const fn integer(&mut self, value: i64) {
        if value < 0 {
            self.text("-");
        }
        let value = value.unsigned_abs();
        let mut power = 1_u64;
        while value / power >= 10 {
            power *= 10;
        }
        while power > 0 {
            const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
            self.text(DIGITS[((value / power) % 10) as usize]);
            power /= 10;
        }
    }

    /// A member `"description"` with a comma after it, or nothing.
    const fn description(&mut self, description: &str) {
        if !description.is_empty() {
            self.texts(&["\"description\":\"", description, "\","]);
        }
    }

    const fn plugin(&mut self, plugin: &Plugin) {
        self.texts(&["{\"contract\":\"", CONTRACT, "\",\"name\":\"", plugin.name, "\""]);
        if !plugin.version.is_empty() {
            self.texts(&[",\"version\":\"", plugin.version, "\""]);
        }
        if !plugin.description.is_empty() {
            self.texts(&[",\"description\":\"", plugin.description, "\""]);
        }
        if !plugin.tools.is_empty() {
            self.text(",\"tools\":[");
            let mut index = 0;
            while index < plugin.tools.len() {
                self.comma(index);
                self.tool(&plugin.tools[index]);
                index += 1;
            }
            self.text("]");
        }
        if !plugin.nodes.is_empty() {
            self.text(",\"nodes\":[");
            let mut index = 0;
            while index < plugin.nodes.len() {
                self.comma(index);
                self.node(&plugin.nodes[index]);
                index += 1;
            }
            self.text("]");
        }
        if !plugin.hooks.is_empty() {
            self.text(",\"hooks\":[");
            let mut index = 0;
            while index < plugin.hooks.len() {
                self.comma(index);
                self.hook(&plugin.hooks[index]);
                index += 1;
            }
            self.text("]");
        }
        if let Some(connector) = &plugin.connector {
            self.text(",\"connector\":");
            self.connector(connector);
        }
        if !plugin.capabilities.is_empty() {
            self.texts(&[",\"capabilities\":", plugin.capabilities]);
        }
        self.text("}");
    }

    const fn tool(&mut self, tool: &Tool) {
        // The host wants a description of every tool, even an empty one.
        self.texts(&["{\"name\":\"", tool.name, "\",\"description\":\"", tool.description, "\","]);
        self.texts(&["\"read_only\":", if tool.read_only { "true" } else { "false" }, ",\"parameters\":"]);
        self.schema(tool.parameters, "");
        // `null` and "any JSON" tell a caller nothing.
        if !matches!(tool.returns, Schema::Any | Schema::Null) {
            self.text(",\"returns\":");
            self.schema(tool.returns, "");
        }
        self.text("}");
    }

    const fn node(&mut self, node: &Node) {
        self.texts(&["{\"type\":\"", node.name, "\","]);
        self.description(node.description);
        self.text("\"fields\":");
        self.schema(node.fields, "");
        self.text(",\"inputs\":");
        self.schema(node.inputs, "");
        self.text(",\"outputs\":");
        self.schema(node.outputs, "");
        self.text(",\"branches\":");
        self.list(node.branches);
        self.text("}");
    }

    const fn hook(&mut self, hook: &Hook) {
        let mut index = 0;
        while index < hook.points.len() {
            self.comma(index);
            self.text("{");
            self.description(hook.description);
            self.texts(&["\"point\":\"", hook.points[index], "\"}"]);
            index += 1;
        }
    }

    const fn connector(&mut self, connector: &Connector) {
        self.text("{");
        self.description(connector.description);
        self.text("\"modes\":");
        self.list(connector.modes);
        self.text(",\"config\":");
        self.schema(connector.config, "");
        self.text("}");
    }

    const fn list(&mut self, texts: &[&str]) {
        self.text("[");
        let mut index = 0;
        while index < texts.len() {
            self.comma(index);
            self.texts(&["\"", texts[index], "\""]);
            index += 1;
        }
        self.text("]");
    }
}
