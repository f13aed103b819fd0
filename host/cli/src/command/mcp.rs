//! `hotcell mcp`: plugins and agents as tools for any program that speaks the Model Context Protocol. What is added to the
//! folders or changed in them counts from the next call on.

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt as _;
use hotcell_graph::diagnostic::{Diagnostic, render};
use hotcell_runtime::mcp::{HttpSettings, Identity, serve_http, serve_stdio};
use hotcell_runtime::{CancellationToken, LiveCatalog, Make, RevisionRegistry, ToolCatalog, agents_in};

use super::{Context, HostArguments, threads};
use crate::arguments::Mcp;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::stop;

pub(super) fn perform(context: &Context, arguments: Mcp) -> Result<Exit, Failure> {
    let host = context.host(HostArguments {
        // Standard error is where clients look for what went wrong; progress bars are for terminals.
        quiet: true,
        starts_programs: true,
        ..arguments.with.into()
    })?;
    let screen = &context.screen;
    let runtime = threads::start()?;
    let registry = Arc::new(RevisionRegistry::new(host));
    let mut told = Vec::new();
    let catalog = runtime.block_on(catalog_of(&registry, &arguments.paths, &mut told));
    if !told.is_empty() {
        screen.line(render(&told, screen.colour()).trim_end());
    }
    let catalog = catalog?;
    if catalog.is_empty() {
        return Err(Failure::refused("there is nothing to offer").help("name a folder with agents or plugins"));
    }
    let count = catalog.len();
    let identity = Identity { name: "hotcell".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let shutdown = CancellationToken::new();
    let work = async {
        let paths = arguments.paths.clone();
        let make: Make = Arc::new(move || {
            let (registry, paths) = (registry.clone(), paths.clone());
            let made = async move {
                let mut told = Vec::new();
                let made = catalog_of(&registry, &paths, &mut told).await;
                made.map_err(|failure| failure.message.unwrap_or_else(|| render(&told, false)).into())
            };
            made.boxed()
        });
        let catalog = Arc::new(LiveCatalog::new(catalog, arguments.paths, make));
        let Some(address) = arguments.http else { return serve_stdio(catalog, identity, shutdown.clone()).await };
        let settings = HttpSettings { address, hosts: arguments.hosts, origins: arguments.origins };
        let server = serve_http(catalog, identity, settings, &shutdown).await?;
        let tools = counted(count as u64, "tool");
        screen.line(&format!("{tools} at http://{}/mcp; Ctrl-C ends it", server.address()));
        server.ended().await
    };
    let served = runtime.block_on(stop::on_signal(screen.clone(), shutdown.clone(), work));
    runtime.shutdown_background();
    served.map(|()| Exit::Done).map_err(|error| Failure::failed(error.to_string()))
}

/// What the folders offer as they are now; what is or may be wrong is told.
async fn catalog_of(
    registry: &Arc<RevisionRegistry>,
    paths: &[PathBuf],
    told: &mut Vec<Diagnostic>,
) -> Result<ToolCatalog, Failure> {
    let mut catalog = ToolCatalog::of(registry.clone());
    for path in paths {
        if path.is_dir() {
            // Plugins are compiled here.
            told.extend(tokio::task::block_in_place(|| catalog.add_plugins(path))?);
        } else if !path.exists() {
            return Err(Failure::refused(format!("there is no `{}`", path.display())));
        }
        let agents = if path.is_dir() { agents_in(path) } else { vec![path.clone()] };
        match catalog.add_agents(&agents).await {
            Ok(warnings) => told.extend(warnings),
            Err(failure) => {
                told.extend(failure.diagnostics);
                return Err(Failure::said(Exit::Refused));
            }
        }
    }
    Ok(catalog)
}
