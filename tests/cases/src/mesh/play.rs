//! Plays a case with steps.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::{Clock as _, Environment, HostOptions, JournalChoice, ManualClock, StoresChoice};
use hotcell_serve::ServeSettings;

use super::case::{self, MeshCase};
use super::expect::{self, Seen};
use super::functions::{Functions, Ran};
use super::outside::{self, Outside};
use super::saved::Saved;
use super::server::{self, Setup};
use super::steps::Conversation;
use super::{SECRET, models};
use crate::case_file::{CaseFile, Status};
use crate::check::check;
use crate::given::{environment, prices};
use crate::loki::{PlayError, lines, nothing_ran, rejected, with_causes};
use crate::mismatch::Mismatch;
use crate::observed::{ModelExchange, Observed};
use crate::stage::Stage;
use crate::world::World;

/// The components that know themselves where their vendors are.
const OWN_VENDORS: [&str; 2] = ["composio", "zapier"];
/// What stands for the port of the outside servers in the texts of a case.
const PORT: &str = "{HTTP_PORT}";
/// How long runs get when the server is told to stop: those that wait for the clock would never end.
const DRAIN: Duration = Duration::from_millis(200);

/// Plays the case of a directory and gives every difference.
///
/// # Errors
/// When the case asks for something that cannot be played.
pub fn play(directory: &Path, stage: &Stage) -> Result<Vec<Mismatch>, PlayError> {
    let text = std::fs::read_to_string(directory.join("case.json"))?;
    let saved: Arc<Saved> = Arc::default();
    let clock = ManualClock::at(begins(&text)?);
    let outside = Outside::start(saved.clone(), clock.clone())?;
    let MeshCase { common, own, expect } = case::parse(&text.replace(PORT, &outside.port().to_string()))
        .map_err(|error| PlayError::Host(error.to_string()))?;
    outside.set(own.http.clone());
    let world = World::build(&CaseFile { tools: Default::default(), ..common.clone() }, directory)?;
    world.prepare_for_web(outside.port())?;
    world.stand_in_for(&OWN_VENDORS, outside.port())?;
    let functions = Functions::start(own.agents.clone(), clock.clone())?;
    world.install_functions(&own.agents.keys().collect::<Vec<_>>(), &common.tools, functions.port())?;

    let script = Script::from_json(&serde_json::Value::from(common.model.clone()))?;
    let late = clock.clone();
    let delays = move |delay| -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> { late.pause(delay) };
    let model = Loopback::start_with(script, Arc::new(delays))?;
    let options = options(&common, &world, &model, &clock);
    let host = stage.host.beside(HostOptions { journal: JournalChoice::Memory, ..options.clone() });
    let host = host.map_err(|error| PlayError::Host(with_causes(&error)))?;
    let agent = match host.load(world.entry()) {
        Ok(agent) => agent,
        Err(failure) => return Ok(check(&common, &rejected(&failure, &world))),
    };
    let warnings = lines(&agent.warnings.iter().collect::<Vec<_>>(), &world);

    let said = server::Said::default();
    let settings = settings(&world, outside.port())?;
    let setup = Setup { stage: stage.host.clone(), options, settings };
    let steps = own.steps.as_deref().unwrap_or_default();
    let played = stage.runtime.block_on(async {
        let file = world.beside("serve.db");
        let keys = server::make_keys(own.auth.as_ref(), &file)?;
        let conversation = Conversation::begin(&setup, (clock, saved.clone(), said.clone()), keys).await?;
        tokio::time::timeout(stage.limit, conversation.play(steps))
            .await
            .unwrap_or_else(|_| Err(format!("the steps did not come to an end within {} s", stage.limit.as_secs())))
    });
    let mut mismatches = played.map_err(PlayError::Host)?;
    if let Some(reexecution) = &stage.reexecution {
        let host = stage.host.beside(setup.options.clone()).map_err(|error| PlayError::Host(with_causes(&error)))?;
        stage.runtime.block_on(reexecution.of(&host)).map_err(PlayError::OtherwiseAgain)?;
    }

    let requests = outside.requests();
    if let Some(unanswered) = outside.unanswered().first() {
        let got = outside::lines(std::slice::from_ref(unanswered));
        mismatches.push(Mismatch::new("http", "an entry for every request", got));
    }
    if let Some(expected) = &expect.http_requests {
        let (place, order) = ("expect.http_requests", expect.http_requests_order);
        mismatches.extend(outside::compare(place, expected, order, &requests, &saved));
    }
    let (include, exclude) = (&expect.http_requests_include, &expect.http_requests_exclude);
    mismatches.extend(outside::include("expect.http_requests_include", include, &requests, &saved));
    mismatches.extend(outside::exclude("expect.http_requests_exclude", exclude, &requests, &saved));

    let mut prompts = models::prompts(&agent.graph);
    prompts.retain(|(agent, _)| !own.agents.contains_key(agent));
    let diary = functions.diary();
    let mut runs: Vec<Ran> = diary.runs.clone();
    runs.extend(models::runs(&prompts, &model));
    runs.sort_by_key(|ran| ran.at);
    let visible: Vec<String> = own.agents.keys().cloned().chain(prompts.into_iter().map(|(agent, _)| agent)).collect();
    let seen = Seen {
        runs: &runs,
        visible: &visible,
        most: &|agent| diary.most.get(agent).copied().unwrap_or_default(),
        events: &server::said(&said),
        warnings: &warnings,
    };
    mismatches.extend(expect::check(&expect, &seen, &saved));
    let problems = diary.problems.iter();
    mismatches.extend(problems.map(|problem| Mismatch::new("agents", "calls of the functions of the case", problem)));
    let observed = Observed {
        warnings: warnings.clone(),
        exchange: ModelExchange::of(&model),
        tool_calls: diary.tool_calls.clone(),
        ..nothing_ran(Status::Completed)
    };
    mismatches.extend(check(&common, &observed));
    Ok(mismatches)
}

