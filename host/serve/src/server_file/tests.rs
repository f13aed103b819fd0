use std::path::Path;

use hotcell_runtime::Environment;

use super::ServerFile;

fn read(folder: &Path, text: &str) -> Result<ServerFile, String> {
    let file = folder.join("server.toml");
    std::fs::write(&file, text).expect("written");
    ServerFile::read_with(&file, &Environment::of([("SHARED", "s"), ("OTHER", "o")])).map_err(|error| error.to_string())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["acme/agents", "acme/more", "umbra/agents"] {
        std::fs::create_dir_all(folder.path().join(name)).expect("made");
    }
    folder
}

#[test]
fn a_tenant_has_the_variables_that_are_written_for_it_and_no_others() {
    let folder = folder();
    std::fs::write(folder.path().join("acme/.env"), "A=file\nB=file\nSHARED=file\n").expect("written");
    let text = "state = 'state'\nlisten = '127.0.0.1:1'\ndrain_seconds = 3\n[tenants.acme]\nagents = ['acme/agents']\n\
                env_file = 'acme/.env'\ninherit = ['SHARED']\nenv = { B = 'written' }\nmodel = 'test:small'\nmax_runs = 3\n\
                [tenants.umbra]\nagents = ['umbra/agents']\n";
    let file = read(folder.path(), text).expect("a server file");
    let [acme, umbra] = &file.tenants[..] else { panic!("two tenants") };
    let of = |name: &str| acme.environment.get(name);
    let found = ["A", "B", "SHARED", "HOTCELL_MODEL", "OTHER", "PATH"].map(of);
    assert_eq!(
        found,
        [Some("file"), Some("written"), Some("s"), Some("test:small"), None, None].map(|v| v.map(str::to_owned))
    );
    assert!(["A", "SHARED", "OTHER", "PATH", "HOME"].iter().all(|name| umbra.environment.get(name).is_none()));
    assert_eq!((acme.max_runs, umbra.max_runs), (3, 1024));
    assert_eq!(acme.state, folder.path().join("state/tenants/acme"));
    assert_eq!(file.keys(), Some(folder.path().join("state/server.db").as_path()));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let folder = folder();
    let acme = "state = 'state'\n[tenants.acme]\nagents = ['acme/agents']\n";
    let umbra = |agents: &str| format!("{acme}[tenants.umbra]\nagents = ['{agents}']\n");
    std::fs::write(folder.path().join("secrets"), "TOP SECRET\n").expect("written");
    for (text, said) in [
        ("", "missing field `state`"),
        ("state = 'state'", "no tenants"),
        ("state = 'state'\nlistens = '1'\n", "unknown field `listens`"),
        (&format!("{acme}agent = 1\n"), "unknown field `agent`"),
        ("state = 'state'\n[tenants.acme]\n", "missing field `agents`"),
        ("state = 'state'\n[tenants.\"a/b\"]\nagents = []\n", "`[tenants.a/b]`: the name of a tenant has"),
        (&format!("{acme}max_runs = 0\n"), "`max_runs` has to be 1 or more"),
        (&format!("{acme}weight = 0\n"), "`weight` has to be 1 to 1000"),
        (&format!("{acme}runs_per_minute = 0\n"), "`runs_per_minute` has to be 1 or more"),
        (&format!("{acme}requests_per_second = 0\n"), "`requests_per_second` has to be 1 or more"),
        (&format!("{acme}month = {{ usd = -1.0 }}\n"), "`month.usd` is not a valid amount"),
        (&format!("{acme}month = {{ usd = nan }}\n"), "`month.usd` is not a valid amount"),
        (&format!("{acme}month = {{ eur = 1.0 }}\n"), "unknown field `eur`"),
        (&format!("cors_origins = ['*']\n{acme}"), "`*` is not an origin"),
        (&format!("cors_origins = ['https://a.example/']\n{acme}"), "is not an origin"),
        (&format!("cors_origins = ['https://*.example']\n{acme}"), "is not an origin"),
        (&format!("cors_origins = ['null']\n{acme}"), "is not an origin"),
        (&format!("cors_origins = ['app.example.com']\n{acme}"), "is not an origin"),
        (
            &format!("{acme}groups = {{ finance = [] }}\n"),
            "`[tenants.acme]`: `groups`: the group `finance` has no members",
        ),
        (
            &format!("{acme}groups = {{ a = ['ada', 'group:b'] }}\n"),
            "`group:b` in the group `a` is not a valid name of a person",
        ),
        (&format!("{acme}groups = {{ ' a' = ['ada'] }}\n"), "` a` is not a valid name of a group"),
        (&format!("{acme}groups = {{ a = 'ada' }}\n"), "expected a sequence"),
        (&format!("{acme}groups = {{ a = ['ada'], a = ['bob'] }}\n"), "duplicate key"),
        (&format!("{acme}[tenants.acme.groups]\na = ['ada']\na = ['bob']\n"), "duplicate key"),
        (&format!("{acme}inherit = ['NONE']\n"), "the server has no variable `NONE`"),
        (&format!("{acme}env_file = 'none'\n"), "`env_file`"),
        (&format!("{acme}env_file = 'secrets'\n"), "line 1 is not"),
        (&umbra("nowhere"), "there is no"),
        (&umbra("acme/agents"), "tenant `umbra`"),
        (&umbra("acme"), "in one another"),
        (&umbra("acme/more/../agents"), "in one another"),
        (&umbra("."), "the server's `state`"),
        (&format!("{}plugins = ['none/../acme/agents/plugins']\n", umbra("umbra/agents")), "tenant `umbra`"),
        (&format!("{}plugins = ['none/../state/tenants/acme']\n", umbra("umbra/agents")), "the server's `state`"),
    ] {
        let error = read(folder.path(), text).expect_err(text);
        assert!(error.contains(said) && error.contains("server.toml"), "{text}: {error}");
        assert!(!error.contains("TOP"), "{error}");
    }
    assert!(read(folder.path(), &umbra("umbra/agents")).is_ok());
}

