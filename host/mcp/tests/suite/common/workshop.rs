//! A catalog for the tests: tools that tell, ask, wait and change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotcell_mcp::{
    CallContext, Called, Calling, Catalog, CatalogError, Client, Content, ElicitError, Elicited, Identity, LogLevel,
    OfferedTool,
};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

pub(crate) struct Workshop {
    /// How many calls of `wait` have begun
    pub(crate) begun: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
    pub(crate) tools: watch::Sender<u64>,
}

impl Workshop {
    pub(crate) fn open() -> Arc<Self> {
        Arc::new(Workshop { begun: AtomicUsize::new(0), cancelled: AtomicUsize::new(0), tools: watch::Sender::new(0) })
    }
}

pub(crate) fn identity() -> Identity {
    Identity { name: "workshop".to_owned(), version: "1.2.3".to_owned() }
}

fn tool(name: &str) -> OfferedTool {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let Value::Object(input_schema) = schema else { unreachable!("an object") };
    OfferedTool {
        name: name.to_owned(),
        title: Some(name.to_uppercase()),
        description: format!("does {name}"),
        input_schema,
        output_schema: None,
        read_only: name == "echo",
        open_world: false,
    }
}

impl Catalog for Workshop {
    fn tools(&self, _client: &Client) -> Vec<OfferedTool> {
        let changes = *self.tools.borrow();
        let fixed = ["echo", "wait", "tell", "ask", "ask_elsewhere", "ask_badly", "fail", "refuse", "all", "large"];
        fixed.iter().map(|name| tool(name)).chain((0..changes).map(|number| tool(&format!("new-{number}")))).collect()
    }

    fn call<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, context: CallContext) -> Calling<'a> {
        Box::pin(async move {
            let schema = json!({
                "type": "object",
                "properties": { "name": { "type": "string" }, "size": { "type": "integer", "default": 3 } },
                "required": ["name"]
            });
            let said = |answer: Result<Elicited, ElicitError>| {
                Called::text(match answer {
                    Ok(Elicited::Accept(value)) => format!("accepted {value}"),
                    Ok(Elicited::Decline) => "declined".to_owned(),
                    Ok(Elicited::Cancel) => "cancelled".to_owned(),
                    Err(error) => error.to_string(),
                })
            };
            let called = match name {
                "echo" => {
                    let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
                    Called { structured: Some(Value::Object(arguments)), ..Called::text(text) }
                }
                "wait" => {
                    self.begun.fetch_add(1, Ordering::SeqCst);
                    context.cancelled().cancelled().await;
                    self.cancelled.fetch_add(1, Ordering::SeqCst);
                    return Err(CatalogError::Unavailable("cancelled".to_owned()));
                }
                "tell" => {
                    for done in [1.0, 2.0, 2.0, 1.5, 3.0] {
                        context.progress(done, Some(3.0), Some(format!("step {done}")));
                    }
                    context.log(LogLevel::Debug, "a detail");
                    context.log(LogLevel::Warning, "a warning");
                    Called::text("told")
                }
                "ask" => {
                    let answer = context.elicit("Who are you?", schema).await;
                    if context.cancelled().is_cancelled() {
                        self.cancelled.fetch_add(1, Ordering::SeqCst);
                    }
                    said(answer)
                }
                "ask_elsewhere" => {
                    let asking = tokio::spawn(async move { context.elicit("From a task?", schema).await });
                    said(asking.await.expect("no panic"))
                }
                "ask_badly" => said(context.elicit("?", json!({ "type": "array" })).await),
                "fail" => Called::failed("it did not work"),
                "refuse" => return Err(CatalogError::InvalidArguments("`text` is missing".to_owned())),
                "all" => Called {
                    content: vec![
                        Content::Text("text".to_owned()),
                        Content::Image { mime_type: "image/png".to_owned(), data: "AAEC".to_owned() },
                        Content::Audio { mime_type: "audio/wav".to_owned(), data: "AAEC".to_owned() },
                        Content::Document {
                            uri: "note://1".to_owned(),
                            mime_type: "text/plain".to_owned(),
                            text: "inside".to_owned(),
                        },
                    ],
                    ..Called::text("")
                },
                "large" => Called::text("x".repeat(9 << 20)),
                other => Called::text(format!("{other} was called")),
            };
            Ok(called.into())
        })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.tools.subscribe())
    }
}
