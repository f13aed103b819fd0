//! Checks built plugins by reading them: `hotcell-plugin-check FILE.wasm...`. Nothing is executed.
//!
//! Each component has exactly one section `hotcell:description`, in itself or in a module inside it; it is JSON of the
//! contract; for everything it lists there is the export that serves it, and no other export of the contract.

use std::process::ExitCode;

use serde_json::Value;
use wasmparser::{Encoding, Parser, Payload};

const PACKAGE: &str = "hotcell:plugin/";
const VERSION: &str = "@0.2.0";

/// What was found in a component.
struct Found {
    descriptions: Vec<Vec<u8>>,
    exports: Vec<String>,
    imports: Vec<String>,
}

fn main() -> ExitCode {
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let report = std::fs::read(&path).map_err(|error| error.to_string()).and_then(|bytes| check(&bytes));
        match report {
            Ok(report) => say(&format!("{path}: {report}")),
            Err(problem) => {
                failed = true;
                say(&format!("{path}: NOT GOOD: {problem}"));
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn say(line: &str) {
    use std::io::Write;
    // Nobody is left to be told when standard output is closed.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn check(bytes: &[u8]) -> Result<String, String> {
    let found = read(bytes)?;
    let [description] = found.descriptions.as_slice() else {
        return Err(format!("it has {} sections `hotcell:description`, not one", found.descriptions.len()));
    };
    let description: Value =
        serde_json::from_slice(description).map_err(|error| format!("its description is not JSON: {error}"))?;
    if description["contract"] != VERSION[1..] {
        return Err(format!("it is made for the contract {}", description["contract"]));
    }
    let name = description["name"].as_str().ok_or("its description has no name")?;
    let lists = |key: &str| description[key].as_array().map_or(0, Vec::len);
    let exports: Vec<&str> = found.exports.iter().filter_map(|name| ours(name)).collect();
    let pairs = [
        ("call-tool", lists("tools") > 0),
        ("run-node", lists("nodes") > 0),
        ("hook", lists("hooks") > 0),
        ("connect", description["connector"].is_object()),
    ];
    for (export, described) in pairs {
        if exports.contains(&export) != described {
            return Err(format!("its description and its exports {exports:?} do not agree about `{export}`"));
        }
    }
    if exports.is_empty() {
        return Err(format!("it exports nothing of the contract, only {:?}", found.exports));
    }
    for tool in description["tools"].as_array().into_iter().flatten() {
        if tool["parameters"]["type"] != "object" || tool["description"].as_str().is_none_or(str::is_empty) {
            return Err(format!("the tool {} has no description or no parameters", tool["name"]));
        }
    }
    let host: Vec<&str> = found.imports.iter().filter_map(|name| ours(name)).filter(|name| *name != "types").collect();
    let wasi: Vec<&str> =
        found.imports.iter().filter_map(|name| name.strip_prefix("wasi:")?.split('@').next()).collect();
    Ok(format!(
        "{name}, {} KiB, exports {}, asks hotcell for {}, WASI for {}",
        bytes.len() / 1024,
        exports.join(" "),
        if host.is_empty() { "nothing".to_owned() } else { host.join(" ") },
        wasi.join(" ")
    ))
}

/// The interface of an export or import of the contract.
fn ours(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.strip_suffix(VERSION)
}

fn read(bytes: &[u8]) -> Result<Found, String> {
    let mut found = Found { descriptions: Vec::new(), exports: Vec::new(), imports: Vec::new() };
    // The outermost component is at depth 0: only its imports and exports count.
    let mut depth = 0_usize;
    let mut outermost = None;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(|error| format!("it is not WebAssembly: {error}"))? {
            Payload::Version { encoding, .. } => {
                outermost.get_or_insert(encoding);
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if section.name() == "hotcell:description" => {
                found.descriptions.push(section.data().to_vec());
            }
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    found.imports.push(import.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    found.exports.push(export.map_err(|error| error.to_string())?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    if outermost != Some(Encoding::Component) {
        return Err("it is not a component; build it for `wasm32-wasip2`".to_owned());
    }
    Ok(found)
}
