//! The schedule by itself: graphs of nodes that do nothing, driven by completions in every order.

use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, Arrived, Ends, Expression, Graph, Join, JoinWhen, Next, Node, NodeIds, Scheduling, Sharing,
};
use hotcell_graph::{Reducer, State, Value};
use hotcell_journal::Write;

use super::{After, Route, Schedule, Start};

/// A graph of these nodes, the first of which is the start: an id, what it waits for, where it goes.
fn graph(nodes: &[(&str, Join, &[&str])]) -> Graph {
    let ids = NodeIds::new(nodes.iter().map(|(id, ..)| *id));
    let made = nodes.iter().map(|(id, join, next)| {
        let next = Next::To(next.iter().map(|id| ids.get(id).expect("a node")).collect());
        Node { join: join.clone(), ..Node::new(id, "test", Action::Pass, next, &Span::none()) }
    });
    let mut graph = Graph::new("test", made.collect(), nodes[0].0).expect("unique ids");
    let output = Box::new(Expression::Value(Value::from("quiet")));
    graph.scheduling =
        Scheduling { ends: Ends::WhenQuiet { output }, sharing: Sharing::Branches, ..Scheduling::default() };
    graph
}

fn from(graph: &Graph, id: &str) -> Arrived {
    Arrived::From(graph.find(id).expect("a node"))
}

fn maybe(graph: &Graph, id: &str) -> Arrived {
    Arrived::Optional(Box::new(from(graph, id)))
}

/// A graph with three nodes `a`, `b`, `c` side by side that lead to `join`, whose condition is this.
fn fan_in(condition: impl Fn(&Graph) -> Arrived, deadline: bool) -> Graph {
    let build = |join: Join| {
        graph(&[
            ("split", Join::All, &["a", "b", "c"]),
            ("a", Join::All, &["join"]),
            ("b", Join::All, &["join"]),
            ("c", Join::All, &["join"]),
            ("join", join, &[]),
        ])
    };
    let condition = condition(&build(Join::All));
    let deadline = deadline.then_some(std::time::Duration::from_secs(60));
    build(Join::When(JoinWhen { condition, deadline, unmet: hotcell_graph::ir::Unmet::Fail }))
}

/// A schedule that is driven by the names of nodes.
struct Driven {
    graph: Graph,
    schedule: Schedule,
    open: Vec<Start>,
    /// What was started, with what was missed
    log: Vec<String>,
    over: bool,
}

impl Driven {
    fn new(graph: Graph) -> Self {
        let schedule = Schedule::new(&graph, State::default());
        let mut driven = Driven { graph, schedule, open: Vec::new(), log: Vec::new(), over: false };
        driven.start();
        driven
    }

    fn start(&mut self) {
        for start in self.schedule.start_ready(&self.graph).expect("no error") {
            let missed: Vec<&str> = start.missed.iter().map(|node| &*self.graph.node(*node).id).collect();
            let id = &self.graph.node(start.node).id;
            self.log.push(if missed.is_empty() {
                id.to_string()
            } else {
                format!("{id} misses {}", missed.join(", "))
            });
            self.open.push(start);
        }
    }

    fn take(&mut self, id: &str) -> Start {
        let place = self.open.iter().position(|start| &*self.graph.node(start.node).id == id);
        self.open.remove(place.unwrap_or_else(|| panic!("`{id}` is not running: {:?}", self.log)))
    }

    fn leave(&mut self, id: &str, next: Vec<&str>, writes: Vec<Write>, failed: bool) {
        let start = self.take(id);
        let route = Route::To(next.iter().map(|id| self.graph.find(id).expect("a node")).collect());
        let mut state = start.state;
        writes.iter().for_each(|write| crate::branch::apply(&self.graph, &mut state, write).expect("writes"));
        let ended = self
            .schedule
            .complete(&self.graph, start.turn, writes, After::Own(state), &route, failed)
            .expect("no error");
        self.over |= ended.is_some();
        self.start();
    }

    /// A node completes and goes where it leads.
    fn done(&mut self, id: &str) -> &mut Self {
        let index = self.graph.find(id).expect("a node");
        let next: Vec<String> =
            self.graph.successors(index).iter().map(|next| self.graph.node(*next).id.to_string()).collect();
        self.leave(id, next.iter().map(String::as_str).collect(), Vec::new(), false);
        self
    }

    /// A node fails, and its branch ends.
    fn fails(&mut self, id: &str) -> &mut Self {
        self.leave(id, Vec::new(), Vec::new(), true);
        self
    }

    fn expires(&mut self, id: &str) -> &mut Self {
        self.schedule.expire(self.graph.find(id).expect("a node"));
        self.start();
        self
    }

