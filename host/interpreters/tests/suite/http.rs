//! HTTP of scripts: what is granted works as each language's own means promise, and everything else is the host's.

use std::sync::Arc;
use std::time::Duration;

use hotcell_budget::{Budget, Bytes, Limit};
use hotcell_cells::{CellError, Report, Secrets, Terms};
use serde_json::{Value, json};

use crate::common::server::{Answer, Server, answer};

/// The same in each language: its extension and its source.
type Versions = [(&'static str, &'static str); 3];

fn terms(grants: &str, base: &Server) -> Terms {
    Terms {
        budget: Budget::interpreter(),
        grants: Arc::new(toml::from_str(grants).unwrap_or_else(|error| panic!("{grants}: {error}"))),
        env: vec![("BASE".to_owned(), base.origin())],
        secrets: Secrets::new([("KEY".to_owned(), "value-of-the-key".to_owned())]),
        ..Terms::new("scripts/script")
    }
}

fn granted(servers: &[&Server]) -> String {
    let servers: Vec<String> = servers.iter().map(|server| server.origin()).collect();
    format!("http = {servers:?}")
}

async fn run(extension: &str, source: &str, terms: Terms) -> Option<Report<String>> {
    crate::common::run_under(extension, source, "{}", terms).await
}

/// What a script printed, as JSON.
fn printed(extension: &str, report: &Report<String>) -> Value {
    let text = report.result.as_ref().unwrap_or_else(|error| panic!("{extension}: {error}"));
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{extension}: {error} in {text}"))
}

fn denials(report: &Report<String>) -> Vec<String> {
    report.denials.iter().map(ToString::to_string).collect()
}

