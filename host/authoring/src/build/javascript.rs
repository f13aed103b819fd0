//! JavaScript and TypeScript: a script of ours, run by node with the project's own packages, bundles the code, asks it
//! what it offers, and has `componentize-js` make the component.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{BuildError, Job, parse_offered, read_file, world, write_file};
use crate::tools::{Tools, run};

/// The packages of the project that the script imports.
const PACKAGES: [&str; 2] = ["@bytecodealliance/componentize-js", "esbuild"];

/// The node that makes components, where its packages are installed in the project or in a folder around it.
pub(super) fn find_node(tools: &Tools, directory: &Path) -> Result<PathBuf, BuildError> {
    let Some(node) = tools.find(&["node"]) else {
        return Err(BuildError::missing(
            "`node`, which builds plugins in JavaScript and TypeScript,",
            "install Node.js 20 or newer with npm, and then run `npm install` in the project",
        ));
    };
    for package in PACKAGES {
        let installed = directory.ancestors().any(|folder| folder.join("node_modules").join(package).is_dir());
        if !installed {
            return Err(BuildError::MissingTool {
                tool: format!("the package `{package}`"),
                install: format!(
                    "install it with `npm install` in `{}`, or in a folder around it that several plugins share",
                    directory.display()
                ),
            });
        }
    }
    Ok(node)
}

/// Gives the component and what the code offers.
pub(super) fn build(job: &mut Job<'_>) -> Result<(Vec<u8>, Value), BuildError> {
    let node = find_node(job.tools, job.directory)?;
    // A copy in the project finds the project's packages, wherever the SDK is.
    let script = job.work.join("build.mjs");
    write_file(&script, &read_file(&job.sdk.join("hotcell-plugin").join("build.mjs"))?)?;
    let (described, component) = (job.work.join("offered.json"), job.work.join("plugin.wasm"));
    let kinds: Vec<&str> = job.manifest.kinds().iter().map(|kind| kind.word()).collect();
    let order = json!({
        "source": job.source(), "sdk": job.sdk, "work": job.work, "kinds": kinds, "contract": job.world.contract,
        "wit": job.world.folder, "world": world::NAME, "imports": job.world.imports,
        "http": job.manifest.asks_for("http"), "described": described, "component": component,
    });
    job.says(&node, "to make the component (`esbuild`, `componentize-js`)");
    let mut command = job.tools.command(&node, job.directory);
    command.arg(&script).arg(order.to_string());
    run(&mut command, "to make the component")?;
    Ok((read_file(&component)?, parse_offered(&read_file(&described)?, "what the JavaScript SDK wrote")?))
}
