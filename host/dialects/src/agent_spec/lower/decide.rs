//! Nodes of the reference runtime that decide by what branch they are left: a model chooses, a flow has succeeded or not.

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, ComputeAction, Drawn, Expression, Next, Node, NodeIndex, PromptPart, Retry, SearchPattern,
    Update, WhichMatch, failure_key,
};
use hotcell_graph::{List, Object, Value};

use super::site::{ATTEMPTS, Site};
use super::{ANSWER, Lowering, template};
use crate::agent_spec::generated::{DEFAULT, DEFAULT_EXCEPTION};
use crate::agent_spec::model::Property;
use crate::agent_spec::prompts::{CHOICE, CHOICES, choices};
use crate::agent_spec::wayflow::{FAILURE, SELECTED, SUCCEEDED, TRIES, classes};

/// How many tokens a model has for the name of a choice.
const USUAL_TOKENS: u32 = 7;

impl<'c> Lowering<'c> {
    /// A node in which a model chooses the branch.
    pub(super) fn choice_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let llm = component.child("llm_config")?;
        let mut settings = self.model(llm);
        settings.max_tokens = Some(match component.value("num_tokens") {
            Some(Value::Number(number)) => number.to_f64().clamp(1.0, f64::from(u32::MAX)) as u32,
            _ => USUAL_TOKENS,
        });
        let retry = self.retry(self.component(llm)).unwrap_or(Retry { attempts: ATTEMPTS, ..Retry::default() });
        let choices = choices(component);
        let pattern = match SearchPattern::any_of(choices.iter().map(|choice| choice.name)) {
            Ok(pattern) if !choices.is_empty() => pattern,
            Ok(_) => {
                self.refuse_field(component, "next_branches", "there is no choice in `next_branches`");
                return None;
            }
            Err(problem) => {
                self.refuse_field(component, "next_branches", format!("`next_branches`: {problem}"));
                return None;
            }
        };
        let listed = choices.iter().map(|choice| {
            let entries = [
                ("step_name", choice.branch),
                ("description", choice.description),
                ("displayed_step_name", choice.name),
            ];
            Value::Object(entries.into_iter().map(|(key, text)| (key.into(), Value::from(text))).collect::<Object>())
        });
        let listed = Value::List(listed.collect::<List>());
        let written = component.text("prompt_template").filter(|text| !text.is_empty()).unwrap_or(CHOICE);
        let value = |name: &str| if name == CHOICES { Expression::Value(listed.clone()) } else { site.input(name) };
        let prompt = template::rendered(written, true, value);
        let asks_once = AgentLoop {
            settings,
            prompt: vec![PromptPart::text("`prompt_template`", Speaker::Human, prompt)],
            retry,
            bind: ANSWER,
            ..AgentLoop::default()
        };
        let reply = || Expression::Entry(Box::new(Expression::Key(ANSWER.into())), "content".into());
        let found = Expression::Drawn(Box::new(Drawn::Matches { text: reply(), pattern, which: WhichMatch::First }));
        let selected = Expression::Else(Box::new(found), Box::new(Expression::Value(Value::from(DEFAULT))));
        let decided = site.frame.keys.decided.clone();
        let mut updates = vec![Update { key: decided.clone(), value: selected.clone() }];
        updates.extend(site.outputs(&|property: &Property| {
            let is_selected = *site.unmapped("output_mapping", &property.title) == *SELECTED;
            if is_selected { selected.clone() } else { reply() }
        }));
        let mut routes = Vec::new();
        for choice in &choices {
            routes.push((choice.name.to_owned(), site.frame.target(site.id, choice.branch)?));
        }
        let otherwise = site.frame.target(site.id, DEFAULT)?;
        let node = site.node(Action::Converse(Box::new(asks_once.request())), updates);
        Some(Node { next: Next::ByValue { value: Expression::Key(decided), routes, otherwise }, ..node })
    }

    /// A node that runs a flow until it succeeds: each try is a step.
    pub(super) fn retry_node(&mut self, site: &Site<'_, 'c>) -> Vec<Node> {
        let component = site.component;
        let success = component.text("success_condition").unwrap_or_default().to_owned();
        let flow = component.child("flow").map(|flow| self.component(flow));
        if let Some(flow) = flow.filter(|flow| flow.output(&success).is_none()) {
            let problem =
                format!("`success_condition` names `{success}`, and the flow `{}` has no such output", flow.shown);
            self.refuse_field(component, "success_condition", problem);
            return Vec::new();
        }
        let steps = site.frame.further_steps(site.id);
        let (Some(first), Some(failed)) = (self.call_node(site, "flow"), site.frame.target(site.id, FAILURE)) else {
            return Vec::new();
        };
        let Some(succeeded) = site.branches_besides(&[FAILURE]) else { return Vec::new() };
        let decided = site.frame.keys.decided.clone();
        let entry = site.entries();
        let passed = || {
            let value = Expression::Entry(Box::new(Expression::Key(ANSWER.into())), success.as_str().into());
            Expression::Drawn(Box::new(Drawn::IsTrue(value)))
        };
        let mut nodes = Vec::new();
        for place in 0..=steps.len() {
            let number = place as i64 + 1;
            let mut updates = vec![Update { key: decided.clone(), value: passed() }];
            updates.extend(site.outputs(
                &|property: &Property| match &*site.unmapped("output_mapping", &property.title) {
                    TRIES => Expression::Value(Value::from(number)),
                    SUCCEEDED => passed(),
                    _ => entry(property),
                },
            ));
            let again = steps.get(place).and_then(|step| site.frame.ids.get(step)).unwrap_or(failed);
            let next = Next::When {
                condition: Expression::Key(decided.clone()),
                then: Box::new(succeeded.clone()),
                otherwise: Box::new(Next::To(vec![again])),
            };
            nodes.push(match place.checked_sub(1).and_then(|place| steps.get(place)) {
                Some(step) => site.step(step, first.action.clone(), updates, next),
                None => Node { updates, next, ..first.clone() },
            });
        }
        nodes
    }
}