    /// What was started since the split.
    fn started(&self) -> Vec<&str> {
        self.log.iter().skip(1).map(String::as_str).filter(|id| !["a", "b", "c"].contains(id)).collect()
    }
}

/// Calls `test` with every order of these.
fn orders(of: &[&str], test: &mut dyn FnMut(&[&str])) {
    fn permute<'a>(done: &mut Vec<&'a str>, left: &[&'a str], test: &mut dyn FnMut(&[&str])) {
        if left.is_empty() {
            test(done);
        }
        for place in 0..left.len() {
            let mut rest = left.to_vec();
            done.push(rest.remove(place));
            permute(done, &rest, test);
            done.pop();
        }
    }
    permute(&mut Vec::new(), of, test);
}

#[test]
fn a_join_for_all_runs_once_and_one_for_each_every_time() {
    for (join, expected) in [(Join::All, 1), (Join::Each, 3)] {
        orders(&["a", "b", "c"], &mut |order| {
            let nodes: [(&str, Join, &[&str]); 5] = [
                ("split", Join::All, &["a", "b", "c"]),
                ("a", Join::All, &["join"]),
                ("b", Join::All, &["join"]),
                ("c", Join::All, &["join"]),
                ("join", join.clone(), &[]),
            ];
            let mut run = Driven::new(graph(&nodes));
            run.done("split");
            for id in order {
                run.done(id);
            }
            assert_eq!(run.started().len(), expected, "{order:?}");
            for _ in 0..expected {
                assert!(!run.over);
                run.done("join");
            }
            assert!(run.over, "nothing is left to run");
        });
    }
}

#[test]
fn a_join_with_a_condition_runs_once_in_whatever_order_they_come() {
    // a and (b or c)
    let condition =
        |graph: &Graph| Arrived::All(vec![from(graph, "a"), Arrived::Any(vec![from(graph, "b"), from(graph, "c")])]);
    orders(&["a", "b", "c"], &mut |order| {
        let mut run = Driven::new(fan_in(condition, false));
        run.done("split").done(order[0]);
        assert!(run.started().is_empty(), "{order:?}");
        run.done(order[1]);
        let holds = order[0] == "a" || order[1] == "a";
        assert_eq!(run.started().len(), usize::from(holds), "{order:?}");
        run.done(order[2]);
        assert_eq!(run.started(), ["join"], "what comes late is dropped: {order:?}");
        run.done("join");
        assert!(run.over);
    });
}

#[test]
fn an_optional_one_is_waited_for_while_it_is_on_its_way_and_not_missed_otherwise() {
    let condition = |graph: &Graph| Arrived::All(vec![from(graph, "a"), maybe(graph, "b")]);
    let mut run = Driven::new(fan_in(condition, false));
    run.done("split").done("a");
    assert!(run.started().is_empty(), "b is on its way");
    run.done("b");
    assert_eq!(run.started(), ["join"]);

    let mut run = Driven::new(fan_in(condition, false));
    run.done("split").done("a").fails("b");
    assert_eq!(run.started(), ["join"], "b has failed");

    // It never started: the split does not lead to it.
    let mut run = Driven::new(fan_in(condition, false));
    run.leave("split", vec!["a", "c"], Vec::new(), false);
    run.done("a");
    assert_eq!(run.started(), ["join"]);

    let mut run = Driven::new(fan_in(condition, true));
    run.done("split").done("a");
    assert_eq!(run.schedule.deadlines(&run.graph).len(), 1);
    run.expires("join");
    assert_eq!(run.started(), ["join"], "b takes too long");
    run.done("b");
    assert_eq!(run.started(), ["join"]);
}

#[test]
fn only_optional_ones_need_somebody_to_come() {
    let condition = |graph: &Graph| Arrived::All(vec![maybe(graph, "a"), maybe(graph, "b")]);
    let mut run = Driven::new(fan_in(condition, false));
    run.done("split").done("b").fails("a").done("c");
    // `c` is not named: it runs the node by itself.
    assert_eq!(run.started(), ["join", "join"]);
    let mut run = Driven::new(fan_in(condition, false));
    run.done("split").fails("a").fails("b").fails("c");
    assert!(run.started().is_empty() && run.over);
}

#[test]
fn what_cannot_come_any_more_is_missed_by_name() {
    let condition = |graph: &Graph| Arrived::All(vec![from(graph, "a"), from(graph, "b")]);
    let mut run = Driven::new(fan_in(condition, false));
    run.done("split").done("a").fails("b");
    assert_eq!(run.started(), ["join misses b"]);

    // Nothing is on its way, and there is no deadline to wait for.
    let mut run = Driven::new(fan_in(condition, false));
    run.leave("split", vec!["a"], Vec::new(), false);
    run.done("a");
    assert_eq!(run.started(), ["join misses b"]);

    // With a deadline it waits for that, and nothing else.
    let mut run = Driven::new(fan_in(condition, true));
    run.leave("split", vec!["a"], Vec::new(), false);
    run.done("a");
    assert!(run.started().is_empty() && !run.over);
    run.expires("join");
    assert_eq!(run.started(), ["join misses b"]);
    run.fails("join");
    assert!(run.over);
}