#[test]
fn who_issues_tokens_is_said_in_full_and_nothing_unsafe_is_taken() {
    let folder = folder();
    let text = |oidc: &str| {
        format!(
            "state = 'state'\n[[oidc]]\nissuer = 'https://id.example.com/realm'\naudience = ['hotcell']\n{oidc}\n[tenants.acme]\nagents = ['acme/agents']\n"
        )
    };
    let only = "tenant = 'acme'\n";
    let file = read(folder.path(), &text(only)).expect("a server file");
    let [oidc] = &file.settings.oidc[..] else { panic!("one issuer") };
    assert_eq!((oidc.algorithms.join(" ").as_str(), oidc.clock_skew.as_secs()), ("RS256 ES256", 60));
    assert!(
        read(folder.path(), &text("tenant_claim = 'org'\nroles_claim = '/realm/roles'\nroles = { a = ['run'] }\n"))
            .is_ok()
    );
    for (oidc, said) in [
        ("", "`tenant`"),
        ("tenant = 'acme'\ntenant_claim = 'org'\n", "`tenant`"),
        ("tenant = 'acme'\ntenants = { a = 'acme' }\n", "`tenant`"),
        ("tenant = 'umbra'\n", "there is no tenant `umbra`"),
        ("tenant_claim = 'org'\ntenants = { a = 'umbra' }\n", "there is no tenant `umbra`"),
        ("tenant = 'A B'\n", "lower-case"),
        ("tenant = 'acme'\nroles = { a = ['run'] }\n", "`roles_claim`"),
        ("tenant = 'acme'\nroles_claim = 'r'\nroles = { a = ['king'] }\n", "a role is one of"),
        ("tenant = 'acme'\ndefault_roles = ['king']\n", "a role is one of"),
        ("tenant = 'acme'\ngroups = { a = 'b' }\n", "`groups_claim`"),
        ("tenant = 'acme'\ngroups_claim = 'g'\ngroups = { a = ' b' }\n", "not a valid name of a group"),
        ("tenant = 'acme'\ngroups_claim = 'g'\ngroups = { a = ['b'] }\n", "expected a string"),
        ("tenant = 'acme'\nalgorithms = []\n", "`algorithms` are some of"),
        ("tenant = 'acme'\nalgorithms = ['HS256']\n", "`algorithms` are some of"),
        ("tenant = 'acme'\nalgorithms = ['RS256', 'none']\n", "`algorithms` are some of"),
        ("tenant = 'acme'\nclock_skew_seconds = 301\n", "300 s apart at most"),
        ("tenant = 'acme'\nkeys = 'http://id.example.com/keys'\n", "has to begin with `https://`"),
        ("tenant = 'acme'\nca_file = 'none.pem'\n", "none.pem"),
        ("tenant = 'acme'\nscope = 'x'\n", "unknown field `scope`"),
        (
            "tenant = 'acme'\n[[oidc]]\nissuer = 'https://id.example.com/realm'\naudience = ['other']\ntenant = 'acme'\n",
            "there twice",
        ),
    ] {
        let error = read(folder.path(), &text(oidc)).expect_err(oidc);
        assert!(error.contains(said), "{oidc}: {error}");
    }
    for (issuer, said) in
        [("http://id.example.com", "https://"), ("id", "is not a valid address"), ("file:///x", "https://")]
    {
        let text = text(only).replace("https://id.example.com/realm", issuer);
        let error = read(folder.path(), &text).expect_err(issuer);
        assert!(error.contains(said), "{issuer}: {error}");
    }
    let nobody = text(only).replace("['hotcell']", "[]");
    assert!(read(folder.path(), &nobody).expect_err("nobody").contains("`audience`"));
}
