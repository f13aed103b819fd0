//! The manager: what agents give is posted in a few words, and agents that a post names are called. What was posted is what
//! agents remember.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, AgentLoop, CallAction, CallTarget, Composed, ComputeAction, Edge, Ends, Expression, Gives, Graph,
    ModelSettings, Next, Node, NodeIds, OnFailure, PromptPart, Recall, Retry, Update,
};

use super::agent_state::ANSWER;
use super::expressions::{CALLER, composed, entry, key, last, list, object, or_else, session};
use super::models;
use super::schema::{Agent, Memory, Mesh, Summarizer};
use super::state::{BROUGHT, EARLIER_FEED, FEED, OUTPUT, POST_AGENT, POST_SESSION, POST_TIME, post_node};

/// What is looked at: what an agent gave.
const LOOKED_AT: &str = "(looked at)";
/// What the model said of it, and the post that this is.
const SAID: &str = "(words)";
const POST: &str = "(post)";
/// The agents that a post names.
const NEXT_AGENTS: &str = "next_agents";
/// What a post has to be.
const TASK: &str = "You watch agents that work together. You are shown what one of them gave. Answer with a JSON object and \
nothing else: `summary` (what happened, in one sentence), `from_agent`, `to_agent`, `action_needed` (`none`, `review` or \
`escalate`), `priority` (`low`, `medium` or `high`), `reason`, `next_agents` (a list of names of agents, usually empty), \
`workflow_stage`, `trigger_event`, `work_log`.";

/// Who makes posts of what agents give, if the mesh has somebody for it.
fn summarizer(mesh: &Mesh) -> Option<&Summarizer> {
    mesh.manager.as_ref()?.summarizer.as_ref()
}

/// Whether what agents give is posted.
pub(super) fn is_posted(mesh: &Mesh) -> bool {
    summarizer(mesh).is_some()
}

/// The node at which what an agent gave is posted, if it is.
pub(super) fn post(agent: &Agent, mesh: &Mesh, ids: &NodeIds) -> Option<Node> {
    let summarizer = summarizer(mesh)?;
    let shown = object([
        ("agent", Expression::Value(Value::Text(agent.name.clone()))),
        ("called_by", or_else(entry(last(), CALLER), "")),
        ("output", entry(last(), OUTPUT)),
    ]);
    let target = CallTarget::Graph {
        graph: Arc::new(asking(agent, mesh, summarizer)?),
        inputs: vec![(LOOKED_AT.into(), shown)],
        conversation: None,
        inherits: false,
        // What cannot be posted is not posted, and nothing has failed.
        gives: Gives::Needed(vec![POST.into()]),
    };
    let call = CallAction { target, contract: None, failure_prefix: None, bind: ANSWER };
    let own = object([(POST_AGENT, Expression::Value(Value::Text(agent.name.clone()))), (POST_SESSION, session())]);
    let given = || entry(key(ANSWER), POST);
    let named = object([(NEXT_AGENTS, or_else(entry(given(), NEXT_AGENTS), list([])))]);
    Some(Node {
        implied_by: Some(agent.name.clone()),
        on_failure: OnFailure::EndBranch,
        updates: vec![
            Update { key: FEED.into(), value: composed(Composed::Overlaid(vec![given(), own])) },
            Update { key: BROUGHT.into(), value: composed(Composed::Overlaid(vec![last(), named])) },
        ],
        ..Node::new(
            &post_node(&agent.name),
            "post",
            Action::Call(Box::new(call)),
            Next::Open(called_beside(agent, mesh, summarizer, ids)),
            &agent.span,
        )
    })
}

/// The agents that a post may have called: those that it names, and that the agent does not call itself.
fn called_beside(agent: &Agent, mesh: &Mesh, summarizer: &Summarizer, ids: &NodeIds) -> Vec<Edge> {
    if agent.narration.is_none() || !summarizer.intervenes {
        return Vec::new();
    }
    let others = mesh.agents.iter().filter(|other| other.name != agent.name);
    let edge = |other: &Agent| {
        let name = Expression::Value(Value::Text(other.name.clone()));
        let is_named = composed(Composed::Contains(entry(key(BROUGHT), NEXT_AGENTS), name));
        let own = agent.edges.iter().filter(|edge| edge.target.value == other.name);
        let condition = own.fold(is_named, |otherwise, edge| {
            let is_called = match &edge.condition {
                None => Expression::Value(true.into()),
                Some(condition) => Expression::Meets {
                    object: Box::new(entry(key(BROUGHT), OUTPUT)),
                    condition: condition.condition.clone(),
                },
            };
            let then = Expression::Value(false.into());
            composed(Composed::Either { condition: is_called, then, otherwise })
        });
        Some(Edge { condition: Some(condition), target: ids.get(&other.name)? })
    };
    others.filter_map(edge).collect()
}

