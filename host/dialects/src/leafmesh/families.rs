//! Families of models by their names.

/// How the names of models begin, and the provider that has them, as hotcell calls it.
const FAMILIES: [(&str, &str); 16] = [
    ("gpt-", "openai"),
    ("chatgpt-", "openai"),
    ("o1-", "openai"),
    ("o3-", "openai"),
    ("o4-", "openai"),
    ("claude-", "anthropic"),
    ("gemini-", "gemini"),
    ("deepseek-", "deepseek"),
    ("grok-", "xai"),
    ("mistral-", "mistral"),
    ("mixtral-", "mistral"),
    ("codestral-", "mistral"),
    ("bedrock/", BEDROCK),
    ("vertex/", VERTEX),
    ("foundry/", FOUNDRY),
    ("ministral-", "mistral"),
];
/// Models whose whole name is that of a family.
const WHOLE: [&str; 4] = ["o1", "o3", "o4", "gpt"];
pub(super) const BEDROCK: &str = "bedrock";
pub(super) const VERTEX: &str = "vertex";
pub(super) const FOUNDRY: &str = "foundry";

/// The provider of a model; none for one of a server of the mesh's own.
pub(super) fn provider(model: &str) -> Option<&'static str> {
    if WHOLE.contains(&model) {
        return Some("openai");
    }
    FAMILIES.iter().find(|(start, _)| model.starts_with(start)).map(|(_, provider)| *provider)
}