/// Says what it is asked: the query, or a header, the kind and the text of what is posted.
fn echo(request: &str) -> Answer {
    let header = |name: &str| {
        let line = request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or("(none)").to_owned()
    };
    let (_, body) = request.split_once("\r\n\r\n").unwrap_or_default();
    match request.split(' ').nth(1).unwrap_or_default() {
        "/get?q=1" => answer("200 OK", "x-told: yes\r\ncontent-type: application/json\r\n", r#"{"q": "ä"}"#),
        "/post" => answer("201 Created", "", &format!("{}|{}|{body}", header("x-key"), header("content-type"))),
        _ => answer("404 Not Found", "", "nothing here"),
    }
}

#[tokio::test]
async fn a_granted_server_is_asked_and_answers() {
    let versions: Versions = [
        (
            "py",
            r#"
import json, os, urllib.error, urllib.request
base = os.environ["BASE"]
with urllib.request.urlopen(base + "/get?q=1") as answer:
    got = [answer.status, answer.headers["X-Told"], json.load(answer)["q"]]
request = urllib.request.Request(base + "/post", data="é".encode(), headers={"X-Key": "v", "Content-Type": "text/x"})
posted = urllib.request.urlopen(request)
try:
    missing = urllib.request.urlopen(base + "/nowhere")
except urllib.error.HTTPError as error:
    missing = [error.code, error.read().decode()]
print(json.dumps({"got": got, "posted": [posted.status, posted.read().decode()], "missing": missing}))
"#,
        ),
        (
            "js",
            r#"
const base = process.env.BASE;
const answer = await fetch(`${base}/get?q=1`);
const got = [answer.status, answer.headers.get("X-Told"), (await answer.json()).q];
const posted = await fetch(`${base}/post`, { method: "POST", body: "é", headers: { "X-Key": "v", "Content-Type": "text/x" } });
const missing = await fetch(`${base}/nowhere`);
if (missing.ok || posted.statusText !== "Created") throw new Error("odd");
console.log(JSON.stringify({ got, posted: [posted.status, await posted.text()], missing: [missing.status, await missing.text()] }));
"#,
        ),
        (
            "sh",
            r#"
q=$(curl -s "$BASE/get?q=1" | jq -r .q)
told=$(curl -si "$BASE/get?q=1" | grep -i '^x-told:' | tr -d '\r' | cut -d' ' -f2)
status=$(curl -s -o /tmp/got -w '%{http_code}' "$BASE/get?q=1")
posted=$(curl -sS "$BASE/post" -H 'X-Key: v' -H 'Content-Type: text/x' -d é)
created=$(curl -s -o /tmp/posted -w '%{http_code}' -d x "$BASE/post")
missing=$(curl -s "$BASE/nowhere")
curl -sf "$BASE/nowhere"; [[ $? == 22 ]] && gone=404
jq -cn --arg q "$q" --arg told "$told" --arg posted "$posted" --arg missing "$missing" --argjson status "$status" \
  --argjson created "$created" --argjson gone "$gone" \
  '{got: [$status, $told, $q], posted: [$created, $posted], missing: [$gone, $missing]}'
"#,
        ),
    ];
    for (extension, source) in versions {
        let server = Server::start(echo).await;
        let Some(report) = run(extension, source, terms(&granted(&[&server]), &server)).await else { continue };
        let expected = json!({
            "got": [200, "yes", "ä"], "posted": [201, "v|text/x|é"], "missing": [404, "nothing here"],
        });
        assert_eq!(printed(extension, &report), expected, "{extension}");
        assert_eq!(denials(&report), [""; 0], "{extension}");
        let requests = server.requests();
        assert_eq!(report.usage.http_requests, requests.len() as u64, "{extension}");
        let host = format!("host: {}\r\n", server.address);
        assert!(requests.iter().all(|request| request.contains(&host)), "{extension}: {requests:?}");
    }
}

/// Asks `BASE`, and says by what it was refused.
const REFUSED: Versions = [
    (
        "py",
        "import os, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(os.environ['BASE'] + '/').read())
except urllib.error.URLError as error:
    print(type(error.reason).__name__, error.reason)",
    ),
    (
        "js",
        "try { console.log(await (await fetch(process.env.BASE + '/')).text()); }
catch (error) { console.log(error.cause.code, error.message); }",
    ),
    ("sh", "curl -sS \"$BASE/\" 2>&1; echo $?"),
];

#[tokio::test]
async fn what_is_not_granted_is_refused_and_noted_for_the_operator() {
    for (extension, source) in REFUSED {
        let (server, other) = (Server::start(echo).await, Server::start(echo).await);
        for grants in [String::new(), granted(&[&other]), format!("http = ['https://{}']", server.address)] {
            let Some(report) = run(extension, source, terms(&grants, &server)).await else { continue };
            let text = report.result.as_ref().unwrap_or_else(|error| panic!("{extension}: {error}"));
            let words = format!("`http` for `GET {}` is not granted", server.origin());
            let kind = match extension {
                "py" => "PermissionError ",
                "js" => "EACCES fetch failed: ",
                _ => "curl: (7) ",
            };
            assert!(text.starts_with(&format!("{kind}{words}\n")), "{extension}: {text}");
            let expected = format!(
                "`scripts/script` asked for `http` for `GET {origin}`, which is not granted; to grant it, write into \
                 `hotcell.toml`:\n[grants.\"scripts/script\"]\nhttp = [\"{origin}\"]",
                origin = server.origin()
            );
            assert_eq!(denials(&report), [expected], "{extension}");
            assert_eq!((server.requests().len(), other.requests().len()), (0, 0), "{extension}");
            assert_eq!(report.usage.http_requests, 0, "{extension}");
        }
    }
}

#[tokio::test]
async fn https_is_asked_of_the_host_too() {
    let versions: Versions = [
        ("py", "import urllib.request\nurllib.request.urlopen('https://x.org/')"),
        ("js", "await fetch('https://x.org/')"),
        ("sh", "curl -sS https://x.org/"),
    ];
    let server = Server::start(echo).await;
    for (extension, source) in versions {
        let Some(report) = run(extension, source, terms("http = ['http://x.org']", &server)).await else { continue };
        assert!(matches!(report.result, Err(CellError::Exit { .. })), "{extension}: {:?}", report.result);
        let expected = "`http` for `GET https://x.org` is not granted";
        assert!(report.stderr.contains(expected), "{extension}: {}", report.stderr);
    }
}

/// Sends the secret to `BASE`, and says what came back.
const SENDS_SECRET: Versions = [
    (
        "py",
        "import os, urllib.request
request = urllib.request.Request(os.environ['BASE'] + '/', headers={'Authorization': 'Bearer ' + os.environ['KEY']})
print(urllib.request.urlopen(request).read().decode())",
    ),
    (
        "js",
        "const headers = { Authorization: `Bearer ${process.env.KEY}` };
console.log(await (await fetch(`${process.env.BASE}/`, { headers })).text());",
    ),
    ("sh", "curl -s -H \"Authorization: Bearer $KEY\" \"$BASE/\"; echo"),
];

/// What a request was authorised with.
fn authorization(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("authorization: ")).unwrap_or_default()
}

