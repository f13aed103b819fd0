//! A server with two tenants, `acme` and `umbra`, each with agents and a model of its own.

use std::path::Path;
use std::sync::Arc;

use hotcell_runtime::plugins::{RecordSettings, SignaturePolicy, Trust};
use hotcell_runtime::{CancellationToken, Clock, Environment, Host, HostOptions, SystemClock};
use hotcell_serve::{Keys, Role, ServerFile, Site, Tenant, TenantName};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::desk::{Model, client, ok, until_async};

pub(crate) const ACME: &str = "acme";
pub(crate) const UMBRA: &str = "umbra";

/// What only tenant `umbra` has, and nobody else may ever be told.
pub(crate) const MARK: &str = "nightshade";

/// What is written for a tenant below its section, besides where its agents are.
#[derive(Default)]
pub(crate) struct Setup<'a> {
    pub(crate) acme: &'a str,
    pub(crate) umbra: &'a str,
    /// What is written for the server
    pub(crate) server: &'a str,
    /// Files, from the folder of the server file
    pub(crate) files: &'a [(&'a str, &'a str)],
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

pub(crate) struct Premises {
    folder: Arc<TempDir>,
    pub(crate) url: String,
    pub(crate) client: Client,
    /// The model of `acme`
    pub(crate) model: Model,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Premises {
    pub(crate) async fn set_up(setup: Setup<'_>) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let (model, url) = Model::serve().await;
        for (name, text) in setup.files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let env = |secret: &str| {
            format!("env = {{ HOTCELL_MODEL_URL = '{url}', HOTCELL_MODEL = 'test:small', DESK_SECRET = '{secret}' }}\n")
        };
        let (acme, umbra) = (env("of acme"), env(MARK));
        let text = format!(
            "state = 'state'\ndrain_seconds = 1\n{}\n[tenants.acme]\nagents = ['acme']\n{acme}{}\n[tenants.umbra]\nagents = ['umbra']\n{umbra}{}\n",
            setup.server, setup.acme, setup.umbra
        );
        std::fs::write(folder.path().join("server.toml"), text).expect("written");
        let clock = setup.clock.unwrap_or_else(|| Arc::new(SystemClock::default()));
        Premises::start(folder, model, clock).await
    }

    async fn start(folder: Arc<TempDir>, model: Model, clock: Arc<dyn Clock>) -> Self {
        let nothing = Environment::of([("", ""); 0]);
        let file = ServerFile::read_with(&folder.path().join("server.toml"), &nothing).expect("a server file");
        let mut tenants: Vec<Tenant> = Vec::new();
        for setup in file.tenants {
            let options = HostOptions {
                trust: Some(Trust::Everything),
                signatures: Some(SignaturePolicy::default()),
                record: Some(RecordSettings::default()),
                cache_dir: Some(env!("CARGO_TARGET_TMPDIR").into()),
                clock: clock.clone(),
                ..setup.host_options()
            };
            let host = match tenants.first() {
                None => Host::new(options),
                Some(first) => first.host.beside(options),
            };
            tenants.push(setup.tenant(host.expect("a host")));
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let site = Site::new(file.settings, tenants).await.expect("a server");
        // What a tenant may not load is not served.
        let broken =
            site.not_served().filter(|(_, path, _)| !path.ends_with("acme/graph.yaml") && !path.ends_with("acme"));
        let broken: Vec<String> = broken.map(|(name, path, _)| format!("{name}: {path:?}")).collect();
        assert!(broken.is_empty(), "{broken:?}");
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let serving = Some(tokio::spawn(async move { site.serve(listener, stop).await.expect("served") }));
        let premises = Premises { folder, url, client: client(), model, clock, shutdown, serving };
        until_async("the server is ready", async || {
            premises.ask(Method::GET, "/ready", None).send().await.expect("a reply").status() == 200
        })
        .await;
        premises
    }

    /// The same server, stopped and started again.
    pub(crate) async fn again(mut self) -> Self {
        self.shutdown.cancel();
        self.serving.take().expect("it serves").await.expect("no panic");
        Premises::start(self.folder.clone(), self.model.clone(), self.clock.clone()).await
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn keys(&self) -> Keys {
        Keys::open(&self.folder().join("state/server.db")).expect("the file of keys")
    }

    /// A key of a tenant with all roles.
    pub(crate) fn key(&self, tenant: &str) -> String {
        let tenant: TenantName = tenant.parse().expect("a name");
        self.keys().add("test", Some(&tenant), &Role::ALL, None).expect("made").reveal()
    }

    pub(crate) fn ask(&self, method: Method, path: &str, key: Option<&str>) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub(crate) fn get(&self, path: &str, key: &str) -> RequestBuilder {
        self.ask(Method::GET, path, Some(key))
    }

    pub(crate) fn post(&self, path: &str, key: &str, body: Value) -> RequestBuilder {
        self.ask(Method::POST, path, Some(key)).json(&body)
    }

    /// Begins a run, and gives its name.
    pub(crate) async fn begin(&self, key: &str, body: Value) -> String {
        ok(self.post("/runs", key, body)).await["run_id"].as_str().expect("a name").to_owned()
    }
}

impl Drop for Premises {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
