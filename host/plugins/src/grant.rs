//! Writing down what the operator decided: grants into `hotcell.toml`, the component into `hotcell.lock`, and the
//! folder into the list of trusted ones, because it was the operator who wrote.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hotcell_cells::{AnyServer, DirectoryGrant, Grants, HttpGrant, HttpRequested, Requests, SecretGrant};
use thiserror::Error;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::catalogue::Plugin;
use crate::lock::Locked;
use crate::settings::{SETTINGS_FILE, Settings};
use crate::standing::{AgentFolder, FolderError};
use crate::trust::Trust;

/// What the operator decides beyond what the plugin itself says.
#[derive(Clone, Debug, Default)]
pub struct GrantOrder {
    /// Servers, in the place of those it asks for
    pub http: Vec<HttpGrant>,
    /// Directories of the host by the plugin's paths
    pub fs: Vec<DirectoryGrant>,
    /// Only these capabilities, by name (`http`, `kv`, …); none means all
    pub only: Vec<String>,
    /// Nothing at all: the plugin is used without what it asks for
    pub nothing: bool,
    /// These capabilities as they are asked for, beside what was granted before; [`EVERYTHING`] means all of them
    pub add: Vec<String>,
}

/// What stands for all capabilities in [`GrantOrder::add`].
pub const EVERYTHING: &str = "all";

