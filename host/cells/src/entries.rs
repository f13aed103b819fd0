//! The functions of a component that hotcell calls, found and compared with the contract when it is loaded.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Type};

use crate::contract::{CALL_TOOL, CONNECT, HOOK, Interface, RUN_NODE, RUN_SCRIPT};
use crate::inspect::InspectError;
use crate::load_error::LoadError;

/// How the names of a command's `run` begin.
const COMMAND: &str = "wasi:cli/run@0.2.";

/// The functions of a component that hotcell calls.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entries {
    pub(crate) script: Option<ScriptEntry>,
    pub(crate) tool: Option<ComponentExportIndex>,
    pub(crate) node: Option<ComponentExportIndex>,
    pub(crate) hook: Option<ComponentExportIndex>,
    /// `send` and `receive`.
    pub(crate) connector: Option<(ComponentExportIndex, ComponentExportIndex)>,
}

/// How a script is run.
#[derive(Clone, Copy)]
pub(crate) enum ScriptEntry {
    /// `run-script.run` of the contract.
    Plugin(ComponentExportIndex),
    /// `wasi:cli/run`.
    Command(ComponentExportIndex),
    /// `run` of a bundled interpreter.
    Interpreter(ComponentExportIndex),
}

/// Finds what can be called, and makes sure that it takes and gives what the contract says.
pub(crate) fn find_entries(engine: &wasmtime::Engine, component: &Component, name: &str) -> Result<Entries, LoadError> {
    let kind = component.component_type();
    let names: Vec<&str> = kind.exports(engine).map(|(name, _)| name).collect();
    let found = Found { component, name };
    let command = names.iter().find(|name| name.starts_with(COMMAND));
    let script = match (found.of(RUN_SCRIPT, "run", &[], is_json)?, command) {
        (Some(index), _) => Some(ScriptEntry::Plugin(index)),
        (None, Some(command)) => found.function(command, "run", &[], is_command_result)?.map(ScriptEntry::Command),
        (None, None) => None,
    };
    const TEXT: fn(&Type) -> bool = |kind| *kind == Type::String;
    const RECORD: fn(&Type) -> bool = |kind| matches!(kind, Type::Record(_));
    let send = found.of(CONNECT, "send", &[RECORD], is_variant)?;
    let receive = found.of(CONNECT, "receive", &[RECORD, TEXT], is_json)?;
    let entries = Entries {
        script,
        tool: found.of(CALL_TOOL, "call", &[TEXT, TEXT], is_json)?,
        node: found.of(RUN_NODE, "run", &[TEXT, TEXT, TEXT], is_record)?,
        hook: found.of(HOOK, "on", &[TEXT, TEXT], is_variant)?,
        connector: send.zip(receive),
    };
    let plugin = entries.tool.or(entries.node).or(entries.hook).or(send);
    if script.is_none() && plugin.is_none() {
        let found = match names.as_slice() {
            [] => "it exports nothing".to_owned(),
            names => format!("it exports `{}`", crate::text::one_line(&names.join("`, `"), 300)),
        };
        let error = InspectError::NoEntry(format!(
            "{found}; a script exports `run-script` of `hotcell:plugin` or `wasi:cli/run`, other plugins `call-tool`, \
             `run-node`, `hook` or `connect`"
        ));
        return Err(LoadError::Inspect { name: name.to_owned(), error });
    }
    Ok(entries)
}

/// A component whose functions are looked up.
struct Found<'a> {
    component: &'a Component,
    name: &'a str,
}

impl Found<'_> {
    /// A function of an interface of the contract, in the newest version that the component exports.
    fn of(
        &self,
        interface: Interface,
        function: &str,
        parameters: &[fn(&Type) -> bool],
        result: fn(&Type) -> bool,
    ) -> Result<Option<ComponentExportIndex>, LoadError> {
        let mut newest = None;
        for name in interface.names() {
            newest = self.function(&name, function, parameters, result)?.or(newest);
        }
        Ok(newest)
    }

    fn function(
        &self,
        instance: &str,
        function: &str,
        parameters: &[fn(&Type) -> bool],
        result: fn(&Type) -> bool,
    ) -> Result<Option<ComponentExportIndex>, LoadError> {
        let Some(interface) = self.component.get_export_index(None, instance) else { return Ok(None) };
        let fits = |item: &ComponentItem| match item {
            ComponentItem::ComponentFunc(function) => {
                function.params().len() == parameters.len()
                    && function.params().zip(parameters).all(|((_, kind), is)| is(&kind))
                    && matches!(function.results().collect::<Vec<_>>().as_slice(), [kind] if result(kind))
            }
            _ => false,
        };
        match self.component.get_export(Some(&interface), function) {
            Some((item, index)) if fits(&item) => Ok(Some(index)),
            _ => Err(LoadError::Compile {
                name: self.name.to_owned(),
                detail: format!("its `{instance}` has no function `{function}` of the contract's type"),
            }),
        }
    }
}

/// `result<T, error>` with a `T` that fits.
fn is_result(kind: &Type, fits: impl Fn(&Type) -> bool) -> bool {
    let Type::Result(result) = kind else { return false };
    let Some(Type::Variant(error)) = result.err() else { return false };
    result.ok().is_some_and(|kind| fits(&kind))
        && error.cases().map(|case| case.name).eq(["invalid-input", "denied", "unavailable", "other"])
}

/// `result<json, error>`.
fn is_json(kind: &Type) -> bool {
    is_result(kind, |kind| *kind == Type::String)
}

/// `result<outcome, error>`; the engine compares the fields when the function is called.
fn is_record(kind: &Type) -> bool {
    is_result(kind, |kind| matches!(kind, Type::Record(_)))
}

/// `result<verdict, error>` or `result<reply, error>`; the engine compares the cases when the function is called.
fn is_variant(kind: &Type) -> bool {
    is_result(kind, |kind| matches!(kind, Type::Variant(_)))
}

/// `result`.
fn is_command_result(kind: &Type) -> bool {
    matches!(kind, Type::Result(result) if result.ok().is_none() && result.err().is_none())
}
