//! Runs go on with what they were loaded from when they began, whatever became of the files since, and say so. What was revoked
//! meanwhile is revoked for them, too.

use std::path::Path;
use std::sync::{Arc, Mutex};

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::plugins::{AgentFolder, Plugin, Trust, parse_grants};
use hotcell_runtime::{
    CancellationToken, Event, Host, HostOptions, JournalChoice, Nobody, Observer, Outcome, RevisionChoice,
    RevisionRegistry, RunHeader, RunInput, RunReport, Session,
};
use serde_json::{Value, json};

use crate::desk::{Desk, Says, calls, error, output, told};

/// Asks, and then does what a script says.
const SCRIPT: &str = "name: keeps\nversion: \"1.0\"\nstart: ask\nnodes:\n  \
    ask: { type: input, question: \"Go on?\", next: work }\n  \
    work: { type: script, script: scripts/work.js, next: done }\n  \
    done: { type: end, output: \"{{said}}\" }\n";
/// Asks, and then has a model call the tool of `probe`.
const MODEL: &str = "name: keeps\nversion: \"1.0\"\nstart: ask\nglobal_tools: [probe]\nnodes:\n  \
    ask: { type: input, question: \"Go on?\", next: work }\n  \
    work: { type: llm, prompt: go, tools: [probe], state_updates: { answer: \"{{output}}\" }, next: done }\n  \
    done: { type: end, output: \"{{answer}}\" }\n";

/// Keeps what is said about revisions.
#[derive(Default)]
struct Told(Mutex<Vec<(bool, Vec<String>)>>);

impl Observer for Told {
    fn event(&self, event: &Event<'_>) {
        if let Event::Revision { current, changed, .. } = event {
            self.0.lock().unwrap().push((*current, changed.to_vec()));
        }
    }
}

/// A host and a run of it that waits.
struct Waiting {
    host: Host,
    model: Loopback,
    run: String,
    told: Arc<Told>,
}

impl Waiting {
    /// A run of the agent at this path, by a host that is set up like this.
    async fn of(desk: &Desk, agent: &Path, replies: Value, change: impl FnOnce(&mut HostOptions)) -> Self {
        let model = Loopback::start(Script::from_json(&replies).unwrap()).unwrap();
        let mut options = desk.options(&model);
        change(&mut options);
        let host = Host::new(options).unwrap();
        let agent = host.load(agent).unwrap_or_else(|failure| panic!("{failure}"));
        let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
        let report = host.run(&agent, given, Desk::session(Arc::new(Nobody))).await.unwrap();
        assert!(matches!(report.outcome, Outcome::Waiting { .. }), "{:?}", report.outcome);
        Waiting { host, model, run: report.run.to_string(), told: Arc::default() }
    }

    async fn script(desk: &Desk) -> Self {
        Waiting::of(desk, &desk.path("graph.yaml"), json!([]), |_| {}).await
    }

    fn session(&self) -> Session {
        let (people, observer) = (Arc::new(Nobody), self.told.clone());
        Session { people, observer, cancel: CancellationToken::new() }
    }

    /// Answers and goes on; gives what was said about revisions, too.
    async fn goes_on(&self, revision: RevisionChoice) -> (Result<RunReport, String>, Vec<(bool, Vec<String>)>) {
        // It may be answered already.
        let _ = self.host.answer(&self.run, None, "yes").await;
        let report = self.host.resume_with(&self.run, &revision, self.session()).await;
        (report.map_err(|error| error.to_string()), std::mem::take(&mut self.told.0.lock().unwrap()))
    }

    async fn own(&self) -> (RunReport, Vec<String>) {
        let (report, said) = self.goes_on(RevisionChoice::Own).await;
        let [(false, changed)] = &said[..] else { panic!("{said:?}") };
        (report.unwrap(), changed.clone())
    }
}

fn says(text: &str) -> String {
    format!("console.log(JSON.stringify({{ said: '{text}' }}))")
}