impl Site<'_, '_> {
    /// Routes by the branch that the action left by.
    pub(super) fn by_branch(&self) -> Option<Next> {
        self.branches_besides(&[])
    }

    /// Routes by the branch that the action left by, which is none of these.
    pub(super) fn branches_besides(&self, others: &[&str]) -> Option<Next> {
        let mut routes = Vec::new();
        for branch in self.component.branches.iter().filter(|branch| !others.contains(&&***branch)) {
            routes.push((branch.to_string(), self.frame.target(self.id, branch)?));
        }
        match &routes[..] {
            [(_, only)] => Some(Next::To(vec![*only])),
            [.., (_, last)] => Some(Next::ByAnswer { otherwise: *last, routes }),
            [] => None,
        }
    }

    /// The steps behind a flow that failed: to the branch of the exception's class, to that of all others, or the failure goes on.
    pub(super) fn caught_by_class(&self, outputs: Vec<Update>) -> Vec<Node> {
        let steps = self.frame.further_steps(self.id);
        let Some((caught, failing)) = steps.split_first() else { return Vec::new() };
        let failure = || Expression::Key(failure_key(&self.component.shown));
        let mut routes: Vec<(String, NodeIndex)> = Vec::new();
        for (class, branch) in classes(self.component) {
            if let Some(target) = self.frame.target(self.id, branch) {
                routes.push((class.to_owned(), target));
            }
        }
        let fails = failing.first().and_then(|step| self.frame.ids.get(step));
        let Some(otherwise) = fails.or_else(|| self.frame.target(self.id, DEFAULT_EXCEPTION)) else {
            return Vec::new();
        };
        let class = Expression::Drawn(Box::new(Drawn::ExceptionName(failure())));
        let value = Expression::Else(Box::new(class), Box::new(Expression::Value(Value::from(""))));
        let mut nodes = vec![self.step(caught, Action::Pass, outputs, Next::ByValue { value, routes, otherwise })];
        nodes.extend(failing.first().map(|step| {
            let value = Expression::Drawn(Box::new(Drawn::Failure(failure())));
            let action = ComputeAction { value, failure_kind: None, bind: ANSWER };
            self.step(step, Action::Compute(action), Vec::new(), Next::To(Vec::new()))
        }));
        nodes
    }
}
