//! Everything that a plugin may use, one tool each.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use hotcell_plugin::{Error, Json, Value, ask as question, config, http as web, json, kv as store, llm as model};
use hotcell_plugin::{info, plugin, progress, secrets as vault, time, tool, tools as others};

plugin! {
    name: "parity",
    tools: [settings, files, kv, http, secrets, llm, tools, ask, clock, random],
    capabilities: {
        fs: { "/data": write },
        http: ["https://api.example.org"],
        secret: { KEY: "to try it" },
        kv: true,
        llm: true,
        tool: ["other"],
        ask: true,
    },
}

#[tool]
fn settings() -> Result<String, Error> {
    info!("looked up");
    progress::report(1, Some(2), "half");
    config::read("place")
}

#[derive(Value)]
struct Files {
    copied: String,
    names: Vec<String>,
}

#[tool]
fn files(path: &str) -> Result<Files, Error> {
    let text = std::fs::read_to_string(path)?;
    std::fs::write("/data/copy.txt", text)?;
    let copied = std::fs::read_to_string("/data/copy.txt")?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir("/data")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    std::fs::remove_file("/data/copy.txt")?;
    Ok(Files { copied, names })
}

#[tool]
fn kv() -> Result<Json, Error> {
    store::set("a", b"1")?;
    store::delete("gone")?;
    let text = |key| store::get(key).map(|found| found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    Ok(json!({ "a": text("a")?, "gone": text("gone")?, "keys": store::keys("")? }))
}

#[tool]
fn http() -> Result<String, Error> {
    let answer = web::post("https://api.example.org/echo").body("ping").send()?.success()?;
    Ok(answer.text()?.to_owned())
}

#[tool]
fn secrets() -> Result<bool, Error> {
    Ok(!vault::placeholder("KEY")?.is_empty())
}

#[tool]
fn llm() -> Result<String, Error> {
    Ok(model::Request::new().user("hi").send()?.text)
}

#[tool]
fn tools() -> Result<Json, Error> {
    others::call("other", json!({ "x": 1 }))
}

#[tool]
fn ask() -> Result<String, Error> {
    question::question("Which way?")
}

#[tool]
fn clock() -> Result<u64, Error> {
    Ok(time::since_1970().as_secs())
}

#[tool]
fn random() -> Result<bool, Error> {
    let draw = || RandomState::new().build_hasher().finish();
    Ok(draw() != draw())
}
