//! Granting, as an operator does it with a folder.

use super::*;
use crate::catalogue::Catalogue;
use crate::signature::SignaturePolicy;
use crate::standing::Standing;
use crate::testing::{describe, tool_plugin};

struct Desk {
    folder: tempfile::TempDir,
    trust: Trust,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("plugins")).unwrap();
        let trust = Trust::Listed(folder.path().join("trust.toml"));
        Desk { folder, trust }
    }

    fn put(&self, capabilities: &str) -> Plugin {
        let description = describe("acme:weather", "forecast", &format!(r#","capabilities":{capabilities}"#));
        let plugins = self.folder.path().join("plugins");
        std::fs::write(plugins.join("weather.wasm"), tool_plugin(&description)).unwrap();
        let catalogue = Catalogue::of_folders(&[plugins], None);
        let (_, plugin) = catalogue.find("acme:weather").unwrap_or_else(|| panic!("{catalogue:?}"));
        plugin.clone()
    }

    fn open(&self) -> AgentFolder {
        AgentFolder::open(self.folder.path(), &self.trust).unwrap()
    }

    fn standing(&self, plugin: &Plugin) -> Standing {
        let file = self.folder.path().join("plugins/weather.wasm");
        self.open().standing(&file, plugin, &SignaturePolicy::default())
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }
}

#[test]
fn a_plugin_that_asks_for_nothing_works_at_once() {
    let desk = Desk::new();
    assert_eq!(desk.standing(&desk.put("{}")), Standing::Ready);
}

#[test]
fn a_plugin_that_asks_waits_is_granted_and_revoked() {
    let desk = Desk::new();
    std::fs::write(desk.folder.path().join("hotcell.toml"), "# mine\n[plugins.x.config]\na = 'b' # kept\n").unwrap();
    let plugin = desk.put(r#"{"http":["https://api.example.org"],"kv":true}"#);
    let asks = vec!["send requests to `https://api.example.org`", "keep data of its own between calls"];
    let asks = asks.into_iter().map(str::to_owned).collect();
    assert_eq!(desk.standing(&plugin), Standing::Waiting { asks });

    let grants = GrantOrder::default().grants("acme:weather", &plugin.description.capabilities, None).unwrap();
    desk.open().trust(&desk.trust).unwrap();
    desk.open().grant(&plugin, &grants, &desk.trust).unwrap();
    assert_eq!(desk.standing(&plugin), Standing::Ready);
    assert_eq!(*desk.open().settings().grants("acme:weather"), grants);
    let text = desk.text("hotcell.toml");
    assert!(text.starts_with("# mine\n[plugins.x.config]\na = 'b' # kept\n"), "{text}");
    assert!(text.contains("[grants.\"acme:weather\"]\nhttp = [\"https://api.example.org\"]\nkv = true\n"), "{text}");

    desk.open().revoke("acme:weather", &desk.trust).unwrap();
    assert!(matches!(desk.standing(&plugin), Standing::Waiting { .. }));
    assert!(!desk.text("hotcell.toml").contains("acme:weather"), "{}", desk.text("hotcell.toml"));
}

#[test]
fn attack_65_a_changed_component_is_refused_and_a_wider_request_is_shown() {
    let desk = Desk::new();
    let old = desk.put(r#"{"kv":true,"env":["A"]}"#);
    let grants = GrantOrder::default().grants("acme:weather", &old.description.capabilities, None).unwrap();
    desk.open().grant(&old, &grants, &desk.trust).unwrap();
    let new = desk.put(r#"{"kv":true,"env":["A"],"llm":true}"#);
    let more = vec!["ask the model, at your cost".to_owned()];
    assert_eq!(desk.standing(&new), Standing::Changed { more, less: Vec::new() });
    assert_eq!(desk.standing(&old), Standing::Ready);
    let narrower = desk.put(r#"{"kv":true}"#);
    let Standing::Refused { reason } = desk.standing(&narrower) else { panic!("it is granted more than it asks") };
    assert!(reason.contains("`env` for `A`"), "{reason}");
}

#[test]
fn an_update_gets_no_more_than_was_granted_unless_that_is_added() {
    let asked = |text: &str| serde_json::from_str::<Requests>(text).unwrap();
    let now = asked(r#"{"kv":true,"llm":true,"http":["https://*.x.org"],"env":["A"]}"#);
    let grants = |text: &str| crate::parse_grants(text).unwrap();
    let before = grants("kv = true\nhttp = ['https://a.x.org']\nask = true");
    let order = |order: GrantOrder| order.grants("p", &now, Some(&before)).unwrap();
    let add = |names: &[&str]| GrantOrder {
        add: names.iter().map(|name| (*name).to_owned()).collect(),
        ..GrantOrder::default()
    };
    let kept = "kv = true\nhttp = ['https://a.x.org']\n";
    assert_eq!(order(GrantOrder::default()), grants(kept));
    assert_eq!(order(add(&["llm"])), grants(&format!("{kept}llm = true")));
    let all = grants("kv = true\nllm = true\nhttp = ['https://*.x.org']\nenv = ['A']");
    assert_eq!(order(add(&[EVERYTHING])), all);
    let http = vec!["https://b.x.org".parse().unwrap()];
    let other = GrantOrder { http, ..GrantOrder::default() };
    assert_eq!(order(other), grants("kv = true\nhttp = ['https://b.x.org']"));
    let only = GrantOrder { only: vec!["llm".to_owned()], ..GrantOrder::default() };
    assert_eq!(order(only), grants("llm = true"));
    assert_eq!(order(GrantOrder { nothing: true, ..add(&["llm"]) }), Grants::default());
    assert_eq!(GrantOrder::default().grants("p", &now, None).unwrap(), all, "the first time it is all that is asked");
    assert_eq!(add(&["kv"]).grants("p", &now, None).unwrap(), grants("kv = true"));
    let seeded = asked(r#"{"random":"seeded"}"#);
    assert_eq!(GrantOrder::default().grants("p", &seeded, None).unwrap(), grants("random = 'seeded'"));
    assert_eq!(seeded.in_words(), ["draw the same random numbers in every call"]);
}

#[test]
fn directories_that_were_granted_stay_until_others_are_named() {
    let asked: Requests = serde_json::from_str(r#"{"fs":[{"guest":"/a"},{"guest":"/b"}]}"#).unwrap();
    let grants = |text: &str| crate::parse_grants(text).unwrap();
    let before = grants("fs = [{ host = 'one', guest = '/a' }]");
    let b = DirectoryGrant::new("two", "/b", Default::default());
    let both = grants("fs = [{ host = 'one', guest = '/a' }, { host = 'two', guest = '/b' }]");
    let given = GrantOrder { fs: vec![b.clone()], ..GrantOrder::default() };
    assert_eq!(given.grants("p", &asked, Some(&before)).unwrap(), both);
    let added = GrantOrder { fs: vec![b], add: vec!["fs".to_owned()], ..GrantOrder::default() };
    assert_eq!(added.grants("p", &asked, Some(&before)).unwrap(), both);
    let open = GrantOrder { add: vec!["fs".to_owned()], ..GrantOrder::default() };
    let error = open.grants("p", &asked, Some(&before)).unwrap_err().to_string();
    assert!(error.contains("--fs /b=DIRECTORY"), "{error}");
}

/// A hook sees what nobody granted it to see: prompts, replies, state.
#[test]
fn a_hook_that_came_with_the_folder_waits_and_the_operators_own_does_not() {
    let desk = Desk::new();
    let put = |folder: &Path, points: &[&str]| {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("guard.wasm"), crate::testing::hook_plugin_at("guard", points)).unwrap();
        let catalogue = Catalogue::of_folders(&[folder.to_owned()], None);
        catalogue.find("guard").map(|(file, plugin)| (file.to_owned(), plugin.clone())).unwrap()
    };
    let standing =
        |(file, plugin): &(std::path::PathBuf, Plugin)| desk.open().standing(file, plugin, &SignaturePolicy::default());
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(standing(&put(elsewhere.path(), &["before-run"])), Standing::Ready);
    let plugins = desk.folder.path().join("plugins");
    let guard = put(&plugins, &["before-run"]);
    let words = "see prompts and state of runs, and change or refuse what they do, as a hook at ";
    assert_eq!(standing(&guard), Standing::Waiting { asks: vec![format!("{words}`before-run`")] });
    desk.open().grant(&guard.1, &Grants::default(), &desk.trust).unwrap();
    assert_eq!(standing(&guard), Standing::Ready);
    let more = put(&plugins, &["before-run", "after-node"]);
    let expected = Standing::Changed { more: vec![format!("{words}`after-node`")], less: Vec::new() };
    assert_eq!(standing(&more), expected);
}

#[test]
fn a_folder_that_brings_its_own_settings_grants_itself_nothing() {
    let desk = Desk::new();
    let plugin = desk.put(r#"{"kv":true}"#);
    let settings = "[grants.\"acme:weather\"]\nkv = true\n";
    std::fs::write(desk.folder.path().join("hotcell.toml"), settings).unwrap();
    let mut folder = desk.open();
    assert!(!folder.is_trusted() && !folder.settings().grants("acme:weather").kv);
    assert_eq!(folder.wishes(), [("acme:weather".to_owned(), vec!["keep data of its own between calls".to_owned()])]);
    let refused = folder.grant(&plugin, &Grants::default(), &desk.trust);
    assert!(matches!(refused, Err(GrantError::Untrusted(_))), "{refused:?}");
    assert_eq!((desk.text("hotcell.toml").as_str(), desk.text("hotcell.lock").as_str()), (settings, ""));
    folder.trust(&desk.trust).unwrap();
    assert!(desk.open().settings().grants("acme:weather").kv);
    assert!(matches!(desk.standing(&plugin), Standing::Waiting { .. }), "nothing pins the grant yet");
    let lock = format!("[plugin.\"acme:weather\"]\ndigest = \"{}\"\n", plugin.survey.digest);
    std::fs::write(desk.folder.path().join("hotcell.lock"), lock).unwrap();
    assert!(!desk.open().is_trusted(), "a lock that came later is a new wish");
    assert!(matches!(desk.standing(&plugin), Standing::Waiting { .. }), "and pins nothing");
    std::fs::write(desk.folder.path().join("hotcell.toml"), format!("{settings}llm = true\n")).unwrap();
    assert!(!desk.open().is_trusted(), "a changed file is a new wish");
}

#[test]
fn what_only_the_operator_can_name_has_to_be_named() {
    let asked: Requests =
        serde_json::from_str(r#"{"http":["*"],"fs":[{"guest":"/d","access":"read"}],"secret":[{"name":"K"}]}"#)
            .unwrap();
    let http = || vec!["https://x.org".parse().unwrap()];
    let error = GrantOrder::default().grants("p", &asked, None).unwrap_err().to_string();
    assert!(error.contains("--http https://SERVER"), "{error}");
    let error = GrantOrder { http: http(), ..GrantOrder::default() }.grants("p", &asked, None).unwrap_err().to_string();
    assert!(error.contains("--fs /d=DIRECTORY"), "{error}");
    let fs = vec![DirectoryGrant::new("data", "/d", Default::default())];
    let grants =
        GrantOrder { http: http(), fs: fs.clone(), ..GrantOrder::default() }.grants("p", &asked, None).unwrap();
    assert_eq!(grants.secret[0].servers, http());
    let error = GrantOrder { only: vec!["kv".to_owned()], ..GrantOrder::default() }.grants("p", &asked, None);
    assert_eq!(error.unwrap_err().to_string(), "`p` does not ask for `kv`");
    let mut wide = fs;
    wide[0].access = hotcell_cells::Access::ReadWrite;
    let error = GrantOrder { http: http(), fs: wide, ..GrantOrder::default() }.grants("p", &asked, None).unwrap_err();
    assert_eq!(error.to_string(), "`p` does not ask for `fs` for `/d`");
}

/// A grant is written together with trust in the folder, and that is not trust in what came while it was decided on.
#[test]
fn what_changed_while_a_grant_was_decided_on_is_not_trusted_with_it() {
    let desk = Desk::new();
    std::fs::write(desk.folder.path().join("hotcell.toml"), "[grants.'a.py']\nkv = true\n").unwrap();
    std::fs::write(desk.folder.path().join("a.py"), "first").unwrap();
    let plugin = desk.put(r#"{"kv":true}"#);
    desk.open().trust(&desk.trust).unwrap();
    let mut opened = desk.open();
    assert!(opened.is_trusted());
    std::fs::write(desk.folder.path().join("a.py"), "second").unwrap();
    let refused = opened.grant(&plugin, &Grants { kv: true, ..Grants::default() }, &desk.trust);
    assert!(matches!(refused, Err(GrantError::Folder(FolderError::ChangedMeanwhile))), "{refused:?}");
    assert!(!desk.open().is_trusted());
    assert!(!desk.text("hotcell.toml").contains("acme"));
}
