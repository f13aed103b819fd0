//! What an agent does when it is called, as a graph of its own: it works, and what it gives is held against what it declares.

use std::sync::Arc;

use hotcell_graph::ir::{
    Action, CallAction, CallTarget, Composed, ComputeAction, Ends, Expression, Fit, Gives, Graph, Next, Node, NodeIds,
    OnFailure, Sharing, Update,
};
use hotcell_graph::{Key, Object, Reducer, Value};

use super::agent_state::{ANSWER, INPUT, MEMORY, OUTPUT, RAW, RERUN};
use super::expressions::{FROM_AGENT, UPSTREAM, composed, entry, key, list, object, or_else};
use super::functions;
use super::lower_feed;
use super::lower_knowledge::{self, LOOK_UP, UNKNOWN};
use super::lower_work;
use super::schema::{Agent, World};
use super::shapes;
use super::state::{CONTRACT, HISTORY, SERVED};
use super::steps::Work;

/// How often it has worked.
const ATTEMPTS: &str = "(attempts)";
/// What is wrong with what it gave.
const MISFITS: &str = "(misfits)";
/// What its copies gave.
const COPIES: &str = "(copies)";
const WORK: &str = "work";
const CHECK: &str = "output";
const AGAIN: &str = "again";
const GIVE_UP: &str = "yields";
const MERGE: &str = "merge";
const SHAPE: &str = "compose";
/// What would be wrong if two steps had one name.
const TWICE: &str = "the agent has two steps of one name";
/// What shapes that which an agent gives for another one.
pub(super) struct Shaper {
    /// The agent that gives it
    pub(super) agent: String,
    /// The function, as the host knows it
    pub(super) function: String,
}

impl Shaper {
    /// Puts what its function makes of what was given in place of that.
    fn node(&self, name: &str, target: &Agent, next: Next) -> Node {
        let own = || [FROM_AGENT, "session_id", UPSTREAM].map(Key::from).into();
        let context = object([
            ("session_id", entry(key(INPUT), "session_id")),
            (FROM_AGENT, entry(key(INPUT), FROM_AGENT)),
            ("to_agent", Expression::Value(Value::Text(target.name.clone()))),
        ]);
        let given = composed(Composed::Without(key(INPUT), own()));
        let call = functions::call(&self.function, vec![given, context], ANSWER);
        let shaped = composed(Composed::ObjectOf(key(ANSWER), "value".into()));
        let input = composed(Composed::Overlaid(vec![shaped, composed(Composed::Only(key(INPUT), own()))]));
        Node {
            updates: vec![Update { key: INPUT.into(), value: input }],
            ..Node::new(name, SHAPE, Action::Tool(Box::new(call)), next, &target.span)
        }
    }
}

/// The action of an agent that is called with `given`. Its answer has what it gave as [`OUTPUT`].
pub(super) fn action(
    agent: &Agent,
    shapers: &[Shaper],
    given: Expression,
    bind: &'static str,
    world: World<'_>,
) -> Action {
    let graph = match &agent.closed {
        Some(reason) => Err(reason.clone()),
        None => graph(agent, shapers, world),
    };
    let graph = graph.and_then(|graph| match agent.instances {
        1 => Ok(graph),
        _ if agent.hands_on_each => Ok(graph),
        _ => copies(agent, &Arc::new(graph)).ok_or_else(|| TWICE.to_owned()),
    });
    let graph = graph.map(|mut graph| {
        graph.at_once = agent.at_once;
        graph
    });
    match graph {
        Ok(graph) => {
            let mut inputs = vec![(HISTORY.into(), or_else(key(HISTORY), list([])))];
            if let Some(memory) = &agent.memory {
                inputs.push((MEMORY.into(), lower_feed::remembered(agent, memory, given.clone())));
            }
            if agent.body.connector().is_some() {
                inputs.push((SERVED.into(), or_else(key(SERVED), Object::default())));
            }
            inputs.push((INPUT.into(), given));
            // One that gives nothing ends its branch.
            call(graph, inputs, Gives::Needed(vec![OUTPUT.into()]), bind)
        }
        Err(reason) => Action::Fail(reason),
    }
}

/// What the graph of an agent, or a part of it, hands on to a graph within it.
fn handed_on(given: Expression) -> Vec<(Key, Expression)> {
    let by_itself = |name: &str, otherwise: Value| (Key::from(name), or_else(key(name), otherwise));
    vec![
        (INPUT.into(), given),
        by_itself(HISTORY, list([])),
        by_itself(MEMORY, list([])),
        by_itself(SERVED, Object::default().into()),
    ]
}

