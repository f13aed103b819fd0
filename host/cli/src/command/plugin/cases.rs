//! `hotcell plugin test` and `bench`: an author's cases, played and measured.

mod fast;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hotcell_harness::{
    Baseline, Case, Compared, CompileEvent, CompileListener, Harness, Played, keep_replies, read_cases,
};
use hotcell_runtime::plugins::Grants;
use hotcell_runtime::plugins::Plugin as Component;

use super::author::{component_of, places_of};
use super::{Context, is_project, print};
use crate::arguments::{PluginBench, PluginTest};
use crate::exit::{Exit, Failure};
use crate::narration::{counted, describe_usage, short};
use crate::screen::{ERROR, GOOD};
use crate::table::{Align, Table};
use crate::untrusted::{lines, one_line};

/// How long each case is measured.
const MEASURED: Duration = Duration::from_millis(500);

pub(super) fn test(context: &Context, arguments: &PluginTest) -> Result<Exit, Failure> {
    if arguments.fast {
        return fast::test(context, arguments);
    }
    let mut project = Project::open(context, &arguments.project, arguments.component.as_deref(), arguments.yes)?;
    project.choose(&arguments.cases)?;
    if arguments.record {
        agree_to_requests(context, &project.cases, arguments.yes)?;
    }
    let mut baseline = match Baseline::read(&project.folder).map_err(failed)? {
        Some(baseline) => baseline,
        None => Baseline::new(project.digest.clone(), hotcell_harness::ENGINE),
    };
    let same_engine = baseline.engine == hotcell_harness::ENGINE;
    if !same_engine {
        context.screen.line(&format!(
            "the baseline was measured with {}, this is {}: fuel is not compared; `--update` makes a new baseline",
            baseline.engine,
            hotcell_harness::ENGINE
        ));
    }
    let (mut wrong, mut unmeasured) = (0, 0);
    let mut fresh = Baseline { cases: Default::default(), ..baseline.clone() };
    for (name, case) in &project.cases {
        let mut played = project.play(context, case, arguments.record)?;
        if arguments.record && !played.recorded.is_empty() {
            keep_replies(&project.folder, name, &played.recorded)
                .map_err(|error| Failure::failed(error.to_string()))?;
            let replies = match played.recorded.len() {
                1 => "one reply".to_owned(),
                several => format!("{several} replies"),
            };
            context.screen.line(&format!("{name}: recorded {replies}"));
        }
        // A call that went wrong used what it used until then, which says nothing about the plugin.
        if !arguments.update && same_engine && played.problems.is_empty() {
            match baseline.compare(name, &played.usage) {
                Compared::Within => {}
                Compared::New => unmeasured += 1,
                Compared::More(text) => played.problems.push(format!("it uses more than before: {text}")),
            }
        }
        fresh.note(name, &played.usage);
        wrong += usize::from(!played.problems.is_empty());
        let used = format!("{}, {}", played.usage.fuel, played.usage.peak_memory);
        report(context, name, &played, Some(&used), arguments.verbose)?;
    }
    if arguments.update {
        baseline = Baseline { digest: project.digest.clone(), engine: hotcell_harness::ENGINE.to_owned(), ..fresh };
        baseline.write(&project.folder).map_err(failed)?;
        context.screen.line("wrote the baseline");
    } else if unmeasured > 0 {
        let have = if unmeasured == 1 { "has" } else { "have" };
        let cases = counted(unmeasured, "case");
        context.screen.line(&format!("{cases} {have} no baseline yet; `--update` makes one"));
    }
    print(&format!("{} passed, {wrong} failed", project.cases.len() - wrong))?;
    Ok(if wrong > 0 { Exit::Failed } else { Exit::Done })
}

