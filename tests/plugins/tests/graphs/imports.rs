//! What the import paths of a project's Python code mean: modules of the project, packages that the operator names, and HTTP.

use hotcell_loopback::{Loopback, Script, WebAnswer, WebServer};
use serde_json::json;

use crate::declarative::talker;
use crate::desk::{Desk, calls, error, output, told};

/// An agent two folders below its project's root, with a tool at `import`.
fn in_project(import: &str) -> Desk {
    let desk =
        Desk::of("examples/weather/agent.yaml", &talker(&format!("tools: [{{id: one, import_path: {import}}}]")));
    desk.write("pyproject.toml", "[project]\nname = \"shop\"\n");
    desk
}

const TOOLS: &str = r#"from __future__ import annotations
from langchain_core.tools import tool
from examples.lib import rates
from .lib.names import shown as name_of


@tool
def get_weather(city: str) -> str:
    """Get the weather.

    Args:
        city: Where
    """
    from app.late import MARK

    return f"{name_of(city)}: {rates.RATES[city]}{MARK}"
"#;

fn fill(desk: &Desk) {
    desk.write("examples/tools.py", TOOLS);
    desk.write("examples/lib/__init__.py", "");
    desk.write("examples/lib/rates.py", "RATES = {'Oslo': 3}\n");
    desk.write("examples/lib/names.py", "def shown(city):\n    return city.upper()\n");
    desk.write("src/app/late.py", "MARK = '!'\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_are_imported_from_the_root_of_the_project() {
    let desk = in_project("examples.tools.get_weather");
    fill(&desk);
    let (report, model) = desk.run(calls("get_weather", json!({ "city": "Oslo" }))).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "OSLO: 3!"));
    let offered = &model.requests()[0].tools[0];
    assert_eq!(
        (offered.description.as_str(), &offered.parameters["properties"]["city"]),
        ("Get the weather.", &json!({"type": "string", "description": "Where"}))
    );

    // Settings beside the agent do not make it a project of its own.
    desk.write("examples/weather/hotcell.toml", "[ceiling]\noutput = 1000000\n");
    let (report, _) = desk.run(calls("get_weather", json!({ "city": "Oslo" }))).await;
    assert_eq!(output(&report), "done");

    // A package may hand on what its modules define.
    let desk = in_project("examples.kit.get_weather");
    fill(&desk);
    desk.write("examples/kit/__init__.py", "from ..tools import get_weather\n");
    let (report, _) = desk.run(calls("get_weather", json!({ "city": "Oslo" }))).await;
    assert_eq!(output(&report), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_shows_the_lines_of_the_project_alone() {
    let desk = in_project("examples.tools.get_weather");
    fill(&desk);
    desk.write("examples/lib/names.py", "import json\n\n\ndef shown(city):\n    return json.loads(city)\n");
    let (report, _) = desk.run(calls("get_weather", json!({ "city": "Oslo" }))).await;
    let error = error(&report);
    for part in [
        "JSONDecodeError",
        "../tools.py\", line 16, in get_weather",
        "../lib/names.py\", line 5, in shown",
        "json.loads(city)",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("decoder.py") && !error.contains("_call"), "{error}");

    desk.write("examples/lib/names.py", "shown = missing\n");
    let refused = desk.refusal();
    assert!(refused.contains("NameError") && refused.contains("names.py\", line 1"), "{refused}");
    assert!(!refused.contains("importlib") && !refused.contains("_load"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_found_where_the_operator_says() {
    let desk = in_project("examples.tools.greet");
    desk.write(
        "examples/tools.py",
        "import greeting\n\n\ndef greet() -> str:\n    return greeting.words.HELLO + greeting.data()\n",
    );
    let refused = desk.refusal();
    assert!(refused.contains("No module named 'greeting'") && refused.contains("[python]"), "{refused}");
    let packages = "examples/weather/.venv/lib/python3.12/site-packages";
    desk.write("examples/weather/.venv/pyvenv.cfg", "");
    let source = "import pathlib\nfrom . import words\n\n\ndef data():\n    return pathlib.Path(__file__).with_name('data.txt').read_text()\n";
    desk.write(&format!("{packages}/greeting/__init__.py"), source);
    desk.write(&format!("{packages}/greeting/words.py"), "HELLO = 'hello, '\n");
    desk.write(&format!("{packages}/greeting/data.txt"), "world");
    desk.write("examples/weather/hotcell.toml", "[python]\npath = ['.venv']\n");
    let (_, model) = desk.run(calls("greet", json!({}))).await;
    assert_eq!(told(&model), "hello, world");

    // A library for which something stands in comes first if it can run.
    desk.write("examples/tools.py", "import pydantic\n\n\ndef greet() -> str:\n    return pydantic.VERSION\n");
    desk.write(&format!("{packages}/pydantic/__init__.py"), "VERSION = '1.10'\n");
    let (_, model) = desk.run(calls("greet", json!({}))).await;
    assert_eq!(told(&model), "1.10");

    desk.write("examples/tools.py", "import fast\n");
    desk.write(&format!("{packages}/fast/__init__.py"), "from ._fast import speed\n");
    desk.write(&format!("{packages}/fast/_fast.cpython-312-x86_64-linux-gnu.so"), "");
    let refused = desk.refusal();
    assert!(refused.contains("native code") && refused.contains("_fast.cpython"), "{refused}");

    desk.write("examples/weather/hotcell.toml", "[python]\npath = ['nowhere']\n");
    let refused = desk.refusal();
    assert!(refused.contains("nowhere") && refused.contains("there is no such folder"), "{refused}");
}

const HTTP: &str = r#"import httpx
import requests
import urllib3


def look(url: str) -> str:
    answer = httpx.get(url, params={"q": "a b"}, timeout=15)
    answer.raise_for_status()
    first = answer.json()["n"]
    second = requests.post(url, json={"n": 2}).json()["n"]
    third = urllib3.PoolManager().request("GET", url, fields={"k": "v"}).json()["n"]
    try:
        requests.get(url + "/missing").raise_for_status()
    except requests.exceptions.HTTPError as error:
        return f"{first + second + third} {error.response.status_code}"


async def later(url: str) -> str:
    async with httpx.AsyncClient(base_url=url) as client:
        return (await client.get("/")).text


def streamed(url: str) -> str:
    return httpx.stream("GET", url)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn http_libraries_ask_the_host() {
    let server = WebServer::start(|request| {
        let status = if request.path.contains("missing") { 404 } else { 200 };
        Some(WebAnswer { status, body: r#"{"n": 7}"#.into(), is_json: true, headers: Vec::new() })
    })
    .unwrap();
    let origin = format!("http://127.0.0.1:{}", server.port());
    let desk = in_project("examples.tools.look");
    desk.write("examples/tools.py", HTTP);
    let (report, _) = desk.run(calls("look", json!({ "url": origin }))).await;
    assert!(error(&report).contains("not granted") || error(&report).contains("denied"), "{}", error(&report));
    assert!(server.requests().is_empty());
    let settings = format!("[grants.'../tools.py']\nhttp = [\"{origin}\"]\n");
    desk.write("examples/weather/hotcell.toml", &settings);
    let (report, model) = desk.run(calls("look", json!({ "url": origin }))).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "21 404"));
    assert_eq!(server.requests().len(), 4);

    for (function, expected) in [("later", r#"{"n": 7}"#), ("streamed", "has no `stream`")] {
        let desk = in_project(&format!("examples.tools.{function}"));
        desk.write("examples/tools.py", HTTP);
        desk.write("examples/weather/hotcell.toml", &settings);
        let (report, model) = desk.run(calls(function, json!({ "url": origin }))).await;
        let seen = if function == "later" { told(&model) } else { error(&report) };
        assert!(seen.contains(expected), "{seen}");
    }
}

#[test]
fn what_cannot_be_imported_is_named_in_plain_words() {
    for (source, expected) in [
        ("import psycopg\n", "No module named 'psycopg'"),
        ("import multiprocessing\n", "sockets, processes, threads"),
        ("from langchain_core.runnables import Runnable\n", "a sealed cell has only `langchain_core.callbacks`"),
        ("from langchain_core.tools import InjectedToolArg\n", "and no `InjectedToolArg`"),
        ("from langgraph.types import Command\n", "and no `Command`"),
        ("from pydantic import field_validator\n", "and no `field_validator`"),
        ("from pydantic.v1 import BaseModel\n", "of `pydantic` a sealed cell has only `pydantic`"),
        ("import numpy\n", "native code"),
        ("from .. import outside\n", "examples"),
        ("import secrets_of_home\n", "No module named 'secrets_of_home'"),
    ] {
        let desk = in_project("examples.tools.one");
        desk.write("examples/tools.py", source);
        let refused = desk.refusal();
        assert!(refused.contains(expected), "{source}: {refused}");
    }
}

#[test]
fn a_skill_is_read_in_its_project_and_nowhere_else() {
    let desk = Desk::of("agents/boss/config.yaml", "name: boss\nenabled_skills: [lead]\ninstructions: Lead.\n");
    desk.write("skills/lead/SKILL.md", "Lead well.");
    // Nothing says that the agent belongs to the folders above.
    assert!(desk.refusal().contains("the skill `lead` cannot be read"), "{}", desk.refusal());
    desk.write("hotcell.toml", "[ceiling]\noutput = 1000000\n");
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let host = desk.host(&model);
    host.load(&desk.path("agents/boss/config.yaml")).unwrap_or_else(|failure| panic!("{failure}"));

    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("SKILL.md"), "A secret.").unwrap();
    std::fs::remove_dir_all(desk.path("skills/lead")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), desk.path("skills/lead")).unwrap();
    let refusal = desk.refusal();
    assert!(refusal.contains("the skill `lead` cannot be read") && !refusal.contains("A secret"), "{refusal}");
}
