//! What a tool answered, as text that a model can read and as a value that a graph can use.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::text::shown;

/// The reply of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReply {
    /// Its content, block by block, separated by line breaks. Text is there as it is; an image or a sound is there
    /// as a line like `[image image/png, 1234 bytes]`, and a resource as its text or as such a line.
    pub text: String,
    /// The structured answer, if there is one. Not checked against the tool's schema.
    pub structured: Option<Value>,
    /// Whether the tool says that it failed; the text then says why
    pub is_error: bool,
}

impl From<CallToolResult> for ToolReply {
    fn from(result: CallToolResult) -> Self {
        let mut text = String::new();
        for (index, block) in result.content.into_iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            text.push_str(&describe(block));
        }
        ToolReply { text, structured: result.structured_content, is_error: result.is_error.unwrap_or(false) }
    }
}

fn describe(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[image {}, {} bytes]", shown(&image.mime_type), decoded(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {} bytes]", shown(&audio.mime_type), decoded(&audio.data)),
        ContentBlock::ResourceLink(link) => {
            let kind = link.mime_type.as_deref().map(|kind| format!(", {}", shown(kind))).unwrap_or_default();
            format!("[resource {}: {}{kind}]", shown(&link.name), shown(&link.uri))
        }
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().map(|kind| format!(" {}", shown(kind))).unwrap_or_default();
                format!("[resource {}{kind}, {} bytes]", shown(&uri), decoded(&blob))
            }
            _ => "[resource of an unknown kind]".to_owned(),
        },
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// How many bytes a base64 text stands for.
fn decoded(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_content_has_its_text() {
        let result: CallToolResult = serde_json::from_value(json!({
            "content": [
                { "type": "text", "text": "two\nlines" },
                { "type": "image", "mimeType": "image/png", "data": "AAECAw==" },
                { "type": "audio", "mimeType": "audio/wav", "data": "AAEC" },
                { "type": "resource_link", "name": "notes", "uri": "file:///n.md", "mimeType": "text/markdown" },
                { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
                { "type": "resource", "resource": { "uri": "file:///b", "blob": "AA==", "mimeType": "x/y" } }
            ],
            "structuredContent": { "a": 1 },
            "isError": true
        }))
        .expect("a result");
        let reply = ToolReply::from(result);
        let expected = "two\nlines\n[image image/png, 4 bytes]\n[audio audio/wav, 3 bytes]\n\
                        [resource notes: file:///n.md, text/markdown]\ninside\n[resource file:///b x/y, 1 bytes]";
        assert_eq!(reply.text, expected);
        assert_eq!(reply.structured, Some(json!({ "a": 1 })));
        assert!(reply.is_error);
    }
}
