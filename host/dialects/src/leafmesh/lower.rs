//! From a checked mesh to a graph: an agent is a node, what it calls are its edges.
//!
//! All agents share one state, in which only what they gave is kept by name. What an agent is called with its branch brings along.

use std::collections::{BTreeSet, HashMap, HashSet};

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, Arrived, CapOrigin, Composed, ComputeAction, Edge, Ends, Expression, FailedNodes, FailureRecord, Graph,
    Join, JoinWhen, Next, Node, NodeIds, OnFailure, Scheduling, Sharing, Unmet, Update, VisitCap, Way, WayCase,
};
use hotcell_graph::{Key, Object, Reducer, Value};

use super::expressions::{CALLER, FROM_AGENT, UPSTREAM, composed, entry, key, last, list, object, or_else, session};
use super::lower_agent::Shaper;
use super::schema::{Agent, AgentType, Communication, Condition, Knowledge, Mesh, World};
use super::state::{
    BROUGHT, CALL, CALLED, CALLED_AGAIN, CALLED_WITH, CALLS_BEFORE, CAME, DATA, EARLIER_FEED, ENTRY_NOUN, ENTRY_POINT,
    ERRORS, FAN_IN, FEED, FROM, HISTORY, LEFT_OUT, OUTPUT, OUTPUTS, SERVED, SESSION_ID, SPENT_BEFORE, START, post_node,
};
use super::wait::Wait;
use super::{agent_state, fitting, functions, learning, lower_agent, lower_feed, lower_knowledge};
use crate::surroundings::Surroundings;

/// The node that leads to an agent that is called again, which counts like any other call of one.
const AGAIN: &str = "(again)";
/// What somebody had been given who is asked.
const BEFORE: &str = "before";
/// The entry point that was taken.
const DOOR: &str = "(door)";
/// What the caller wrote in place of data.
const TEXT: &str = "(text)";
/// The name under which updates see an answer.
const ANSWER: &str = "answer";
/// What the copies of an agent are given.
const GIVEN: &str = "given";
/// How many agents work at once.
const CONCURRENCY: usize = 256;

/// The graph of a mesh. `later` is what hotcell does not run yet.
pub(super) fn mesh(mesh: &Mesh, later: &[String], span: &Span, surroundings: &dyn Surroundings) -> Option<Graph> {
    let answers = Answers::of(mesh, surroundings);
    let mut names: Vec<String> = [START, AGAIN].map(str::to_owned).into();
    names.extend(mesh.agents.iter().map(|agent| agent.name.to_string()));
    names.extend(mesh.agents.iter().filter(|agent| answers.hears(agent)).map(|agent| ear(&agent.name)));
    names.extend(mesh.agents.iter().flat_map(copies));
    if lower_feed::is_posted(mesh) {
        names.extend(mesh.agents.iter().map(|agent| post_node(&agent.name)));
    }
    let ids = NodeIds::new(names.iter().map(String::as_str));
    let mut nodes = vec![start(mesh, later, span, &ids), again(mesh, span, &ids)];
    for agent in &mesh.agents {
        nodes.push(node(agent, (mesh, &answers), &ids, surroundings));
    }
    for agent in mesh.agents.iter().filter(|agent| answers.hears(agent)) {
        nodes.push(hearing(agent, mesh, &ids));
    }
    for agent in &mesh.agents {
        for (place, copy) in copies(agent).iter().enumerate() {
            let instance = [("id", place as i64 + 1), ("of", i64::from(agent.instances))];
            let instance = object(instance.map(|(name, number)| (name, Expression::Value(Value::from(number)))));
            let given = entry(composed(Composed::Last(key(BROUGHT))), GIVEN);
            let given = composed(Composed::Overlaid(vec![given, object([("_instance", instance)])]));
            let copy = working(agent, copy, given, (mesh, &answers), &ids, surroundings);
            nodes.push(Node { implied_by: Some(agent.name.clone()), ..copy });
        }
    }
    nodes.extend(mesh.agents.iter().filter_map(|agent| lower_feed::post(agent, mesh, &ids)));
    let mut graph = Graph::new(mesh.name.as_str(), nodes, START)?;
    graph.input_key = Some(TEXT.into());
    let told =
        [ENTRY_POINT, DATA, SESSION_ID, CALL, CALLS_BEFORE, HISTORY, EARLIER_FEED, SPENT_BEFORE, SERVED, LEFT_OUT];
    graph.open_state = told.map(Key::from).into();
    graph.initial_state =
        vec![(OUTPUTS.into(), Object::default().into()), (OUTPUT.into(), Value::Null), (FEED.into(), list([]))];
    graph.kept = Some(Vec::new());
    graph.reducers.insert(OUTPUTS.into(), Reducer::Merge);
    graph.reducers.insert(ERRORS.into(), Reducer::Merge);
    graph.reducers.insert(FEED.into(), Reducer::Append);
    graph.failure_record = FailureRecord::ByNode(ERRORS.into());
    graph.limits.concurrency = CONCURRENCY;
    graph.limits.hops =
        Some(VisitCap { visits: mesh.max_chain_events, origin: CapOrigin::Setting("mesh.max_chain_events") });
    graph.limits.hops_before = Some(CALLS_BEFORE.into());
    let result = [
        (SESSION_ID, session()),
        ("status", Expression::Value("completed".into())),
        (OUTPUT, key(OUTPUT)),
        (OUTPUTS, key(OUTPUTS)),
    ];
    graph.scheduling = Scheduling {
        ends: Ends::WhenQuiet { output: Box::new(object(result)) },
        sharing: Sharing::Shared,
        failed_nodes: FailedNodes::FailTheRun,
        brought: Some(BROUGHT.into()),
    };
    Some(graph)
}