#[tokio::test]
async fn attack_53_55_a_secret_goes_to_its_server_alone_and_no_script_sees_it() {
    let told = |request: &str| answer("200 OK", "", &format!("you sent {}", authorization(request)));
    for (extension, source) in SENDS_SECRET {
        let (server, other) = (Server::start(told).await, Server::start(told).await);
        let secret = format!("secret = [{{ name = 'KEY', servers = ['{}'] }}]", server.origin());
        let grants = format!("{}\n{secret}", granted(&[&server, &other]));

        let Some(report) = run(extension, source, terms(&grants, &server)).await else { continue };
        assert_eq!(report.result.as_deref().map(str::trim_end), Ok("you sent Bearer (secret KEY)"), "{extension}");
        assert_eq!(authorization(&server.requests()[0]), "Bearer value-of-the-key", "{extension}");

        let Some(report) = run(extension, source, terms(&grants, &other)).await else { continue };
        let sent = other.requests();
        assert!(authorization(&sent[0]).starts_with("Bearer hotcell-secret-"), "{extension}: {sent:?}");
        let denials = denials(&report);
        assert!(denials.len() == 1 && denials[0].contains("`secret` `KEY`"), "{extension}: {denials:?}");
    }
}

#[tokio::test]
async fn a_secret_is_a_placeholder_among_the_variables_even_if_the_variable_is_granted() {
    let versions: Versions = [
        ("py", "import os\nprint(os.environ['KEY'])"),
        ("js", "console.log(process.env.KEY)"),
        ("sh", "echo \"$KEY\""),
    ];
    let server = Server::start(echo).await;
    for (extension, source) in versions {
        let mut terms = terms("secret = [{ name = 'KEY', servers = ['https://x.org'] }]", &server);
        terms.env.push(("KEY".to_owned(), "as-a-variable".to_owned()));
        let Some(report) = run(extension, source, terms).await else { continue };
        assert!(report.result.as_ref().is_ok_and(|text| text.starts_with("hotcell-secret-")), "{report:?}");
    }
}

#[tokio::test]
async fn more_bytes_or_requests_than_the_budget_has_end_the_call() {
    let versions: Versions = [
        (
            "py",
            "import os, urllib.request\nfor _ in range(3):\n    urllib.request.urlopen(os.environ['BASE'] + '/').read()",
        ),
        ("js", "for (let i = 0; i < 3; i += 1) await (await fetch(process.env.BASE + '/')).text();"),
        ("sh", "set -e\nfor i in 1 2 3; do curl -sS \"$BASE/\" > /tmp/out; done"),
    ];
    let budgets = [
        Budget { http_bytes: Bytes(50_000), ..Budget::interpreter() },
        Budget { http_requests: 2, ..Budget::interpreter() },
    ];
    for (extension, source) in versions {
        let server = Server::start(|_| answer("200 OK", "", &"x".repeat(30_000))).await;
        for budget in &budgets {
            let terms = Terms { budget: budget.clone(), ..terms(&granted(&[&server]), &server) };
            let Some(report) = run(extension, source, terms).await else { continue };
            let error = report.result.expect_err("the budget is smaller");
            assert_eq!(error.limit(), Some(Limit::Egress), "{extension}: {error}");
            assert!(error.to_string().contains("HTTP requests"), "{extension}: {error}");
        }
    }
}

/// A request that is larger than all that may be sent is not kept, however many there are of it.
#[tokio::test]
async fn requests_that_wait_have_a_share_of_the_hosts_memory() {
    let server = Server::start(|_| None).await;
    let source = "const body = 'x'.repeat(30_000); const all = [];
        for (let i = 0; i < 3; i += 1) all.push(fetch(process.env.BASE + '/', { method: 'POST', body }));
        await Promise.race(all);";
    let budget = Budget { http_bytes: Bytes(50_000), ..Budget::interpreter() };
    let terms = Terms { budget, ..terms(&granted(&[&server]), &server) };
    let report = run("js", source, terms).await.expect("JavaScript is always built");
    assert_eq!(report.result.expect_err("the budget is smaller").limit(), Some(Limit::Egress));

    let source = "for (let i = 0; i < 50; i += 1) fetch(process.env.BASE + '/'); await new Promise(() => {});";
    let budget = Budget { handles: 40, ..Budget::interpreter() };
    let terms = Terms { budget, ..self::terms(&granted(&[&server]), &server) };
    let report = run("js", source, terms).await.expect("JavaScript is always built");
    assert_eq!(report.result.expect_err("the handles are fewer").limit(), Some(Limit::TooManyHandles));
}

