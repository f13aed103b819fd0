//! What the steps of a workflow are to each other: what they wait for, where routers lead, what they write and read.

use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::{Place, Reachability};
use indexmap::{IndexMap, IndexSet};

use super::files::Files;
use super::schema::{Body, Given, Prompt, STEPS, Step, Workflow};
use super::values::did_you_mean;
use crate::document::SourceText;

/// Steps that are taken to find out which of the routers before two steps leads to which of them.
const MAX_STEPS: usize = 5_000_000;

/// Checks a workflow and those that it runs.
pub(super) fn workflow(workflow: &Workflow, files: &Files<'_>) {
    check(workflow, files, &HashSet::new());
}

/// `around` are the entries that the state has from outside.
fn check(workflow: &Workflow, files: &Files<'_>, around: &HashSet<String>) {
    let graph = Dependencies::of(workflow, files);
    let ids: IndexSet<&str> = workflow.steps.iter().map(|step| &*step.id.value).collect();
    graph.circles(files);
    graph.routers(files);
    graph.collisions(files);
    let mut known: HashSet<String> = around.clone();
    known.extend(workflow.state.iter().map(|(key, _)| key.to_string()));
    known.insert(STEPS.to_owned());
    for step in &workflow.steps {
        known.extend(written(step).map(|(place, _)| place.root().to_string()));
    }
    for step in &workflow.steps {
        reads(&ids, step, &known, files);
        if let Body::Subworkflow(child) = &step.body {
            let mut around = if child.is_isolated { HashSet::new() } else { known.clone() };
            around.extend(child.input.iter().map(|(key, _)| key.to_string()));
            check(&child.workflow, files, &around);
        }
    }
}

/// The places of the state that a step writes.
fn written(step: &Step) -> impl Iterator<Item = (&Place, &Span)> {
    let conversation = match &step.body {
        Body::Agent(agent) => agent.conversation.as_ref(),
        _ => None,
    };
    step.output.iter().chain(conversation).map(|target| (&target.place, &target.span))
}

fn error(step: &Step, message: String, span: &Span) -> Diagnostic {
    Diagnostic::error(message).at(span).node(&*step.id)
}

/// Who waits for whom.
struct Dependencies<'w> {
    workflow: &'w Workflow,
    by_id: HashMap<&'w str, usize>,
    /// The steps that each waits for, by their places
    of: Vec<Vec<usize>>,
    /// All that each waits for, also by way of others
    all: Reachability,
    /// The routers before each step that was asked for, each with the step to which it leads there
    routed: Vec<OnceCell<Vec<(usize, usize)>>>,
    steps_left: Cell<usize>,
}

impl<'w> Dependencies<'w> {
    fn of(workflow: &'w Workflow, files: &Files<'_>) -> Self {
        let steps = &workflow.steps;
        let by_id: HashMap<&str, usize> =
            steps.iter().enumerate().map(|(place, step)| (&*step.id.value, place)).collect();
        let mut of = Vec::with_capacity(steps.len());
        for step in steps {
            let mut own: Vec<usize> = Vec::new();
            let mut known = HashSet::new();
            for name in &step.depends_on {
                match by_id.get(&**name) {
                    Some(place) if !known.insert(*place) => {}
                    Some(place) => own.push(*place),
                    None => files.report(unknown_step(step, "`depends_on`", name, &by_id)),
                }
            }
            of.push(own);
        }
        let all = Reachability::of(&of);
        let routed = vec![OnceCell::new(); steps.len()];
        Dependencies { workflow, by_id, of, all, routed, steps_left: Cell::new(MAX_STEPS) }
    }