/// Where the run begins: the entry point is chosen, and its agent called with the data; or an agent is called at once.
fn start(mesh: &Mesh, later: &[String], span: &Span, ids: &NodeIds) -> Node {
    let mut routes: Vec<_> = mesh
        .entry_points
        .iter()
        .filter_map(|entry| Some((door(BY_NAME, &entry.name), ids.get(&entry.target)?)))
        .collect();
    let doors =
        mesh.agents.iter().flat_map(|agent| [(BY_CALL, &agent.name, &*agent.name), (BY_AGAIN, &agent.name, AGAIN)]);
    routes.extend(doors.filter_map(|(kind, agent, node)| Some((door(kind, agent), ids.get(node)?))));
    let text = composed(Composed::ObjectOf(key(TEXT), "message".into()));
    let data =
        composed(Composed::Overlaid(vec![or_else(text, Object::default()), or_else(key(DATA), Object::default())]));
    let ways: Result<Vec<WayCase>, String> = mesh.entry_points.iter().map(|entry| fitting::way(entry, mesh)).collect();
    let action = match (later, ways) {
        ([], Ok(ways)) => {
            let way = Way { noun: ENTRY_NOUN, chosen: key(ENTRY_POINT), object: data.clone(), ways };
            let door = Composed::Either {
                condition: Expression::Has(CALL.into()),
                then: Expression::Joined(vec![
                    composed(Composed::Either {
                        condition: Expression::Is(
                            Box::new(or_else(entry(key(CALL), CALLED_AGAIN), false)),
                            true.into(),
                        ),
                        then: Expression::Value(BY_AGAIN.into()),
                        otherwise: Expression::Value(BY_CALL.into()),
                    }),
                    called_agent(mesh),
                ]),
                otherwise: Expression::Joined(vec![
                    Expression::Value(BY_NAME.into()),
                    composed(Composed::Way(Box::new(way))),
                ]),
            };
            Action::Compute(ComputeAction { value: composed(door), failure_kind: None, bind: ANSWER })
        }
        ([], Err(problem)) => Action::Fail(problem),
        (later, _) => Action::Fail(format!("hotcell does not run yet what this mesh has: {}", later.join(", "))),
    };
    let next = match routes.first() {
        Some((_, first)) => Next::ByValue { value: key(DOOR), otherwise: *first, routes },
        None => Next::Open(Vec::new()),
    };
    let brought = Composed::Either {
        condition: Expression::Has(CALL.into()),
        then: called(),
        otherwise: object([(OUTPUT, data)]),
    };
    Node {
        implied_by: Some(mesh.name.as_str().into()),
        on_failure: OnFailure::Fail,
        updates: vec![
            Update { key: DOOR.into(), value: key(ANSWER) },
            Update { key: BROUGHT.into(), value: composed(brought) },
        ],
        ..Node::new(START, "entry", action, next, span)
    }
}

