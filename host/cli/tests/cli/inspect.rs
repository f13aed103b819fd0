//! What `hotcell agent inspect` shows of agents in different languages.

use crate::desk::Desk;

const WORKFLOW: &str = "name: desk\nconfig: {provider: openai, model: gpt-4o-mini}\nsteps:\n  \
    - id: answer\n    type: agent\n    agent: agent.yaml\n    input: \"{state.question}\"\n    output: reply\n";
const AGENT: &str = "name: clerk\nsystem_prompt: You answer.\ntools: [lookup]\n\
    memory: {type: conversation, token_budget: 2000, trim_policy: summarize_oldest}\n\
    loop_policy: {max_iterations: 4, on_max_iterations: warn_and_return}\n\
    output_schema: {type: json_schema, schema: {type: object, required: [answer]}}\n\
    constraints: {max_cost_usd: 0.05, max_latency_ms: 9000, forbidden_patterns: [secret]}\n";
const GRAPH: &str = "name: greeter\ndescription: |\n  Greets.\n  Nothing else.\nstart: say\nnodes:\n  \
    say: { type: llm, model: openai:gpt-4o-mini, prompt: Say hello., next: done }\n  done: { type: end, output: \"{{output}}\" }\n";

#[test]
fn tools_limits_and_expected_cost_are_shown_for_agents_of_any_language() {
    let desk = Desk::new();
    desk.write("graph/graph.yaml", GRAPH);
    insta::assert_snapshot!(desk.told(&["agent", "inspect", "graph"]));
    desk.write("desk/workflow.yaml", WORKFLOW);
    desk.write("desk/agent.yaml", &AGENT.replace("tools: [lookup]\n", ""));
    insta::assert_snapshot!(desk.told(&["agent", "inspect", "desk/workflow.yaml"]));
    insta::assert_snapshot!(desk.told(&["agent", "inspect", "desk/agent.yaml", "--json"]));
}

#[test]
fn what_agents_cost_that_are_tools_is_part_of_the_range() {
    let desk = Desk::new();
    let lead = "name: lead\nmodel: gpt-4o-mini\nsystem_prompt: You lead.\nloop_policy: {max_iterations: 3}\n\
        tools: [{name: worker, type: agent, agent: worker.yaml}]\n";
    desk.write("lead.yaml", lead);
    desk.write(
        "worker.yaml",
        "name: worker\nsystem_prompt: You work.\nmodel: gpt-4o-mini\nconstraints: {max_cost_usd: 0.001}\n",
    );
    let told = desk.told(&["agent", "inspect", "lead.yaml"]);
    // Its own requests cost $0.0014 at most, and each of three replies may call the worker, for $0.001.
    assert!(told.contains("to $0.0044\n") && told.contains("called once with every reply"), "{told}");
    desk.write("worker.yaml", "name: worker\nsystem_prompt: You work.\nmodel: of-my-own\n");
    let told = desk.told(&["agent", "inspect", "lead.yaml"]);
    assert!(told.contains("to $0.0014\n") && told.contains("their cost is not known"), "{told}");
}

#[test]
fn an_agent_whose_tool_is_not_there_is_not_described() {
    let desk = Desk::new();
    desk.write("agent.yaml", AGENT);
    let told = desk.told(&["agent", "inspect", "agent.yaml"]);
    assert!(told.starts_with("exit code: 2\n") && told.contains("lookup"), "{told}");
}