/// Asks the model once. Where it refuses, or says nothing that can be posted, there is no post.
fn asking(agent: &Agent, mesh: &Mesh, summarizer: &Summarizer) -> Option<Graph> {
    let system =
        |name: &str, text: String| PromptPart::text(name, Speaker::System, Expression::Value(Value::from(text)));
    let mut prompt = vec![system("the task", format!("{TASK}\n\nThe domain is `{}`.", summarizer.domain))];
    if let Some(criteria) = &summarizer.criteria {
        prompt.push(system("`manager.prompt`", format!("[EVALUATION CRITERIA]\n{criteria}")));
    }
    if let Some(rules) = &summarizer.rules {
        prompt.push(system("`coordination_rules`", format!("[COORDINATION RULES]\n{rules}")));
    }
    if let Some(narration) = &agent.narration {
        let names: Vec<&str> = mesh.agents.iter().map(|agent| &*agent.name).collect();
        let words = format!(
            "[NARRATION]\nWho else is to be called, in `next_agents`, of the agents `{}`:\n{narration}",
            names.join("`, `")
        );
        prompt.push(system("`narration`", words));
    }
    prompt.push(PromptPart::text("the output", Speaker::Human, Expression::TextOf(Box::new(key(LOOKED_AT)))));
    let settings = ModelSettings {
        model: Some(models::name(summarizer.model.trim())),
        temperature: Some(summarizer.temperature),
        max_tokens: Some(summarizer.max_tokens),
        server: models::server(summarizer.model.trim(), &mesh.providers),
        ..ModelSettings::default()
    };
    asked_once(post_node(&agent.name), settings, prompt, POST, &agent.span)
}

/// Asks a model once for a JSON object, which is kept under a key. Where it refuses, or says something else, nothing is.
pub(super) fn asked_once(
    name: String,
    settings: ModelSettings,
    prompt: Vec<PromptPart>,
    kept: &str,
    span: &Span,
) -> Option<Graph> {
    let retry = Retry { attempts: 1, ..Retry::default() };
    let agent_loop = AgentLoop { settings, retry, prompt, ..AgentLoop::default() };
    let target = CallTarget::Loop(Arc::new(agent_loop.into_graph()));
    let call = CallAction { target, contract: None, failure_prefix: None, bind: ANSWER };
    let ids = NodeIds::new(["ask", "read"]);
    let ask = Node {
        on_failure: OnFailure::EndBranch,
        updates: vec![Update { key: SAID.into(), value: key(ANSWER) }],
        ..Node::new("ask", "ask", Action::Call(Box::new(call)), Next::To(vec![ids.get("read")?]), span)
    };
    let read = Expression::JsonWithin(Box::new(key(SAID)));
    let read = Action::Compute(ComputeAction { value: read, failure_kind: None, bind: ANSWER });
    let read = Node {
        on_failure: OnFailure::EndBranch,
        updates: vec![Update { key: kept.into(), value: key(ANSWER) }],
        ..Node::new("read", "read", read, Next::Open(Vec::new()), span)
    };
    let mut graph = Graph::new(name, vec![ask, read], "ask")?;
    graph.scheduling.ends = Ends::WhenQuiet { output: Box::new(Expression::Value("".into())) };
    Some(graph)
}

/// The posts that an agent remembers for what it is given: those of the session, then those about it of others.
pub(super) fn remembered(agent: &Agent, memory: &Memory, given: Expression) -> Expression {
    let posts = || {
        let earlier = or_else(key(EARLIER_FEED), list([]));
        composed(Composed::Concat(vec![earlier, or_else(key(FEED), list([]))]))
    };
    let having = |list, name: &str, value, is| composed(Composed::Having { list, key: name.into(), value, is });
    let mut lists = vec![having(posts(), POST_SESSION, session(), true)];
    if let Some(most) = memory.of_others {
        let name = Expression::Value(Value::Text(agent.name.clone()));
        let others = having(having(posts(), POST_SESSION, session(), false), POST_AGENT, name, true);
        lists.push(composed(Composed::Newest(others, most)));
    }
    composed(Composed::Recalled(Box::new(Recall {
        lists,
        text: given,
        most: memory.most,
        recency: memory.recency,
        relevance: memory.relevance,
        decay_hours: memory.decay_hours,
        time: POST_TIME.into(),
    })))
}

/// What a model is told of what is remembered under this key: nothing where that is nothing.
pub(super) fn told(memory: &'static str) -> PromptPart {
    let posts = || or_else(key(memory), list([]));
    let words = Expression::Value("[MEMORY]\nWhat was posted before, what matters most first:\n".into());
    let message = object([
        ("type", Expression::Value(Speaker::System.word().into())),
        ("content", Expression::Joined(vec![words, Expression::TextOf(Box::new(posts()))])),
    ]);
    let said = Composed::Either {
        condition: Expression::Is(Box::new(posts()), list([])),
        then: Expression::Value(list([])),
        otherwise: Expression::List(vec![message]),
    };
    PromptPart::messages("`memory`", composed(said))
}