fn call(graph: impl Into<Arc<Graph>>, inputs: Vec<(Key, Expression)>, gives: Gives, bind: &'static str) -> Action {
    let target = CallTarget::Graph { graph: graph.into(), inputs, conversation: None, inherits: false, gives };
    Action::Call(Box::new(CallAction { target, contract: None, failure_prefix: None, bind }))
}

/// An agent that works once, or as often as its contract says.
fn graph(agent: &Agent, shapers: &[Shaper], world: World<'_>) -> Result<Graph, String> {
    let work = lower_work::work(agent, world)?;
    let shapes: Vec<String> = shapers.iter().map(|shaper| format!("compose of {}", shaper.agent)).collect();
    let fit = match agent.is_strict && !agent.yields.is_empty() {
        true => Some(Fit::new(shapes::of_fields(&agent.yields)).map_err(|problem| problem.to_string())?),
        false => None,
    };
    let mut names: Vec<&str> = work.iter().map(|step| step.name).collect();
    names.push(CHECK);
    if fit.is_some() {
        names.extend([AGAIN, GIVE_UP]);
    }
    let knowledge = agent.told_of();
    if knowledge.is_some() {
        names.extend([LOOK_UP, UNKNOWN]);
    }
    if !shapes.is_empty() {
        names.push(SHAPE);
        names.extend(shapes.iter().map(String::as_str));
    }
    let ids = NodeIds::new(names.iter().copied());
    let to = |name: &str| Next::To(ids.get(name).into_iter().collect());
    let mut nodes = Vec::new();
    let first = work.first().map_or(CHECK, |step| step.name);
    for Work { name, action, updates, next } in work {
        let next = next.map_or_else(|| to(CHECK), |next| next.into_next(&|name| ids.get(name)));
        nodes.push(Node { updates, ..Node::new(name, WORK, action, next, &agent.span) });
    }
    match fit {
        None => {
            // What is missing has the default of its type.
            let defaults: Object = agent.yields.iter().map(|(name, field)| (name.clone(), field.default())).collect();
            let filled = Composed::Overlaid(vec![Expression::Value(defaults.into()), key(RAW)]);
            nodes.push(Node {
                updates: vec![Update { key: OUTPUT.into(), value: composed(filled) }],
                ..Node::new(CHECK, CHECK, Action::Pass, Next::Open(Vec::new()), &agent.span)
            });
        }
        Some(fit) => nodes.extend(strict(agent, &fit, first, &to)),
    }
    nodes.extend(knowledge.into_iter().flat_map(|base| lower_knowledge::nodes(base, agent, first, &ids)));
    // What is given to the agent is shaped once, and looked up once, however often it works.
    let opening = if knowledge.is_some() { LOOK_UP } else { first };
    let mut begin = opening;
    if let Some(work) = ids.get(opening).filter(|_| !shapes.is_empty()) {
        begin = SHAPE;
        let way = |(shaper, name): (&Shaper, &String)| Some((shaper.agent.clone(), ids.get(name)?));
        let next = Next::ByValue {
            value: or_else(entry(key(INPUT), FROM_AGENT), ""),
            otherwise: work,
            routes: shapers.iter().zip(&shapes).filter_map(way).collect(),
        };
        nodes.push(Node::new(SHAPE, SHAPE, Action::Pass, next, &agent.span));
        let steps = shapers.iter().zip(&shapes);
        nodes.extend(steps.map(|(shaper, name)| shaper.node(name, agent, to(opening))));
    }
    let mut graph = Graph::new(&*agent.name, nodes, begin).ok_or(TWICE)?;
    graph.initial_state = vec![(ATTEMPTS.into(), Value::from(0)), (MISFITS.into(), list([]))];
    graph.reducers.insert(ATTEMPTS.into(), Reducer::Sum);
    graph.scheduling.ends = Ends::WhenQuiet { output: Box::new(Expression::Value("".into())) };
    Ok(graph)
}

