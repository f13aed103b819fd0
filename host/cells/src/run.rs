//! Calling: one fresh instance under one budget, from its first instruction to the report of what it used.
//!
//! Whatever a guest does, a call ends with a typed result: it runs out of fuel or time, is refused memory, traps,
//! exits or answers. Nothing of a call is left behind, also when its future is dropped half-way.

mod enter;
mod guarded;
mod report;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hotcell_budget::{Budget, Bytes, Limit, Usage};
use wasmtime::Store;
use wasmtime::component::InstancePre;

use self::enter::{Answer, Enter};
use self::guarded::guarded;
use self::report::report;
use crate::call::{
    CellError, ConnectorCall, ConnectorReply, GuestErrorKind, HookCall, NodeCall, NodeOutcome, Report, ScriptCall,
    StateView, Terms, ToolCall, Verdict,
};
use crate::cells::{Cell, Cells};
use crate::contract::{GuestCallback, GuestRequest};
use crate::entries::ScriptEntry;
use crate::grants::{Access, DirectoryGrant};
use crate::guest::{GuestSetup, GuestState, Taping};
use crate::recording::{Begun, Called, Player};
use crate::room::Place;
use crate::watch::Watcher;

/// Fuel after which a guest lets others run and its deadline is looked at: some hundred microseconds. What costs no fuel
/// is watched by [`Watcher`].
const YIELD_INTERVAL: u64 = 2_000_000;
/// Bytes of state that are handed over in the environment; more goes into a file.
const MAX_STATE_VARIABLE: usize = 32_768;
/// Where the guest finds the directory of the state file.
const STATE_DIRECTORY: &str = "/graph-state";
/// The name of the state file.
const STATE_FILE: &str = "state.json";

