//! What sealed calls of a fork may do to the world outside: nothing, unless it is allowed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hotcell_loopback::{Loopback, Script, Site};
use hotcell_runtime::{
    Fact, ForkOrigin, ForkRequest, Host, Nobody, Outcome, Outward, RevisionChoice, RunInput, RunReport, withheld,
};
use serde_json::{Value, json};

use crate::capabilities::ASKING;
use crate::desk::{Desk, GRAPH, calls, output};

/// A run that has come to its end, and where it is.
struct Ran {
    host: Host,
    /// Answers as long as this is there
    _model: Loopback,
    report: RunReport,
}

impl Ran {
    async fn of(desk: &Desk, replies: Value) -> Self {
        let model = Loopback::start(Script::from_json(&replies).unwrap()).unwrap();
        let host = desk.host(&model);
        let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
        let report = desk.start(&host, given, Arc::new(Nobody)).await.unwrap();
        assert!(matches!(report.outcome, Outcome::Completed { .. }), "{:?}", report.outcome);
        Ran { host, _model: model, report }
    }

    /// The number of the last entry that is like this.
    async fn last(&self, wanted: impl Fn(&Fact) -> bool) -> u64 {
        let page = self.host.journal().entries(&self.report.run, 0, 1000).await.unwrap();
        page.entries.iter().rfind(|entry| wanted(&entry.entry.fact)).unwrap().number
    }

    async fn fork(&self, at: u64, allowed: &[Outward]) -> RunReport {
        let run = self.report.run.to_string();
        let origin = ForkOrigin { run, at, allowed: allowed.to_vec(), ..ForkOrigin::default() };
        let wanted = ForkRequest { origin, ..ForkRequest::default() };
        self.host.fork(wanted, &RevisionChoice::Own, Desk::session(Arc::new(Nobody))).await.unwrap()
    }

    /// A fork that goes no further, and what was withheld from it.
    async fn stopped(&self, at: u64, allowed: &[Outward]) -> Vec<String> {
        let report = self.fork(at, allowed).await;
        let Outcome::Stopped { reason } = &report.outcome else { panic!("{:?}", report.outcome) };
        let entries = self.host.journal().history(&report.run).await.unwrap().whole().unwrap();
        let effects: Vec<String> = withheld(&entries).map(|(_, effect)| effect.to_owned()).collect();
        assert!(effects.iter().all(|effect| reason.contains(effect)), "{reason}");
        effects
    }
}

/// The first reply of a model is the last thing that is known of the run.
fn is_call(fact: &Fact) -> bool {
    matches!(fact, Fact::Effect { kind, answer, .. } if kind == "model" && answer.to_string().contains("probe"))
}

#[tokio::test]
async fn a_request_of_a_script_is_withheld_and_no_failure_that_the_graph_reacts_to() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let site = Site::start(move |path, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Some(format!("{{\"path\":\"{path}\"}}"))
    })
    .unwrap();
    let origin = site.origin();
    let desk = Desk::new(ASKING);
    let script = format!(
        "let said = 'nothing';\n\
         try {{ said = (await (await fetch('{origin}/here', {{ method: 'POST' }})).json()).path; }} catch {{}}\n\
         console.log(JSON.stringify({{ said }}));"
    );
    desk.write("scripts/ask.js", &script);
    desk.settings(&format!("[grants.\"scripts/ask.js\"]\nhttp = [\"{origin}\"]"));
    let ran = Ran::of(&desk, json!([])).await;
    assert_eq!((output(&ran.report).as_str(), asked.load(Ordering::Relaxed)), ("/here", 1));
    // The script catches what it is told; what it makes of it counts for nothing.
    let effects = ran.stopped(1, &[]).await;
    assert_eq!(effects, [format!("`scripts/ask.js`: `http` for `POST {origin}`")]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(ran.stopped(1, &[Outward::Models, Outward::Stores, Outward::Tools]).await.len(), 1);
    assert_eq!(output(&ran.fork(1, &[Outward::Http]).await), "/here");
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_a_tool_does_within_its_cell_is_done_and_what_it_keeps_is_withheld() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "kv": true }), "kv = true");
    desk.plugin("second", "other", &[], json!({}), "");
    let ran = Ran::of(&desk, calls("probe", json!({ "do": "remember", "text": "kept" }))).await;
    let at = ran.last(is_call).await;
    assert_eq!(ran.stopped(at, &[]).await, ["`probe`: `kv`, a store of its own"]);

    let says = Ran::of(&desk, calls("probe", json!({ "do": "say", "text": "hello" }))).await;
    let at = says.last(is_call).await;
    // The tool says what it says; then the model would be asked.
    let effects = says.stopped(at, &[]).await;
    assert_eq!(effects, ["a request to the model `test:small`"]);
}

#[tokio::test]
async fn what_a_plugin_has_another_one_do_is_withheld_from_both() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "tool": ["other"] }), "tool = ['other']");
    desk.plugin("second", "other", &[], json!({ "kv": true }), "kv = true");
    let arguments = json!({ "do": "tool", "tool": "other", "arguments": { "do": "remember", "text": "x" } });
    let ran = Ran::of(&desk, calls("probe", arguments)).await;
    let at = ran.last(is_call).await;
    assert_eq!(ran.stopped(at, &[]).await, ["`second`: `kv`, a store of its own"]);
}

#[tokio::test]
async fn what_was_never_granted_is_denied_in_a_fork_as_in_its_run() {
    let desk = Desk::new(GRAPH);
    desk.plugin("probe", "probe", &[], json!({ "kv": true }), "clock = 'coarse'");
    desk.plugin("second", "other", &[], json!({}), "");
    let ran = Ran::of(&desk, calls("probe", json!({ "do": "remember", "text": "x" }))).await;
    let at = ran.last(is_call).await;
    assert_eq!(ran.stopped(at, &[]).await, ["a request to the model `test:small`"]);
}