/// Holds what an agent gave against what it declares, and has it work again with what was wrong.
fn strict(agent: &Agent, fit: &Fit, first: &str, to: &dyn Fn(&str) -> Next) -> [Node; 3] {
    let most = agent.retries.saturating_add(1);
    let misfits = composed(Composed::Misfits(key(RAW), fit.clone()));
    let next = Next::When {
        condition: Expression::Is(Box::new(key(MISFITS)), list([])),
        then: Box::new(Next::Open(Vec::new())),
        otherwise: Box::new(Next::When {
            condition: Expression::AtLeast(ATTEMPTS.into(), most),
            then: Box::new(to(GIVE_UP)),
            otherwise: Box::new(to(AGAIN)),
        }),
    };
    let check = Node {
        updates: vec![
            Update { key: ATTEMPTS.into(), value: Expression::Value(Value::from(1)) },
            Update { key: MISFITS.into(), value: key(ANSWER) },
            Update { key: OUTPUT.into(), value: key(RAW) },
        ],
        ..Node::new(
            CHECK,
            CHECK,
            Action::Compute(ComputeAction { value: misfits, failure_kind: None, bind: ANSWER }),
            next,
            &agent.span,
        )
    };
    let context = object([
        ("attempt", key(ATTEMPTS)),
        ("max_attempts", Expression::Value(Value::from(i64::from(agent.retries)))),
        ("previous_output", key(RAW)),
        ("validation_errors", key(MISFITS)),
        ("reason", Expression::Value("what was given does not fit `yields`".into())),
    ]);
    let input = Composed::Overlaid(vec![key(INPUT), object([(RERUN, context)])]);
    let again = Node {
        updates: vec![Update { key: INPUT.into(), value: composed(input) }],
        ..Node::new(AGAIN, AGAIN, Action::Pass, to(first), &agent.span)
    };
    let words = match agent.retries {
        0 => format!("{CONTRACT}: what it gave does not fit `yields`: "),
        retries => format!("{CONTRACT}: what it gave does not fit `yields`, after {retries} more attempts: "),
    };
    let fitting = composed(Composed::Fitting(key(RAW), fit.clone(), words));
    let give_up = Node::new(
        GIVE_UP,
        GIVE_UP,
        Action::Compute(ComputeAction { value: fitting, failure_kind: Some(CONTRACT), bind: ANSWER }),
        Next::Open(Vec::new()),
        &agent.span,
    );
    [check, again, give_up]
}

/// Several copies of an agent side by side, and one output of what they give. One that gives something is enough.
fn copies(agent: &Agent, graph: &Arc<Graph>) -> Option<Graph> {
    let slots: Vec<Key> = (1..=agent.instances).map(|number| Key::from(format!("(copy {number})"))).collect();
    let names = ["(begin)"].into_iter().chain(slots.iter().map(|slot| &**slot));
    let ids = NodeIds::new(names);
    let all = slots.iter().filter_map(|slot| ids.get(slot)).collect();
    let mut nodes = vec![Node::new("(begin)", "begin", Action::Pass, Next::To(all), &agent.span)];
    for (place, slot) in slots.iter().enumerate() {
        let number = Value::from(place as i64 + 1);
        let of = Value::from(i64::from(agent.instances));
        let instance = object([("id", Expression::Value(number)), ("of", Expression::Value(of))]);
        let given = composed(Composed::Overlaid(vec![key(INPUT), object([("_instance", instance)])]));
        nodes.push(Node {
            updates: vec![Update { key: slot.clone(), value: entry(key(ANSWER), OUTPUT) }],
            on_failure: OnFailure::EndBranch,
            ..Node::new(
                slot,
                "copy",
                call(graph.clone(), handed_on(given), Gives::Needed(vec![OUTPUT.into()]), ANSWER),
                Next::Open(Vec::new()),
                &agent.span,
            )
        });
    }
    let mut side_by_side = Graph::new(&*agent.name, nodes, "(begin)")?;
    side_by_side.initial_state = slots.iter().map(|slot| (slot.clone(), Value::Null)).collect();
    side_by_side.scheduling.ends = Ends::WhenQuiet { output: Box::new(Expression::Value("".into())) };
    side_by_side.scheduling.sharing = Sharing::Shared;
    side_by_side.limits.concurrency = agent.instances as usize;

    let given = Expression::List(slots.iter().map(|slot| entry(key(ANSWER), slot)).collect());
    let told = object([
        ("count", Expression::Value(Value::from(i64::from(agent.instances)))),
        ("results", composed(Composed::Present(key(COPIES)))),
        ("failed", composed(Composed::AbsentCount(key(COPIES)))),
    ]);
    let output = Composed::Overlaid(vec![composed(Composed::Merged(key(COPIES))), object([("_instances", told)])]);
    let ids = NodeIds::new([WORK, MERGE]);
    let nodes = vec![
        Node {
            updates: vec![Update { key: COPIES.into(), value: given }],
            ..Node::new(
                WORK,
                WORK,
                call(side_by_side, handed_on(key(INPUT)), Gives::Entries(slots), ANSWER),
                Next::To(ids.get(MERGE).into_iter().collect()),
                &agent.span,
            )
        },
        Node {
            updates: vec![Update { key: OUTPUT.into(), value: composed(output) }],
            ..Node::new(MERGE, MERGE, Action::Pass, Next::Open(Vec::new()), &agent.span)
        },
    ];
    let mut graph = Graph::new(&*agent.name, nodes, WORK)?;
    graph.scheduling.ends = Ends::WhenQuiet { output: Box::new(Expression::Value("".into())) };
    Some(graph)
}