    fn step(&self, place: usize) -> &'w Step {
        &self.workflow.steps[place]
    }

    /// Reports each circle once, with the way around it.
    fn circles(&self, files: &Files<'_>) {
        let mut told: HashSet<usize> = HashSet::new();
        for start in 0..self.of.len() {
            if !self.all.leads(start, start) || told.contains(&start) {
                continue;
            }
            if files.is_full_of(Severity::Error) {
                return;
            }
            let way = self.way_back(start);
            told.extend(&way);
            // All that is on a circle with it belongs to what is told.
            told.extend((0..self.of.len()).filter(|step| self.all.leads(start, *step) && self.all.leads(*step, start)));
            let names: Vec<&str> = way.iter().chain([&start]).map(|place| &*self.step(*place).id.value).collect();
            let step = self.step(start);
            let message = format!("the steps wait for each other: {}", names.join(" -> "));
            let span = step.depends_on.first().map_or(&step.id.span, |name| &name.span);
            files.report(error(step, message, span).help("take one of these dependencies out"));
        }
    }

    /// A shortest way from a step that waits for itself back to it.
    fn way_back(&self, start: usize) -> Vec<usize> {
        let mut before: HashMap<usize, usize> = HashMap::new();
        let mut open = std::collections::VecDeque::from([start]);
        while let Some(step) = open.pop_front() {
            for next in &self.of[step] {
                if *next == start {
                    let mut way = vec![step];
                    while let Some(last) = way.last().filter(|last| **last != start) {
                        way.push(before.get(last).copied().unwrap_or(start));
                    }
                    way.reverse();
                    return way;
                }
                if *next != start && !before.contains_key(next) {
                    before.insert(*next, step);
                    open.push_back(*next);
                }
            }
        }
        vec![start]
    }

    fn routers(&self, files: &Files<'_>) {
        for step in &self.workflow.steps {
            for target in targets(step) {
                if !self.by_id.contains_key(&**target) {
                    files.report(unknown_step(step, "the router", target, &self.by_id));
                }
            }
        }
    }

    /// Reports steps that write one place and neither of which waits for the other.
    fn collisions(&self, files: &Files<'_>) {
        let mut writers: IndexMap<String, Vec<(usize, &Span)>> = IndexMap::new();
        for (step, target) in
            self.workflow.steps.iter().enumerate().filter_map(|(at, step)| Some((at, step.output.as_ref()?)))
        {
            writers.entry(target.place.to_string()).or_default().push((step, &target.span));
        }
        let is_strict = self.workflow.config.strict_outputs;
        for (place, writers) in &writers {
            for (number, (first, span)) in writers.iter().enumerate() {
                if files.is_full_of(if is_strict { Severity::Error } else { Severity::Warning }) {
                    return;
                }
                for (second, again) in &writers[number + 1..] {
                    if self.all.leads(*first, *second) || self.all.leads(*second, *first) {
                        continue;
                    }
                    let is_exclusive = self.exclusive(*first, *second);
                    if self.steps_left.get() == 0 {
                        let message = "the workflow is too large to be checked: too many routers lead to steps that write one place";
                        files.report(Diagnostic::error(message).at(again).help("give the steps different outputs"));
                        return;
                    }
                    if is_exclusive {
                        continue;
                    }
                    let (one, two) = (&*self.step(*first).id, &*self.step(*second).id);
                    let message =
                        format!("the steps `{one}` and `{two}` may run side by side, and both write `{place}`");
                    let told = match is_strict {
                        true => Diagnostic::error(message)
                            .help("give them different outputs, or let one depend on the other"),
                        false => Diagnostic::warning(message)
                            .help("the one that ends last wins; give them different outputs"),
                    };
                    files.report(told.at(again).node(two).related(span, "first here"));
                }
            }
        }
    }

    /// Whether a router leads to one of two steps at most.
    fn exclusive(&self, first: usize, second: usize) -> bool {
        let (first, second) = (self.routed(first), self.routed(second));
        self.takes(first.len() + second.len());
        // Where each router leads: to one step, or to several.
        let mut ways: HashMap<usize, Option<usize>> = HashMap::new();
        for (router, step) in second {
            ways.entry(*router).and_modify(|way| *way = way.filter(|way| way == step)).or_insert(Some(*step));
        }
        first.iter().any(|(router, step)| ways.get(router).is_some_and(|way| *way != Some(*step)))
    }

    fn routed(&self, step: usize) -> &[(usize, usize)] {
        self.routed[step].get_or_init(|| {
            let mut routed = Vec::new();
            for step in (0..self.of.len()).filter(|other| self.all.leads(step, *other)).chain([step]) {
                if !self.takes(1 + self.of[step].len()) {
                    break;
                }
                let routers = self.of[step].iter().filter(|before| targets(self.step(**before)).next().is_some());
                routed.extend(routers.map(|router| (*router, step)));
            }
            routed
        })
    }

    /// Takes so many steps, if there are so many left.
    fn takes(&self, steps: usize) -> bool {
        let rest = self.steps_left.get().checked_sub(steps);
        self.steps_left.set(rest.unwrap_or_default());
        rest.is_some()
    }
}

