//! `hotcell plugin new`, `setup` and `build`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hotcell_authoring::{BuildError, BuildEvent, Built, Kind, Language, Native, NewPlugin, SetupEvent, Shared, Tools};
use hotcell_harness::PlaceFinder;
use hotcell_runtime::plugins::Plugin as Component;

use super::{Context, print, quoted};
use crate::arguments::PluginNew;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::untrusted::{lines, one_line};

pub(super) fn new(context: &Context, arguments: &PluginNew) -> Result<Exit, Failure> {
    let name = arguments.name.clone();
    let folder = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => PathBuf::from(name.replace(':', "-")),
    };
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == arguments.kind);
    let language = Language::ALL.into_iter().find(|language| language.word() == arguments.lang);
    let (Some(kind), Some(language)) = (kind, language) else {
        return Err(Failure::refused(format!(
            "there are no plugins of kind `{}` in `{}`",
            arguments.kind, arguments.lang
        )));
    };
    let order = NewPlugin { directory: folder.clone(), name, kind, language };
    let files = hotcell_authoring::new(&order).map_err(|error| Failure::refused(lines(&error.to_string())))?;
    // The copy of the SDK is not for its author to look through.
    let sdk = folder.join("sdk");
    let (of_sdk, own): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.starts_with(&sdk));
    for file in own {
        print(&file.display().to_string())?;
    }
    if !of_sdk.is_empty() {
        print(&format!("{} ({})", sdk.display(), counted(of_sdk.len() as u64, "file")))?;
    }
    let mut steps = vec![format!("cd {}", quoted(&folder.to_string_lossy()))];
    let missing = hotcell_authoring::missing_tool(&folder, language, &tools());
    if let Some(missing) = &missing {
        match missing.install_command() {
            Some(command) => steps.push(command.to_owned()),
            None => context.screen.warning(&lines(&missing.to_string())),
        }
    }
    steps.push("hotcell plugin test --update".to_owned());
    print(&format!("\nnow:\n  {}", steps.join("\n  ")))?;
    Ok(Exit::Done)
}

/// The tools of this machine, and those that `hotcell plugin setup` installed.
fn tools() -> Tools {
    let tools = Tools::from_environment();
    match hotcell_runtime::toolchains_folder() {
        Some(folder) => tools.with_shared(folder),
        None => tools,
    }
}

pub(super) fn setup(context: &Context, language: &str) -> Result<Exit, Failure> {
    let Some(language) = Language::ALL.into_iter().find(|known| known.word() == language) else {
        return Err(Failure::refused(format!("there is no language `{}`", one_line(language, 100))));
    };
    let mut tell = |event: SetupEvent| match event {
        SetupEvent::Running { command } => {
            context.screen.working(&format!("running `{}`", one_line(&command, 200)));
        }
        SetupEvent::Waiting => context.screen.working("waiting for another process that installs the same tools"),
    };
    let folder = hotcell_authoring::setup(Shared::of(language), &tools(), &mut tell);
    context.screen.worked();
    match folder.map_err(|error| Failure::failed(lines(&error.to_string())))? {
        Some(folder) => print(&format!("the tools for plugins in {language} are in `{}`", folder.display()))?,
        None => print(&format!("the tools for plugins in {language} are there"))?,
    }
    Ok(Exit::Done)
}

pub(super) fn build(context: &Context, project: &Path) -> Result<Exit, Failure> {
    let built = built(context, project)?;
    let unchanged = if built.is_unchanged { " (unchanged)" } else { "" };
    print(&format!("{}{unchanged}\n  {} bytes, sha256 {}", built.path.display(), built.size, built.digest))?;
    let list = |names: &[String]| one_line(&names.join(", "), 1_000);
    print(&format!("  exports  {}\n  imports  {}", list(&built.exports), list(&built.imports)))?;
    match Component::read(&built.path) {
        Ok(component) => {
            print(&format!("  offers   {}", super::plugin_nodes(&component)))?;
            let asks = component.description.capabilities.in_words();
            print(&format!("  asks to  {}", if asks.is_empty() { "nothing".to_owned() } else { asks.join("; ") }))?;
        }
        // A script need not say anything about itself.
        Err(_) if built.exports.iter().any(|name| name.contains("run-script")) => print("  offers   a script")?,
        Err(reason) => {
            return Err(Failure::failed(format!(
                "what was built is not a plugin: {}",
                one_line(&reason.to_string(), 500)
            )));
        }
    }
    Ok(Exit::Done)
}

/// Builds the project and gives the path of its component.
pub(super) fn component_of(context: &Context, project: &Path) -> Result<PathBuf, Failure> {
    built(context, project).map(|built| built.path)
}

/// Says where in the source of a project its component trapped, if the component was built of it.
pub(super) fn places_of(component: &Path) -> PlaceFinder {
    let component = component.to_owned();
    Arc::new(move |offsets: &[u64]| hotcell_authoring::source_places(&component, offsets))
}

/// The plugin as a program of this machine.
pub(super) fn native(context: &Context, project: &Path) -> Result<Native, Failure> {
    reported(context, |tell| hotcell_authoring::native(project, &tools(), tell))
}

fn built(context: &Context, project: &Path) -> Result<Built, Failure> {
    reported(context, |tell| hotcell_authoring::build_with(project, &tools(), tell))
}

/// Works on a project, and says what runs.
fn reported<T>(
    context: &Context,
    work: impl FnOnce(&mut dyn FnMut(BuildEvent)) -> Result<T, BuildError>,
) -> Result<T, Failure> {
    let mut tell = |event: BuildEvent| {
        let BuildEvent::Running { program, purpose } = event;
        context.screen.working(&format!("running `{}` {purpose}", one_line(&program, 200)));
    };
    let done = work(&mut tell);
    context.screen.worked();
    done.map_err(|error| Failure::failed(lines(&error.to_string())))
}