/// Where the clock of a case stands at the beginning.
fn begins(text: &str) -> Result<SystemTime, PlayError> {
    let case = case::parse(text).map_err(|error| PlayError::Host(error.to_string()))?;
    let Some(clock) = case.own.clock else { return Ok(SystemTime::now()) };
    let time: jiff::Timestamp =
        clock.parse().map_err(|error| PlayError::Host(format!("`clock` is not a valid time: {error}")))?;
    Ok(time.into())
}

fn options(case: &CaseFile, world: &World, model: &Loopback, clock: &ManualClock) -> HostOptions {
    let own = environment(case, &model.base_url());
    let secret = ("LEAFMESH_WEBHOOK_SECRET".to_owned(), SECRET.to_owned());
    HostOptions {
        environment: Environment::of([secret].into_iter().chain(own)),
        journal: JournalChoice::File(world.beside("runs.db")),
        stores: StoresChoice::File(world.beside("stores.db")),
        prices: Some(prices(case)),
        clock: Arc::new(clock.clone()),
        ..HostOptions::isolated()
    }
}

/// The servers of providers, which are all the outside server of the case.
const PROVIDERS: [&str; 7] = [
    "api.telegram.org",
    "discord.com",
    "graph.facebook.com",
    "login.botframework.com",
    "login.microsoftonline.com",
    "slack.com",
    "smba.trafficmanager.net",
];

fn settings(world: &World, outside: u16) -> Result<ServeSettings, PlayError> {
    let address: url::Url = format!("http://127.0.0.1:{outside}")
        .parse()
        .map_err(|error| PlayError::Host(format!("the outside server has no address: {error}")))?;
    Ok(ServeSettings {
        folders: vec![world.entry().to_owned()],
        file: Some(world.beside("serve.db")),
        drain: DRAIN,
        vendor_addresses: PROVIDERS.map(|name| (name.to_owned(), address.clone())).into(),
        ..ServeSettings::default()
    })
}
