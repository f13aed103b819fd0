//! Messages of a server, from bytes.

use rmcp::RoleClient;
use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;

/// What a piece of text from a server is.
pub(crate) enum Decoded {
    /// A message
    Message(Box<RxJsonRpcMessage<RoleClient>>),
    /// No message; why not
    Garbage(String),
}

/// Reads a message. An answer that cannot be understood becomes an error in its place: whoever waits for it learns
/// at once and not by a time-out.
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    let reason = match serde_json::from_slice(bytes) {
        Ok(message) => return Decoded::Message(Box::new(message)),
        Err(error) => error.to_string(),
    };
    let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else {
        return Decoded::Garbage(reason);
    };
    let answers = !fields.contains_key("method") && (fields.contains_key("result") || fields.contains_key("error"));
    let id = fields.get("id").cloned().and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    match id {
        Some(id) if answers => {
            let error = ErrorData::internal_error(format!("its answer cannot be understood: {reason}"), None);
            Decoded::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
        }
        _ => Decoded::Garbage(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> &'static str {
        match decode(text.as_bytes()) {
            Decoded::Garbage(_) => "garbage",
            Decoded::Message(message) => match *message {
                ServerJsonRpcMessage::Request(_) => "request",
                ServerJsonRpcMessage::Response(_) => "response",
                ServerJsonRpcMessage::Notification(_) => "notification",
                ServerJsonRpcMessage::Error(_) => "error",
            },
        }
    }

    #[test]
    fn messages_and_garbage_are_told_apart() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, "response"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#, "error"),
            (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, "error"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request"),
            (r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, "notification"),
            ("listening on stdin", "garbage"),
            ("[1]", "garbage"),
            ("{}", "garbage"),
            ("null", "garbage"),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}
