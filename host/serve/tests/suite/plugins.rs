//! Plugins over HTTP: what waits for a decision, and deciding.

use std::fs;

use hotcell_runtime::shipped_plugins;
use hotcell_serve::{Keys, Role};
use serde_json::{Value, json};

use crate::desk::{Desk, ECHO, ok, problem};
use crate::site::{ACME, Premises, Setup};

/// The plugin that works with files: it asks for a directory that the operator names.
const FS: &str = "fs";

impl Desk {
    /// A server with an agent and that plugin in its folder.
    async fn with_fs() -> Self {
        let desk = Desk::with(&[ECHO]).await;
        let plugins = desk.folder().join("agents/echo/plugins");
        fs::create_dir_all(&plugins).expect("made");
        let shipped = shipped_plugins().expect("plugins").into_iter().find(|plugin| plugin.name == FS);
        fs::write(plugins.join("fs.wasm"), shipped.expect("it ships").component).expect("written");
        desk
    }

    async fn plugin(&self) -> Value {
        ok(self.get("/plugins/fs?agent_id=echo")).await
    }

    fn settings(&self) -> String {
        fs::read_to_string(self.folder().join("agents/echo/hotcell.toml")).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_waits_is_granted_revoked_and_removed() {
    let desk = Desk::with_fs().await;
    let list = ok(desk.get("/plugins?agent_id=echo")).await;
    let plugin = &list["items"][0];
    assert_eq!((plugin["name"].clone(), plugin["standing"].clone()), (json!(FS), json!("waiting")), "{list}");
    assert_eq!((plugin["granted"].clone(), plugin["agent_ids"].clone()), (Value::Null, json!(["echo"])));
    assert!(!plugin["asks"].as_array().expect("asks").is_empty());
    let digest = plugin["digest"].as_str().expect("a digest").to_owned();

    let grant = |more: Value| {
        let mut body = json!({ "agent_id": "echo", "digest": digest });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        desk.post("/plugins/fs/grants", body)
    };
    let work = |guest: &str, host: &str| json!({ "fs": [{ "guest": guest, "host": host }] });
    let folder = desk.folder().join("work");
    fs::create_dir(&folder).expect("made");
    let host = folder.to_str().expect("a path");
    for (wrong, status) in [
        // Which directory, only whoever grants it knows.
        (json!({}), 422),
        (json!({ "digest": "0".repeat(64) }), 409),
        (json!({ "http": ["ftp://example.org"] }), 422),
        (json!({ "http": ["https://example.org"] }), 422),
        (work("/work", "relative"), 422),
        (work("/data", host), 422),
        (json!({ "agent_id": "nobody" }), 404),
        (json!({ "everything": true }), 422),
    ] {
        let refused = problem(grant(wrong.clone())).await;
        assert_eq!(refused["status"], status, "{wrong}");
        let detail = refused["detail"].as_str().expect("a text");
        assert!(!detail.contains("--"), "it speaks of a command line: {detail}");
        assert_eq!(desk.settings(), "", "{wrong}");
    }
    let open = problem(grant(json!({}))).await;
    assert!(open["detail"].as_str().expect("a text").contains("say which in `fs`"), "{open}");
    let granted = ok(grant(work("/work", host))).await;
    assert_eq!(granted["standing"], "ready", "{granted}");
    assert!(granted["granted"]["fs"].to_string().contains(host), "{granted}");
    assert!(desk.settings().contains("[grants.fs]"), "{}", desk.settings());
    assert_eq!(desk.plugin().await, granted);

    // Another component of that name gets nothing of it.
    let file = desk.folder().join("agents/echo/plugins/fs.wasm");
    let mut other = fs::read(&file).expect("read");
    // A section that says nothing.
    other.extend([0, 2, 1, b'x']);
    fs::write(&file, &other).expect("written");
    let changed = desk.plugin().await;
    assert_eq!((changed["standing"].clone(), changed["granted_digest"].clone()), (json!("changed"), json!(digest)));

    let revoke = || desk.delete("/plugins/fs/grants?agent_id=echo");
    ok(revoke()).await;
    assert!(!desk.settings().contains("grants"), "{}", desk.settings());
    assert_eq!(desk.plugin().await["standing"], "waiting");
    ok(revoke()).await;
    assert_eq!(problem(desk.delete("/plugins/none/grants?agent_id=echo")).await["status"], 404);
    ok(desk.delete("/plugins/fs?agent_id=echo&purge=true")).await;
    assert!(!file.exists());
    assert_eq!(problem(desk.get("/plugins/fs?agent_id=echo")).await["type"], "urn:hotcell:problem:unknown-plugin");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_operates_sees_plugins_and_only_whoever_administers_decides() {
    let desk = Desk::with_fs().await;
    let keys = Keys::open(&desk.folder().join("runs.serve.db")).expect("keys");
    let key = |role: Role| keys.add("test", None, &[role], None).expect("a key").reveal().to_string();
    let (run, operate, administer) = (key(Role::Run), key(Role::Operate), key(Role::Administer));
    let status = async |key: &str, request: reqwest::RequestBuilder| {
        request.bearer_auth(key).send().await.expect("a reply").status().as_u16()
    };
    assert_eq!(status(&run, desk.get("/plugins")).await, 403);
    assert_eq!(status(&operate, desk.get("/plugins")).await, 200);
    let body = json!({ "agent_id": "echo", "digest": "0", "nothing": true });
    assert_eq!(status(&operate, desk.post("/plugins/fs/grants", body.clone())).await, 403);
    assert_eq!(status(&operate, desk.delete("/plugins/fs/grants?agent_id=echo")).await, 403);
    assert_eq!(status(&administer, desk.post("/plugins/fs/grants", body)).await, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_plugin_does_not_say_where_it_lies() {
    let files = [("acme/echo/graph.yaml", ECHO.1), ("umbra/echo/graph.yaml", ECHO.1), ("shared/README.md", "for all")];
    let premises = Premises::set_up(Setup { files: &files, acme: "plugins = ['shared']", ..Setup::default() }).await;
    let shared = premises.folder().join("shared");
    let shipped = shipped_plugins().expect("plugins").into_iter().find(|plugin| plugin.name == FS);
    let component = shipped.expect("it ships").component;
    for name in ["fs.wasm", "twin.wasm"] {
        fs::write(shared.join(name), &component).expect("written");
    }
    let list = ok(premises.get("/plugins?agent_id=echo", &premises.key(ACME))).await;
    let reasons: Vec<&str> =
        list["items"].as_array().expect("plugins").iter().filter_map(|plugin| plugin["reason"].as_str()).collect();
    assert!(reasons.len() >= 2, "{list}");
    let place = premises.folder().display().to_string();
    for reason in reasons {
        assert!(reason.contains("claims the name `fs`") && !reason.contains(&place), "{reason}");
    }
}
