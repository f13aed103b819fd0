//! Whose data a plugin meets: its own, of this project, and nobody else's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::plugins::{AgentFolder, Plugin, Trust, parse_grants};
use hotcell_runtime::{Host, HostOptions, Nobody, RunInput, StoresChoice};
use serde_json::json;

use crate::desk::{Desk, GRAPH, calls, told};

/// The file of the user in which all stores are.
struct User(tempfile::TempDir);

impl User {
    fn new() -> Self {
        User(tempfile::tempdir().unwrap())
    }

    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.0.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Lets the plugin of a desk remember a text, and gives what it remembered before.
    async fn remembers(&self, desk: &Desk, text: &str, change: impl FnOnce(&mut HostOptions)) -> String {
        let replies = calls("probe", json!({ "do": "remember", "text": text }));
        let model = Loopback::start(Script::from_json(&replies).unwrap()).unwrap();
        let mut options = desk.options(&model);
        options.stores = StoresChoice::File(self.0.path().join("stores.db"));
        change(&mut options);
        let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
        desk.start(&Host::new(options).unwrap(), given, Arc::new(Nobody)).await.unwrap();
        told(&model)
    }
}

/// A desk whose tool is that of the plugin `probe`, wherever that lies.
fn desk() -> Desk {
    let desk = Desk::new(GRAPH);
    desk.plugin("second", "other", &[], json!({}), "");
    desk
}

fn with_probe() -> Desk {
    let desk = desk();
    desk.plugin("probe", "probe", &[], json!({ "kv": true }), "kv = true");
    desk
}

/// Puts the plugin `probe` into a folder, and grants it its store on a desk.
fn put(folder: &Path, desk: &Desk) {
    let maker = with_probe();
    let file = folder.join("probe.wasm");
    std::fs::copy(maker.path("plugins/probe.wasm"), &file).unwrap();
    let mut said = AgentFolder::open(&desk.path(""), &Trust::Everything).unwrap();
    said.grant(&Plugin::read(&file).unwrap(), &parse_grants("kv = true").unwrap(), &Trust::Everything).unwrap();
}

#[tokio::test]
async fn attack_40_a_plugin_of_the_same_name_in_another_folder_has_another_store() {
    let user = User::new();
    let (one, two) = (with_probe(), with_probe());
    assert_eq!(user.remembers(&one, "of one", |_| {}).await, "null");
    assert_eq!(user.remembers(&two, "of two", |_| {}).await, "null");
    assert_eq!(user.remembers(&one, "again", |_| {}).await, "of one");
}

#[tokio::test]
async fn attack_40_a_plugin_from_another_place_of_the_search_path_has_another_store() {
    let (user, desk) = (User::new(), desk());
    let (one, two) = (user.folder("one"), user.folder("two"));
    put(&one, &desk);
    put(&two, &desk);
    let from = |folder: &Path| {
        let folder = folder.to_owned();
        move |options: &mut HostOptions| options.plugins = vec![folder]
    };
    assert_eq!(user.remembers(&desk, "of one", from(&one)).await, "null");
    assert_eq!(user.remembers(&desk, "of two", from(&two)).await, "null");
    assert_eq!(user.remembers(&desk, "again", from(&one)).await, "of one");
}

#[tokio::test]
async fn an_update_that_was_granted_finds_the_store_of_the_version_before() {
    let (user, desk) = (User::new(), with_probe());
    assert_eq!(user.remembers(&desk, "by the first", |_| {}).await, "null");
    let version = |description: &mut serde_json::Value| description["version"] = "2.0.0".into();
    desk.plugin_like("probe", "probe", &[], json!({ "kv": true }), "kv = true", version);
    assert_eq!(user.remembers(&desk, "by the second", |_| {}).await, "by the first");
}

#[tokio::test]
async fn a_plugin_of_the_user_has_one_store_for_all_projects_that_grant_it() {
    let (user, one, two) = (User::new(), desk(), desk());
    let folder = user.folder("plugins");
    put(&folder, &one);
    put(&folder, &two);
    let users = |options: &mut HostOptions| options.user_plugins = Some(folder.clone());
    assert_eq!(user.remembers(&one, "by one", users).await, "null");
    assert_eq!(user.remembers(&two, "by two", users).await, "by one");
    assert_eq!(user.remembers(&with_probe(), "apart", |_| {}).await, "null");
}