/// Leads to the agent that is called again, with what it is brought.
fn again(mesh: &Mesh, span: &Span, ids: &NodeIds) -> Node {
    let route = |agent: &Agent| Some((door(BY_AGAIN, &agent.name), ids.get(&agent.name)?));
    let routes: Vec<_> = mesh.agents.iter().filter_map(route).collect();
    let next = match routes.first() {
        Some((_, first)) => Next::ByValue { value: key(DOOR), otherwise: *first, routes },
        None => Next::Open(Vec::new()),
    };
    Node {
        implied_by: Some(mesh.name.as_str().into()),
        updates: vec![Update { key: BROUGHT.into(), value: last() }],
        ..Node::new(AGAIN, "again", Action::Pass, next, span)
    }
}

/// Before the name of an entry point, and before those of an agent that is called at once, or again: none is mistaken for another.
const BY_NAME: &str = "entry ";
const BY_CALL: &str = "call ";
const BY_AGAIN: &str = "again ";

fn door(kind: &str, name: &str) -> String {
    format!("{kind}{name}")
}

/// The agent that is called at once.
fn called_agent(mesh: &Mesh) -> Expression {
    let ways = mesh.agents.iter().map(|agent| WayCase { name: agent.name.clone(), condition: None, fit: None });
    let way = Way {
        noun: "agent",
        chosen: or_else(entry(key(CALL), CALLED), ""),
        object: or_else(entry(key(CALL), CALLED_WITH), Object::default()),
        ways: ways.collect(),
    };
    composed(Composed::Way(Box::new(way)))
}

/// What an agent is brought that is called at once: what it is given, as the agent that is named would have given it. What others
/// had given, of an agent that is called again, is handed on.
fn called() -> Expression {
    let given = || or_else(entry(key(CALL), CALLED_WITH), Object::default());
    let own = [FROM_AGENT, SESSION_ID, UPSTREAM].map(Key::from);
    let before = Expression::Else(Box::new(entry(given(), FROM_AGENT)), Box::new(Expression::Value("".into())));
    let from = Expression::Else(Box::new(entry(key(CALL), FROM_AGENT)), Box::new(before));
    object([
        (OUTPUT, composed(Composed::Without(given(), own.into()))),
        (FROM, from),
        (CAME, or_else(entry(given(), UPSTREAM), Object::default())),
    ])
}

/// The copies of an agent each of which leads on, by their names.
fn copies(agent: &Agent) -> Vec<String> {
    let count = if agent.hands_on_each { agent.instances } else { 0 };
    (1..=count).map(|number| format!("{}#{number}", agent.name)).collect()
}

/// Who called an agent.
fn from() -> Expression {
    or_else(entry(last(), FROM), "")
}

/// What others gave that an agent is brought, by agent; behind a person also what the person was given.
fn came() -> Expression {
    let before = composed(Composed::Gathered(key(BROUGHT), BEFORE.into()));
    let by_agent = composed(Composed::Keyed { list: key(BROUGHT), key: FROM.into(), value: OUTPUT.into() });
    let came = composed(Composed::Overlaid(vec![before, by_agent]));
    Expression::Else(Box::new(entry(last(), CAME)), Box::new(came))
}