/// Why nothing was granted.
#[derive(Debug, Error)]
pub enum GrantError {
    /// The folder's own settings are not trusted yet
    #[error("the `{SETTINGS_FILE}` in `{0}` is not trusted yet; review it and run `hotcell trust {0}` first")]
    Untrusted(String),
    /// The plugin asks for a directory, and only whoever grants it can name one
    #[error("`{plugin}` asks for a directory as `{guest}`; say which with `--fs {guest}=DIRECTORY`")]
    NoDirectory {
        /// The plugin
        plugin: String,
        /// The path that it uses
        guest: String,
    },
    /// The plugin asks for servers that only whoever grants them can name
    #[error("`{plugin}` asks for servers that you name; say which with `--http https://SERVER`")]
    NoServers {
        /// The plugin
        plugin: String,
    },
    /// More would be granted than is asked for
    #[error("`{plugin}` does not ask for {beyond}")]
    Beyond {
        /// The plugin
        plugin: String,
        /// What it does not ask for
        beyond: String,
    },
    /// What is there is not what is meant
    #[error("`{0}` has been replaced meanwhile")]
    Exchanged(String),
    /// A file cannot be written or understood
    #[error("cannot change `{file}`: {cause}")]
    File {
        /// The file
        file: String,
        /// Why not
        cause: String,
    },
    /// What is said about the folder cannot be used
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl GrantOrder {
    /// The grants that this order gives to a plugin that asks for `asked`. What was granted `before` stays as narrow as it was: an
    /// update gets no more by asking for more.
    ///
    /// # Errors
    /// When something is asked for that only the operator can name, or more would be granted than is asked for.
    pub fn grants(&self, plugin: &str, asked: &Requests, before: Option<&Grants>) -> Result<Grants, GrantError> {
        if self.nothing {
            return Ok(Grants::default());
        }
        let has = asked.left_out_by(&Grants::default());
        let named = self.only.iter().chain(self.add.iter().filter(|name| *name != EVERYTHING));
        let beyond: Vec<String> =
            named.filter(|name| !has.iter().any(|one| one == name)).map(|name| format!("`{name}`")).collect();
        if !beyond.is_empty() {
            return Err(GrantError::Beyond { plugin: plugin.to_owned(), beyond: beyond.join(", ") });
        }
        let keeps = self.only.is_empty() && (before.is_some() || !self.add.is_empty());
        let adds = |name: &str| self.add.iter().any(|one| one == name || one == EVERYTHING);
        let wanted = |name: &str| match keeps {
            true => adds(name),
            false => self.only.is_empty() || self.only.iter().any(|only| only == name),
        };
        let mut grants = match before {
            Some(before) if keeps => asked.narrowed(before),
            _ => Grants::default(),
        };
        if wanted("http") || keeps && !self.http.is_empty() {
            grants.http = match self.http.is_empty() {
                false => self.http.clone(),
                true => asked_servers(plugin, asked)?,
            };
        }
        if !wanted("fs") && keeps {
            grants.fs.retain(|kept| self.fs.iter().all(|given| given.guest != kept.guest));
            grants.fs.extend(self.fs.iter().cloned());
        }
        if wanted("fs") {
            grants.fs.clear();
            for wish in &asked.fs {
                let given = self.fs.iter().chain(before.iter().flat_map(|before| &before.fs));
                match given.clone().find(|given| given.guest == wish.guest) {
                    Some(given) => grants.fs.push(given.clone()),
                    None => {
                        return Err(GrantError::NoDirectory { plugin: plugin.to_owned(), guest: wish.guest.clone() });
                    }
                }
            }
            let more = self.fs.iter().filter(|given| !asked.fs.iter().any(|wish| wish.guest == given.guest));
            grants.fs.extend(more.cloned());
        }
        if wanted("secret") {
            grants.secret.clear();
            for wish in &asked.secret {
                let servers = if wish.servers.is_empty() { grants.http.clone() } else { wish.servers.clone() };
                grants.secret.push(SecretGrant { name: wish.name.clone(), servers });
            }
        }
        if wanted("env") {
            grants.env.clone_from(&asked.env);
        }
        if wanted("tool") {
            grants.tool.clone_from(&asked.tool);
        }
        if wanted("clock") {
            grants.clock = asked.clock;
        }
        if wanted("random") {
            grants.random = asked.random;
        }
        grants.kv |= asked.kv && wanted("kv");
        grants.llm |= asked.llm && wanted("llm");
        grants.ask |= asked.ask && wanted("ask");
        let beyond = asked.exceeded_by(&grants);
        if !beyond.is_empty() {
            return Err(GrantError::Beyond { plugin: plugin.to_owned(), beyond: beyond.join(", ") });
        }
        Ok(grants)
    }
}

fn asked_servers(plugin: &str, asked: &Requests) -> Result<Vec<HttpGrant>, GrantError> {
    asked
        .http
        .iter()
        .map(|wish| match wish {
            HttpRequested::Server(server) => Ok(server.clone()),
            HttpRequested::Any(AnyServer::Any) => Err(GrantError::NoServers { plugin: plugin.to_owned() }),
        })
        .collect()
}

impl AgentFolder {
    /// Gives a plugin these grants, pins them to its component, and trusts the folder with them.
    ///
    /// # Errors
    /// When the folder's settings are not trusted yet, or a file cannot be written. Nothing is changed then.
    pub fn grant(&mut self, plugin: &Plugin, grants: &Grants, trust: &Trust) -> Result<(), GrantError> {
        let name = &plugin.description.name;
        let mut lock = self.lock.clone();
        lock.plugin.insert(name.clone(), Locked::of(plugin));
        self.write(|file, before| edited(file, before, name, Some(grants)), lock, trust)
    }

    /// Takes back all that was granted to the plugin of this name.
    ///
    /// # Errors
    /// As with [`AgentFolder::grant`].
    pub fn revoke(&mut self, name: &str, trust: &Trust) -> Result<(), GrantError> {
        let mut lock = self.lock.clone();
        lock.plugin.remove(name);
        self.write(|file, before| edited(file, before, name, None), lock, trust)
    }