pub(super) fn bench(context: &Context, arguments: &PluginBench) -> Result<Exit, Failure> {
    let project = Project::open(context, &arguments.project, arguments.component.as_deref(), arguments.yes)?;
    let mut table = Table::new([
        ("CASE", Align::Left),
        ("MEDIAN", Align::Right),
        ("99 %", Align::Right),
        ("INSTANCE", Align::Right),
        ("FUEL", Align::Right),
        ("MEMORY", Align::Right),
        ("CALLS", Align::Right),
    ]);
    let mut loaded = Duration::ZERO;
    for (name, case) in &project.cases {
        let measured = project
            .runtime
            .block_on(project.harness.measure(&project.bytes, case, MEASURED))
            .map_err(|error| Failure::failed(error.to_string()))?;
        loaded = loaded.max(measured.load);
        table.row([
            name.clone(),
            short(measured.median),
            short(measured.slowest_percent),
            short(measured.instance),
            measured.usage.fuel.to_string(),
            measured.usage.peak_memory.to_string(),
            measured.calls.to_string(),
        ]);
    }
    print(&table.lines(0, str::to_owned).join("\n"))?;
    print(&format!("\nloading the component took {}", short(loaded)))?;
    Ok(Exit::Done)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed(error.to_string())
}

/// The cases of a plugin, which has some.
fn cases_in(folder: &Path) -> Result<Vec<(String, Case)>, Failure> {
    let cases = read_cases(folder).map_err(|error| Failure::refused(error.to_string()))?;
    if cases.is_empty() {
        let project = folder.parent().unwrap_or(folder);
        if !project.is_dir() {
            return Err(Failure::refused(format!("there is no folder `{}`", project.display()))
                .help("name the folder of a plugin project; `--case TEXT` chooses cases by their names"));
        }
        if !is_project(project) {
            return Err(Failure::refused(format!("`{}` is not the folder of a plugin project", project.display()))
                .help(
                    "it has neither `plugin.toml` nor `Cargo.toml`; create a project with `hotcell plugin new NAME`",
                ));
        }
        return Err(Failure::refused(format!("there are no cases in `{}`", folder.display())).help(
            "a case is a JSON file there, such as `{\"tool\": \"add\", \"arguments\": {\"a\": 1}, \"expect\": {\"output\": 1}}`",
        ));
    }
    Ok(cases)
}

/// Keeps the cases that one of these texts is part of the name of; all where there is none.
fn choose(cases: &mut Vec<(String, Case)>, wanted: &[String]) -> Result<(), Failure> {
    if wanted.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = cases.iter().map(|(name, _)| name.clone()).collect();
    cases.retain(|(name, _)| wanted.iter().any(|part| name.contains(part.as_str())));
    if cases.is_empty() {
        let wanted = one_line(&wanted.join("`, `"), 200);
        return Err(Failure::refused(format!("no case has `{wanted}` in its name"))
            .help(format!("the cases are {}", one_line(&names.join(", "), 1_000))));
    }
    Ok(())
}

/// A plugin with its cases.
struct Project {
    folder: PathBuf,
    cases: Vec<(String, Case)>,
    bytes: Vec<u8>,
    digest: String,
    harness: Harness,
    runtime: tokio::runtime::Runtime,
}

impl Project {
    fn open(context: &Context, project: &Path, component: Option<&Path>, yes: bool) -> Result<Self, Failure> {
        let folder = project.join("cases");
        let mut cases = cases_in(&folder)?;
        agree_to_directories(context, &mut cases, yes)?;
        let (component, is_built) = match component {
            Some(component) => (component.to_owned(), false),
            None => (component_of(context, project)?, true),
        };
        let bytes = hotcell_files::read(&component, hotcell_files::MAX_COMPONENT)
            .map_err(|error| Failure::refused(format!("cannot read `{}`: {error}", component.display())))?;
        let digest = match Component::read(&component) {
            Ok(component) => component.survey.digest,
            // A script says nothing about itself.
            Err(_) => hotcell_harness::digest(&bytes),
        };
        let screen = context.screen.clone();
        let on_compile: CompileListener = Arc::new(move |event: &CompileEvent| match event {
            CompileEvent::Started { .. } => screen.working("compiling the component for this machine"),
            CompileEvent::Finished { .. } => screen.worked(),
        });
        let harness = Harness::telling(hotcell_runtime::cells_cache(), Some(on_compile)).map_err(failed)?;
        let harness = if is_built { harness.with_places(places_of(&component)) } else { harness };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        Ok(Project { folder, cases, bytes, digest, harness, runtime })
    }

