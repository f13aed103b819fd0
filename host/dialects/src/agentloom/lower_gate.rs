//! What an approval gate becomes: a question, and a request that tells of it.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::ir::{
    Action, AskAction, AskDeadline, Asked, Expiry, Expression, Jitter, Notice, Retry, RetryOn, Tool, ToolKind, UrlPart,
    WebAnswer, WebRequest,
};
use hotcell_graph::{Key, Object, Value};

use super::lowering::{ANSWER, Context};
use super::schema::{GateDeadline, Notify, Step};

/// What a gate gives.
const APPROVED: &str = "approved";
const REJECTED: &str = "rejected";
/// The input of the request with its body.
const BODY: &str = "body";
/// Names that a body sees beside the state.
const RUN: &str = "run_id";
const STEP: &str = "step_id";
const WORKFLOW: &str = "workflow_name";
/// The type of a body that is a text already.
const JSON: &str = "application/json";
const JSON_TEXT: &str = "application/json; charset=utf-8";
/// How often a request is sent.
const ATTEMPTS: u32 = 3;

pub(super) fn gate(
    step: &Step,
    deadline: Option<GateDeadline>,
    notify: Option<&Notify>,
    context: &Context<'_>,
) -> Action {
    let deadline = deadline.map(|deadline| {
        let decision = if deadline.approves { APPROVED } else { REJECTED };
        let then = Expiry::Answer(Expression::Value(decision.into()));
        Box::new(AskDeadline { after: deadline.after, then })
    });
    let question = format!("The workflow `{}` waits for approval of `{}`", &*context.workflow.name, &*step.id);
    let notice = notify.map(|notify| notice(step, notify, context));
    Action::Ask(AskAction {
        options: vec![APPROVED.to_owned(), REJECTED.to_owned()],
        only_options: true,
        trim: true,
        deadline,
        asked: Box::new(Asked { notice, ..Asked::default() }),
        ..AskAction::new(Expression::Value(question.into()), ANSWER)
    })
}

/// The request that tells of a gate. It is sent before the gate waits, a few times if the server is in trouble.
fn notice(step: &Step, notify: &Notify, context: &Context<'_>) -> Notice {
    let key = |name: &str| (Key::from(name), Expression::Key(name.into()));
    let body = match &notify.body {
        Some(prompt) => Expression::Braces(prompt.template.clone()),
        None => Expression::Object(vec![
            key(RUN),
            key(STEP),
            key(WORKFLOW),
            ("status".into(), Expression::Value("awaiting_approval".into())),
        ]),
    };
    let retry = Retry {
        attempts: ATTEMPTS,
        on: RetryOn::Retryable,
        pause: Duration::from_secs(2),
        growth: 2.0,
        longest_pause: Duration::from_secs(60),
        jitter: Jitter::None,
        time: Some(notify.timeout),
    };
    let request = WebRequest {
        url: vec![UrlPart::Literal(notify.url.to_string())],
        method: Expression::Value("POST".into()),
        query: Expression::Entries(Vec::new()),
        headers: Expression::Value(Value::Object(headers(notify))),
        body: Expression::Key(BODY.into()),
        answer: WebAnswer::Text,
        allowed: None,
        retry: Some(retry),
    };
    let tool = Tool {
        name: "notify".into(),
        spoken: "notify".to_owned(),
        description: String::new(),
        inputs: Vec::new(),
        kind: ToolKind::Web(Box::new(request)),
        confirm: false,
    };
    let text = |text: &Arc<str>| Value::Text(Arc::clone(text));
    Notice {
        tool: Arc::new(tool),
        inputs: Expression::Object(vec![(BODY.into(), body)]),
        names: vec![(STEP.into(), text(&step.id.value)), (WORKFLOW.into(), text(&context.workflow.name.value))],
        run: RUN.into(),
    }
}

/// The headers of a request. A body that is a text is sent as it is where its type says more than that it is JSON.
fn headers(notify: &Notify) -> Object {
    let is_type = |name: &str| name.eq_ignore_ascii_case("content-type");
    let mut headers = Object::default();
    for (name, value) in &notify.headers {
        let value = if is_type(name) && **value == *JSON { JSON_TEXT.into() } else { Value::Text(Arc::clone(value)) };
        headers.insert(name.clone(), value);
    }
    if !notify.headers.iter().any(|(name, _)| is_type(name)) {
        headers.insert("content-type", JSON_TEXT.into());
    }
    headers
}