#[test]
fn shared_state_takes_writes_in_the_order_of_commits_and_keeps_those_of_branches_that_die() {
    let mut shared = fan_in(|graph| from(graph, "a"), false);
    shared.scheduling.sharing = Sharing::Shared;
    shared.reducers.insert("log".into(), Reducer::Append);
    let wrote = |text: &str| {
        vec![Write { key: "log".into(), value: text.into() }, Write { key: "last".into(), value: text.into() }]
    };
    let mut run = Driven::new(shared);
    run.done("split");
    run.leave("c", Vec::new(), wrote("c"), true);
    run.leave("b", vec!["join"], wrote("b"), false);
    let state = run.schedule.state();
    assert_eq!(state.get("log").map(Value::to_json).as_deref(), Some(r#"["c","b"]"#));
    assert_eq!(state.get("last"), Some(&"b".into()), "the last commit counts, and it is no conflict");
    // A turn that begins now sees all of it.
    let join = run.take("join");
    assert_eq!(join.state.get("last"), Some(&"b".into()));
}

#[test]
fn what_fits_the_shared_state_is_that_state_once_the_turn_is_completed() {
    let mut shared = fan_in(|graph| from(graph, "a"), false);
    shared.scheduling.sharing = Sharing::Shared;
    shared.reducers.insert("log".into(), Reducer::Append);
    let wrote = |text: &str| vec![Write { key: "log".into(), value: text.into() }];
    let mut run = Driven::new(shared);
    run.done("split");
    run.leave("c", Vec::new(), wrote("c"), false);
    let start = run.take("b");
    let after = run.schedule.fits(&run.graph, &wrote("b")).expect("they fit").expect("it is shared");
    let route = Route::To(Vec::new());
    let ended = run.schedule.complete(&run.graph, start.turn, wrote("b"), After::Shared(after), &route, false);
    assert!(ended.expect("no error").is_none(), "`a` still runs");
    let log = run.schedule.state().get("log").map(Value::to_json);
    assert_eq!(log.as_deref(), Some(r#"["c","b"]"#));
}

#[test]
fn what_a_turn_led_to_is_shared_as_it_is_until_somebody_else_wrote() {
    for brought in [None, Some("brought".into())] {
        let mut shared = fan_in(|graph| from(graph, "a"), false);
        shared.scheduling.sharing = Sharing::Shared;
        shared.scheduling.brought = brought;
        shared.reducers.insert("log".into(), Reducer::Append);
        let mut run = Driven::new(shared);
        run.done("split");
        let start = run.take("b");
        let mut writes = vec![Write { key: "log".into(), value: "b".into() }];
        if run.graph.scheduling.brought.is_some() {
            writes.push(Write { key: "brought".into(), value: "b".into() });
        }
        let mut state = start.state;
        writes.iter().for_each(|write| crate::branch::apply(&run.graph, &mut state, write).expect("writes"));
        let fits = run.schedule.fits(&run.graph, &writes).expect("they fit").expect("it is shared");
        let led = run.schedule.led_to(&run.graph, start.turn, &state, &writes).expect("nobody else wrote");
        assert_eq!(led.to_object(), fits.to_object());
        assert_eq!(led.get("brought"), None);
        run.leave("c", Vec::new(), vec![Write { key: "log".into(), value: "c".into() }], false);
        assert!(run.schedule.led_to(&run.graph, start.turn, &state, &writes).is_none());
    }
}

#[test]
fn a_run_that_is_quiet_has_what_all_its_branches_wrote_whichever_was_last() {
    orders(&["a", "b", "c"], &mut |order| {
        let mut run = Driven::new(fan_in(|graph| from(graph, "a"), false));
        run.graph.reducers.insert("log".into(), Reducer::Append);
        run.done("split");
        let mut last = None;
        for id in order {
            let start = run.take(id);
            let writes = vec![Write { key: "log".into(), value: (*id).into() }];
            let mut state = start.state;
            crate::branch::apply(&run.graph, &mut state, &writes[0]).expect("written");
            let route = Route::To(Vec::new());
            last = run
                .schedule
                .complete(&run.graph, start.turn, writes, After::Own(state), &route, false)
                .expect("no error");
        }
        let state = last.expect("nothing is left to run");
        assert_eq!(state.get("log").map(Value::to_json).as_deref(), Some(r#"["a","b","c"]"#), "{order:?}");
    });
}