impl Cells {
    /// Runs a script node: gives the text that the script put out, or the JSON that its `run` returned.
    ///
    /// The call waits for its turn when too many run at once; that is not part of its wall-clock time.
    pub async fn run_script(&self, cell: &Cell, call: ScriptCall) -> Report<String> {
        self.script(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn script(&self, cell: &Cell, call: ScriptCall, player: Option<Arc<Player>>) -> Report<String> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let Some(entry) = cell.loaded.entries.script else {
            return Report::refused(CellError::WrongKind {
                message: format!("`{}` is not a script: it only has tools", cell.name()),
            });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun =
            Begun::new(cell.digest(), &call.terms, || Called::Script { file: call.file_name.clone(), state: None });
        let taping = Taping::new(player, begun.map(|begun| begun.with_source(call.source.as_deref())));
        let setup = match entry {
            ScriptEntry::Plugin(_) => {
                Ok((None, plugin_setup(call.file_name.clone(), Some(call.state.clone()), None, taping)))
            }
            ScriptEntry::Command(_) | ScriptEntry::Interpreter(_) => command_setup(&call, taping),
        };
        let (state_file, setup) = match setup {
            Ok(setup) => setup,
            Err(error) => return Report::refused(error),
        };
        let instance = &cell.loaded.instance;
        let report = match entry {
            ScriptEntry::Plugin(run) => {
                let enter = Enter::Plugin(run);
                self.call(instance, setup, &call.terms, &budget, enter).await
            }
            ScriptEntry::Command(run) => self.call(instance, setup, &call.terms, &budget, Enter::Command(run)).await,
            ScriptEntry::Interpreter(run) => {
                let Some(source) = call.source.clone() else {
                    return Report::refused(CellError::WrongKind {
                        message: format!("the interpreter `{}` was called without a script", cell.name()),
                    });
                };
                let enter = Enter::Interpreter(run, call.file_name.clone(), source);
                self.call(instance, setup, &call.terms, &budget, enter).await
            }
        };
        drop(state_file);
        report.map(Answer::into_text)
    }

    /// Calls a tool: gives the JSON that it returned.
    ///
    /// Where the tool puts a question for which [`ToolCall::answers`] holds no answer, the result is
    /// [`CellError::Suspended`]; call again with the answer added.
    pub async fn call_tool(&self, cell: &Cell, call: ToolCall) -> Report<String> {
        self.tool(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn tool(&self, cell: &Cell, call: ToolCall, player: Option<Arc<Player>>) -> Report<String> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let (Some(entry), Some(description)) = (cell.loaded.entries.tool, cell.description()) else {
            return Report::refused(CellError::WrongKind { message: format!("`{}` has no tools", cell.name()) });
        };
        if !description.tools.iter().any(|tool| tool.name == call.tool) {
            return Report::refused(CellError::WrongKind {
                message: format!("`{}` has no tool `{}`", cell.name(), crate::text::one_line(&call.tool, 100)),
            });
        }
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || {
            let (tool, arguments, answers) = (call.tool.clone(), call.arguments.clone(), call.answers.clone());
            Called::Tool { tool, arguments, answers }
        });
        let setup = plugin_setup(cell.name().to_owned(), None, Some(call.answers), Taping::new(player, begun));
        let enter = Enter::Tool(entry, call.tool, call.arguments);
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(Answer::into_text)
    }

    /// Runs a node of a plugin's own type. A question without answer ends it as with [`Cells::call_tool`].
    pub async fn run_node(&self, cell: &Cell, call: NodeCall) -> Report<NodeOutcome> {
        self.node(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn node(&self, cell: &Cell, call: NodeCall, player: Option<Arc<Player>>) -> Report<NodeOutcome> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let described =
            cell.description().is_some_and(|all| all.nodes.iter().any(|node| node.node_type == call.node_type));
        let (Some(entry), true) = (cell.loaded.entries.node, described) else {
            return Report::refused(CellError::WrongKind {
                message: format!(
                    "`{}` has no node type `{}`",
                    cell.name(),
                    crate::text::one_line(&call.node_type, 100)
                ),
            });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || {
            let (node_type, fields) = (call.node_type.clone(), call.fields.clone());
            Called::Node { node_type, fields, inputs: call.inputs.clone(), answers: call.answers.clone() }
        });
        let setup =
            plugin_setup(cell.name().to_owned(), Some(call.state), Some(call.answers), Taping::new(player, begun));
        let enter = Enter::Node(entry, call.node_type, call.fields, call.inputs);
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(|answer| match answer {
            Answer::Outcome(outcome) => outcome,
            other => NodeOutcome { outputs: other.into_text(), branch: None, metadata: Vec::new() },
        })
    }

    /// Makes a fresh instance and drops it again without calling it, and gives how long that took.
    ///
    /// # Errors
    /// When the instance cannot be made within the budget of the terms.
    pub async fn instantiate(&self, cell: &Cell, terms: &Terms) -> Result<Duration, CellError> {
        let budget = terms.budget.clamp(&self.shared.ceiling);
        let started = Instant::now();
        let setup = plugin_setup(cell.name().to_owned(), None, None, Taping::Off);
        let report = self.call(&cell.loaded.instance, setup, terms, &budget, Enter::Nothing).await;
        report.result.map(|_| started.elapsed())
    }

    /// Tells a hook of an event.
    pub async fn call_hook(&self, cell: &Cell, call: HookCall) -> Report<Verdict> {
        self.hook(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn hook(&self, cell: &Cell, call: HookCall, player: Option<Arc<Player>>) -> Report<Verdict> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let Some(entry) = cell.loaded.entries.hook else {
            return Report::refused(CellError::WrongKind { message: format!("`{}` has no hooks", cell.name()) });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || Called::Hook {
            point: call.point.clone(),
            event: call.event.clone(),
        });
        let setup = plugin_setup(cell.name().to_owned(), None, None, Taping::new(player, begun));
        let enter = Enter::Hook(entry, call.point, call.event);
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(|answer| match answer {
            Answer::Verdict(verdict) => verdict,
            other => Verdict::Change(other.into_text()),
        })
    }

    /// Hands a request to a connector or, with a body, what came by its callback.
    pub async fn call_connector(&self, cell: &Cell, call: ConnectorCall) -> Report<ConnectorReply> {
        self.connector(cell, call, None).await
    }

    /// The same; with a player, from a recording.
    pub(crate) async fn connector(
        &self,
        cell: &Cell,
        call: ConnectorCall,
        player: Option<Arc<Player>>,
    ) -> Report<ConnectorReply> {
        let budget = call.terms.budget.clamp(&self.shared.ceiling);
        let Some((send, receive)) = cell.loaded.entries.connector else {
            return Report::refused(CellError::WrongKind { message: format!("`{}` is not a connector", cell.name()) });
        };
        if let Err(error) = check_depth(&call.terms, &budget) {
            return Report::refused(error);
        }
        let begun = Begun::new(cell.digest(), &call.terms, || {
            let ConnectorCall { input, config, callback, body, .. } = call.clone();
            Called::Connector { input, config, callback, body }
        });
        let setup = plugin_setup(cell.name().to_owned(), None, None, Taping::new(player, begun));
        let request = GuestRequest {
            input: call.input,
            config: call.config,
            callback: call.callback.map(|(url, session)| GuestCallback { url, session }),
            metadata: Vec::new(),
        };
        let enter = match call.body {
            None => Enter::Send(send, request),
            Some(body) => Enter::Receive(receive, request, body),
        };
        self.call(&cell.loaded.instance, setup, &call.terms, &budget, enter).await.map(|answer| match answer {
            Answer::Reply(reply) => reply,
            other => ConnectorReply::Done(other.into_text()),
        })
    }

    async fn call(
        &self,
        instance: &InstancePre<GuestState>,
        setup: GuestSetup,
        terms: &Terms,
        budget: &Budget,
        enter: Enter,
    ) -> Report<Answer> {
        if let Err(error) = self.check_directories(terms) {
            return Report::refused(error);
        }
        // A call that is executed again works for nobody that waits.
        let depth = if matches!(setup.taping, Taping::Play(_)) { 0 } else { terms.depth };
        let _permit = match self.permit(depth, budget.memory).await {
            Ok(permit) => permit,
            Err(error) => return Report::refused(error),
        };
        let started = Instant::now();
        let guest = match GuestState::new(setup, terms, budget, self.shared.repeatable.as_ref(), started) {
            Ok(guest) => guest,
            Err(error) => return Report::refused(error),
        };
        let deadline = guest.watch.deadline();
        let mut store = match self.store(guest, budget) {
            Ok(store) => store,
            Err(error) => return Report::refused(CellError::Host { message: format!("{error:#}") }),
        };
        let outcome = {
            let work = pin!(async {
                let instance = instance.instantiate_async(&mut store).await?;
                enter.run(&mut store, &instance).await
            });
            guarded(deadline, work).await
        };
        report(store, outcome, budget, started)
    }

    /// No guest writes where compiled cells are kept: they are machine code, and what lies there is run outside of any cell.
    fn check_directories(&self, terms: &Terms) -> Result<(), CellError> {
        let Some(cache) = &self.shared.cache else { return Ok(()) };
        let writable = |grant: &&DirectoryGrant| grant.access == Access::ReadWrite;
        match terms.grants.fs.iter().filter(writable).find(|grant| cache.is_reached_from(&grant.host)) {
            None => Ok(()),
            Some(grant) => Err(CellError::Directory {
                message: format!(
                    "the directory `{}` is granted to `{}` for writing, and compiled cells are kept there, which are machine \
                     code; grant another directory, or this one for reading only",
                    grant.host.display(),
                    terms.plugin
                ),
            }),
        }
    }

    /// A place among the calls that run at once. A call that other calls wait for does not wait itself: where
    /// everything is taken by its own callers, waiting would never end.
    async fn permit(&self, depth: u32, memory: Bytes) -> Result<Place, CellError> {
        if depth == 0 {
            return Ok(self.share.calls.take(memory).await);
        }
        self.share.nested.try_take(memory).ok_or_else(|| CellError::Guest {
            kind: GuestErrorKind::Unavailable,
            message: "too many plugins call each other at the moment".to_owned(),
            metadata: Vec::new(),
        })
    }

    fn store(&self, guest: GuestState, budget: &Budget) -> wasmtime::Result<Store<GuestState>> {
        let mut store = Store::new(&self.shared.engine, guest);
        store.limiter(|guest| &mut guest.limiter);
        store.call_hook_async(Watcher);
        store.set_fuel(budget.fuel.0)?;
        store.fuel_async_yield_interval(Some(YIELD_INTERVAL))?;
        store.set_hostcall_fuel(budget.transfer.as_usize());
        store.set_max_component_handles(budget.handles as usize);
        Ok(store)
    }
}

impl<T> Report<T> {
    /// The same report with another form of its result.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Report<U> {
        let Self { result, usage, nested, logs, dropped_log_lines, stderr, denials, recording } = self;
        Report { result: result.map(form), usage, nested, logs, dropped_log_lines, stderr, denials, recording }
    }

    /// The report of a call that never reached its guest.
    fn refused(error: CellError) -> Self {
        Self {
            result: Err(error),
            usage: Usage { calls: 1, ..Usage::default() },
            nested: Vec::new(),
            logs: Vec::new(),
            dropped_log_lines: 0,
            stderr: String::new(),
            denials: Vec::new(),
            recording: None,
        }
    }
}

fn check_depth(terms: &Terms, budget: &Budget) -> Result<(), CellError> {
    if terms.depth < budget.depth {
        return Ok(());
    }
    let detail =
        format!("`{}` is called from {} plugins above it, and {} may nest", terms.plugin, terms.depth, budget.depth);
    Err(CellError::Limit { limit: Limit::TooDeep, detail })
}

fn plugin_setup(
    program: String,
    state: Option<Arc<dyn StateView>>,
    answers: Option<Vec<String>>,
    taping: Taping,
) -> GuestSetup {
    GuestSetup {
        program,
        env: Vec::new(),
        scratch: None,
        state,
        answers,
        stdout_is_result: false,
        secrets_in_env: false,
        taping,
    }
}

/// What a script finds that reads its state from the environment: `GRAPH_STATE` or, if the state is large,
/// `GRAPH_STATE_FILE`; and placeholders of secrets under their names. The directory of the file lasts as long as what is returned.
fn command_setup(call: &ScriptCall, taping: Taping) -> Result<(Option<tempfile::TempDir>, GuestSetup), CellError> {
    let state = call.state.all();
    let mut setup = GuestSetup {
        program: call.file_name.clone(),
        env: Vec::new(),
        scratch: None,
        state: None,
        answers: None,
        stdout_is_result: true,
        secrets_in_env: true,
        taping: match taping {
            Taping::Record(begun) => Taping::Record(Box::new(begun.with_state(&state))),
            other => other,
        },
    };
    if state.len() <= MAX_STATE_VARIABLE {
        setup.env.push(("GRAPH_STATE".to_owned(), state.as_ref().to_owned()));
        return Ok((None, setup));
    }
    let failed = |error: std::io::Error| CellError::Host { message: format!("cannot write the state file: {error}") };
    let directory = tempfile::Builder::new().prefix("hotcell-state-").tempdir().map_err(failed)?;
    std::fs::write(directory.path().join(STATE_FILE), state.as_bytes()).map_err(failed)?;
    setup.scratch = Some((directory.path().to_owned(), STATE_DIRECTORY));
    setup.env.push(("GRAPH_STATE_FILE".to_owned(), format!("{STATE_DIRECTORY}/{STATE_FILE}")));
    Ok((Some(directory), setup))
}
