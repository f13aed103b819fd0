//! What a person means (`intent_model`): a model finds in an answer what the conditions of the person's seat ask for.

use std::collections::BTreeSet;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, CallAction, CallTarget, Composed, Expression, Gives, ModelSettings, PromptPart, Update,
};
use hotcell_graph::{Key, Value};

use super::agent_state::{ANSWER, RAW};
use super::checks::is_meant;
use super::expressions::{composed, entry, key, object};
use super::lower_feed::asked_once;
use super::models;
use super::schema::{Agent, Human, Providers};
use super::state::HUMAN_DECISION;
use super::steps::Work;

/// What was found.
const FOUND: &str = "(found)";
/// What the model is shown.
const SHOWN: &str = "(shown)";
pub(super) const STEP: &str = "intent";
const MAX_TOKENS: u32 = 500;
const TASK: &str = "A person has answered, in their own words. Say what the answer means: give a JSON object and nothing else, with those of the \
fields below that follow from what the person says. Leave out every field that does not.";

/// The step after an answer; none where no condition asks for anything that the person does not say by itself.
pub(super) fn step(agent: &Agent, human: &Human, providers: &Providers) -> Option<Work> {
    let model = human.intent_model.as_ref()?.trim();
    let conditions = || agent.edges.iter().filter_map(|edge| edge.condition.as_ref());
    let fields: BTreeSet<Key> = conditions()
        .flat_map(|condition| condition.condition.entries())
        .filter(|field| is_meant(field))
        .map(|field| Key::from(&*field))
        .collect();
    if fields.is_empty() {
        return None;
    }
    let types = fields.iter().map(|field| {
        let declared = agent.yields.iter().find(|(name, _)| name == field);
        let kind = declared.map_or_else(|| "text".to_owned(), |(_, declared)| declared.schema().to_json());
        format!("- `{field}`: {kind}")
    });
    let looked_at: BTreeSet<String> =
        conditions().map(|condition| format!("- {}", condition.condition.source())).collect();
    let task = format!(
        "{TASK}\n\nThe fields:\n{}\n\nThey are compared like this:\n{}",
        types.collect::<Vec<_>>().join("\n"),
        looked_at.into_iter().collect::<Vec<_>>().join("\n")
    );
    let prompt = vec![
        PromptPart::text("the task", Speaker::System, Expression::Value(Value::from(task))),
        PromptPart::text("the answer", Speaker::Human, Expression::TextOf(Box::new(key(SHOWN)))),
    ];
    let settings = ModelSettings {
        model: Some(models::name(model)),
        temperature: Some(0.0),
        max_tokens: Some(MAX_TOKENS),
        server: models::server(model, providers),
        ..ModelSettings::default()
    };
    let graph = asked_once(format!("({} is understood)", agent.name), settings, prompt, FOUND, &agent.span)?;
    let shown = ["human_message", HUMAN_DECISION, "human_data"];
    let target = CallTarget::Graph {
        graph: graph.into(),
        inputs: vec![(SHOWN.into(), composed(Composed::Only(key(RAW), shown.map(Key::from).into())))],
        conversation: None,
        inherits: false,
        // A model that finds nothing leaves the answer as it is.
        gives: Gives::Entries(vec![FOUND.into()]),
    };
    let nothing = || object([]);
    let found = Expression::Else(Box::new(entry(key(ANSWER), FOUND)), Box::new(nothing()));
    let found = composed(Composed::Only(found, fields.into_iter().collect()));
    // What the person decided counts.
    let decided = Composed::Either {
        condition: Expression::Is(Box::new(entry(key(RAW), HUMAN_DECISION)), Value::from("")),
        then: composed(Composed::Only(found.clone(), vec![HUMAN_DECISION.into()])),
        otherwise: nothing(),
    };
    let understood = Composed::Overlaid(vec![found, key(RAW), composed(decided)]);
    Some(Work {
        name: STEP,
        action: Action::Call(Box::new(CallAction { target, contract: None, failure_prefix: None, bind: ANSWER })),
        updates: vec![Update { key: RAW.into(), value: composed(understood) }],
        next: None,
    })
}