#[tokio::test]
async fn a_script_may_stop_waiting() {
    let sources = [
        (
            "py",
            "import os, urllib.request
try:
    urllib.request.urlopen(os.environ['BASE'] + '/', timeout=0.2)
except TimeoutError as error:
    print('stopped')",
        ),
        (
            "js",
            "const stop = new AbortController();
setTimeout(() => stop.abort(), 200);
await fetch(process.env.BASE + '/', { signal: stop.signal }).catch((error) => {
  if (error.name === 'AbortError') console.log('stopped');
});",
        ),
        (
            "js",
            "await fetch(process.env.BASE + '/', { signal: AbortSignal.timeout(200) }).catch((error) => {
  if (error.name === 'TimeoutError') console.log('stopped');
});",
        ),
        ("sh", "curl -sS -m 0.2 \"$BASE/\" || [[ $? == 28 ]] && echo stopped"),
    ];
    for (extension, source) in sources {
        let server = Server::start(|_| None).await;
        let Some(report) = run(extension, source, terms(&granted(&[&server]), &server)).await else { continue };
        assert_eq!(report.result.as_deref(), Ok("stopped\n"), "{extension}: {}", report.stderr);
    }
}

#[tokio::test]
async fn a_script_that_waits_for_ever_ends_at_its_deadline() {
    for (extension, source) in REFUSED {
        let server = Server::start(|_| None).await;
        let budget = Budget { wall_clock: Duration::from_millis(500), ..Budget::interpreter() };
        let terms = Terms { budget, ..terms(&granted(&[&server]), &server) };
        let Some(report) = run(extension, source, terms).await else { continue };
        let error = report.result.expect_err("nobody answers");
        assert_eq!(error.limit(), Some(Limit::Deadline), "{extension}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_is_asked_of_the_policy_like_every_request() {
    let versions: Versions = [
        (
            "py",
            "import os, urllib.error, urllib.request
print(urllib.request.urlopen(os.environ['BASE'] + '/near').read().decode())
try:
    urllib.request.urlopen(os.environ['BASE'] + '/far')
except urllib.error.URLError as error:
    print(error.reason)",
        ),
        (
            "js",
            "console.log(await (await fetch(process.env.BASE + '/near')).text());
await fetch(process.env.BASE + '/far').catch((error) => console.log(error.cause.message));",
        ),
        ("sh", "curl -sL \"$BASE/near\"; echo; curl -sSL \"$BASE/far\" 2>&1 | cut -d' ' -f3-"),
    ];
    for (extension, source) in versions {
        let other = Server::start(echo).await;
        let far = format!("location: {}/secret\r\n", other.origin());
        let server = Server::start(move |request| match request.split(' ').nth(1).unwrap_or_default() {
            "/near" => answer("302 Found", "location: here\r\n", ""),
            "/far" => answer("302 Found", &far, ""),
            _ => answer("200 OK", "", "arrived"),
        })
        .await;
        let Some(report) = run(extension, source, terms(&granted(&[&server]), &server)).await else { continue };
        let expected = format!("arrived\n`http` for `GET {}` is not granted\n", other.origin());
        assert_eq!(report.result.as_deref(), Ok(expected.as_str()), "{extension}: {}", report.stderr);
        assert_eq!(denials(&report).len(), 1, "{extension}");
        assert_eq!(other.requests().len(), 0, "{extension}");
    }
}

/// Each is answered only once the other has come, and a timer is not kept waiting by them.
#[tokio::test]
async fn requests_of_javascript_are_under_way_together() {
    let server = Server::start_for(3, |_| answer("200 OK", "", "all")).await;
    let source = "const ask = () => fetch(process.env.BASE + '/').then((answer) => answer.text());
        const last = new Promise((resolve) => setTimeout(() => resolve(ask()), 1));
        console.log((await Promise.all([ask(), ask(), last])).join(' '));";
    let budget = Budget { wall_clock: Duration::from_secs(10), ..Budget::interpreter() };
    let terms = Terms { budget, ..terms(&granted(&[&server]), &server) };
    let report = run("js", source, terms).await.expect("JavaScript is always built");
    assert_eq!(report.result.as_deref(), Ok("all all all\n"), "{}", report.stderr);
}

#[tokio::test]
async fn a_timer_that_is_always_due_keeps_no_answer_away() {
    let server = Server::start(|_| answer("200 OK", "", "there")).await;
    let source = "const busy = setInterval(() => { const until = Date.now() + 5; while (Date.now() < until); }, 1);
        console.log(await (await fetch(process.env.BASE + '/')).text());
        clearInterval(busy);";
    let budget = Budget { wall_clock: Duration::from_secs(10), ..Budget::interpreter() };
    let terms = Terms { budget, ..terms(&granted(&[&server]), &server) };
    let report = run("js", source, terms).await.expect("JavaScript is always built");
    assert_eq!(report.result.as_deref(), Ok("there\n"), "{}", report.stderr);
}

#[tokio::test]
async fn what_a_server_says_is_no_part_of_the_format_of_curl() {
    let server = Server::start(|_| answer("200 OK", "content-type: %{url_effective}%%\\n\r\n", "four")).await;
    let source = r#"curl -s -o /tmp/got -w '%{http_code}\t%{content_type} %% %{size_download} %{other}\n' "$BASE/""#;
    let report = run("sh", source, terms(&granted(&[&server]), &server)).await.expect("the shell is always built");
    assert_eq!(report.result.as_deref(), Ok("200\t%{url_effective}%%\\n % 4 %{other}\n"), "{}", report.stderr);
}

#[tokio::test]
async fn http_client_of_python_works_below_urllib() {
    let source = r#"
import http.client, json, os, urllib.parse
place = urllib.parse.urlsplit(os.environ["BASE"])
connection = http.client.HTTPConnection(place.hostname, place.port, timeout=10)
connection.request("HEAD", "/get?q=1")
head = connection.getresponse()
said = [head.status, head.getheader("content-length"), head.read().decode()]
connection.request("POST", "/post", body=iter([b"in ", b"parts"]), headers={"X-Key": "k"}, encode_chunked=True)
posted = connection.getresponse().read().decode()
connection.request("PUT", "/post", body=b"again")
again = connection.getresponse()
print(json.dumps({"head": said, "posted": posted, "again": [again.status, again.reason, again.read().decode()]}))
"#;
    let server = Server::start(|request| match request.starts_with("HEAD") {
        true => Some(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n".to_vec()),
        false => echo(request),
    })
    .await;
    let Some(report) = run("py", source, terms(&granted(&[&server]), &server)).await else { return };
    let expected = json!({
        "head": [200, "12", ""], "posted": "k|(none)|in parts", "again": [201, "Created", "(none)|(none)|again"],
    });
    assert_eq!(printed("py", &report), expected);
}

/// Every call here is recorded and executed again (`common::run_under`): the server hears of the first time only.
#[tokio::test]
async fn a_recording_answers_in_the_place_of_the_network() {
    for (extension, source) in SENDS_SECRET {
        let server = Server::start(|request| answer("200 OK", "", authorization(request))).await;
        let secret = format!("secret = [{{ name = 'KEY', servers = ['{}'] }}]", server.origin());
        let grants = format!("{}\n{secret}", granted(&[&server]));
        let Some(report) = run(extension, source, terms(&grants, &server)).await else { continue };
        let recording = report.recording.as_deref().unwrap_or_default();
        assert!(recording.contains("http-wait") && !recording.contains("\"gap\""), "{extension}: {recording}");
        assert!(!recording.contains("value-of-the-key"), "{extension}: {recording}");
        assert_eq!(server.requests().len(), 1, "{extension}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_said() {
    let sources = [
        (
            "py",
            "import urllib.request as u\nu.urlopen(u.Request('http://x.org/', headers={'Host': 'y.org'}))",
            "`Host`",
        ),
        ("py", "import urllib.request as u\nu.urlopen('https://x.org/', context=object())", "checks certificates"),
        ("js", "await fetch('http://x.org/', { headers: { host: 'y.org' } })", "`host` belongs to the connection"),
        ("js", "await fetch('ftp://x.org/')", "is neither `http` nor `https`"),
        ("js", "await fetch('http://x.org/', { method: 'CONNECT' })", "`CONNECT` is for proxies"),
        ("js", "require('https')", "a script asks servers with `fetch`"),
        ("sh", "curl -sS --proxy http://y.org http://x.org/", "option --proxy: is unknown"),
        ("sh", "curl -sS", "no URL specified"),
        ("sh", "curl -sS 'http://['", "is no address"),
    ];
    let server = Server::start(echo).await;
    for (extension, source, expected) in sources {
        let Some(report) = run(extension, source, terms("", &server)).await else { continue };
        assert!(matches!(report.result, Err(CellError::Exit { .. })), "{source}: {:?}", report.result);
        assert!(report.stderr.contains(expected), "{source}: {}", report.stderr);
    }
}
