//! The words that fields of a mesh take, for whoever writes an editor for meshes.

use serde_json::{Value, json};

use super::{connectors, cron, genes, read_agent, read_channels, read_human, shapes};

/// The words that fields take and the settings of connectors, by category.
#[must_use]
pub fn registry() -> Value {
    json!({
        "agent_types": read_agent::TYPES,
        "communication_types": read_agent::COMMUNICATION,
        "human_interfaces": read_human::INTERFACES,
        "field_types": shapes::TYPES,
        "frameworks": connectors::FRAMEWORKS,
        "integrations": connectors::INTEGRATIONS,
        "connectors": connectors::described(),
        "channels": read_channels::PROVIDERS,
        "schedules": cron::MACROS,
        "mutation_types": genes::KINDS,
    })
}

#[cfg(test)]
mod tests {
    use super::registry;

    #[test]
    fn connectors_are_told_with_what_they_need() {
        let registry = registry();
        assert_eq!(registry["connectors"]["n8n"][0]["name"], "webhook_url");
        assert_eq!(registry["connectors"]["n8n"][0]["required"], true);
        assert_eq!(registry["connectors"]["n8n"][0]["variables"][0], "N8N_WEBHOOK_URL");
        let connectors = registry["connectors"].as_object().expect("connectors");
        let frameworks = registry["frameworks"].as_array().expect("words");
        assert!(frameworks.iter().all(|name| connectors.contains_key(name.as_str().expect("a name"))));
        let retired = connectors["zapier"].as_array().expect("settings");
        assert!(retired.iter().all(|setting| setting["name"] != "api_key"), "it is no longer in use");
    }
}