    fn choose(&mut self, wanted: &[String]) -> Result<(), Failure> {
        choose(&mut self.cases, wanted)
    }

    fn play(&self, context: &Context, case: &Case, record: bool) -> Result<Played, Failure> {
        let played = self.runtime.block_on(async {
            if record {
                self.harness.record(&self.bytes, case).await
            } else {
                self.harness.play(&self.bytes, case).await
            }
        });
        context.screen.worked();
        played.map_err(failed)
    }
}

/// Gives cases the directories outside their folder if the person agrees: they come with the plugin, and the plugin gets at
/// them.
fn agree_to_directories(context: &Context, cases: &mut [(String, Case)], yes: bool) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for (name, case) in cases.iter() {
        let words = Grants { fs: case.outside().to_vec(), ..Grants::default() }.in_words();
        wanted.extend(words.iter().map(|words| format!("`{name}`: {words}")));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    agree(context, "cases of this plugin need directories outside of their folder", &wanted, yes)?;
    cases.iter_mut().for_each(|(_, case)| case.allow_outside());
    Ok(())
}

/// Recording sends what the plugin writes to servers that its cases name.
fn agree_to_requests(context: &Context, cases: &[(String, Case)], yes: bool) -> Result<(), Failure> {
    let mut wanted = Vec::new();
    for (name, case) in cases {
        let words = Grants { http: case.grants().http.clone(), ..Grants::default() }.in_words();
        wanted.extend(words.iter().map(|words| format!("`{name}`: {words}")));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    agree(context, "to record their replies, cases of this plugin", &wanted, yes)
}

/// Shows what a stranger's cases want, and asks for it.
fn agree(context: &Context, what: &str, wanted: &[String], yes: bool) -> Result<(), Failure> {
    context.screen.line(what);
    for line in wanted {
        context.screen.line(&format!("  - {}", one_line(line, usize::MAX)));
    }
    if yes { Ok(()) } else { context.confirm("Allow this?") }
}

/// Tells what came of a case, and what it used where that was measured.
fn report(context: &Context, name: &str, played: &Played, used: Option<&str>, verbose: bool) -> Result<(), Failure> {
    let colour = context.colours_output();
    let painted =
        |style: anstyle::Style, text: &str| if colour { format!("{style}{text}{style:#}") } else { text.to_owned() };
    let passed = played.problems.is_empty();
    let word = if passed { painted(GOOD, "ok  ") } else { painted(ERROR, "FAIL") };
    let told = used.map(|used| format!("  ({used})")).unwrap_or_default();
    print(&format!("{word}  {}{told}", one_line(name, usize::MAX)))?;
    if passed && !verbose {
        return Ok(());
    }
    if verbose && used.is_some() {
        print(&format!("    {}", describe_usage(&played.usage)))?;
    }
    for problem in &played.problems {
        print(&format!("  {}", lines(problem).replace('\n', "\n  ")))?;
    }
    for function in &played.backtrace {
        print(&format!("    in {}", one_line(function, usize::MAX)))?;
    }
    for line in &played.logs {
        print(&format!("    log: {}", one_line(&line.message, usize::MAX)))?;
    }
    if !played.stderr.trim().is_empty() {
        print(&format!("    stderr: {}", lines(&played.stderr).trim_end().replace('\n', "\n    stderr: ")))?;
    }
    Ok(())
}
