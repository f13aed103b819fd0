//! Several meshes behind one server: each has addresses, sessions and people of its own.

use serde_json::{Value, json};

use crate::clients::{Port, drive};
use crate::desk::{Desk, ok, problem};
use crate::mesh::{MESH, settled_in};

/// Its agents and its entry point are called like some of the other mesh.
const MILL: (&str, &str) = (
    "mill/mesh.yaml",
    "name: mill
manager: {enabled: false}
agents:
  draft: {agent_type: llm, communication_type: chain, model: gpt-4o-mini, prompt: Grind it., can_call: [{agent: chief}]}
  chief: {agent_type: human, human_interface: default}
entry_points:
  - {name: story, target: draft}
",
);

fn call() -> Value {
    json!({ "entry_point": "story", "data": {}, "session_id": "s-1" })
}

/// How the addresses of the two meshes begin, as the server says where an address does not say which is meant.
async fn prefixes(desk: &Desk) -> (String, String) {
    let told = problem(desk.post("/api/mesh/request", call())).await;
    assert_eq!(told["status"], 409, "{told}");
    let detail = told["detail"].as_str().unwrap();
    let of = |name: &str| {
        let found = detail.split('`').find(|part| part.starts_with("/meshes/") && part.contains(name));
        found.unwrap_or_else(|| panic!("{detail}")).to_owned()
    };
    (of("press"), of("mill"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_has_sessions_and_people_of_its_own() {
    let desk = Desk::with(&[MESH, MILL]).await;
    desk.model.answers(10);
    let (press, mill) = prefixes(&desk).await;
    for (mesh, entries) in [(&press, 3), (&mill, 1)] {
        let listed = ok(desk.get(&format!("{mesh}/api/mesh/entry_points"))).await;
        assert_eq!(listed["entry_points"].as_array().unwrap().len(), entries, "{listed}");
        let asked = ok(desk.post(&format!("{mesh}/api/mesh/request"), call())).await;
        assert_eq!((asked["status"].clone(), asked["session_id"].clone()), (json!("waiting_human"), json!("s-1")));
        settled_in(&desk, mesh, "s-1", "paused").await;
        let open = ok(desk.get(&format!("{mesh}/api/sessions/hitl"))).await;
        assert_eq!(open["sessions"].as_array().unwrap().len(), 1, "{open}");
    }
    assert_eq!(desk.model.requests().len(), 2);
    // The question of one mesh is none of the other.
    let open = ok(desk.get(&format!("{mill}/api/sessions/hitl"))).await;
    let request = open["sessions"][0]["requests"][0]["request_id"].as_str().unwrap().to_owned();
    let reply = |mesh: &str| format!("{mesh}/api/sessions/hitl/{request}/reply");
    assert_eq!(problem(desk.post(&reply(&press), json!({ "decision": "yes" }))).await["status"], 404);
    // What stops one mesh leaves the other alone.
    ok(desk.post(&format!("{mill}/api/system/stop"), json!({}))).await;
    for (mesh, state) in [(&press, "running"), (&mill, "stopped")] {
        assert_eq!(ok(desk.get(&format!("{mesh}/api/system/status"))).await["state"], state, "{mesh}");
    }
    let answer = json!({ "session_id": "s-1", "decision": "no" });
    assert_eq!(ok(desk.post(&format!("{press}/webhook/story"), answer)).await["status"], "resumed");
    settled_in(&desk, &press, "s-1", "completed").await;
    let desk = desk.again().await;
    settled_in(&desk, &press, "s-1", "completed").await;
    assert_eq!(ok(desk.get(&format!("{mill}/api/system/status"))).await["state"], "stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn below_the_name_of_a_mesh_there_is_nothing_else() {
    let desk = Desk::with(&[MESH, MILL]).await;
    let (press, _) = prefixes(&desk).await;
    let others = [format!("{press}/runs"), format!("{press}/health"), format!("{press}{press}/api/agents/")];
    for path in others.iter().map(String::as_str).chain(["/meshes/nobody/api/agents/", "/meshes"]) {
        assert_eq!(problem(desk.get(path)).await["status"], 404, "{path}");
    }
    ok(desk.get(&format!("{press}/api/agents/"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_only_mesh_has_the_plain_addresses_and_its_own() {
    let desk = Desk::with(&[MESH]).await;
    ok(desk.get("/api/mesh/entry_points")).await;
    let agents = ok(desk.post("/agents/search", json!({}))).await;
    let id = agents[0]["agent_id"].as_str().unwrap_or_else(|| panic!("{agents}"));
    ok(desk.get(&format!("/meshes/{id}/api/mesh/entry_points"))).await;
}

/// The servers of others, where `clients/install.sh` has installed them: `langgraph dev`, and agents of `a2a-sdk`.
#[tokio::test(flavor = "multi_thread")]
async fn connectors_talk_with_the_real_servers_of_langgraph_and_a2a() {
    let reserved = [(); 3].map(|()| Port::reserve());
    let [graphs, new, old] = reserved.each_ref().map(Port::number);
    let agent = |name: &str, framework: &str, setting: &str, port: u16| {
        let config = format!("{{{setting}: 'http://127.0.0.1:{port}', poll_interval: 0.2}}");
        format!(
            "  {name}: {{agent_type: external, framework: {framework}, communication_type: chain, connector_config: {config}}}\n"
        )
    };
    let mesh = format!(
        "manager: {{enabled: false}}\nagents:\n{}{}{}entry_points: [{{name: graph, target: graph}}, {{name: new, target: new}}, {{name: old, target: old}}]\n",
        agent("graph", "langgraph", "graph_id: meter, endpoint", graphs),
        agent("new", "a2a", "url", new),
        agent("old", "a2a", "url", old),
    );
    let grants = [graphs, new, old].map(|port| format!("\"http://127.0.0.1:{port}\"")).join(", ");
    let grants = format!("[grants.agent]\nhttp = [{grants}]\n");
    let desk = Desk::with(&[("meter/mesh.yaml", &mesh), ("meter/hotcell.toml", &grants)]).await;
    let ports = [graphs, new, old].map(|port| port.to_string());
    drive("connectors.py", &[&desk.url, &ports[0], &ports[1], &ports[2]]).await;
}