fn node(agent: &Agent, (mesh, answers): (&Mesh, &Answers<'_>), ids: &NodeIds, surroundings: &dyn Surroundings) -> Node {
    let join = agent.wait.as_ref().and_then(|wait| {
        let condition = arrived(&wait.expression, ids)?;
        Some(Join::When(JoinWhen { condition, deadline: Some(wait.timeout), unmet: Unmet::FailAs(FAN_IN) }))
    });
    let unavailable = match agent.knowledge {
        Some(Knowledge::Unavailable) => lower_knowledge::unavailable(),
        Some(Knowledge::Base(_)) | None => object([]),
    };
    let given = composed(Composed::Overlaid(vec![
        entry(last(), OUTPUT),
        object([(FROM_AGENT, from()), (SESSION_ID, session()), (UPSTREAM, came())]),
        unavailable,
    ]));
    let node = match copies(agent) {
        none if none.is_empty() => working(agent, &agent.name, given, (mesh, answers), ids, surroundings),
        copies => {
            let all = copies.iter().filter_map(|copy| ids.get(copy)).collect();
            Node {
                updates: vec![Update { key: BROUGHT.into(), value: object([(FROM, from()), (GIVEN, given)]) }],
                on_failure: OnFailure::EndBranch,
                ..Node::new(&agent.name, agent.body.agent_type().word(), Action::Pass, Next::To(all), &agent.span)
            }
        }
    };
    Node { description: agent.description.clone(), join: join.unwrap_or(Join::Each), ..node }
}

/// The node at which an agent, or one of its copies, works with what it is given.
fn working(
    agent: &Agent,
    id: &str,
    given: Expression,
    (mesh, answers): (&Mesh, &Answers<'_>),
    ids: &NodeIds,
    surroundings: &dyn Surroundings,
) -> Node {
    let mut edges = edges(agent, mesh, ids);
    for caller in answers.callers(agent) {
        let is_caller = Expression::Is(Box::new(entry(key(BROUGHT), CALLER)), Value::Text(caller.name.clone()));
        let target = match caller.body.agent_type() {
            AgentType::Human => ids.get(&caller.name),
            _ => ids.get(&ear(&caller.name)),
        };
        edges.extend(target.map(|target| Edge { condition: Some(is_caller), target }));
    }
    if lower_feed::is_posted(mesh) {
        edges.extend(ids.get(&post_node(&agent.name)).map(|target| Edge { condition: None, target }));
    }
    let shapers = answers.shapers.get(&*agent.name).map_or(&[][..], Vec::as_slice);
    let output = || entry(key(ANSWER), agent_state::OUTPUT);
    let mut brought =
        vec![(FROM, Expression::Value(Value::Text(agent.name.clone()))), (OUTPUT, output()), (CALLER, from())];
    if agent.body.agent_type() == AgentType::Human {
        // What a person says has nothing of what it is about.
        brought.push((BEFORE, came()));
    }
    Node {
        on_failure: OnFailure::EndBranch,
        updates: vec![
            Update { key: BROUGHT.into(), value: object(brought) },
            Update { key: OUTPUTS.into(), value: object([(&*agent.name, output())]) },
            Update { key: OUTPUT.into(), value: output() },
        ],
        ..Node::new(
            id,
            agent.body.agent_type().word(),
            lower_agent::action(agent, shapers, given, ANSWER, World::of(mesh, surroundings)),
            Next::Open(edges),
            &agent.span,
        )
    }
}

/// Who is answered by whom, and what shapes that which one gives for another, beside who calls whom.
struct Answers<'m> {
    /// By agent, those that it answers
    callers: HashMap<&'m str, Vec<&'m Agent>>,
    /// Those to which what others give comes back without running them
    hearing: HashSet<&'m str>,
    /// By agent, what shapes what its callers give it
    shapers: HashMap<&'m str, Vec<Shaper>>,
}

impl<'m> Answers<'m> {
    /// Looks at each edge once: large meshes have thousands.
    fn of(mesh: &'m Mesh, surroundings: &dyn Surroundings) -> Self {
        let agents: HashMap<&str, &Agent> = mesh.agents.iter().map(|agent| (&*agent.name, agent)).collect();
        let mut answers = Answers { callers: HashMap::new(), hearing: HashSet::new(), shapers: HashMap::new() };
        for caller in &mesh.agents {
            let Some(module) = functions::module(&caller.name, &mesh.code, surroundings) else { continue };
            let targets: BTreeSet<&'m str> = caller.edges.iter().map(|edge| &*edge.target.value).collect();
            for target in targets {
                let shaper = functions::shaper(&module, &caller.name, target, surroundings);
                let shaper = shaper.map(|function| Shaper { agent: caller.name.to_string(), function });
                answers.shapers.entry(target).or_default().extend(shaper);
            }
        }
        for caller in mesh.agents.iter().filter(|caller| caller.communication == Communication::Dual) {
            for edge in &caller.edges {
                let callee = agents.get(&*edge.target.value).copied();
                let answers_it = |callee: &&Agent| callee.communication_toward(&caller.name) == Communication::Dual;
                let Some(callee) = callee.filter(answers_it) else { continue };
                let callers = answers.callers.entry(&callee.name).or_default();
                // Those of one caller come one after the other.
                if callers.last().is_none_or(|last| last.name != caller.name) {
                    callers.push(caller);
                }
                if caller.body.agent_type() != AgentType::Human {
                    answers.hearing.insert(&caller.name);
                }
            }
        }
        answers
    }

    /// The agents that an agent answers.
    fn callers(&self, agent: &Agent) -> &[&'m Agent] {
        self.callers.get(&*agent.name).map_or(&[], Vec::as_slice)
    }

    /// Whether what others give comes back to an agent without running it.
    fn hears(&self, agent: &Agent) -> bool {
        self.hearing.contains(&*agent.name)
    }
}

/// The node at which what others give comes back to an agent.
fn ear(agent: &str) -> String {
    format!("({agent} hears)")
}

/// Looks at the edges of an agent again, with what an agent gave that it had called.
fn hearing(agent: &Agent, mesh: &Mesh, ids: &NodeIds) -> Node {
    let heard = composed(Composed::Overlaid(vec![entry(last(), OUTPUT), object([(FROM_AGENT, entry(last(), FROM))])]));
    let name = Expression::Value(Value::Text(agent.name.clone()));
    Node {
        implied_by: Some(agent.name.clone()),
        updates: vec![Update { key: BROUGHT.into(), value: object([(FROM, name), (OUTPUT, heard)]) }],
        ..Node::new(&ear(&agent.name), "callback", Action::Pass, Next::Open(edges(agent, mesh, ids)), &agent.span)
    }
}

fn edges(agent: &Agent, mesh: &Mesh, ids: &NodeIds) -> Vec<Edge> {
    let meets = |condition: &Condition| Expression::Meets {
        object: Box::new(entry(key(BROUGHT), OUTPUT)),
        condition: condition.condition.clone(),
    };
    let learnable: Vec<&str> = learning::learnable(agent, mesh).collect();
    let edges = agent.edges.iter().filter_map(|edge| {
        let condition = match &edge.condition {
            Some(condition) => Some(meets(condition)),
            None if edge.has_condition => None,
            None => learnable.contains(&&*edge.target.value).then(|| learning::condition(agent, &edge.target)),
        };
        Some(Edge { condition, target: ids.get(&edge.target)? })
    });
    edges.collect()
}

/// What has to have arrived.
fn arrived(wait: &Wait, ids: &NodeIds) -> Option<Arrived> {
    let all = |parts: &[Wait]| parts.iter().map(|part| arrived(part, ids)).collect::<Option<Vec<_>>>();
    Some(match wait {
        Wait::Agent(name, _) => Arrived::From(ids.get(name)?),
        Wait::Optional(inner) => Arrived::Optional(Box::new(arrived(inner, ids)?)),
        Wait::All(parts) => Arrived::All(all(parts)?),
        Wait::Any(parts) => Arrived::Any(all(parts)?),
    })
}