fn scripted() -> Desk {
    let desk = Desk::new(SCRIPT);
    desk.write("scripts/work.js", &says("old"));
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_changed_while_a_run_waits_counts_for_new_runs() {
    let desk = scripted();
    let (waiting, quiet) = (Waiting::script(&desk).await, Waiting::script(&desk).await);
    let (report, said) = quiet.goes_on(RevisionChoice::Own).await;
    assert_eq!((output(&report.unwrap()), said.len()), ("old".to_owned(), 0), "nothing was changed");
    desk.write("scripts/work.js", &says("new"));
    let (report, changed) = waiting.own().await;
    assert_eq!((output(&report), changed), ("old".to_owned(), vec!["scripts/work.js".to_owned()]));

    let removed = Waiting::script(&desk).await;
    std::fs::remove_dir_all(desk.path("scripts")).unwrap();
    std::fs::write(desk.path("graph.yaml"), "no graph at all").unwrap();
    std::fs::write(desk.path("config.yaml"), "name: another agent").unwrap();
    let (report, changed) = removed.own().await;
    assert_eq!(output(&report), "new");
    assert_eq!(changed, ["config.yaml", "graph.yaml", "scripts/work.js"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_moves_to_what_the_files_say_where_that_fits() {
    let desk = scripted();
    let waiting = Waiting::script(&desk).await;
    // What was committed has to be there: the turn that waits is one of `ask`.
    desk.write("graph.yaml", &SCRIPT.replace("  ask:", "  question:").replace("start: ask", "start: question"));
    let (refused, _) = waiting.goes_on(RevisionChoice::Current).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("waits at `ask`") && refused.contains("`question`"), "{refused}");
    // Nothing was changed by that.
    desk.write("graph.yaml", &SCRIPT.replace("{{said}}", "at last {{said}}"));
    desk.write("scripts/work.js", &says("new"));
    let (report, said) = waiting.goes_on(RevisionChoice::Current).await;
    assert_eq!((output(&report.unwrap()), said), ("at last new".to_owned(), vec![(true, Vec::new())]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_moved_stays_there_until_it_is_moved_back() {
    let desk = scripted();
    let twice = SCRIPT.replace("next: done", "next: again").replace(
        "  done:",
        "  again: { type: input, question: \"Again?\", next: last }\n  \
         last: { type: script, script: scripts/work.js, next: done }\n  done:",
    );
    desk.write("graph.yaml", &twice);
    let waiting = Waiting::script(&desk).await;
    let first = waiting.host.journal().find(&waiting.run).await.unwrap().revision.unwrap();
    desk.write("scripts/work.js", &says("new"));
    let (report, _) = waiting.goes_on(RevisionChoice::Current).await;
    assert!(matches!(report.unwrap().outcome, Outcome::Waiting { .. }));
    desk.write("scripts/work.js", &says("newest"));
    let unknown = RevisionChoice::Digest("0123".to_owned());
    let wrong = waiting.host.resume_with(&waiting.run, &unknown, waiting.session());
    let wrong = wrong.await.unwrap_err().to_string();
    assert!(wrong.contains("has no revision `0123`") && wrong.contains(&first[..12]), "{wrong}");
    let (report, said) = waiting.goes_on(RevisionChoice::Own).await;
    let report = report.unwrap();
    assert_eq!((output(&report), said.len()), ("new".to_owned(), 1));
    // The one that it began with is kept for as long as the run is.
    let back = waiting.host.journal().artefact(&first).await;
    assert!(back.is_ok(), "{back:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_retried_with_its_revision_or_with_what_the_files_say() {
    let desk = scripted();
    desk.write("graph.yaml", &SCRIPT.replace("{{said}}", "{{unknown}}"));
    let waiting = Waiting::script(&desk).await;
    let (report, _) = waiting.goes_on(RevisionChoice::Own).await;
    assert!(error(&report.unwrap()).contains("`unknown`"));
    desk.write("graph.yaml", &SCRIPT.replace("{{said}}", "mended: {{said}}"));
    let report = waiting.host.retry(&waiting.run, waiting.session()).await.unwrap();
    assert!(error(&report).contains("`unknown`"), "{:?}", report.outcome);
    assert_eq!(*waiting.told.0.lock().unwrap(), [(false, vec!["graph.yaml".to_owned()])]);
    let report = waiting.host.retry_with(&waiting.run, &RevisionChoice::Current, waiting.session()).await.unwrap();
    assert_eq!(output(&report), "mended: old");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_called_is_the_one_that_was_there() {
    let (root, desk) = (tempfile::tempdir().unwrap(), Desk::new(SCRIPT));
    let write = |name: &str, text: &str| {
        let file = root.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let parent = "name: parent\nstart: ask\nnodes:\n  ask: { type: input, question: \"Go on?\", next: call }\n  \
        call: { type: agent, agent: child, prompt: hello, state_updates: { said: \"{{output}}\" }, next: done }\n  \
        done: { type: end, output: \"{{said}}\" }\n";
    let child = "name: child\nstart: done\nnodes:\n  done: { type: end, output: the old child }\n";
    write("parent/graph.yaml", parent);
    write("child/graph.yaml", child);
    let waiting = Waiting::of(&desk, &root.path().join("parent"), json!([]), |_| {}).await;
    write("child/graph.yaml", &child.replace("old", "new"));
    let (report, changed) = waiting.own().await;
    assert_eq!(output(&report), "the old child");
    assert!(changed.len() == 1 && changed[0].ends_with("child/graph.yaml"), "{changed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_a_python_file_are_those_that_were_there() {
    let agent = "manifest_version: 1\nllms: [{id: main, model_name: small}]\ndefault_llm: {id: main}\n\
        tools: [{id: balance, import_path: tools.balance}]\nagents:\n  desk:\n    \
        state: {fields: [{name: messages, type: list}, {name: ok, type: str}]}\n    graph:\n      entry_point: ask\n      \
        nodes:\n        - {name: ask, type: interrupt, args: {value: \"'Go on?'\"}}\n        \
        - name: work\n          type: call_llm\n          args:\n            \
        prompt: [{role: messages, content: messages}]\n            use_tools_from_registry: true\n      \
        edges: [{source: ask, target: work}]\n";
    let desk = Desk::of("agent.yaml", agent);
    let function =
        |body: &str| format!("def balance(account: str) -> str:\n    \"\"\"The balance.\"\"\"\n    {body}\n");
    desk.write("tools.py", &function("return 'old ' + account"));
    let waiting =
        Waiting::of(&desk, &desk.path("agent.yaml"), calls("balance", json!({ "account": "a" })), |_| {}).await;
    desk.write("tools.py", "def confirm(account: str) -> str:\n    return 'new'\n");
    let (report, changed) = waiting.own().await;
    assert_eq!((output(&report), changed), ("done".to_owned(), vec!["tools.py".to_owned()]));
    assert!(told(&waiting.model).contains("old a"), "{}", told(&waiting.model));
    let names: Vec<String> = waiting.model.requests()[0].tool_names().iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(names, ["balance"]);
}

fn probed(grants: &str) -> Desk {
    let desk = Desk::new(MODEL);
    let asks = if grants.is_empty() { json!({}) } else { json!({ "kv": true }) };
    desk.plugin("probe", "probe", &[], asks, grants);
    desk
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_replaced_goes_on_as_it_was() {
    let remember = || calls("probe", json!({ "do": "remember", "text": "a" }));
    let desk = probed("kv = true");
    let waiting = Waiting::of(&desk, &desk.path("graph.yaml"), remember(), |_| {}).await;
    // The new one has no such tool, and the operator has decided on it.
    desk.plugin("probe", "another", &[], json!({ "kv": true }), "kv = true");
    let (report, changed) = waiting.own().await;
    assert_eq!((output(&report), told(&waiting.model)), ("done".to_owned(), "null".to_owned()));
    assert!(changed.contains(&"plugins/probe.wasm".to_owned()), "{changed:?}");

    let desk = probed("");
    let say = calls("probe", json!({ "do": "say", "text": "still here" }));
    let waiting = Waiting::of(&desk, &desk.path("graph.yaml"), say, |_| {}).await;
    std::fs::remove_file(desk.path("plugins/probe.wasm")).unwrap();
    let (report, changed) = waiting.own().await;
    assert_eq!((output(&report), told(&waiting.model)), ("done".to_owned(), "still here".to_owned()));
    assert_eq!(changed, ["plugins/probe.wasm"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_stops_the_next_call() {
    let remember = || calls("probe", json!({ "do": "remember", "text": "a" }));
    let grant = |desk: &Desk, grants: &str| {
        let mut folder = AgentFolder::open(&desk.path(""), &Trust::Everything).unwrap();
        let plugin = Plugin::read(&desk.path("plugins/probe.wasm")).unwrap();
        folder.grant(&plugin, &parse_grants(grants).unwrap(), &Trust::Everything).unwrap();
    };
    let desk = probed("kv = true");
    let waiting = Waiting::of(&desk, &desk.path("graph.yaml"), remember(), |_| {}).await;
    grant(&desk, "");
    let (report, _) = waiting.own().await;
    assert_eq!(output(&report), "done");
    assert!(told(&waiting.model).contains("kv"), "the grant is gone: {}", told(&waiting.model));

    let desk = probed("kv = true");
    let waiting = Waiting::of(&desk, &desk.path("graph.yaml"), remember(), |_| {}).await;
    for file in ["hotcell.toml", "hotcell.lock"] {
        std::fs::remove_file(desk.path(file)).unwrap();
    }
    let (report, _) = waiting.own().await;
    assert_eq!(output(&report), "done");
    assert!(told(&waiting.model).contains("what was granted to `probe`"), "{}", told(&waiting.model));

    // Nothing is trusted any more that was when the run began.
    let desk = probed("kv = true");
    let list = tempfile::tempdir().unwrap();
    let trust = Trust::Listed(list.path().join("trust.toml"));
    AgentFolder::open(&desk.path(""), &trust).unwrap().trust(&trust).unwrap();
    let waiting =
        Waiting::of(&desk, &desk.path("graph.yaml"), remember(), |options| options.trust = Some(trust.clone())).await;
    trust.forget(&desk.path("")).unwrap();
    let (report, _) = waiting.own().await;
    assert!(told(&waiting.model).contains("was revoked"), "{}", told(&waiting.model));
    assert_eq!(output(&report), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_gets_nothing_that_is_granted_since() {
    let desk = scripted();
    desk.write("scripts/work.js", "console.log(JSON.stringify({ said: process.env.HOTCELL_SECRET_KEY ?? 'nothing' }))");
    let (waiting, moved) = (Waiting::script(&desk).await, Waiting::script(&desk).await);
    let granted = "[grants.'scripts/work.js']\nenv = ['HOTCELL_SECRET_KEY']";
    desk.settings(granted);
    let (report, changed) = waiting.own().await;
    assert_eq!((output(&report), changed), ("nothing".to_owned(), vec!["hotcell.toml".to_owned()]));
    let (report, _) = moved.goes_on(RevisionChoice::Current).await;
    assert_eq!(output(&report.unwrap()), "value-of-the-key");

    // And the other way round: the value is that of now, if it may be had at all.
    let waiting = Waiting::script(&desk).await;
    std::fs::write(desk.path("hotcell.toml"), "").unwrap();
    let (report, _) = waiting.own().await;
    assert_eq!(output(&report), "nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_edits_a_trusted_script_takes_nothing_from_the_runs_that_have_the_old_one() {
    let desk = scripted();
    let value = "console.log(JSON.stringify({ said: process.env.HOTCELL_SECRET_KEY ?? 'nothing' }))";
    desk.write("scripts/work.js", value);
    std::fs::create_dir(desk.path("data")).unwrap();
    desk.settings(
        "[grants.'scripts/work.js']\nenv = ['HOTCELL_SECRET_KEY']\nfs = [{ host = 'data', guest = '/data' }]",
    );
    let list = tempfile::tempdir().unwrap();
    let trust = Trust::Listed(list.path().join("trust.toml"));
    AgentFolder::open(&desk.path(""), &trust).unwrap().trust(&trust).unwrap();
    let waits = async || {
        Waiting::of(&desk, &desk.path("graph.yaml"), json!([]), |options| options.trust = Some(trust.clone())).await
    };
    let (kept, moved, forgotten) = (waits().await, waits().await, waits().await);
    desk.write("scripts/work.js", &format!("// Changed by somebody.\n{value}"));
    let (report, _) = kept.own().await;
    assert_eq!(output(&report), "value-of-the-key");
    // The new text is not the one that was trusted.
    let (report, _) = moved.goes_on(RevisionChoice::Current).await;
    assert_eq!(output(&report.unwrap()), "nothing");
    trust.forget(&desk.path("")).unwrap();
    let (report, _) = forgotten.own().await;
    assert_eq!(output(&report), "nothing");
}

/// A journal is a file, and whoever sends one can write into it that a folder was trusted, with scripts that nobody saw.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_journal_of_somebody_else_says_of_trust_does_not_count() {
    let desk = scripted();
    let value = "console.log(JSON.stringify({ said: process.env.HOTCELL_SECRET_KEY ?? 'nothing' }))";
    desk.write("scripts/work.js", value);
    desk.settings("[grants.'scripts/work.js']\nenv = ['HOTCELL_SECRET_KEY']");
    let (theirs, mine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let begin = async |list: &tempfile::TempDir| {
        let trust = Trust::Listed(list.path().join("trust.toml"));
        AgentFolder::open(&desk.path(""), &trust).unwrap().trust(&trust).unwrap();
        let change = |options: &mut HostOptions| {
            options.journal = JournalChoice::File(desk.path("sent.db"));
            options.trust = Some(trust);
        };
        Waiting::of(&desk, &desk.path("graph.yaml"), json!([]), change).await
    };
    let sent = begin(&theirs).await;
    desk.write("scripts/work.js", &says("mine"));
    let received = Waiting { run: sent.run, ..begin(&mine).await };
    let (report, _) = received.own().await;
    assert_eq!(output(&report), "nothing");
}

/// A journal may have been sent, and then a stranger wrote which plugins its revision has.
#[tokio::test(flavor = "multi_thread")]
async fn the_hooks_of_the_user_are_told_whatever_plugins_a_revision_names() {
    // It has none, or another one under the name of the user's guard.
    for has_another in [false, true] {
        let (desk, user) = (scripted(), Desk::new(""));
        let agent = desk.path("graph.yaml");
        let journal = |options: &mut HostOptions| options.journal = JournalChoice::File(desk.path("sent.db"));
        if has_another {
            desk.plugin("guard", "probe", &["after-node"], json!({}), "");
        }
        let sent = Waiting::of(&desk, &agent, json!([]), journal).await;
        if has_another {
            std::fs::remove_file(desk.path("plugins/guard.wasm")).unwrap();
            std::fs::remove_file(desk.path("hotcell.lock")).unwrap();
        }
        user.plugin("guard", "other", &["before-node"], json!({}), "");
        let guarded = |options: &mut HostOptions| {
            journal(options);
            options.plugins = vec![user.path("plugins")];
        };
        let received = Waiting { run: sent.run, ..Waiting::of(&desk, &agent, json!([]), guarded).await };
        desk.settings("[plugins.guard.config]\nbefore-node = 'refuse'");
        let (report, _) = received.goes_on(RevisionChoice::Own).await;
        let outcome = format!("{:?}", report.unwrap().outcome);
        assert!(outcome.contains("refused at `before-node`: `guard`"), "{has_another}: {outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_directory_that_became_a_link_to_another_place_is_not_granted_any_more() {
    let desk = scripted();
    desk.write("scripts/work.py", "import json, os\nprint(json.dumps({'said': ','.join(os.listdir('/data'))}))\n");
    desk.write("graph.yaml", &SCRIPT.replace("work.js", "work.py"));
    desk.write("data/mine.txt", "");
    desk.write("elsewhere/key.txt", "");
    desk.settings("[grants.'scripts/work.py']\nfs = [{ host = 'data', guest = '/data' }]");
    let (before, after) = (Waiting::script(&desk).await, Waiting::script(&desk).await);
    let (report, _) = before.goes_on(RevisionChoice::Own).await;
    assert_eq!(output(&report.unwrap()), "mine.txt");
    std::fs::remove_dir_all(desk.path("data")).unwrap();
    std::os::unix::fs::symlink(desk.path("elsewhere"), desk.path("data")).unwrap();
    let (report, _) = after.goes_on(RevisionChoice::Own).await;
    let report = report.unwrap();
    assert!(!format!("{:?}", report.outcome).contains("key.txt"), "{:?}", report.outcome);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_thread_answers_the_question_as_it_was_put() {
    let desk = scripted();
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let host = desk.host(&model);
    let say =
        |text: &str| RunInput { input: Some(text.to_owned()), thread: Some("t".to_owned()), ..RunInput::default() };
    let report = desk.start(&host, say("hello"), Arc::new(Nobody)).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Waiting { .. }));
    desk.write("scripts/work.js", &says("new"));
    let report = desk.start(&host, say("yes"), Arc::new(Nobody)).await.unwrap();
    assert_eq!(output(&report), "old");
    let report = desk.start(&host, say("hello again"), Arc::new(Nobody)).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Waiting { .. }));
    let report = desk.start(&host, say("yes"), Arc::new(Nobody)).await.unwrap();
    assert_eq!(output(&report), "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_an_older_journal_goes_on_with_files_that_are_as_they_were() {
    let tea = "name: tea\nversion: \"1.0\"\nstart: ask\nnodes:\n  \
        ask: { type: input, question: \"Sugar?\", state_updates: { sugar: \"{{input}}\" }, next: done }\n  \
        done: { type: end, output: \"tea with {{sugar}}\" }\n";
    let desk = Desk::new(tea);
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let host = desk.host(&model);
    let header = RunHeader {
        graph: "tea".to_owned(),
        source: desk.path("graph.yaml").canonicalize().unwrap().display().to_string(),
        // Of the text alone, as versions without revisions made it.
        digest: "2c1f464ab661bde612cbd37489d554d787a63bc77bb3250bab702977fe2eb9c3".to_owned(),
        kept: false,
        given: Default::default(),
    };
    let begin = async || {
        let run = host.journal().create(&header, None).await.unwrap().run().to_string();
        assert_eq!(host.journal().find(&run).await.unwrap().revision, None);
        run
    };
    let (first, second, third) = (begin().await, begin().await, begin().await);
    let report = host.resume(&first, Desk::session(Arc::new(Says("milk")))).await.unwrap();
    assert_eq!(output(&report), "tea with milk");
    desk.write("graph.yaml", &tea.replace("tea with", "coffee with"));
    let refused = host.resume(&second, Desk::session(Arc::new(Says("milk")))).await.unwrap_err().to_string();
    assert!(refused.contains("has changed since run"), "{refused}");
    let current = RevisionChoice::Current;
    let report = host.resume_with(&third, &current, Desk::session(Arc::new(Says("milk")))).await.unwrap();
    assert_eq!(output(&report), "coffee with milk");
    assert!(host.journal().find(&third).await.unwrap().revision.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_swaps_whole_revisions_and_keeps_what_cannot_be_loaded_anew() {
    let desk = scripted();
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let registry = RevisionRegistry::new(desk.host(&model));
    let path = desk.path("graph.yaml");
    let changes = registry.changes();
    let (first, same) = (registry.get(&path).await.unwrap(), registry.get(&path).await.unwrap());
    assert!(Arc::ptr_eq(&first, &same) && Arc::ptr_eq(&first, &registry.refresh(&path).await.unwrap()));
    assert_eq!(*changes.borrow(), 1);
    desk.write("graph.yaml", "half a gra");
    assert!(registry.refresh(&path).await.is_err());
    assert!(Arc::ptr_eq(&first, &registry.get(&path).await.unwrap()));
    desk.write("graph.yaml", SCRIPT);
    desk.write("scripts/work.js", &says("new"));
    let results = registry.refresh_all(&[path.clone(), desk.path("nothing"), path.clone()]).await;
    assert!(results[0].is_ok() && results[1].is_err() && results[2].is_ok());
    let second = registry.get(&path).await.unwrap();
    assert!(first.digest() != second.digest() && *changes.borrow() == 2);
    // Runs that have the old one are not concerned.
    let people = Arc::new(Says("yes"));
    let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
    let report = registry.host().run(&first, given.clone(), Desk::session(people.clone())).await.unwrap();
    assert_eq!(output(&report), "old");
    assert_eq!(output(&registry.host().run(&second, given, Desk::session(people)).await.unwrap()), "new");
    registry.remove(&path);
    assert!(registry.all().is_empty() && *changes.borrow() == 3);
}
