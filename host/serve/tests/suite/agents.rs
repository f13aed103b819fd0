//! Agents: finding them, and naming them.

use serde_json::json;

use crate::desk::{ASK, COUNT, Desk, ECHO, ok, problem};

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_found_by_its_id_and_by_its_name() {
    let desk = Desk::with(&[ECHO, ASK, COUNT, ("deep/er/flow.yaml", ECHO.1), ("broken/graph.yaml", "name: [")]).await;
    let ids = |agents: &serde_json::Value| -> Vec<String> {
        agents.as_array().unwrap().iter().map(|agent| agent["agent_id"].as_str().unwrap().to_owned()).collect()
    };
    let all = ok(desk.post("/agents/search", json!({}))).await;
    assert_eq!(ids(&all), ["ask", "count", "deep.er.flow", "echo"]);
    assert_eq!(all[3]["description"], "Repeats what it is told");
    let page = ok(desk.post("/agents/search", json!({ "limit": 1, "offset": 1 }))).await;
    assert_eq!(ids(&page), ["count"]);
    let named = ok(desk.post("/agents/search", json!({ "name": "ECHO" }))).await;
    assert_eq!(ids(&named), ["deep.er.flow", "echo"]);
    let sherma = ok(desk.post("/agents/search", json!({ "metadata": { "language": "sherma" } }))).await;
    assert_eq!(ids(&sherma), ["count"]);

    assert_eq!(ok(desk.get("/agents/ask")).await["name"], "ask");
    let schemas = ok(desk.get("/agents/echo/schemas")).await;
    assert_eq!(schemas["input_schema"]["properties"]["prompt"]["type"], "string", "{schemas}");
    // The id wins over the name of another one; a name that two have is refused.
    assert_eq!(ok(desk.get("/agents/echo")).await["agent_id"], "echo");
    let unknown = problem(desk.get("/agents/nobody")).await;
    assert_eq!(unknown["type"], "urn:hotcell:problem:unknown-agent");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_several_languages_run_side_by_side() {
    let flow = include_str!("../../../cli/templates/agent-spec/agent.yaml");
    let sherma = include_str!("../../../cli/templates/sherma/agent.yaml");
    let files = [("a/agent.yaml", flow), ("b/agent.yaml", sherma), ECHO];
    let desk = Desk::with(&files.map(|(name, text)| (name, text))).await;
    let languages: Vec<String> = ok(desk.post("/agents/search", json!({})))
        .await
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["metadata"]["language"].as_str().unwrap().to_owned())
        .collect();
    assert!(languages.contains(&"sherma".to_owned()) && languages.contains(&"loki".to_owned()), "{languages:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_two_agents_have_is_no_name() {
    let desk = Desk::with(&[("a/graph.yaml", ECHO.1), ("b/graph.yaml", ECHO.1)]).await;
    let both = problem(desk.get("/agents/echo")).await;
    assert_eq!(
        (both["status"].clone(), both["type"].clone()),
        (409.into(), "urn:hotcell:problem:agent-ambiguous".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_never_paths() {
    let desk = Desk::with(&[ECHO]).await;
    for name in ["..%2F..%2Fetc%2Fpasswd", "echo%2F..%2Fecho", "%00", "echo%00", "..", "%2e%2e", "C:%5C", "a%2Fb"] {
        for path in [format!("/agents/{name}"), format!("/runs/{name}"), format!("/threads/{name}")] {
            let status = desk.get(&path).send().await.unwrap().status().as_u16();
            assert!((400..500).contains(&status), "{path}: {status}");
        }
    }
    problem(desk.get("/agents/%ff")).await;
    problem(desk.post("/runs", json!({ "agent_id": "../echo", "input": "x" }))).await;
}