/// Where a router may lead.
fn targets(step: &Step) -> impl Iterator<Item = &SourceText> {
    let (conditions, default) = match &step.body {
        Body::Router { conditions, default } => (&conditions[..], default.as_ref()),
        _ => (&[][..], None),
    };
    conditions.iter().map(|condition| &condition.target).chain(default)
}

fn unknown_step(step: &Step, who: &str, name: &SourceText, known: &HashMap<&str, usize>) -> Diagnostic {
    let told =
        error(step, format!("{who} of `{}` names the step `{}`, which does not exist", &*step.id, &**name), &name.span);
    match did_you_mean(name, known.keys().copied()) {
        Some(help) => told.help(help),
        None => told,
    }
}

/// Warns of what is read and written by nobody.
fn reads(ids: &IndexSet<&str>, step: &Step, known: &HashSet<String>, files: &Files<'_>) {
    let mut places: Vec<(Place, Span)> = Vec::new();
    let mut template = |prompt: &Prompt| {
        for broken in prompt.template.broken() {
            if files.is_full_of(Severity::Warning) {
                break;
            }
            let told = Diagnostic::warning(format!("the step will fail: {}", broken.problem));
            files.report(told.at(&prompt.text.span_of(broken.range.clone())).node(&*step.id));
        }
        for (place, with_state) in prompt.template.places() {
            if with_state {
                places.push((place.clone(), prompt.text.span.clone()));
                continue;
            }
            // Any name may be meant as text; who writes `stat.who` rarely means that.
            let root = place.root();
            if known.contains(&**root) || files.is_full_of(Severity::Warning) {
                continue;
            }
            if let Some(near) = did_you_mean(root, std::iter::once("state").chain(known.iter().map(String::as_str))) {
                let message = format!("`{{{place}}}` stays as it is, because nothing is called `{root}`");
                files.report(Diagnostic::warning(message).at(&prompt.text.span).node(&*step.id).help(near));
            }
        }
    };
    let mut given: Vec<&Given> = Vec::new();
    match &step.body {
        Body::LlmCall(call) => {
            [Some(&call.prompt), call.system_prompt.as_ref()].into_iter().flatten().for_each(&mut template)
        }
        Body::Tool { arguments, .. } => given.extend(arguments.iter().map(|(_, value)| value)),
        Body::Subworkflow(child) => given.extend(child.input.iter().map(|(_, value)| value)),
        Body::Agent(agent) => given.push(&agent.input),
        Body::Gate { notify, .. } => notify.iter().filter_map(|notify| notify.body.as_ref()).for_each(&mut template),
        Body::Router { .. } | Body::Broken => {}
    }
    for value in &given {
        if let Given::Template(prompt) = value {
            template(prompt);
        }
    }
    places.extend(given.iter().filter_map(|value| match value {
        Given::State(place, span) => Some((place.clone(), span.clone())),
        _ => None,
    }));
    if let Body::Router { conditions, .. } = &step.body {
        for condition in conditions {
            for key in condition.expression.keys() {
                if let Ok(place) = Place::parse(&key) {
                    places.push((place, condition.target.span.clone()));
                }
            }
        }
    }
    for (place, span) in places {
        if files.is_full_of(Severity::Warning) {
            return;
        }
        let root = place.root();
        if known.contains(&**root) {
            let named = (&**root == STEPS).then(|| place.without_root()).flatten();
            let Some(of_step) = named.filter(|named| !ids.contains(&**named.root())) else { continue };
            let told = Diagnostic::warning(format!("`state.{place}`: there is no step `{}` here", of_step.root()));
            let told = told.at(&span).node(&*step.id);
            let near = did_you_mean(of_step.root(), ids.iter().copied());
            files.report(near.map_or(told.clone(), |near| told.help(near)));
            continue;
        }
        let told =
            Diagnostic::warning(format!("nothing writes `state.{root}`, so it is empty unless the run is given it"));
        let told = told.at(&span).node(&*step.id);
        let near = did_you_mean(root, known.iter().map(String::as_str));
        files.report(match near {
            Some(near) => told.help(near),
            None => told.help("give it a value under `state`"),
        });
    }
}
