//! What may be varied of a mesh to see whether it does better: for each setting of an agent a few values that it could have.

use serde_json::{Map, Value, json};

/// Sentences that a prompt may end with.
const ADVICE: [&str; 5] = [
    "Think about the task step by step before you answer.",
    "Be brief and exact.",
    "Give the fields that are asked for, and nothing else.",
    "Where something is uncertain or missing, say so and do not guess.",
    "Before you answer, check your answer against the input.",
];
const TEMPERATURES: [f64; 6] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
const FACTORS: [f64; 4] = [0.5, 0.75, 1.5, 2.0];
/// The tokens of a reply, and the time that an agent waits for others, where nothing is said.
const MAX_TOKENS: f64 = 800.0;
const WAIT: f64 = 60.0;

/// What `mutation_types` may name of which there is something to vary.
pub const KINDS: [&str; 5] =
    ["prompt_variation", "temperature_adjustment", "tool_selection", "agent_parameters", "timeout_settings"];
/// Those that count where nothing is said.
pub const USUAL: [&str; 3] = ["prompt_variation", "temperature_adjustment", "tool_selection"];

/// A setting that may have one of several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Gene {
    /// The agent
    pub agent: String,
    /// The setting
    pub field: &'static str,
    /// Its values, the first of which is the one that it has; null where it is left out
    pub values: Vec<Value>,
}

/// What may be varied of a configuration, in the order of its agents.
pub fn genes(config: &Value, kinds: &[String]) -> Vec<Gene> {
    let agents = config.get("agents").and_then(Value::as_object);
    let varies = |kind: &str| kinds.iter().any(|wanted| wanted == kind);
    let mut genes = Vec::new();
    for (name, agent) in agents.into_iter().flatten() {
        let mut add = |field: &'static str, others: Vec<Value>| {
            let own = agent.get(field).cloned().unwrap_or_default();
            let others = others.into_iter().filter(|other| *other != own);
            let values: Vec<Value> = std::iter::once(own.clone()).chain(others).collect();
            if values.len() > 1 {
                genes.push(Gene { agent: name.clone(), field, values });
            }
        };
        let number = |field: &str, usual: f64| agent.get(field).map_or(Some(usual), Value::as_f64);
        let scaled =
            |number: f64| FACTORS.iter().map(move |factor| json!((number * factor).round().max(1.0) as u64)).collect();
        // What has a variable in it stays as it is.
        let is_model = agent.get("agent_type").is_none_or(|kind| kind == "llm");
        if is_model
            && varies("prompt_variation")
            && let Some(prompt) = agent.get("prompt").and_then(Value::as_str).filter(|prompt| !prompt.contains("${"))
        {
            add("prompt", ADVICE.iter().map(|advice| json!(format!("{}\n\n{advice}", prompt.trim_end()))).collect());
        }
        if is_model && varies("temperature_adjustment") && number("temperature", 0.1).is_some() {
            add("temperature", TEMPERATURES.iter().map(|value| json!(value)).collect());
        }
        if is_model
            && varies("tool_selection")
            && let Some(tools) = agent.get("tools").and_then(Value::as_array).filter(|tools| tools.len() > 1)
        {
            let without = |place: usize| {
                let others = tools.iter().enumerate().filter(|(other, _)| *other != place);
                Value::Array(others.map(|(_, tool)| tool.clone()).collect())
            };
            add("tools", (0..tools.len()).map(without).collect());
        }
        if is_model
            && varies("agent_parameters")
            && let Some(tokens) = number("max_tokens", MAX_TOKENS)
        {
            add("max_tokens", scaled(tokens));
        }
        if varies("timeout_settings")
            && agent.get("wait_for").is_some()
            && let Some(seconds) = number("wait_for_timeout", WAIT)
        {
            add("wait_for_timeout", scaled(seconds));
        }
    }
    genes
}

/// What a choice of values changes, by agent and setting.
pub fn changes(genes: &[Gene], chosen: &[usize]) -> Map<String, Value> {
    let mut changes = Map::new();
    for (gene, chosen) in genes.iter().zip(chosen).filter(|(_, chosen)| **chosen > 0) {
        let Some(value) = gene.values.get(*chosen) else { continue };
        let agent = changes.entry(gene.agent.clone()).or_insert_with(|| Map::new().into());
        if let Some(agent) = agent.as_object_mut() {
            agent.insert(gene.field.to_owned(), value.clone());
        }
    }
    changes
}

/// The configuration with these changes.
pub fn changed(config: &Value, changes: &Map<String, Value>) -> Value {
    let mut config = config.clone();
    for (name, fields) in changes {
        let agent = config.get_mut("agents").and_then(|agents| agents.get_mut(name)).and_then(Value::as_object_mut);
        if let (Some(agent), Some(fields)) = (agent, fields.as_object()) {
            agent.extend(fields.clone());
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_changes_what_it_chooses_and_nothing_else() {
        let config = json!({ "agents": {
            "a": { "model": "gpt-4o", "prompt": "Hello", "temperature": 0.2, "tools": ["x", "y"] },
            "b": { "agent_type": "human", "prompt": "no model" },
            "c": { "prompt": "${SECRET}", "wait_for": "a AND b" },
        } });
        let kinds = KINDS.map(str::to_owned);
        let found = genes(&config, &kinds);
        let named: Vec<(&str, &str)> = found.iter().map(|gene| (gene.agent.as_str(), gene.field)).collect();
        assert_eq!(
            named,
            [
                ("a", "prompt"),
                ("a", "temperature"),
                ("a", "tools"),
                ("a", "max_tokens"),
                ("c", "temperature"),
                ("c", "max_tokens"),
                ("c", "wait_for_timeout")
            ]
        );
        assert!(changes(&found, &[0; 7]).is_empty());
        let chosen = changes(&found, &[2, 0, 1, 0, 0, 0, 4]);
        let after = changed(&config, &chosen);
        assert_eq!(after["agents"]["a"]["prompt"], "Hello\n\nBe brief and exact.");
        assert_eq!(after["agents"]["a"]["tools"], json!(["y"]));
        assert_eq!(after["agents"]["c"]["wait_for_timeout"], 120);
        assert_eq!(after["agents"]["b"], config["agents"]["b"]);
    }
}
