//! JavaScript and TypeScript: a script of ours, run by node with the project's own packages, bundles the code, asks it
//! what it offers, and has `componentize-js` make the component.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{BuildError, Job, Made, files_read, parse_offered, read_file, world, write_file};
use crate::shared::Shared;
use crate::tools::{Tools, output, run};

/// The package that makes a component of a bundle.
const COMPONENTIZE: &str = "@bytecodealliance/componentize-js";
/// The package that makes the bundle.
const BUNDLER: &str = "esbuild";
/// What a build of a component needs.
pub(super) const BUILDS: &[&str] = &[COMPONENTIZE, BUNDLER];
/// What a program for node needs.
pub(super) const BUNDLES: &[&str] = &[BUNDLER];

/// The node that runs our script, and where its packages are.
pub(super) struct Node {
    pub(super) program: PathBuf,
    /// Each package with the folder `node_modules` that it is in.
    packages: Vec<(&'static str, PathBuf)>,
}

/// Finds node, and packages: those of the project or of a folder around it, or else those that all projects share.
pub(super) fn find(tools: &Tools, directory: &Path, wanted: &'static [&'static str]) -> Result<Node, BuildError> {
    let Some(program) = tools.find(&["node"]) else {
        return Err(BuildError::missing(
            "`node`, which builds plugins in JavaScript and TypeScript,",
            "install Node.js 20 or newer with npm (nodejs.org), and then run `hotcell plugin setup js`",
        ));
    };
    let shared = tools.shared(Shared::JavaScript);
    let mut packages = Vec::new();
    for package in wanted {
        let folders = directory.ancestors().chain(shared.as_deref()).map(|folder| folder.join("node_modules"));
        let mut folders = folders.filter(|folder| folder.join(package).is_dir());
        let Some(found) = folders.next() else {
            return Err(BuildError::missing(
                &format!("the package `{package}`"),
                "install it with `hotcell plugin setup js`, once for all plugins",
            ));
        };
        packages.push((*package, found));
    }
    Ok(Node { program, packages })
}

impl Node {
    pub(super) fn versions(&self, tools: &Tools, directory: &Path) -> Option<Vec<String>> {
        let node = output(tools.command(&self.program, directory).arg("--version"))?;
        let mut versions = vec![format!("{} {}", self.program.display(), node.trim())];
        for (name, folder) in &self.packages {
            let manifest = folder.join(name).join("package.json");
            let manifest = hotcell_files::read(manifest, hotcell_files::MAX_TEXT).ok()?;
            let manifest: Value = serde_json::from_slice(&manifest).ok()?;
            versions.push(format!("{name} {}", manifest.get("version")?.as_str()?));
        }
        Some(versions)
    }
}

/// Gives the component and what the code offers.
pub(super) fn build(job: &mut Job<'_>, node: &Node) -> Result<Made, BuildError> {
    let script = job.work.join("build.mjs");
    write_file(&script, &read_file(&job.sdk.join("hotcell-plugin").join("build.mjs"))?)?;
    link_packages(job, node)?;
    let (described, component) = (job.work.join("offered.json"), job.work.join("plugin.wasm"));
    let read = job.work.join("read.json");
    let kinds: Vec<&str> = job.manifest.kinds().iter().map(|kind| kind.word()).collect();
    let order = json!({
        "source": job.source(), "sdk": job.sdk, "work": job.work, "kinds": kinds, "contract": job.world.contract,
        "wit": job.world.folder, "world": world::NAME, "imports": job.world.imports,
        "http": job.manifest.asks_for("http"), "described": described, "component": component, "read": read,
    });
    job.says(&node.program, "to make the component (`esbuild`, `componentize-js`)");
    let mut command = job.tools.command(&node.program, job.directory);
    command.arg("--enable-source-maps").arg(&script).arg(order.to_string());
    run(&mut command, "to make the component")?;
    let offered = parse_offered(&read_file(&described)?, "what the JavaScript SDK wrote")?;
    Ok(Made { component: read_file(&component)?, offered, read: files_read(&read) })
}

/// Bundles the code as a program for node that makes one call, and gives the program.
pub(super) fn build_native(job: &mut Job<'_>, node: &Node) -> Result<PathBuf, BuildError> {
    let script = job.work.join("build.mjs");
    write_file(&script, &read_file(&job.sdk.join("hotcell-plugin").join("build.mjs"))?)?;
    link_packages(job, node)?;
    let bundle = job.work.join("plugin.mjs");
    let kinds: Vec<&str> = job.manifest.kinds().iter().map(|kind| kind.word()).collect();
    let order = json!({
        "source": job.source(), "sdk": job.sdk, "work": job.work, "kinds": kinds, "imports": job.world.imports,
        "http": job.manifest.asks_for("http"), "native": bundle,
    });
    let mut command = job.tools.command(&node.program, job.directory);
    command.arg("--enable-source-maps").arg(&script).arg(order.to_string());
    run(&mut command, "to bundle the plugin (`esbuild`)")?;
    Ok(bundle)
}

/// Makes packages that are not in a folder around the script ones that it can import.
fn link_packages(job: &Job<'_>, node: &Node) -> Result<(), BuildError> {
    let mut folders = node.packages.iter().map(|(_, folder)| folder);
    let Some(elsewhere) = folders.find(|folder| {
        let around = folder.parent().unwrap_or(folder);
        !job.work.starts_with(around)
    }) else {
        return Ok(());
    };
    let link = job.work.join("node_modules");
    let made = {
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(elsewhere, &link)
        }
        #[cfg(windows)]
        {
            std::os::windows::fs::symlink_dir(elsewhere, &link)
        }
    };
    made.map_err(|source| BuildError::Io { action: "create", path: link, source })
}