    /// Writes what the settings are to be, made of what they were, and the lock.
    pub(crate) fn write(
        &mut self,
        edit: impl FnOnce(&Path, &str) -> Result<String, GrantError>,
        lock: crate::lock::Lock,
        trust: &Trust,
    ) -> Result<(), GrantError> {
        // From the look at what is there until it is written, so that nothing is lost that others of this process decide meanwhile.
        static DECIDING: Mutex<()> = Mutex::new(());
        let _deciding = DECIDING.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_trusted() {
            return Err(GrantError::Untrusted(self.path().display().to_string()));
        }
        let file = self.path().join(SETTINGS_FILE);
        let failed = |cause: String| GrantError::File { file: file.display().to_string(), cause };
        // What was decided on is what is changed: not a text that came in the meantime.
        if Settings::text(self.path()).map_err(FolderError::from)?.as_deref() != self.text() {
            return Err(failed("it was changed a moment ago; try again".to_owned()));
        }
        let before = self.text().unwrap_or_default();
        let after = edit(&file, before)?;
        // A grant without its pin waits; a pin without its grant grants nothing. So the settings come last.
        lock.write(self.path()).map_err(FolderError::from)?;
        if after != before
            && let Err(error) = hotcell_files::replace(&file, after.as_bytes())
        {
            self.lock.write(self.path()).map_err(FolderError::from)?;
            return Err(failed(error.to_string()));
        }
        *self = Self::open(self.path(), &Trust::Everything)?;
        AgentFolder::trust(self, trust)?;
        Ok(())
    }
}

/// The text of `hotcell.toml` with these grants and everything else as it was.
fn edited(file: &Path, before: &str, name: &str, grants: Option<&Grants>) -> Result<String, GrantError> {
    let failed = |cause: String| GrantError::File { file: file.display().to_string(), cause };
    let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| failed(error.to_string()))?;
    let grants = grants.filter(|grants| **grants != Grants::default());
    match grants {
        Some(grants) => {
            let text = toml::to_string(grants).map_err(|error| failed(error.to_string()))?;
            let written: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| failed(error.to_string()))?;
            let all = all_grants(&mut document).ok_or_else(|| failed("`grants` is not a table".to_owned()))?;
            let mut entry = Table::new();
            for (key, value) in written.iter() {
                entry.insert(key, inline(value));
            }
            all.insert(name, Item::Table(entry));
        }
        None => {
            if let Some(all) = document.get_mut("grants").and_then(Item::as_table_like_mut) {
                all.remove(name);
            }
        }
    }
    Ok(document.to_string())
}

/// The table with all grants, which is made if it is not there; none where something else has its name.
pub(crate) fn all_grants(document: &mut DocumentMut) -> Option<&mut dyn TableLike> {
    let all = document.entry("grants").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    all.as_table_like_mut()
}

/// Lists of tables in one line each, so that the grants of a plugin stand together under its name.
pub(crate) fn inline(item: &Item) -> Item {
    match item.clone().into_value() {
        Ok(value) => Item::Value(value),
        Err(item) => item,
    }
}

#[cfg(test)]
mod tests {
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
        std::fs::write(desk.folder.path().join("hotcell.toml"), "# mine\n[plugins.x.config]\na = 'b' # kept\n")
            .unwrap();
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
        assert!(
            text.contains("[grants.\"acme:weather\"]\nhttp = [\"https://api.example.org\"]\nkv = true\n"),
            "{text}"
        );

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
        assert_eq!(
            GrantOrder::default().grants("p", &now, None).unwrap(),
            all,
            "the first time it is all that is asked"
        );
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
        let standing = |(file, plugin): &(std::path::PathBuf, Plugin)| {
            desk.open().standing(file, plugin, &SignaturePolicy::default())
        };
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
        assert_eq!(
            folder.wishes(),
            [("acme:weather".to_owned(), vec!["keep data of its own between calls".to_owned()])]
        );
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
        let error =
            GrantOrder { http: http(), ..GrantOrder::default() }.grants("p", &asked, None).unwrap_err().to_string();
        assert!(error.contains("--fs /d=DIRECTORY"), "{error}");
        let fs = vec![DirectoryGrant::new("data", "/d", Default::default())];
        let grants =
            GrantOrder { http: http(), fs: fs.clone(), ..GrantOrder::default() }.grants("p", &asked, None).unwrap();
        assert_eq!(grants.secret[0].servers, http());
        let error = GrantOrder { only: vec!["kv".to_owned()], ..GrantOrder::default() }.grants("p", &asked, None);
        assert_eq!(error.unwrap_err().to_string(), "`p` does not ask for `kv`");
        let mut wide = fs;
        wide[0].access = hotcell_cells::Access::ReadWrite;
        let error =
            GrantOrder { http: http(), fs: wide, ..GrantOrder::default() }.grants("p", &asked, None).unwrap_err();
        assert_eq!(error.to_string(), "`p` does not ask for `fs` for `/d`");
    }
}
