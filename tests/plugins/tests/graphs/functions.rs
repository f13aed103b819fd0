//! Functions of the program that embeds hotcell, as tools of the agents that it loads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use hotcell_runtime::{
    Agent, FunctionCall, Host, HostOptions, JournalChoice, LoadFailure, OfferError, Offered, OfferedFunction, Outcome,
    RunInput, RunReport, Session, ToolSpec,
};
use serde_json::{Value, json};

use crate::desk::Desk;

const WORKFLOW: &str = "name: one\nconfig: {max_retries: 0}\nstate: {}\nsteps:\n  \
                        - {id: look, type: tool, tool_name: look, tool_args: {}, output: found}\n";
const GATED: &str = "name: gated\nstate: {}\nsteps:\n  - {id: gate, type: approval_gate, output: decision}\n  \
                     - {id: look, type: tool, tool_name: look, tool_args: {}, depends_on: [gate], output: found}\n";

/// Gives one value, or panics where there is none.
struct Gives {
    name: &'static str,
    description: &'static str,
    parameters: Value,
    value: Option<&'static str>,
    calls: AtomicU32,
}

fn gives(value: Option<&'static str>) -> Gives {
    let parameters = json!({ "type": "object" });
    Gives { name: "look", description: "Looks", parameters, value, calls: AtomicU32::new(0) }
}

#[async_trait]
impl OfferedFunction for Gives {
    fn spec(&self) -> ToolSpec {
        let (name, description) = (self.name.to_owned(), self.description.to_owned());
        ToolSpec { name, description, parameters: self.parameters.clone() }
    }

    async fn call(&self, call: FunctionCall) -> Result<String, String> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(call.run.is_some());
        Ok(self.value.expect("nothing to give").to_owned())
    }
}

fn offering(function: Gives) -> Offered {
    Offered::default().function(Arc::new(function)).unwrap()
}

fn load(host: &Host, desk: &Desk) -> Result<Agent, LoadFailure> {
    host.load(&desk.path("flow.yaml"))
}

async fn run(host: &Host, desk: &Desk) -> RunReport {
    let agent = load(host, desk).unwrap();
    host.run(&agent, RunInput::default(), Session::unattended()).await.unwrap()
}

#[tokio::test]
async fn a_function_that_panics_fails_its_call_and_nothing_else() {
    let desk = Desk::of("flow.yaml", WORKFLOW);
    let host = Host::new(HostOptions::isolated()).unwrap();
    let report = run(&host.offering(offering(gives(None))), &desk).await;
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(error.contains("it panicked: nothing to give"), "{error}");
    let report = run(&host.offering(offering(gives(Some("7")))), &desk).await;
    assert_eq!(report.state.get("found").unwrap().to_json(), "7");
}

#[tokio::test]
async fn a_function_that_is_handed_in_comes_before_a_plugin_and_is_accounted_as_unsealed() {
    let desk = Desk::of("flow.yaml", WORKFLOW);
    desk.plugin("probe", "look", &[], json!({}), "");
    let host = Host::new(HostOptions::isolated()).unwrap();
    let offering = host.offering(offering(gives(Some(r#""from the program""#))));
    let report = run(&offering, &desk).await;
    assert_eq!(report.state.get("found").unwrap().to_json(), r#""from the program""#);
    assert_eq!(report.account.iter().map(|(who, _)| who).collect::<Vec<_>>(), ["unsealed:look"]);
    // The host that it was made of hands in nothing.
    let report = run(&host, &desk).await;
    assert_eq!(report.account.iter().map(|(who, _)| who).collect::<Vec<_>>(), ["probe"]);
}

#[tokio::test]
async fn a_run_goes_on_with_what_it_was_told_about_a_function_and_not_without_it() {
    let desk = Desk::of("flow.yaml", GATED);
    let journal = JournalChoice::File(desk.path("runs.db"));
    let host = Host::new(HostOptions { journal, ..HostOptions::isolated() }).unwrap();
    let report = run(&host.offering(offering(gives(Some("1")))), &desk).await;
    assert!(matches!(report.outcome, Outcome::Waiting { .. }), "{:?}", report.outcome);
    let name = report.run.as_str();
    host.answer(name, None, "approved").await.unwrap();
    let refused = host.resume(name, Session::unattended()).await.unwrap_err().to_string();
    assert!(refused.contains("it is a function of the program that began the run"), "{refused}");
    let report = host.offering(offering(gives(Some("2")))).resume(name, Session::unattended()).await.unwrap();
    assert_eq!(report.state.get("found").unwrap().to_json(), "2");
}

#[test]
fn what_cannot_be_offered_is_refused() {
    let refused = |function: Gives| Offered::default().function(Arc::new(function)).err().unwrap().to_string();
    assert!(refused(Gives { name: "a b", ..gives(None) }).starts_with("`a b` is not a valid function name"));
    let broken = Gives { parameters: json!({ "type": "nothing" }), ..gives(None) };
    assert!(refused(broken).starts_with("the function `look` has no JSON schema that can be used"));
    let twice = offering(gives(None)).function(Arc::new(gives(None)));
    assert!(matches!(twice, Err(OfferError::Twice(name)) if name == "look"));
    assert!(Offered::default().type_schema("a.B", &json!(3)).is_err());
}
